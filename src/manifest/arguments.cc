// SPDX-License-Identifier: GPL-2.0-or-later
#include "manifest/arguments.h"

#include <fmt/format.h>

#include "manifest/facts.h"
#include "manifest/helm_values_file.h"
#include "manifest/inject.h"
#include "manifest/write.h"
#include "model/error.h"
#include "model/printable.h"
#include "options/flags.h"

namespace sidetrack::manifest {
namespace {

constexpr std::string_view kinds_with_pods = "a Pod, Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob";

// Annotations of the object that the pod is made of say nothing of the pod.
void add_misplaced(std::vector<std::string>& warnings, const PodTemplate& pod) {
  const Node* annotations = pod.of_object == nullptr ? nullptr : pod.of_object->find("annotations");
  if (annotations == nullptr || annotations->type != Node::Type::mapping) return;
  for (const Entry& entry : annotations->entries) {
    if (!is_read_of_pod(entry.key)) continue;
    warnings.push_back(
        fmt::format("{}: annotation {}: without effect: it is the {}'s own, not that of its pod template", title(pod),
                    excerpt(entry.key), pod.kind));
  }
}

void add(std::vector<std::string>& warnings, const PodTemplate& pod, const std::vector<std::string>& of_pod) {
  for (const std::string& warning : of_pod) warnings.push_back(fmt::format("{}: {}", title(pod), warning));
}

// All of a file, with what a reader should know of the others.
std::vector<PodTemplate> pods_of(Documents& documents, std::vector<std::string>& warnings) {
  if (documents.empty())
    throw Error(ExitCode::usage, fmt::format("{}: empty: expected {}", excerpt(documents.name), kinds_with_pods));
  std::vector<std::string> skipped;
  auto pods = pod_templates(documents, skipped);
  for (const std::string& why : skipped)
    warnings.push_back(why.starts_with(documents.name) ? why : fmt::format("{}: {}", excerpt(documents.name), why));
  if (pods.empty() && skipped.empty())
    warnings.push_back(fmt::format("{}: no pod: looked for {}", excerpt(documents.name), kinds_with_pods));
  return pods;
}

// Returns the arguments of a pod: those that are there, if it is injected already.
InitArguments arguments_of(const PodTemplate& pod, const HelmValues& values, const ProxyUids& uids, Injector injector) {
  if (auto present = present_init(pod)) return std::move(present->init);
  return injector == Injector::istio ? arguments_by_istio(pod, values, uids)
                                     : init_arguments(pod, values, {}, {}, uids);
}

std::vector<Text> read_texts(const std::vector<std::string>& files) {
  std::vector<Text> texts;
  for (const std::string& file : files) texts.push_back(read_text(file));
  return texts;
}

// With what their namespaces say of the pods in any of them.
std::vector<Documents> parsed(std::vector<Text> files, ProxyUids& uids) {
  std::vector<Documents> all;
  for (Text& file : files) {
    all.push_back(parse_documents(std::move(file)));
    read_namespaces(all.back(), uids);
  }
  return all;
}

HelmValues parsed_values(std::vector<Text> files, const HelmValues& set) {
  HelmValues values;
  for (Text& file : files) read_helm_values(values, parse_documents(std::move(file)));
  for (const auto& [name, value] : set) values.insert_or_assign(name, value);
  check_helm_values(values);
  return values;
}

}  // namespace

HelmValues helm_values(const ManifestOptions& options) {
  return parsed_values(read_texts(options.values), options.set);
}

std::vector<PodArguments> arguments(const ManifestOptions& options, std::vector<std::string>& warnings,
                                    const AllIsRead& all_is_read) {
  std::vector<Text> of_values = read_texts(options.values);
  std::vector<Text> files = read_texts(options.files);
  all_is_read();
  const HelmValues values = parsed_values(std::move(of_values), options.set);
  std::vector<PodArguments> made;
  ProxyUids uids;
  std::vector<Documents> all = parsed(std::move(files), uids);
  for (Documents& documents : all) {
    for (const PodTemplate& pod : pods_of(documents, warnings)) {
      made.push_back({pod, arguments_of(pod, values, uids, options.injector)});
      add_misplaced(warnings, pod);
      add(warnings, pod, made.back().init.warnings);
      if (const std::string& why = made.back().init.refused; !why.empty())
        add(warnings, pod, {fmt::format("istio-init would end with an error: {}", why)});
      made.back().pod.pod = nullptr;  // they end with the documents
      made.back().pod.of_object = nullptr;
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
  const HelmValues values = parsed_values(std::move(of_values), options.set);
  const InjectionTemplate wanted = read_template(parse_documents(std::move(injected)), warnings);
  std::string text;
  ProxyUids uids;
  std::vector<Documents> all = parsed(std::move(files), uids);
  for (Documents& documents : all) {
    std::vector<std::size_t> changed;
    for (const PodTemplate& pod : pods_of(documents, warnings)) {
      if (!pod.has_pod_spec) {
        notes.push_back(
            not_injected(pod, "it has no containers yet: the webhook injects the pods that are made of it"));
        continue;
      }
      add_misplaced(warnings, pod);
      const Injected result = inject(pod, wanted, values, uids);
      if (!result.not_injected.empty()) notes.push_back(not_injected(pod, result.not_injected));
      add(warnings, pod, result.warnings);
      if (result.changed) changed.push_back(pod.document);
    }
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    if (!text.empty()) text += "---\n";
    text += written(documents, changed);
  }
  return text;
}

namespace {

// The one pod of --pod, which is a part of the documents.
PodArguments the_pod(Documents& documents, const HelmValues& values, Injector injector) {
  std::vector<std::string> skipped;
  const auto pods = pod_templates(documents, skipped);
  ProxyUids uids;
  read_namespaces(documents, uids);
  const auto refuse = [&](const std::string& what, std::string hint) {
    throw Error(ExitCode::usage, fmt::format("{}: {}", excerpt(documents.name), what), std::move(hint));
  };
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

[[noreturn]] void refuse_pod(const PodTemplate& pod, const std::string& why) {
  throw Error(ExitCode::usage, fmt::format("{}: {}", title_with_place(pod), why));
}

}  // namespace

OptionsOfPod options_of_pod(const ManifestOptions& options) {
  Documents documents = read_documents(options.pod);
  const HelmValues values = helm_values(options);
  const PodArguments pod = the_pod(documents, values, options.injector);
  const auto present = present_init(pod.pod);
  OptionsOfPod made{words_of_rules(pod.init), present ? present->environment : init_environment(pod.pod, values)};
  // Refuse names of files: a pod must not read files of the user.
  const auto names_file = [](const std::string& word) {
    return word.starts_with('@') || word.find("=@") != std::string::npos || word.find('@') == 2;
  };
  if (!pod.init.refused.empty()) refuse_pod(pod.pod, pod.init.refused);
  if (std::ranges::any_of(made.arguments, names_file))
    refuse_pod(pod.pod, "expected values themselves, not the name of a file");
  add_misplaced(made.warnings, pod.pod);
  add(made.warnings, pod.pod, pod.init.warnings);
  return made;
}

lint::PodFacts facts_of_pod(const ManifestOptions& options) {
  Documents documents = read_documents(options.pod);
  HelmValues values = helm_values(options);
  const PodTemplate pod = the_pod(documents, values, options.injector).pod;
  return facts_of(pod, metadata_of(pod, values).proxy);
}

}  // namespace sidetrack::manifest
