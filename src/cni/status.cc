// SPDX-License-Identifier: GPL-2.0-or-later
#include "cni/status.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "cni/cni_error.h"
#include "cni/record.h"
#include "doctor/doctor.h"
#include "model/printable.h"
#include "options/options.h"
#include "render/json_parts.h"
#include "state/choice.h"
#include "system/file.h"

namespace sidetrack::cni {
namespace {

[[noreturn]] void refuse(const std::string& reason, std::string what_to_do = {}) {
  throw CniError(Code::not_available, reason, std::move(what_to_do));
}

void require_records() {
  try {
    const RecordFolder records;
    records.require_writable();
  } catch (const Error& error) {
    refuse(error.what(), error.hint());
  }
}

// The backends that the configuration leaves.
std::vector<BackendKind> backends_of(const NetworkConfiguration& configuration) {
  std::vector<std::string_view> words{"sidetrack", "apply"};
  words.insert(words.end(), configuration.options.begin(), configuration.options.end());
  const CommandLine line = parse(words, [](std::string_view) { return std::optional<std::string_view>(); });
  return choose(line.applying, {}, false).order;
}

std::string problem_of(const BackendState& backend) {
  if (!backend.problem.empty()) return fmt::format("{}: {}", name(backend.kind), backend.problem);
  for (const Feature& feature : backend.features) {
    if (feature.essential && !feature.available.contains(Family::ipv4)) {
      return fmt::format("{}: no {}: {}", name(backend.kind), feature.name, feature.refusal);
    }
  }
  return "";
}

void require_backend(const NetworkConfiguration& configuration) {
  if (unshare(CLONE_NEWNET) != 0) {
    refuse(fmt::format("cannot make a network namespace to try the rules in: {}", errno_words(errno)),
           "the plugin needs CAP_SYS_ADMIN and CAP_NET_ADMIN: the runtime must run as root on the node");
  }
  const Diagnosis diagnosis = diagnose(open_backend, namespace_lock, *open_routes());
  std::string problems;
  std::string remedy;
  for (const BackendKind kind : backends_of(configuration)) {
    const auto state = std::ranges::find(diagnosis.backends, kind, &BackendState::kind);
    if (usable(*state)) return;
    problems += (problems.empty() ? "" : "; ") + problem_of(*state);
    if (remedy.empty()) remedy = state->remedy;
  }
  refuse("no backend can hold the rules of a pod: " + problems,
         remedy.empty() ? "'sidetrack doctor' says what is missing" : remedy);
}

std::vector<std::string> conflists_in(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  while (folder) {
    const dirent* entry = readdir(folder.get());  // NOLINT(concurrency-mt-unsafe)
    if (entry == nullptr) break;
    const std::string name(entry->d_name);
    if (name.ends_with(".conflist")) names.push_back(path + "/" + name);
  }
  std::ranges::sort(names);
  return names;
}

// What others do after the plugin could undo it, and is not seen by CHECK. The runtime passes only the plugin's own
// entry: the list is looked up by its name. One that is not there says nothing.
void require_last_place(const NetworkConfiguration& configuration) {
  for (const std::string& path : conflists_in(configuration.conf_dir)) {
    const host::FileText read = host::read_file(-1, path);
    const Json list = read.text ? Json::parse(*read.text, nullptr, false) : Json();
    if (!list.is_object() || list.value("name", Json()) != Json(configuration.name)) continue;
    const Json plugins = list.value("plugins", Json());
    if (!plugins.is_array()) continue;
    const auto is_ours = [&](const Json& entry) {
      return entry.is_object() && entry.value("type", Json()) == Json(configuration.type);
    };
    const auto ours = std::ranges::find_if(plugins, is_ours);
    if (ours == plugins.end() || ours + 1 == plugins.end()) continue;
    const Json after = (ours + 1)->is_object() ? (ours + 1)->value("type", Json()) : Json();
    refuse(
        fmt::format("{}: {} is not the last plugin of its chain: {} comes after it", excerpt(path),
                    excerpt(configuration.type), excerpt(after.dump(-1, ' ', false, Json::error_handler_t::replace))),
        "make it the last entry of \"plugins\": others could undo what it does");
  }
}

}  // namespace

void require_available(const NetworkConfiguration& configuration) {
  require_last_place(configuration);
  require_records();
  require_backend(configuration);
}

}  // namespace sidetrack::cni
