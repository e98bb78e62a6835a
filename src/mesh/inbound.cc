// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/builder.h"

namespace sidetrack {

using namespace words;

// 3. -t mangle -A PREROUTING -m conntrack --ctstate INVALID -j ISTIO_DROP
void drop_invalid(Builder& build) {
  if (!build.config.drop_invalid) return;
  const std::string flag = "--drop-invalid";
  build.append(Table::mangle, prerouting, {ctstate(ConntrackStateMatch::invalid)}, Jump{istio_drop},
               {flag, "packets of no known connection are dropped, lest the app answer them with a reset"});
  build.append(Table::mangle, istio_drop, {}, Verdict::drop, {flag, "dropped"});
}

// 4. The ends of all redirection, there even when nothing leads to them.
void redirect_chains(Builder& build) {
  const Config& config = build.config;
  const std::string tunnel = std::to_string(config.tunnel_port);
  const std::string proxy = std::to_string(config.proxy_port);
  const std::string inbound = std::to_string(config.inbound_port);
  build.append(Table::nat, istio_inbound, {tcp, dport(config.tunnel_port)}, Verdict::return_,
               {"-e " + tunnel, "the tunnel's port: the proxy listens there itself"});
  build.append(Table::nat, istio_redirect, {tcp}, Redirect{config.proxy_port},
               {"-p " + proxy, "to the proxy's outbound listener, port " + proxy});
  build.append(Table::nat, istio_in_redirect, {tcp}, Redirect{config.inbound_port},
               {"-z " + inbound, "to the proxy's inbound listener, port " + inbound});
}

namespace {

// -t mangle: ISTIO_DIVERT marks packets for the route to lo; ISTIO_TPROXY hands them to the proxy's socket
void tproxy_chains(Builder& build) {
  const Config& config = build.config;
  const std::string mark = "-t " + std::to_string(config.tproxy_mark);
  build.append(Table::mangle, istio_divert, {}, SetMark{config.tproxy_mark},
               {mark, "marked, so that the policy route brings it to the proxy's open connection"});
  build.append(Table::mangle, istio_divert, {}, Verdict::accept, {"-m TPROXY", "accepted as marked"});
  for (Family family : build.facts.families.list()) {
    build.append(
        family, Table::mangle, istio_tproxy, {except(destination(build.loopback(family))), tcp},
        Tproxy{config.inbound_port, config.tproxy_mark, 0xffffffff},
        {"-m TPROXY", "to the proxy's transparent inbound listener, port " + std::to_string(config.inbound_port)});
  }
}

// Inbound traffic that `selector` matches goes to the proxy.
void capture(Builder& build, const std::vector<Match>& selector, const Reason& reason) {
  if (!build.tproxy()) {
    build.append(Table::nat, istio_inbound, selector, Jump{istio_in_redirect}, reason);
    return;
  }
  std::vector<Match> established = selector;
  established.emplace_back(ctstate(ConntrackStateMatch::related | ConntrackStateMatch::established));
  build.append(Table::mangle, istio_inbound, established, Jump{istio_divert},
               {reason.flag, "packets of a connection that the proxy already has"});
  build.append(Table::mangle, istio_inbound, selector, Jump{istio_tproxy}, reason);
}

}  // namespace

// 5. PREROUTING -p tcp -j ISTIO_INBOUND, and what that chain captures
void inbound(Builder& build) {
  const Config& config = build.config;
  if (config.inbound_ports.empty()) return;
  if (build.tproxy()) tproxy_chains(build);
  build.append(build.inbound_table(), prerouting, {tcp}, Jump{istio_inbound}, {"-b", "inbound TCP is looked at"});
  if (!config.inbound_ports.all) {
    for (std::uint16_t port : config.inbound_ports.list) {
      const std::string number = std::to_string(port);
      capture(build, {tcp, dport(port)}, {"-b " + number, "inbound to port " + number + " goes to the proxy"});
    }
    return;
  }
  for (std::uint16_t port : config.inbound_exclude_ports) {
    const std::string number = std::to_string(port);
    build.append(build.inbound_table(), istio_inbound, {tcp, dport(port)}, Verdict::return_,
                 {"-d " + number, "inbound to port " + number + " is left to the app"});
  }
  capture(build, {tcp}, {"-b *", "all other inbound TCP goes to the proxy"});
}

}  // namespace sidetrack
