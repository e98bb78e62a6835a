// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/plugin.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <optional>

#include "apply/apply.h"
#include "inject/manifest/pods.h"
#include "kernel/kernel.h"
#include "library/planning.h"
#include "library/sentences.h"
#include "mesh/istio_rules.h"
#include "model/printable.h"
#include "node/call.h"
#include "node/cni_error.h"
#include "node/network_configuration.h"
#include "node/record.h"
#include "options/annotations.h"
#include "options/options.h"
#include "render/render.h"
#include "system/namespaces.h"
#include "system/network_namespaces.h"
#include "system/sandbox.h"

namespace sidetrack::cni {
namespace {

using Clock = std::chrono::steady_clock;
using Level = LogOptions::Level;

// For which DEL waits for those who hold the lock of the pod's namespace, or keep changing its rules: its own processes
// can, for as long as they want.
constexpr std::chrono::seconds del_lock_timeout{2};

// Limits what a pod may ask of its node: so many rules are installed in a quarter of a second, while the runtime
// waits.
constexpr std::size_t most_rules_of_pod = 16'384;

// "--proxy-uid" of "--proxy-uid=1337"
std::string_view flag_of(std::string_view option) { return option.substr(0, option.find('=')); }

// Returns the options of the conflist that the pod does not override, then the pod's. A uid of the pod's own overrides
// the gid, too, which is then the same number, as on OpenShift.
std::vector<std::string> joined(std::vector<std::string> configured, std::vector<std::string> of_pod) {
  const auto says = [&](std::string_view flag) {
    return std::ranges::any_of(of_pod, [&](const std::string& option) { return flag_of(option) == flag; });
  };
  std::erase_if(configured, [&](const std::string& option) {
    return says(flag_of(option)) || (flag_of(option) == "--proxy-gid" && says("--proxy-uid"));
  });
  std::ranges::move(of_pod, std::back_inserter(configured));
  return configured;
}

Keys keys_of(Verb verb) { return verb == Verb::del || verb == Verb::gc ? Keys::protocol : Keys::all; }

class Plugin {
 public:
  Plugin(const Call& call, NetworkConfiguration configuration, const Log& log, const Confine& confine)
      : call_(call), configuration_(std::move(configuration)), log_(log), confine_(confine) {}

  // Returns what goes to standard output.
  std::string serve() {
    start_log();
    switch (call_.verb) {
      case Verb::add:
        return add();
      case Verb::check:
        check();
        break;
      case Verb::del:
        remove();
        break;
      case Verb::gc:
        collect();
        break;
      case Verb::status:
        require_available(configuration_, confine_);
        break;
      case Verb::version:
        break;
    }
    return "";
  }

  void say(Level level, const std::string& message) const {
    log_.write(level, fmt::format("{} {}{}", name(call_.verb), whose(), message));
  }

 private:
  void start_log() const {
    try {
      log_.start(configuration_.log);
    } catch (const Error& error) {
      if (keys_of(call_.verb) == Keys::all) throw CniError(Code::configuration, error.what(), error.hint());
      log_.start({});
    }
  }

  // "default/web-1 (3fa…): "
  [[nodiscard]] std::string whose() const {
    if (call_.container_id.empty()) return "";
    const std::string pod = call_.pod_name.empty() ? "" : printable(call_.pod_namespace + "/" + call_.pod_name) + " ";
    return fmt::format("{}{} {}: ", pod, call_.container_id, call_.interface_name);
  }

  // ---- ADD

  std::string add() {
    const std::string result = previous_result();
    if (const auto options = asked_options()) {
      intercept(*options);
    } else if (former_record()) {  // it was asked for before
      remove();
    }
    return result;
  }

  // It comes first in no chain: there is nothing to intercept yet.
  [[nodiscard]] std::string previous_result() const {
    if (configuration_.previous_result) return *configuration_.previous_result + "\n";
    if (configuration_.standalone)  // it gives the pod no network
      return fmt::format("{{\"cniVersion\": \"{}\", \"dns\": {{}}}}\n", configuration_.cni_version);
    throw CniError(Code::configuration, "prevResult: missing: expected the result of the plugin before",
                   fmt::format("{} is a chained plugin: it must be the last of a conflist, not alone",
                               excerpt(configuration_.type)));
  }

