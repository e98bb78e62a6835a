// SPDX-License-Identifier: GPL-2.0-or-later
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/log.h"
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

bool in_own_pod(const CommandLine& line) {
  return !line.pid && line.netns.empty() && line.config.network_namespace.empty() && !line.config.cni_mode;
}

std::unique_ptr<Kernel> open_kernel(const CommandLine& line, bool write) {
  return sidetrack::open_kernel({.write = write, .wait = line.config.lock_wait, .xtables_lock = in_own_pod(line)});
}

bool colored(const CommandLine& line) {
  if (line.color != Color::automatic) return line.color == Color::always;
  return isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
}

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw system_error(errno, "cannot write to standard output");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
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
