// SPDX-License-Identifier: GPL-2.0-or-later
// The rules of a file or of a pod, which `diff --effect` compares: any text is refused by an error that can be read, or
// is rules that are compared with themselves without a difference being found in their words. The same of what is
// pasted into a report, which is shown, too.
#include "fuzz.h"
#include "render/show.h"
#include "rule/iptables.h"
#include "text/read_rules.h"
#include "text/read_texts.h"
#include "text/text_pod.h"

using namespace sidetrack;

namespace {

void read_report(const RulesText& text) {
  const RulesOfTexts read = read_texts({&text, 1}, true);
  for (const std::string& note : read.notes) fuzz::require(printable(note) == note, note);
  const TextPod pod = pod_of_text(read.live, {});
  const std::string shown = rules_json(read.live, pod.routing);
  fuzz::require(rules_json(read_texts({&text, 1}, true).live, pod.routing) == shown, "read twice, it is the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const RulesText text{"rules", std::string(fuzz::text_of(data, size))};
  try {
    const auto [one, other] = read_sides(text, text);
    fuzz::require(one.live.size() == other.live.size(), "both are the same");
    for (std::size_t i = 0; i < one.live.size(); ++i) {
      for (std::size_t chain = 0; chain < one.live[i].chains.size(); ++chain) {
        const auto& rules = one.live[i].chains[chain].rules;
        const auto& others = other.live[i].chains[chain].rules;
        fuzz::require(rules.size() == others.size(), "both have the same rules");
        for (std::size_t rule = 0; rule < rules.size(); ++rule)
          fuzz::require(rules[rule].rule == others[rule].rule, iptables_words(rules[rule].rule));
      }
    }
  } catch (const Error& error) {
    fuzz::require_readable(error);
  }
  try {
    read_report(text);
  } catch (const Error& error) {
    fuzz::require_readable(error);
  }
  return 0;
}
