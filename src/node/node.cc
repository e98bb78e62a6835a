// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iterator>
#include <tuple>
#include <utility>

#include "apply/apply.h"
#include "apply/diff.h"
#include "kernel/kernel.h"
#include "library/packets.h"
#include "library/planning.h"
#include "library/sentences.h"
#include "mesh/istio_rules.h"
#include "mesh/other_meshes.h"
#include "model/error.h"
#include "model/stable_sort.h"
#include "node/record.h"
#include "options/options.h"
#include "render/show.h"
#include "system/namespaces.h"
#include "system/network_namespaces.h"
#include "system/sandbox.h"
#include "system/worker.h"

namespace sidetrack::cni {
namespace {

using Clock = std::chrono::steady_clock;

// A pod that is to be looked at.
struct Subject {
  PodReport report;                    // as far as it is known
  std::optional<Record> record;        // nothing: it is found alone
  std::optional<NamespaceId> network;  // nothing: it is gone
};

// ---- In the process that looks at one pod

// The namespace that was found, whoever has the number of its process by now.
void enter_subject(const Subject& subject) {
  const Place place = subject.record ? place_of_netns(subject.report.netns) : place_of_process(*subject.report.pid);
  if (place.ours) throw Error(ExitCode::usage, place.name + " is the node's own network namespace");
  enter(place);
  if (namespace_at("/proc/thread-self/ns/net") != subject.network)
    throw Error(ExitCode::failed, place.name + " is another network namespace by now");
}

void describe(PodReport& report, Kernel& kernel, const Survey& survey) {
  std::vector<std::string_view> meshes;
  for (const BackendKind kind : all_backends) {
    const Live* live = survey.live(kind);
    if (live == nullptr) continue;
    if (holds_ours(*live)) report.backends.emplace_back(name(kind));
    add_other_meshes(*live, meshes);
  }
  report.meshes.assign(meshes.begin(), meshes.end());
  std::vector<std::string> unseen;  // of others alone
  const std::vector<Live> live = live_rules(survey, unseen);
  const Summary words = summary(survey.pod ? *survey.pod : kernel.pod(), live);
  report.captured = fmt::format("inbound {}; outbound {}", words.inbound, words.outbound);
}

// The chain in which Istio's agent, or Sidetrack as it does, looks at what comes into such a pod; tables of its
// nftables mode.
bool has_rules_of_ambient(const Survey& survey) {
  const auto is_of_ambient = [](const LiveChain& chain) {
    return chain.name == "ISTIO_PRERT" || chain.name == "nat-ISTIO_PRERT" ||
           chain.table_name.starts_with("inet istio-ambient-");
  };
  return std::ranges::any_of(all_backends, [&](BackendKind kind) {
    const Live* live = survey.live(kind);
    return live != nullptr && std::ranges::any_of(live->chains, is_of_ambient);
  });
}

Plan recorded(const Record& record, CommandLine& line) {
  line = parse_apply(record.options);
  return plan_for(line.config, line.names, nullptr, false);
}

void look(const Subject& subject, const NodeOptions& options, PodReport& report) {
  enter_subject(subject);
  if (subject.record && own_network_namespace() != subject.record->network_namespace) {
    report.state = PodState::gone;
    report.detail =
        fmt::format("{} leads to another network namespace than the one in which ADD installed rules", report.netns);
    return;
  }
  CommandLine line;
  Plan plan;
  if (subject.record) plan = recorded(*subject.record, line);
  const auto kernel = open_kernel(istio_rules, {.wait = options.pod_timeout / 2,
                                                .xtables_lock = false,
                                                .reads_once = true,
                                                .agent_rules = agent_rules_of(line.config)});
  options.confine(Sandbox::read);
  const Survey survey = kernel->survey();
  describe(report, *kernel, survey);
  report.ambient = has_rules_of_ambient(survey);
  report.addresses = (survey.pod ? *survey.pod : kernel->pod()).addresses();
  if (!subject.record) {
    report.state = PodState::not_recorded;
    return;
  }
  const PodDiff pod_diff = compare({.plan = &plan, .options = &line.applying}, survey);
  report.state = pod_diff.as_requested() ? PodState::as_recorded : PodState::differs;
  if (!pod_diff.as_requested()) report.detail = first_difference(pod_diff);
}

// Of a pod that differed when it was looked at.
void repair(const Subject& subject, const NodeOptions& options, PodReport& report) {
  enter_subject(subject);
  CommandLine line;
  const Plan plan = recorded(*subject.record, line);
  const auto kernel = open_kernel(istio_rules, {.write = true,
                                                .wait = options.pod_timeout / 2,
                                                .xtables_lock = false,
                                                .agent_rules = agent_rules_of(line.config)});
  // ADD writes the record, and DEL removes it, while they hold the lock that we hold now.
  const auto record = read(subject.record->container_id, options.records);
  if (record != subject.record) {
    report.state = record ? PodState::unknown : PodState::gone;
    report.detail = record ? "its record was changed meanwhile: run it again" : "it has ended";
    return;
  }
  options.confine(Sandbox::write);
  const Request request{.plan = &plan, .options = &line.applying};
  const ApplyResult result = converge(request, *kernel);
  const Survey survey = kernel->survey();
  report.backends.clear();
  describe(report, *kernel, survey);
  const PodDiff after = compare(request, survey);
  report.state = !after.as_requested()                  ? PodState::differs
                 : result.applied == Applied::unchanged ? PodState::as_recorded  // somebody else repaired it
                                                        : PodState::repaired;
  report.detail = after.as_requested() ? applied(result) : first_difference(after);
}

using Act = void (*)(const Subject& subject, const NodeOptions& options, PodReport& report);

// What is told to the process that asked.
std::string answer(const Subject& subject, const NodeOptions& options, Act act) {
  PodReport report = subject.report;
  try {
    act(subject, options, report);
  } catch (const std::bad_alloc&) {
    report.state = PodState::unknown;
    report.detail = "memory limit exceeded";
  } catch (const std::exception& error) {
    // One that was found by a process which has ended meanwhile is no pod any more.
    const bool has_ended =
        !subject.record && namespace_at(fmt::format("/proc/{}/ns/net", *subject.report.pid)) != subject.network;
    if (has_ended) report.detail.clear();
    // A repair that failed leaves what differs.
    if (has_ended || report.state != PodState::differs) report.state = has_ended ? PodState::gone : PodState::unknown;
    report.detail += (report.detail.empty() ? "" : "; not repaired: ") + std::string(error.what());
  }
  return text_of(report);
}

void take_answer(PodReport& report, const WorkerResult& result, std::chrono::milliseconds timeout) {
  report.took += std::chrono::duration_cast<std::chrono::microseconds>(result.took);
  report.state = PodState::unknown;
  if (result.timed_out) {
    report.detail = fmt::format("not read within {} ms", timeout.count());
    return;
  }
  if (auto findings = findings_of(result.answer)) {
    static_cast<Findings&>(report) = *std::move(findings);
    return;
  }
  report.detail = result.refused_call  ? refusal_words(*result.refused_call)
                  : result.signal != 0 ? fmt::format("the process that read it was ended by signal {}", result.signal)
                                       : "the worker returned no result";
}

// Each in a process of its own, at most as long as `options` say.
void send_workers(const std::vector<Subject*>& subjects, const NodeOptions& options, Act act) {
  std::vector<std::function<std::string()>> tasks;
  for (const Subject* subject : subjects) tasks.emplace_back([=, &options] { return answer(*subject, options, act); });
  const std::vector<WorkerResult> results = run_in_children(tasks, options.pod_timeout);
  for (std::size_t i = 0; i < subjects.size(); ++i) take_answer(subjects[i]->report, results[i], options.pod_timeout);
}

// ---- Whom to look at

void add_recorded(std::vector<Subject>& subjects, Records records, const std::vector<ProcessesOfNamespace>& found) {
  for (Record& record : records.records) {
    Subject subject;
    PodReport& report = subject.report;
    report.pod_namespace = record.pod_namespace;
    report.pod_name = record.pod_name;
    report.container_id = record.container_id;
    report.netns = record.netns;
    subject.network = namespace_at(record.netns);
    if (!subject.network) {
      const bool is_gone = errno == ENOENT || errno == ENOTDIR || errno == ENOTTY;
      report.state = is_gone ? PodState::gone : PodState::unknown;
      report.detail = is_gone ? "there is no network namespace at " + record.netns
                              : fmt::format("cannot look at {}: {}", record.netns, errno_words(errno));
    } else if (const auto process = std::ranges::find(found, *subject.network, &ProcessesOfNamespace::id);
               process != found.end()) {
      report.pid = process->pid;
      report.process = process->process;
    }
    subject.record = std::move(record);
    subjects.push_back(std::move(subject));
  }
  sort_stably(subjects, {}, [](const Subject& subject) {
    return std::tie(subject.report.pod_namespace, subject.report.pod_name, subject.report.container_id);
  });
}

void add_found(std::vector<Subject>& subjects, const std::vector<ProcessesOfNamespace>& found) {
  std::vector<NamespaceId> recorded;
  for (const Subject& subject : subjects) {
    if (subject.network) recorded.push_back(*subject.network);
  }
  for (const ProcessesOfNamespace& each : found) {
    if (std::ranges::find(recorded, each.id) != recorded.end()) continue;
    Subject& subject = subjects.emplace_back();
    subject.network = each.id;
    subject.report.pid = each.pid;
    subject.report.process = each.process;
  }
}

}  // namespace

bool Node::as_recorded() const {
  return problems.empty() && std::ranges::all_of(pods, [](const PodReport& pod) {
           return pod.state != PodState::differs && pod.state != PodState::unknown;
         });
}

Node survey_node(const NodeOptions& options) {
  Node node;
  const std::vector<ProcessesOfNamespace> found = network_namespaces(node.problems);
  Records records = read_all(options.records);
  std::ranges::move(records.problems, std::back_inserter(node.problems));

  std::vector<Subject> subjects;
  add_recorded(subjects, std::move(records), found);
  add_found(subjects, found);

  std::vector<Subject*> there;
  for (Subject& subject : subjects) {
    if (subject.network) there.push_back(&subject);
  }
  send_workers(there, options, look);
  if (options.repair) {
    std::erase_if(there, [](const Subject* subject) { return subject->report.state != PodState::differs; });
    send_workers(there, options, repair);
  }
  for (Subject& subject : subjects) {
    if (subject.record || subject.report.state != PodState::gone) node.pods.push_back(std::move(subject.report));
  }
  return node;
}

}  // namespace sidetrack::cni