  // Nothing: the pod is left alone.
  std::optional<std::vector<std::string>> asked_options() {
    const auto& excluded = configuration_.exclude_namespaces;
    if (std::ranges::find(excluded, call_.pod_namespace) != excluded.end()) {
      say(Level::debug, "left alone: its namespace is excluded");
      return std::nullopt;
    }
    if (!configuration_.annotations) {
      throw CniError(
          Code::configuration,
          fmt::format("runtimeConfig: no {}: expected the pod's annotations, to know whether its traffic is to be "
                      "intercepted",
                      annotations_capability),
          "they are passed by containerd 1.5 and CRI-O 1.28 and later: update the container runtime");
    }
    // A pod with a sidecar has a sidecar's rules, also where the others are ambient.
    const bool ambient =
        configuration_.dataplane == Dataplane::ambient && !find(*configuration_.annotations, status_annotation);
    Interception asked =
        ambient ? ambient_interception(*configuration_.annotations) : asked_by(*configuration_.annotations);
    for (const std::string& warning : asked.warnings) say(Level::warn, warning);
    if (!asked.left_alone.empty()) {
      say(Level::debug, "left alone: " + asked.left_alone);
      return std::nullopt;
    }
    return joined(ambient ? configuration_.ambient_options : configuration_.options, std::move(asked.options));
  }

  // The other annotations of a pod that is left alone need not be right.
  static Interception asked_by(const Annotations& annotations) {
    const bool read = why_left_alone(annotations).empty();
    return interception(annotations, read ? manifest::proxy_config(annotations) : ProxyConfig());
  }

  // That of CNI_NETNS, not that of the node.
  [[nodiscard]] Place place() const {
    Place found = of_variable([&] { return place_of_netns(call_.netns); });
    const char* whose = whose_instead_of_a_pods(found);
    if (whose == nullptr) return found;
    throw CniError(Code::environment,
                   fmt::format("CNI_NETNS: '{}' is the network namespace of {}: expected that of a pod",
                               excerpt(call_.netns), whose));
  }

  [[nodiscard]] const char* whose_instead_of_a_pods(const Place& place) const {
    if (place.ours) return "the plugin itself";
    const auto first = namespace_at("/proc/1/ns/net");
    return first && first == namespace_at(call_.netns) ? "process 1, the node's" : nullptr;
  }

  [[nodiscard]] Plan planned(CommandLine& line, const Place& target) const {
    // Who wrote an annotation does not know the option that it became.
    const auto reworded = [&](std::string text) {
      return configuration_.annotations ? in_words_of(*configuration_.annotations, std::move(text)) : text;
    };
    line.config.most_rules = most_rules_of_pod;
    try {
      Plan made = plan_for(line.config, line.names, &target, false);
      std::ranges::transform(made.warnings, made.warnings.begin(), reworded);
      return made;
    } catch (const Error& error) {
      throw Error(error.code(), reworded(error.what()), error.hint());
    }
  }

  // What is wrong with the value of CNI_NETNS.
  template <typename Act>
  static std::invoke_result_t<Act> of_variable(Act act) {
    try {
      return act();
    } catch (const Error& error) {
      if (error.code() != ExitCode::usage) throw;
      throw CniError(Code::environment, std::string("CNI_NETNS: ") + error.what(),
                     "the runtime must give the path of the pod's network namespace");
    }
  }

  void intercept(const std::vector<std::string>& options) {
    const auto start = Clock::now();
    CommandLine line = parse_apply(options);
    const Place target = place();
    const RecordFolder folder(records_folder);
    const std::optional<Record> former = former_record();
    Record asked = record(options, former);
    of_variable([&] { enter(target); });
    asked.network_namespace = own_network_namespace();
    if (former && !former->network_namespace.empty() && former->network_namespace != asked.network_namespace) {
      say(Level::warn, "ADD was called before for another network namespace: the rules stay there");
    }
    const Plan plan = planned(line, target);
    const auto kernel = open_kernel(istio_rules, {.write = true,
                                                  .wait = line.applying.lock_wait,
                                                  .xtables_lock = false,
                                                  .agent_rules = agent_rules_of(line.config)});
    // Before anything is changed: killed or failing at any moment, ADD leaves DEL the knowledge of what may be there.
    // And under the lock under which DEL removes both.
    folder.write(asked);
    if (!line.no_sandbox) confine_(Sandbox::write);
    const ApplyResult result = converge({.plan = &plan, .options = &line.applying}, *kernel);
    for (const std::string& warning : plan.warnings) say(Level::warn, warning);
    for (const std::string& reason : result.skipped) say(Level::info, reason);
    for (const std::string& warning : warnings(result)) say(Level::warn, warning);
    say(Level::info, applied(result, Clock::now() - start));
  }

