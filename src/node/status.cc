// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "apply/choice.h"
#include "doctor/doctor.h"
#include "model/printable.h"
#include "node/cni_error.h"
#include "node/conflist.h"
#include "node/network_configuration.h"
#include "node/plugin.h"
#include "node/record.h"
#include "options/options.h"
#include "system/file.h"
#include "system/folder.h"

namespace sidetrack::cni {
namespace {

[[noreturn]] void not_available(const std::string& reason, std::string what_to_do = {}) {
  throw CniError(Code::not_available, reason, std::move(what_to_do));
}

void require_records() {
  try {
    RecordFolder().require_writable();
  } catch (const Error& error) {
    not_available(error.what(), error.hint());
  }
}

std::string problem_of(const BackendState& backend) {
  const std::string prefix = fmt::format("{}: ", name(backend.kind));
  if (!backend.problem.empty()) return backend.problem.starts_with(prefix) ? backend.problem : prefix + backend.problem;
  for (const Feature& feature : backend.features) {
    if (feature.essential && !feature.available.contains(Family::ipv4)) {
      return fmt::format("{}: no {}: {}", name(backend.kind), feature.name, feature.refusal);
    }
  }
  return "";
}

void require_backend(const NetworkConfiguration& configuration, const Confine& confine) {
  const CommandLine line = parse_apply(configuration.options);
  if (unshare(CLONE_NEWNET) != 0) {
    not_available(fmt::format("cannot make a network namespace to try the rules in: {}", errno_words(errno)),
                  std::string(missing_rights));
  }
  const Diagnosis diagnosis = diagnose_here(namespace_lock, [&] {
    if (!line.no_sandbox) confine(Sandbox::read);
  });
  std::string problems;
  std::string remedy;
  for (const BackendKind kind : choose(line.applying, {}, false).order) {  // those that the configuration leaves
    const auto state = std::ranges::find(diagnosis.backends, kind, &BackendState::kind);
    if (usable(*state)) return;
    problems += (problems.empty() ? "" : "; ") + problem_of(*state);
    if (remedy.empty()) remedy = state->remedy;
  }
  not_available("no backend can hold the rules of a pod: " + problems,
                remedy.empty() ? "'sidetrack doctor' says what is missing" : remedy);
}

// Nothing if it is none that a runtime would load.
std::optional<Conflist> list_in(const std::string& path) {
  const host::FileText read = host::read_file(-1, path);
  if (!read.text) return std::nullopt;
  try {
    return read_conflist(path, *read.text, Form::list);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What others do after the plugin could undo it, and is not seen by CHECK. The runtime passes only the plugin's own
// entry: the list is looked up by its name. One that is not there says nothing.
void require_last_place(const NetworkConfiguration& configuration) {
  if (configuration.standalone) return;
  const auto entries = entries_of(configuration.conf_dir);
  if (!entries) return;
  for (const FolderEntry& entry : *entries) {
    if (!entry.name.ends_with(".conflist")) continue;
    const std::string path = fmt::format("{}/{}", configuration.conf_dir, entry.name);
    const auto list = list_in(path);
    if (!list || list->network != configuration.name) continue;
    if (const auto beside = plugins_beside(configuration.conf_dir, *list); !beside.empty()) {
      not_available(fmt::format("{}: {} is not the last plugin of its chain: {} comes after it", excerpt(path),
                                excerpt(configuration.type), excerpt(beside.front())),
                    "say \"loadOnlyInlinedPlugins\": true there: others could undo what it does");
    }
    const auto ours = std::ranges::find(list->plugins, configuration.type);
    if (ours == list->plugins.begin()) {
      not_available(fmt::format("{}: {} is the first plugin of its chain", excerpt(path), excerpt(configuration.type)),
                    "make it the last entry of \"plugins\": those before it give a pod its network");
    }
    if (ours == list->plugins.end() || ours + 1 == list->plugins.end()) continue;
    not_available(fmt::format("{}: {} is not the last plugin of its chain: {} comes after it", excerpt(path),
                              excerpt(configuration.type), excerpt(*(ours + 1))),
                  "make it the last entry of \"plugins\": others could undo what it does");
  }
}

}  // namespace

void require_available(const NetworkConfiguration& configuration, const Confine& confine) {
  require_last_place(configuration);
  require_records();
  require_backend(configuration, confine);
}

}  // namespace sidetrack::cni
