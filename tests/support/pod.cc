// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/pod.h"

#include <fmt/format.h>

#include <algorithm>

#include "pod/ztunnel.h"
#include "support/network.h"

namespace sidetrack::netns {
namespace {

// TEST-NET and unique local addresses: nothing that could be in use.
constexpr Addresses ipv4{.any_loopback = "127.0.0.1",
                         .pod = "10.1.0.2",
                         .client = "10.1.0.1",
                         .service = "10.96.0.10",
                         .service_range = "10.96.0.0/16",
                         .other_service = "10.97.0.10",
                         .excluded = "192.0.2.10",
                         .excluded_range = "192.0.2.0/24",
                         .dns = "10.96.0.53",
                         .other_dns = "10.97.0.53",
                         .pod_second = "10.2.0.2",
                         .guest = "10.2.0.1"};
constexpr Addresses ipv6{.any_loopback = "::1",
                         .pod = "fd00:1::2",
                         .client = "fd00:1::1",
                         .service = "fd00:96::10",
                         .service_range = "fd00:96::/32",
                         .other_service = "fd00:97::10",
                         .excluded = "2001:db8::10",
                         .excluded_range = "2001:db8::/32",
                         .dns = "fd00:96::53",
                         .other_dns = "fd00:97::53",
                         .pod_second = "fd00:2::2",
                         .guest = "fd00:2::1"};

const Ports app_ports{.tcp = {80, 8080, 8081, 15020, 15021, 15090}, .udp = {5000}};
const Ports outside_ports{.tcp = {53, 80, 443, 8080, 8081, 9443, 15008}, .udp = {53, 80, 443}};
const Ports guest_ports{.tcp = {53, 80}, .udp = {53}};

}  // namespace

const Addresses& addresses(Family family) { return family == Family::ipv4 ? ipv4 : ipv6; }

Pod::Pod(Options options, Namespace pod) : pod_(std::move(pod)) {
  for (const auto* each : {&pod_, &outside_, &guest_}) {
    trust_addresses(*each);
    ip(*each, "link set lo up\n");
  }
  join(pod_, "eth0", outside_, "pod0");
  join(pod_, "net1", guest_, "net1");
  // As container runtimes have it: an app of any uid may listen on port 80.
  set_sysctl(pod_, "ipv4/ip_unprivileged_port_start", "0");
  // The second interface leads on, as one with a virtual machine behind it does.
  set_sysctl(pod_, "ipv4/ip_forward", "1");
  set_sysctl(pod_, "ipv6/conf/all/forwarding", "1");

  for (const Family family : {Family::ipv4, Family::ipv6}) {
    const Addresses& a = addresses(family);
    const int subnet = family == Family::ipv4 ? 24 : 64;
    const auto add = [](std::string_view address, int prefix, std::string_view interface) {
      return fmt::format("addr add {}/{} dev {}\n", address, prefix, interface);
    };
    const auto default_route = [](std::string_view gateway) {
      return fmt::format("route add default via {}\n", gateway);
    };
    ip(pod_, add(a.pod, subnet, "eth0") + add(a.pod_second, subnet, "net1") + default_route(a.client));
    ip(guest_, add(a.guest, subnet, "net1") + default_route(a.pod_second));
    std::string outside = add(a.client, subnet, "pod0") + default_route(a.pod);
    for (const auto host : {a.service, a.other_service, a.excluded, a.dns, a.other_dns})
      outside += add(host, family == Family::ipv4 ? 32 : 128, "lo");
    ip(outside_, outside);
  }
  for (const auto* each : {&pod_, &outside_, &guest_}) wait_for_addresses(*each);

  Actor proxy{Place::pod, options.proxy};
  if (options.ztunnel) proxy = as_ztunnel;
  const unsigned mark = options.ztunnel ? ztunnel_mark : 0;
  Actor inbound = proxy;
  inbound.identity.keep_capabilities = options.transparent_proxy || options.ztunnel;
  Ports captured{.tcp = {15006}, .udp = {15006}, .transparent = options.transparent_proxy, .mark = mark};
  if (options.ztunnel) captured.udp.clear();
  listen(inbound, Role::proxy_inbound, captured);
  listen(proxy, Role::proxy_outbound, {.tcp = {15001}, .udp = {}, .mark = mark});
  listen(proxy, Role::tunnel, {.tcp = {15008}, .udp = {}, .mark = mark});
  listen(proxy, Role::dns, {.tcp = {15053}, .udp = {15053}, .mark = mark});
  listen(as_app, Role::app, app_ports);
  listen(from_outside, Role::outside, outside_ports);
  listen(from_guest, Role::guest, guest_ports);
}

const Namespace& Pod::at(Place place) const {
  return place == Place::pod ? pod_ : place == Place::outside ? outside_ : guest_;
}

void Pod::listen(const Actor& actor, Role role, const Ports& ports) {
  servers_.push_back(std::make_unique<Server>(at(actor.place), actor.identity, role, ports));
  listeners_.push_back({actor.place, role, ports});
}

Role Pod::listener(Place place, Protocol protocol, std::uint16_t port) const {
  for (const Listener& one : listeners_) {
    const auto& ports = protocol == Protocol::tcp ? one.ports.tcp : one.ports.udp;
    if (one.place == place && std::ranges::find(ports, port) != ports.end()) return one.role;
  }
  return Role::refused;
}

Landing Pod::connect(const Actor& actor, const Request& request) const {
  return netns::connect(at(actor.place), actor.identity, request);
}

}  // namespace sidetrack::netns