  [[nodiscard]] Record record(const std::vector<std::string>& options, const std::optional<Record>& former) const {
    Record made{call_.container_id,  call_.interface_name,
                call_.netns,         call_.pod_namespace,
                call_.pod_name,      options,
                configuration_.name, {}};
    // The rules are the container's: they go with its first attachment.
    if (former) {
      made.interface_name = former->interface_name;
      made.network = former->network;
    }
    return made;
  }

  [[nodiscard]] std::optional<Record> former_record() const {
    try {
      return read(call_.container_id);
    } catch (const Error& error) {
      say(Level::warn, error.what());
      return std::nullopt;
    }
  }

  // ---- CHECK

  // What ADD recorded counts: the conflist may have changed since.
  void check() {
    static_cast<void>(previous_result());
    std::optional<Record> record = read(call_.container_id);
    if (!record) {
      if (!asked_options()) return;
      throw Error(ExitCode::differs,
                  fmt::format("{}: ADD recorded nothing of this container in {}", call_.container_id, records_folder),
                  "recreate the pod");
    }
    CommandLine line = parse_apply(record->options);
    const Place target = place();
    of_variable([&] { enter(target); });
    if (own_network_namespace() != record->network_namespace) {
      throw Error(ExitCode::differs,
                  fmt::format("{}: ADD installed its rules in another network namespace than '{}' is now",
                              call_.container_id, excerpt(call_.netns)),
                  "recreate the pod");
    }
    const Plan plan = planned(line, target);
    const auto kernel = open_kernel(istio_rules, {.write = false,
                                                  .wait = line.applying.lock_wait,
                                                  .xtables_lock = false,
                                                  .reads_once = true,
                                                  .agent_rules = agent_rules_of(line.config)});
    if (!line.no_sandbox) confine_(Sandbox::read);
    const PodDiff pod_diff = compare({.plan = &plan, .options = &line.applying}, kernel->survey());
    if (pod_diff.as_requested()) return say(Level::debug, verified(pod_diff));
    const bool others = pod_diff.equal();  // the rules are as recorded
    const std::string what = others ? verified(pod_diff) : "the pod differs from what was recorded by ADD";
    const std::string remedy = others ? "'sidetrack show' in the pod's network namespace lists what is there\n"
                                      : "'sidetrack pods --repair' on the node installs its rules again\n";
    throw Error(ExitCode::differs, fmt::format("{}: {}", what, first_difference(pod_diff)),
                remedy + printable_lines(diff_text(pod_diff, false)));
  }

  // ---- DEL

  // Without a record nothing was installed. One that cannot be read says that something was.
  void remove() {
    std::optional<Record> record;
    try {
      record = read(call_.container_id);
      if (!record) return cni::remove(call_.container_id);
    } catch (const Error& error) {
      say(Level::warn, error.what());
    }
    if (record && record->interface_name != call_.interface_name) {
      return say(Level::info, "rules kept: owned by attachment " + printable(record->interface_name));
    }
    const RecordFolder folder(records_folder);
    // The runtime may have removed it, or left an empty file where it was bound to.
    if (is_network_namespace(call_.netns)) {
      clean(record, folder);
    } else {
      folder.remove(call_.container_id);
    }
  }

