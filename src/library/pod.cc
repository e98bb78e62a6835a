// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <sidetrack/pod.h>

#include <future>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

#include "apply/apply.h"
#include "kernel/kernel.h"
#include "library/packets.h"
#include "library/planning.h"
#include "library/sentences.h"
#include "library/values.h"
#include "mesh/istio_rules.h"
#include "model/error.h"
#include "model/printable.h"
#include "render/render.h"
#include "system/signals.h"

namespace sidetrack {
namespace {

std::mutex one_at_a_time;  // libiptc keeps what it does in variables of its own

// Calls `act` in the place, and returns what it returns or throws what it throws. A place is entered in a thread that
// ends with it: a thread that has entered other namespaces may not be allowed back. Handlers of signals, which are the
// program's, run in threads of its own.
template <typename Act>
std::invoke_result_t<Act> in_place(const std::optional<Place>& place, Act act) {
  const std::lock_guard lock(one_at_a_time);
  if (!place) return act();
  std::packaged_task<std::invoke_result_t<Act>()> task([&] {
    enter(*place);
    return act();
  });
  auto result = task.get_future();
  std::thread thread = [&] {
    const HeldSignals held(HeldSignals::Which::all);
    return std::thread(std::move(task));
  }();
  thread.join();
  return result.get();
}

const Place* address_of(const std::optional<Place>& place) { return place ? &*place : nullptr; }

std::unique_ptr<Kernel> open(const std::optional<Place>& place, bool write, std::chrono::milliseconds wait, bool cni,
                             AgentRules agent_rules = AgentRules::foreign) {
  return open_kernel(istio_rules, {.write = write,
                                   .wait = wait,
                                   .xtables_lock = !place && !cni,
                                   .agent_rules = agent_rules,
                                   .held_signals = HeldSignals::Which::polite});
}

std::vector<std::string> printable_each(std::vector<std::string> sentences, const std::vector<std::string>& more = {}) {
  sentences.insert(sentences.end(), more.begin(), more.end());
  for (std::string& sentence : sentences) sentence = printable_lines(sentence);
  return sentences;
}

// From one's own namespace to one's own is no way into a pod: a wrong id would change the rules of the machine.
Place require_other(Place place) {
  if (place.ours) {
    throw Error(ExitCode::usage, fmt::format("{}: the network namespace is the caller's own", place.name),
                "sidetrack::Pod::own() works there");
  }
  return place;
}

std::string name_of(const std::optional<BackendKind>& backend) { return backend ? std::string(name(*backend)) : ""; }

}  // namespace

Pod::Pod(std::shared_ptr<const Values> values) : values_(std::move(values)) {}

Pod Pod::of_process(std::uint32_t pid) {
  return Pod(std::make_shared<const Values>(Values{require_other(place_of_process(pid))}));
}

Pod Pod::of_namespace(const std::string& path_or_name) {
  return Pod(std::make_shared<const Values>(Values{require_other(place_of_netns(path_or_name))}));
}

Pod Pod::own() { return Pod(std::make_shared<const Values>()); }

Pod::Applied Pod::apply(const Options& options) const {
  const HeldSignals held(HeldSignals::Which::polite);
  return in_place(values_->place, [&] {
    Config config = options.values_->config;
    const Plan plan = plan_for(config, options.values_->names, address_of(values_->place), false);
    const auto kernel = open(values_->place, true, options.values_->applying.lock_wait,
                             options.values_->applying.cni_mode, agent_rules_of(config));
    const ApplyResult made = converge({.plan = &plan, .options = &options.values_->applying}, *kernel);
    Applied result;
    result.changed = made.applied == sidetrack::Applied::changed;
    result.backend = name_of(made.backend);
    result.summary = applied(made);
    result.skipped = printable_each(made.skipped);
    result.warnings = printable_each(plan.warnings, warnings(made));
    return result;
  });
}

Pod::Difference Pod::diff(const Options& options) const {
  return in_place(values_->place, [&] {
    Config config = options.values_->config;
    const Plan plan = plan_for(config, options.values_->names, address_of(values_->place), false);
    const auto kernel = open(values_->place, false, options.values_->applying.lock_wait,
                             options.values_->applying.cni_mode, agent_rules_of(config));
    const PodDiff pod_diff = compare({.plan = &plan, .options = &options.values_->applying}, kernel->survey());
    Difference result;
    result.equal = pod_diff.equal();
    result.as_requested = pod_diff.as_requested();
    result.backend = name_of(pod_diff.backend);
    result.summary = verified(pod_diff);
    result.text = printable_page(diff_text(pod_diff, false));
    result.json = diff_json(pod_diff);
    result.warnings = printable_each(plan.warnings, warnings(pod_diff));
    return result;
  });
}

Pod::Difference Pod::verify(const Options& options) const {
  Difference difference = diff(options);
  if (!difference.as_requested) {
    std::string message = difference.summary;
    if (!difference.text.empty()) message += ":\n" + difference.text;
    throw Error(ExitCode::differs, message);
  }
  return difference;
}

Pod::Cleaned Pod::clean(std::chrono::milliseconds wait) const {
  const HeldSignals held(HeldSignals::Which::polite);
  return in_place(values_->place, [&] {
    const ApplyResult made = converge({}, *open(values_->place, true, wait, false));
    Cleaned result;
    result.changed = made.applied == sidetrack::Applied::changed;
    result.summary = cleaned(made);
    result.warnings = printable_each(made.warnings);
    return result;
  });
}

Explanation Pod::explain(const std::vector<std::string>& packet) const {
  const Packet asked = packet_of_words(packet);
  return in_place(values_->place, [&] {
    std::vector<std::string> unseen;
    const std::vector<Live> live = live_rules(open(values_->place, false, {}, false)->survey(), unseen);
    Explanation made = explanation(sidetrack::explain(asked, read_pod(), live));
    for (std::string& sentence : printable_each(std::move(unseen))) made.doubts.push_back(std::move(sentence));
    return made;
  });
}

}  // namespace sidetrack
