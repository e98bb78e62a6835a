// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "inject/manifest/facts.h"
#include "inject/manifest/helm_values_file.h"
#include "inject/manifest/inject.h"
#include "inject/manifest/write.h"
#include "model/error.h"
#include "model/printable.h"
#include "options/flags.h"

namespace sidetrack::manifest {
namespace {

constexpr std::string_view kinds_with_pods = "a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob";

// Annotations and labels of what the pod is made of say nothing of the pod.
void add_misplaced(std::vector<std::string>& warnings, const PodTemplate& pod) {
  for (const auto& [whose, metadata] : pod.above) {
    for (const auto& [key, word] : {std::pair("annotations", "annotation"), std::pair("labels", "label")}) {
      const Node* named = metadata->find(key);
      if (named == nullptr || named->type != Node::Type::mapping) continue;
      for (const Entry& entry : named->entries) {
        if (word == std::string_view("label") ? entry.key != inject_annotation : !is_read_of_pod(entry.key)) continue;
        warnings.push_back(fmt::format("{}: {} {}: without effect: it is {}, not that of its pod template", title(pod),
                                       word, excerpt(entry.key), whose));
      }
    }
  }
}

// Calls `act`; what is wrong with a part of the input does not end the rest.
template <typename Act>
void collect(std::vector<std::string>& errors, const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage) throw;
    errors.push_back(text_with_hint(error));
  }
}

void add(std::vector<std::string>& warnings, const PodTemplate& pod, const std::vector<std::string>& of_pod) {
  for (const std::string& warning : of_pod) warnings.push_back(fmt::format("{}: {}", title(pod), warning));
}

// Warns of objects that are skipped.
void add_skipped(std::vector<std::string>& warnings, const Documents& documents,
                 const std::vector<std::string>& skipped) {
  for (const std::string& why : skipped)
    warnings.push_back(why.starts_with(documents.name) ? why : fmt::format("{}: {}", excerpt(documents.name), why));
}

// All of a file, with what a reader should know of the others.
std::vector<PodTemplate> pods_of(Documents& documents, std::vector<std::string>& warnings) {
  if (documents.empty())
    throw Error(ExitCode::usage, fmt::format("{}: empty: expected {}", excerpt(documents.name), kinds_with_pods));
  std::vector<std::string> skipped;
  auto pods = pod_templates(documents, skipped);
  add_skipped(warnings, documents, skipped);
  const bool is_understood =
      std::ranges::none_of(documents.list, [](const Document& document) { return document.problem.has_value(); });
  if (pods.empty() && skipped.empty() && is_understood)
    warnings.push_back(fmt::format("{}: no pod: looked for {}", excerpt(documents.name), kinds_with_pods));
  return pods;
}

// Returns the arguments of a pod: those that are there, if it is injected already, or if an injector leaves it as it
// is.
InitArguments arguments_of(const PodTemplate& pod, const HelmValues& values, const ProxyUids& uids, Injector injector) {
  auto present = present_init(pod);
  const bool injected = is_injected(pod);
  if (present && injected) return std::move(present->init);
  InitArguments made =
      injector == Injector::istio ? arguments_by_istio(pod, values, uids) : arguments_by_inject(pod, values, uids);
  if (!made.not_injected.empty()) return present ? std::move(present->init) : std::move(made);
  if (injected) {
    made.warnings.push_back(
        fmt::format("{}: injected already, with neither {} nor {}: these are the arguments that the "
                    "injector would give it now",
                    status_annotation, init_container_name, validation_container_name));
  }
  return made;
}

std::vector<Text> read_texts(const std::vector<std::string>& files) {
  std::vector<Text> texts;
  for (const std::string& file : files) texts.push_back(read_text(file));
  return texts;
}

