// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "kernel/routes.h"
#include "model/ports.h"
#include "probe/trial.h"
#include "walk/explain.h"

namespace sidetrack::probe {
namespace {

using std::chrono::seconds;

// When all is well a trial takes less than a millisecond.
constexpr seconds patience{1};

// At all addresses; in mode TPROXY foreign ones are among them, where that is permitted.
Listener listen_anywhere(const Config& config, Family family, std::uint16_t port) {
  if (config.mode == Mode::tproxy) {
    Listener listener = listen_at(Protocol::tcp, {{Address::any(family), port}, true}, Sharing::if_free);
    if (listener.state != Listener::State::refused) return listener;
  }
  return listen_at(Protocol::tcp, {{Address::any(family), port}}, Sharing::if_free);
}

// This pod as the plan has it: what others did to its routes and to lo is for the attempts to find out.
PodView pod_for(const Plan& plan) {
  PodView assumed = assumed_pod(plan);
  PodView pod = read_pod();
  std::erase_if(pod.interfaces, [](const Interface& interface) { return interface.name == "lo"; });
  pod.interfaces.insert(pod.interfaces.begin(), assumed.interfaces.front());
  std::erase_if(pod.routes, [](const Route& route) { return route.kind != Route::Kind::unicast; });
  std::ranges::copy_if(assumed.routes, std::back_inserter(pod.routes),
                       [&](const Route& route) { return pod.interface(route.device) != nullptr; });
  pod.rules = std::move(assumed.rules);
  return pod;
}

// The first port from this one on that is in none of the ranges, which are sorted.
std::optional<std::uint16_t> free_from(std::uint16_t port, const std::vector<PortRange>& named) {
  for (const PortRange& range : named) {
    if (!range.contains(port)) continue;
    if (range.last == std::numeric_limits<std::uint16_t>::max()) return std::nullopt;
    port = static_cast<std::uint16_t>(range.last + 1);
  }
  return port;
}

// No option names it: what happens there happens to any port. Where options name all ports, the one to probe.
std::uint16_t ordinary_port(const Config& config) {
  std::vector<PortRange> named{dns_port, proxy_dns_port, config.proxy_port, config.inbound_port, config.tunnel_port};
  for (const auto* ports : {&config.inbound_ports.list, &config.inbound_exclude_ports, &config.outbound_ports,
                            &config.outbound_exclude_ports})
    named.insert(named.end(), ports->begin(), ports->end());
  std::ranges::sort(named);
  if (const auto above = free_from(config.probe_port, named)) return *above;
  return free_from(1, named).value_or(config.probe_port);
}

// At every port of the proxy, and where else a trial ends.
std::vector<Listener> listeners(const Config& config, Family family, const std::vector<Trial>& trials) {
  std::set<std::pair<Protocol, std::uint16_t>> proxy_ports{{Protocol::tcp, config.proxy_port}};
  std::set<std::uint16_t> other_ports;
  for (const Trial& trial : trials) {
    if (const auto port = captured_at(trial)) {
      proxy_ports.emplace(trial.attempt.protocol, *port);
    } else if (trial.unknown.empty()) {
      other_ports.insert(trial.attempt.to.port.value());
    }
  }
  proxy_ports.erase({Protocol::tcp, config.inbound_port});
  const ActingAs proxy(proxy_identities(config).front());
  std::vector<Listener> all;
  all.push_back(listen_anywhere(config, family, config.inbound_port));
  for (const auto& [protocol, port] : proxy_ports)
    all.push_back(listen_at(protocol, {{Address::loopback(family), port}}, Sharing::if_free));
  for (const std::uint16_t port : other_ports) all.push_back(listen_anywhere(config, family, port));
  return all;
}

}  // namespace
}  // namespace sidetrack::probe

namespace sidetrack {

std::vector<ProbeResult> probe_pod(const Config& asked, const Plan& plan) {
  std::vector<ProbeResult> results;
  if (plan.ruleset.rules.empty()) return results;
  Config config = asked;
  config.probe_port = probe::ordinary_port(asked);
  const probe::Planned planned(plan, probe::pod_for(plan));
  for (const Family family : plan.families.list()) {
    std::vector<probe::Trial> trials;
    // What ztunnel sends to the app has the client's address: it is no owner that tells it.
    if (config.dataplane == Dataplane::sidecar) trials.push_back(probe::inbound(config, plan, family));
    std::ranges::move(probe::trials(config, planned, family), std::back_inserter(trials));
    const std::vector<probe::Listener> where = probe::listeners(config, family, trials);
    probe::SourcePorts ports = probe::source_ports(where);
    for (const probe::Trial& trial : trials) {
      const auto time = std::min<std::chrono::nanoseconds>(probe::patience, config.probe_timeout);
      results.push_back(probe::carry_out(trial, where, ports, probe::Clock::now() + time));
    }
  }
  return results;
}

std::vector<Rule> missing_rules(const ProbeResult& result, const PodDiff& pod_diff) {
  std::vector<Rule> missing;
  for (const Rule& rule : result.rules) {
    const auto is_it = [&](const DiffLine& line) {
      return line.kind == DiffLine::Kind::missing && !(line.rule.families & rule.families).empty() &&
             same_effect(line.rule, rule);
    };
    const auto lacks = [&](const ChainDiff& chain) {
      return chain.table == rule.table && chain.name == rule.chain && std::ranges::any_of(chain.lines, is_it);
    };
    const auto& chains = pod_diff.backends.front().chains;
    if (std::ranges::any_of(chains, lacks)) missing.push_back(rule);
  }
  return missing;
}

}  // namespace sidetrack
