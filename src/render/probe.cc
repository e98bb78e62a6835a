// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "mesh/catalogue.h"
#include "pod/routing.h"
#include "render/json_parts.h"
#include "render/layout.h"
#include "render/render.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

using Verdict_ = ProbeResult::Verdict;
using Milliseconds = std::chrono::duration<double, std::milli>;

struct Sign {
  std::string_view word;
  Style style;
};
constexpr Sign signs[] = {{"ok", Style::green}, {"failed", Style::red}, {"unknown", Style::yellow}};

const Sign& sign(Verdict_ verdict) { return signs[static_cast<int>(verdict)]; }

// "-t nat -A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006 (-z 15006)"
std::string rule_and_flag(const Rule& rule) {
  const std::string flag = reason_of(rule).flag;
  return fmt::format("-t {} {}{}", name(rule.table), iptables_words(rule), flag.empty() ? "" : " (" + flag + ")");
}

}  // namespace

std::vector<std::string> likely_missing(const ProbeResult& result, const PodDiff* compared) {
  const bool known = compared != nullptr;
  const Routing present = known ? without(result.routing, compared->missing) : Routing{};
  std::vector<std::string> lines = ip_commands(without(result.routing, present));
  for (const Rule& rule : known ? missing_rules(result, *compared) : result.rules) lines.push_back(rule_and_flag(rule));
  return lines;
}

std::string probe_text(const std::vector<ProbeResult>& results, const PodDiff* compared, bool color) {
  std::size_t width = 0;
  for (const ProbeResult& result : results) width = std::max(width, result.name.size());
  std::string text;
  for (const ProbeResult& result : results) {
    const Sign& mark = sign(result.verdict);
    const bool tried = result.took.count() > 0;
    text += fmt::format("{} {:>9}  {:<{}}  {}\n", styled(fmt::format("{:<7}", mark.word), mark.style, color),
                        tried ? fmt::format("{:.1f} ms", Milliseconds(result.took).count()) : "-", result.name + ":",
                        width + 1, result.finding);
    if (result.verdict != Verdict_::failed) continue;
    const std::vector<std::string> missing = likely_missing(result, compared);
    if (missing.empty()) {
      text +=
          compared == nullptr || compared->equal()
              ? "        all its rules are there: rules of other programs may decide before them ('sidetrack show')\n"
              : "        all its rules are there: an extra rule decides before them, see the difference "
                "above\n";
    }
    for (const std::string& line : missing)
      text += fmt::format("        {}: {}\n", compared != nullptr ? "missing" : "likely missing, one of", line);
  }
  return text;
}

std::string probe_json(const std::vector<ProbeResult>& results, const PodDiff* compared) {
  Json document = compared != nullptr ? pod_diff_json(*compared) : object({{"equal", nullptr}});
  document["probes"] = array_of(results, [&](const ProbeResult& result) -> Json {
    const bool failed = result.verdict == Verdict_::failed;
    return object({{"name", result.name},
                   {"verdict", sign(result.verdict).word},
                   {"finding", result.finding},
                   {"milliseconds", Milliseconds(result.took).count()},
                   {"missing", failed ? likely_missing(result, compared) : std::vector<std::string>{}}});
  });
  return dumped(std::move(document));
}

}  // namespace sidetrack