// Sidetrack's injector has a template of its own.
HelmValues parsed_values(std::vector<Text> files, const HelmValues& set, Injector injector,
                         std::vector<std::string>& warnings) {
  HelmValues values;
  std::vector<std::string> of_istio;
  for (Text& file : files) read_helm_values(values, parse_documents(std::move(file)), of_istio);
  for (const auto& [name, value] : set) values.insert_or_assign(name, value);
  apply_profiles(values, warnings);
  check_helm_values(values, injector);
  if (injector == Injector::istio) std::ranges::move(of_istio, std::back_inserter(warnings));
  return values;
}

}  // namespace

HelmValues helm_values(const ManifestOptions& options, std::vector<std::string>& warnings) {
  return parsed_values(read_texts(options.values), options.set, options.injector, warnings);
}

std::vector<PodArguments> arguments(const ManifestOptions& options, std::vector<std::string>& warnings,
                                    std::vector<std::string>& errors, const AllIsRead& all_is_read) {
  std::vector<Text> of_values = read_texts(options.values);
  std::vector<Text> files = read_texts(options.files);
  all_is_read();
  const HelmValues values = parsed_values(std::move(of_values), options.set, options.injector, warnings);
  std::vector<PodArguments> made;
  ProxyUids uids;
  std::vector<Documents> all;
  for (Text& file : files) {
    collect(errors, [&] {
      all.push_back(parse_each_document(std::move(file.text), std::move(file.name)));
      set_parameters(all.back());
      read_namespaces(all.back(), uids);
    });
  }
  for (Documents& documents : all) {
    for (const Document& document : documents.list) {
      if (document.problem) errors.push_back(text_with_hint(*document.problem));
    }
    std::vector<PodTemplate> pods;
    collect(errors, [&] { pods = pods_of(documents, warnings); });
    for (PodTemplate& pod : pods) {
      collect(errors, [&] {
        add_misplaced(warnings, pod);
        InitArguments init = arguments_of(pod, values, uids, options.injector);
        add(warnings, pod, init.warnings);
        if (!init.refused.empty())
          add(warnings, pod, {fmt::format("istio-init would end with an error: {}", init.refused)});
        pod.pod = nullptr;  // they end with the documents
        pod.above.clear();
        made.push_back({std::move(pod), std::move(init)});
      });
    }
  }
  return made;
}

std::string injected(const ManifestOptions& options, std::vector<std::string>& notes,
                     std::vector<std::string>& warnings, const AllIsRead& all_is_read) {
  std::vector<Text> of_values = read_texts(options.values);
  Text injected = read_text(options.injected);
  std::vector<Text> files = read_texts(options.files);
  all_is_read();
  const HelmValues values = parsed_values(std::move(of_values), options.set, Injector::sidetrack, warnings);
  const InjectionTemplate wanted = read_template(parse_documents(std::move(injected)), warnings);
  std::string text;
  ProxyUids uids;
  std::vector<Documents> all;
  for (Text& file : files) {
    all.push_back(parse_documents(std::move(file)));
    read_namespaces(all.back(), uids);
  }
  const auto put_into = [&](const PodTemplate& pod) {
    if (!pod.has_pod_spec) {
      notes.push_back(not_injected(pod, "it has no containers yet: the webhook injects the pods that are made of it"));
      return false;
    }
    add_misplaced(warnings, pod);
    const Injected result = inject(pod, wanted, values, uids);
    if (!result.init.not_injected.empty()) notes.push_back(not_injected(pod, result.init.not_injected));
    add(warnings, pod, result.init.warnings);
    return result.changed;
  };
  for (Documents& documents : all) {
    const auto pods = pods_of(documents, warnings);
    auto next = pods.begin();
    const auto change = [&](const Document& document) {
      bool is_changed = false;
      for (; next != pods.end() && next->document == document.number; ++next) is_changed |= put_into(*next);
      return is_changed;
    };
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    if (!text.empty()) text += "---\n";
    text += written(documents, change);
  }
  return text;
}

