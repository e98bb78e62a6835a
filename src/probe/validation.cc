// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "mesh/catalogue.h"
#include "model/error.h"
#include "probe/trial.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

using namespace probe;
using Verdict_ = ProbeResult::Verdict;

// The proxy's ports. As the reference has it, either one will do, whichever of them these options lead to.
std::vector<Listener> listeners(const Config& config, Family family, const Owner& proxy) {
  const ActingAs owner(proxy);
  std::vector<Listener> both;
  for (const std::uint16_t port : {config.proxy_port, config.inbound_port})
    both.push_back(listen_at(Protocol::tcp, {{Address::loopback(family), port}}, Sharing::always));
  return both;
}

}  // namespace

void check_validation(const Config& config, const Plan& plan, Family family) {
  const Trial trial = inbound(config, plan, family);
  if (captured_at(trial)) return;
  const Rule* rule = trial.rules.empty() ? nullptr : &trial.rules.back();
  throw Error(ExitCode::usage,
              fmt::format("--run-validation cannot succeed: with these options the connection to {} is left alone{}",
                          trial.attempt.to.text(),
                          rule ? fmt::format(" by '{}' ({})", iptables_words(*rule), reason_of(*rule).flag) : ""),
              "leave out --run-validation, or choose another --iptables-probe-port");
}

ProbeResult validate(const Config& config, const Plan& plan, Family family) {
  Trial trial = inbound(config, plan, family);
  if (!trial.unknown.empty()) {
    throw Error(ExitCode::not_permitted, "--run-validation: " + trial.unknown,
                fmt::format("run it as uid {}, as the istio-validation container does", trial.attempt.as.uid));
  }
  trial.or_port = config.proxy_port;
  const std::vector<Listener> where = listeners(config, family, trial.attempt.as);
  if (std::ranges::count(where, Listener::State::refused, &Listener::state) == std::ssize(where)) {
    throw system_error(where.front().error,
                       fmt::format("--run-validation: cannot listen at port {} or {}", where[0].port, where[1].port),
                       ExitCode::validation_failed);
  }

  SourcePorts ports = source_ports(where);
  const Clock::time_point start = Clock::now();
  const Clock::time_point deadline = start + std::chrono::ceil<Clock::duration>(config.probe_timeout);
  while (true) {
    const Clock::time_point next = std::min(deadline, Clock::now() + std::chrono::seconds(1));
    ProbeResult result = carry_out(trial, where, ports, next);
    if (result.verdict != Verdict_::ok) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
      poll(nullptr, 0, std::max(0, static_cast<int>(left.count())));
    }
    result.took = Clock::now() - start;
    if (result.verdict == Verdict_::ok || Clock::now() >= deadline) return result;
  }
}

}  // namespace sidetrack