  void clean(const std::optional<Record>& record, const RecordFolder& folder) {
    const Place target = place_of_netns(call_.netns);
    if (const char* whose = whose_instead_of_a_pods(target)) {
      say(Level::warn, fmt::format("CNI_NETNS is the network namespace of {}: nothing is removed there", whose));
      return folder.remove(call_.container_id);
    }
    enter(target);
    if (record && own_network_namespace() != record->network_namespace) {
      say(Level::warn, "CNI_NETNS is another network namespace than the recorded one: nothing is removed there");
      return folder.remove(call_.container_id);
    }
    const CommandLine line = record ? parse_apply(record->options) : CommandLine();
    std::unique_ptr<Kernel> kernel;
    // What processes of a pod can bring about must not keep it from ending: its rules go with its network namespace.
    try {
      kernel = open_kernel(
          istio_rules,
          {.write = true, .wait = del_lock_timeout, .xtables_lock = false, .agent_rules = agent_rules_of(line.config)});
      if (!line.no_sandbox) confine_(Sandbox::plugin);
      const ApplyResult result = converge({}, *kernel);
      for (const std::string& warning : result.warnings) say(Level::warn, warning);
      say(Level::info, cleaned(result));
    } catch (const Error& error) {
      if (error.code() != ExitCode::busy && (kernel == nullptr || !kept_by_others(kernel->survey()))) throw;
      // A later DEL, which finds it, removes both.
      return say(Level::warn, fmt::format("the rules stay until the network namespace goes, and their record until "
                                          "another DEL or GC: {}",
                                          error.what()));
    }
    // While the namespace's lock is held: who repairs, or adds, looks for the record while he holds it himself.
    folder.remove(call_.container_id);
  }

  // ---- GC

  void collect() {
    if (!configuration_.valid_attachments) {
      throw CniError(Code::configuration,
                     "cni.dev/valid-attachments: missing: expected the attachments that are valid");
    }
    const auto& valid = *configuration_.valid_attachments;
    const RecordFolder folder(records_folder);
    const Records all = read_all();
    for (const std::string& problem : all.problems) say(Level::warn, problem);
    for (const Record& record : all.records) {
      const Attachment attachment{record.container_id, record.interface_name};
      if (record.network != configuration_.name || std::ranges::find(valid, attachment) != valid.end()) continue;
      folder.remove(record.container_id);
      say(Level::info, fmt::format("{} {}: stale attachment; record removed", record.container_id,
                                   printable(record.interface_name)));
    }
    folder.remove_leftovers();
  }

  Call call_;
  NetworkConfiguration configuration_;
  const Log& log_;
  const Confine& confine_;
};

std::string output_of(std::string_view input, const Environment& environment, const Log& log, const Confine& confine) {
  const Call call = read_call(environment);
  if (call.verb == Verb::version) return version_answer(input);
  NetworkConfiguration configuration = read_configuration(input, keys_of(call.verb));
  if (configuration.cni_version < first_version(call.verb)) {
    throw CniError(Code::incompatible_version,
                   fmt::format("cniVersion: \"{}\": {} needs {} or later", configuration.cni_version, name(call.verb),
                               first_version(call.verb)));
  }
  Plugin plugin(call, std::move(configuration), log, confine);
  try {
    return plugin.serve();
  } catch (const CniError& error) {
    plugin.say(Level::error, error.what());
    throw;
  } catch (const Error& error) {
    plugin.say(Level::error, error.what());
    throw;
  }
}

Answer failure(const CniError& error, std::string_view input) { return {json(error, version_to_answer_in(input)), 1}; }

Answer answer_of(std::string_view input, const Environment& environment, const Log& log, const Confine& confine) {
  try {
    return {output_of(input, environment, log, confine), 0};
  } catch (const CniError& error) {
    return failure(error, input);
  } catch (const Error& error) {
    return failure(CniError(error), input);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return failure(CniError(Error(ExitCode::failed, std::string("internal error: ") + error.what(),
                                  "please report it with the network configuration")),
                   input);
  }
}

}  // namespace

Answer serve(std::string_view input, const Environment& environment, const Log& log, const Confine& confine) {
  const Answer answer = answer_of(input, environment, log, confine);
  const auto call = refused_call();
  if (!call) return answer;
  return failure(CniError(Error(ExitCode::failed, refusal_words(*call), "the key \"noSandbox\": true leaves it out")),
                 input);
}

}  // namespace sidetrack::cni
