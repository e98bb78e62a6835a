// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "cli/commands.h"
#include "cli/log.h"
#include "model/error.h"
#include "model/printable.h"
#include "node/entry.h"
#include "node/installation.h"
#include "node/plugin.h"
#include "render/json_parts.h"
#include "system/folder_watch.h"

namespace sidetrack::cli {
namespace {

using cni::Folders;
using cni::Outcome;

// inotify tells nothing of a file system that is mounted over a folder, or that has room again.
constexpr std::chrono::seconds look_again(60);
constexpr std::chrono::seconds try_again(5);

Folders folders_of(const CommandLine& line) {
  return {line.cni.bin_dir, line.cni.net_dir, line.pods.records, cni::libcni_cache, line.cni.standalone};
}

// One of the two actions, with everything that it takes.
class Action {
 public:
  explicit Action(const CommandLine& line)
      : folders_(folders_of(line)), installs_(line.cni.action == CniAction::install), at_once_(line.cni.now) {
    if (!installs_) return;
    program_ = cni::running_program(line.cni.allow_dynamic);
    entry_ = cni::entry(line);
  }

  [[nodiscard]] Outcome run() const {
    return installs_ ? cni::install(folders_, program_, entry_) : cni::uninstall(folders_, at_once_);
  }
  [[nodiscard]] std::string nothing_done() const {
    return fmt::format("{} is {}: nothing was changed", cni::plugin_name,
                       installs_ ? "installed as requested already" : "not installed");
  }

 private:
  Folders folders_;
  bool installs_;
  bool at_once_;
  std::string program_;
  std::string entry_;
};

// What is said once, and again only after something else was.
class DedupLog {
 public:
  void problem(const Error& error) {
    const std::string text = text_with_hint(error);
    if (std::exchange(problem_, text) != text) cli::error(text);
  }
  void outcome(const Outcome& outcome) {
    problem_.clear();
    if (std::exchange(warnings_, outcome.warnings) != outcome.warnings) {
      for (const std::string& warning : outcome.warnings) warn(warning);
    }
    if (std::exchange(problems_, outcome.problems) != outcome.problems) {
      for (const std::string& each : outcome.problems) cli::error(each);
    }
    for (const std::string& sentence : outcome.done) info(sentence);
  }

 private:
  std::string problem_;
  std::vector<std::string> problems_;
  std::vector<std::string> warnings_;
};

// Cilium by default takes what others write to its file away again. Its own start does so once.
class CiliumWatch {
 public:
  void see(const Outcome& outcome) {
    if (outcome.placed_for != "cilium-cni" || ++placed_ != at_most_usual + 1) return;
    cli::error(
        "Cilium keeps rewriting its configuration without the plugin: install Cilium with "
        "cni.exclusive=false (Helm); until then pods may start without rules");
  }

 private:
  static constexpr int at_most_usual = 2;
  int placed_ = 0;
};

// Until SIGTERM or SIGINT. What cannot be done now may be possible later.
ExitCode keep(const CommandLine& line, const Action& action) {
  const Folders folders = folders_of(line);
  DedupLog saying;
  std::optional<FolderWatch> watch;
  try {
    watch.emplace();
  } catch (const Error&) {  // what can be done once is done
    saying.outcome(action.run());
    throw;
  }
  DedupLog of_watches;
  Descriptor held;
  CiliumWatch cilium;
  bool told = false;
  while (true) {
    bool failed = false;
    const auto arm = [&] {
      const std::vector<std::string> all = cni::folders_to_watch(folders);
      try {
        return watch->arm(all);
      } catch (const Error& error) {  // the rest is done all the same
        of_watches.problem(error);
        failed = true;
        return false;
      }
    };
    try {
      cni::hold_watch(folders, held);
      do {
        arm();
        const Outcome outcome = action.run();
        saying.outcome(outcome);
        cilium.see(outcome);
      } while (arm());
      if (!failed && !std::exchange(told, true))
        info(fmt::format("watching {} and {}", folders.configurations, folders.programs));
    } catch (const Error& error) {
      saying.problem(error);
      failed = true;
    }
    const bool ends = watch->wait(failed ? try_again : look_again) == FolderWatch::Woken::asked_to_end;
    if (ends || refused_call()) return ExitCode::done;
  }
}

// ---- status

std::string status_json(const cni::Status& status) {
  Json document = object({{"installed", status.problems.empty()}});
  document["program"] = object({{"path", status.program.path},
                                {"present", status.program.present},
                                {"version", status.program.version.empty() ? Json() : Json(status.program.version)},
                                {"same", status.program.same}});
  document["configuration"] = nullptr;
  if (const auto& configuration = status.configuration) {
    document["configuration"] =
        object({{"path", configuration->path},
                {"network", configuration->network},
                {"cni_version", configuration->cni_version},
                {"plugins", configuration->plugins},
                {"entry", configuration->entry.empty() ? Json() : Json::parse(configuration->entry)}});
  }
  document["attached"] = status.attached;
  document["problems"] = status.problems;
  return dumped(std::move(document));
}

std::string status_text(const cni::Status& status) {
  const auto& program = status.program;
  std::string text = fmt::format(
      "program        {}: {}\n", program.path,
      !program.present ? "missing"
      : program.version.empty()
          ? "another program"
          : fmt::format("version {}, {}", program.version, program.same ? "this program" : "another build"));
  if (const auto& configuration = status.configuration) {
    text += fmt::format("configuration  {}: network {}, CNI {}\n", configuration->path, configuration->network,
                        configuration->cni_version);
    text += fmt::format("plugins        {}\n", fmt::join(configuration->plugins, ", "));
    if (!configuration->entry.empty()) text += fmt::format("entry          {}\n", configuration->entry);
  } else {
    text += "configuration  none\n";
  }
  if (!status.attached.empty()) text += fmt::format("pods           {} created with it\n", status.attached.size());
  return printable_lines(text);
}

ExitCode show_status(const CommandLine& line) {
  const std::string program = cni::running_program(true);
  confine(line, Sandbox::inspect);
  const cni::Status status = cni::status(folders_of(line), program);
  print(line.format == Format::json ? status_json(status) : status_text(status));
  if (status.problems.empty()) return ExitCode::done;
  for (const std::string& problem : status.problems) error(problem);
  if (status.configuration) info("'sidetrack cni install' with the options of the installation repairs it");
  return status.is_permitted ? ExitCode::differs : ExitCode::not_permitted;
}

}  // namespace

ExitCode run_cni(CommandLine& line) {
  if (line.cni.action == CniAction::status) return show_status(line);
  const Action action(line);
  confine(line, Sandbox::install, cni::folders_to_write(folders_of(line)));
  if (line.watch) return keep(line, action);
  Outcome outcome = action.run();
  const Folders folders = folders_of(line);
  if (line.cni.action == CniAction::uninstall && !outcome.done.empty() && cni::is_watched(folders)) {
    outcome.warnings.push_back(fmt::format(
        "another process watches '{}': if it is 'cni install --watch', it installs the plugin again; end it, "
        "then run this again",
        excerpt(folders.programs)));
  }
  DedupLog().outcome(outcome);
  if (outcome.done.empty() && outcome.warnings.empty()) info(action.nothing_done());
  return outcome.problems.empty() ? ExitCode::done : ExitCode::differs;
}

}  // namespace sidetrack::cli
