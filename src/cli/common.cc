// SPDX-License-Identifier: GPL-2.0-or-later
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/log.h"
#include "cli/standard_streams.h"
#include "sidetrack/host.h"
#include "sidetrack/namespaces.h"
#include "sidetrack/render.h"

namespace sidetrack::cli {

void enter_target(const CommandLine& line) {
  if (line.pid) {
    enter_netns_of(*line.pid);
  } else if (!line.netns.empty()) {
    enter_netns(line.netns);
  } else if (!line.config.network_namespace.empty()) {
    enter_netns(line.config.network_namespace);
  }
}

Plan make_plan(CommandLine& line) {
  Host host;
  if (line.pid) {
    // The pod's own files, not the node's.
    const std::string root = "/proc/" + std::to_string(*line.pid) + "/root";
    host.passwd = root + host.passwd;
    host.group = root + host.group;
    host.resolv_conf = root + host.resolv_conf;
  }
  const HostFacts facts = gather(line.config, line.names, host);
  Plan made = plan(line.config, facts);
  for (const std::string& warning : made.warnings) warn(warning);
  return made;
}

std::string legacy_lock(const CommandLine& line) {
  const bool elsewhere =
      line.pid || !line.netns.empty() || !line.config.network_namespace.empty() || line.config.cni_mode;
  return elsewhere ? namespace_lock : "";
}

OpenBackend opener(const CommandLine& line) {
  return [wait = line.config.lock_wait, lock = legacy_lock(line)](BackendKind kind,
                                                                  Access access) -> std::unique_ptr<Backend> {
    switch (kind) {
      case BackendKind::iptables_nft:
        return open_iptables_nft();
      case BackendKind::nftables:
        return open_nftables();
      case BackendKind::iptables_legacy:
        break;
    }
    return open_iptables_legacy({.read_only = access == Access::read, .lock_file = lock, .wait = wait});
  };
}

bool colored(const CommandLine& line) {
  if (line.color != Color::automatic) return line.color == Color::always;
  return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

void print(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == EPIPE) end_by_closed_pipe();
  // Never "not permitted": no capability would help.
  if (error != 0) throw Error(ExitCode::failed, "cannot write to standard output: " + errno_words(error));
}

std::string rendered(const CommandLine& line, const Plan& plan) {
  if (line.format == Format::json) return json(plan, line.config);
  if (line.format == Format::nft) return nft_script(plan.ruleset);
  if (line.format == Format::mermaid) return mermaid(plan.ruleset, line.printed);
  if (line.format == Format::dot) return dot(plan.ruleset, line.printed);
  std::string text;
  for (Family family : line.printed.list()) text += iptables_restore(plan.ruleset, family);
  return text;
}

}  // namespace sidetrack::cli