namespace {

// The one pod of --pod, which is a part of the documents.
PodArguments the_pod(Documents& documents, const HelmValues& values, Injector injector,
                     std::vector<std::string>& warnings) {
  std::vector<std::string> skipped;
  const auto pods = pod_templates(documents, skipped);
  ProxyUids uids;
  read_namespaces(documents, uids);
  const auto refuse = [&](const std::string& what, std::string hint) {
    throw Error(ExitCode::usage, fmt::format("{}: {}", excerpt(documents.name), what), std::move(hint));
  };
  for (const Document& document : documents.list) {
    if (document.problem && pods.empty()) throw *document.problem;
  }
  if (pods.empty()) refuse(fmt::format("no pod: expected {}", kinds_with_pods), "");
  std::vector<PodArguments> with_rules;
  std::string without_rules;
  for (const PodTemplate& pod : pods) {
    PodArguments made{pod, arguments_of(pod, values, uids, injector)};
    const std::string& why = made.init.not_injected;
    if (why.empty()) {
      with_rules.push_back(std::move(made));
    } else {
      without_rules = not_injected(pod, why);
    }
  }
  if (with_rules.empty()) refuse(without_rules, "it has no rules to show");
  if (with_rules.size() > 1) {
    std::vector<std::string> titles;
    for (const PodArguments& each : with_rules) titles.push_back(title(each.pod));
    refuse(fmt::format("{} pods that are injected: {}: expected one", titles.size(), fmt::join(titles, ", ")),
           "sidetrack args shows the options of each; kubectl get KIND NAME -o yaml prints one");
  }
  add_skipped(warnings, documents, skipped);
  return std::move(with_rules.front());
}

// Returns the words that make rules, by their short names: without options of the log and of istio-validation.
std::vector<std::string> words_of_rules(const InitArguments& init) {
  InitArguments kept;
  for (InitArgument argument : init.arguments) {
    if (const Flag* flag = flag_of(argument.option)) {
      if (flag->group == Group::log || !flag->commands.contains(Command::render)) continue;
      argument.option = short_name(*flag);
      argument.form = flag->kind == Kind::boolean ? argument.form : InitArgument::Form::two_words;
    }
    kept.arguments.push_back(std::move(argument));
  }
  return words(kept);
}

Documents documents_of_pod(const ManifestOptions& options) {
  Text file = read_text(options.pod);
  Documents documents = parse_each_document(std::move(file.text), std::move(file.name));
  set_parameters(documents);
  return documents;
}

[[noreturn]] void refuse_pod(const PodTemplate& pod, const std::string& why) {
  throw Error(ExitCode::usage, fmt::format("{}: {}", title_with_place(pod), why));
}

}  // namespace

OptionsOfPod options_of_pod(const ManifestOptions& options) {
  Documents documents = documents_of_pod(options);
  std::vector<std::string> warnings;
  const HelmValues values = helm_values(options, warnings);
  const PodArguments pod = the_pod(documents, values, options.injector, warnings);
  const auto present = is_injected(pod.pod) ? present_init(pod.pod) : std::nullopt;
  OptionsOfPod made{words_of_rules(pod.init), present ? present->environment : init_environment(pod.pod, values),
                    std::move(warnings)};
  // Refuse names of files: a pod must not read files of the user.
  const auto names_file = [](const std::string& word) {
    return word.starts_with('@') || word.find("=@") != std::string::npos || word.find('@') == 2;
  };
  if (!pod.init.refused.empty()) refuse_pod(pod.pod, pod.init.refused);
  if (std::ranges::any_of(made.arguments, names_file))
    refuse_pod(pod.pod, "expected values themselves, not the name of a file");
  for (const Document& document : documents.list) {
    if (document.problem) made.warnings.push_back(fmt::format("{}: skipped", document.problem->what()));
  }
  add_misplaced(made.warnings, pod.pod);
  add(made.warnings, pod.pod, pod.init.warnings);
  return made;
}

lint::PodFacts facts_of_pod(const ManifestOptions& options) {
  Documents documents = documents_of_pod(options);
  std::vector<std::string> warnings;  // said with the options
  HelmValues values = helm_values(options, warnings);
  const PodTemplate pod = the_pod(documents, values, options.injector, warnings).pod;
  return facts_of(pod, metadata_of(pod, values).proxy);
}

}  // namespace sidetrack::manifest
