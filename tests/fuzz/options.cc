// SPDX-License-Identifier: GPL-2.0-or-later
// The command line and the environment: a line is an argument, or a variable if it begins with '$'; a byte that is no
// ASCII stands for the name of a flag or of its variable. What is accepted can be planned and rendered; what
// `cni install` accepts, the plugin reads as the same.
#include "options/options.h"

#include <deque>
#include <map>

#include "fuzz.h"
#include "mesh/plan.h"
#include "node/entry.h"
#include "node/network_configuration.h"
#include "options/flags.h"
#include "render/render.h"
#include "rule/iptables.h"
#include "walk/explain.h"

using namespace sidetrack;

namespace {

// With the names of flags in the place of bytes from 0x80 on.
std::string with_names(std::string_view line) {
  const bool variable = line.starts_with('$');
  std::string made;
  for (const char each : line) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte < 0x80) {
      made += each;
      continue;
    }
    const Flag& flag = flags()[(byte - 0x80U) % flags().size()];
    if (variable) {
      made += flag.variables[0];
    } else {
      made += "--" + std::string(flag.name);
    }
  }
  return made;
}

void plan_and_render(CommandLine line) {
  if (line.config.proxy_uids.empty()) line.config.proxy_uids = {1337};
  if (line.config.proxy_gids.empty()) line.config.proxy_gids = {1337};
  HostFacts facts;
  facts.families = line.config.families.value_or(Families::both());
  facts.dns_servers = line.config.dns_servers.value_or(std::vector<Address>{});
  const Plan made = plan(line.config, facts);
  fuzz::require(!json(made, line.config).empty(), "JSON of a plan");
  for (const Family family : {Family::ipv4, Family::ipv6}) static_cast<void>(iptables_restore(made.ruleset, family));
}

void install(const CommandLine& line) {
  const std::string entry = cni::entry(line);
  const std::string call = R"({"cniVersion": "1.0.0", "name": "n", )" + entry.substr(entry.find('{') + 1);
  try {
    const auto configuration = cni::read_configuration(call, cni::Keys::all);
    const CommandLine read = parse_apply(configuration.options);
    fuzz::require(read.config.proxy_port == line.config.proxy_port, entry);
    fuzz::require(read.config.mode == line.config.mode, entry);
    fuzz::require(read.config.proxy_uids == line.config.proxy_uids || line.config.proxy_uids.empty(), entry);
    fuzz::require(read.config.outbound_exclude_ranges == line.config.outbound_exclude_ranges, entry);
    fuzz::require(read.config.inbound_exclude_ports == line.config.inbound_exclude_ports, entry);
    fuzz::require(configuration.exclude_namespaces == line.cni.exclude_namespaces, entry);
  } catch (const std::exception& error) {
    fuzz::require(false, entry + "\n" + error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string_view> arguments{"sidetrack"};
  std::map<std::string_view, std::string_view> variables;
  std::string_view text = fuzz::text_of(data, size);
  if (text.find('\0') != std::string_view::npos) return -1;  // neither argv nor an environment can hold it
  if (text.find('@') != std::string_view::npos) return -1;   // would read files of this machine
  std::deque<std::string> lines;
  while (const auto line = fuzz::take_line(text)) {
    const std::string_view made = lines.emplace_back(with_names(*line));
    if (!made.starts_with('$')) {
      arguments.push_back(made);
    } else if (const auto equals = made.find('='); equals != std::string_view::npos) {
      variables[made.substr(1, equals - 1)] = made.substr(equals + 1);
    }
  }
  const auto environment = [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = variables.find(name);
    return found != variables.end() ? std::optional(found->second) : std::nullopt;
  };
  try {
    CommandLine line = parse(arguments, environment, [](const ManifestOptions&) { return OptionsOfPod{}; });
    if (line.help) {
      static_cast<void>(line.command ? help(*line.command) : help());
      return 0;
    }
    if (line.command == Command::explain) {
      const Packet packet = parse_packet(line.packet);
      static_cast<void>(explain_words(packet));
    }
    if (works_by_plan(line)) plan_and_render(line);
    if (line.command == Command::cni && line.cni.action == CniAction::install) install(line);
  } catch (const Error& error) {
    fuzz::require_readable(error);
    fuzz::require(error.code() == ExitCode::usage, error.what());
  }
  return 0;
}
