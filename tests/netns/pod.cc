// SPDX-License-Identifier: GPL-2.0-or-later
#include "pod.h"

#include <fcntl.h>
#include <fmt/format.h>

namespace sidetrack::netns {
namespace {

// TEST-NET and unique local addresses: nothing that could be somebody's.
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

void ip(const Namespace& where, const std::string& batch) { where.must({"ip", "-batch", "-"}, batch); }

void set_sysctl(const std::string& name, const std::string& value) {
  const std::string path = "/proc/sys/net/" + name;  // of the calling thread's namespace
  const FileDescriptor file(check(open(path.c_str(), O_WRONLY | O_CLOEXEC), "open " + path));
  check(write(file.get(), value.data(), value.size()), "write to " + path);
}

// No duplicate address detection: an IPv6 address, the link-local ones too, could not be used for its first second.
void trust_addresses() {
  set_sysctl("ipv6/conf/all/accept_dad", "0");
  set_sysctl("ipv6/conf/default/accept_dad", "0");
}

void be_a_pod() {
  // As container runtimes have it: an app of any uid may listen on port 80.
  set_sysctl("ipv4/ip_unprivileged_port_start", "0");
  // The second interface leads on, as one with a virtual machine behind it does.
  set_sysctl("ipv4/ip_forward", "1");
  set_sysctl("ipv6/conf/all/forwarding", "1");
}

}  // namespace

const Addresses& addresses(Family family) { return family == Family::ipv4 ? ipv4 : ipv6; }

Pod::Pod(Options options) {
  for (const auto* each : {&pod_, &outside_, &guest_}) each->run(trust_addresses);
  link("eth0", outside_, "pod0");
  link("net1", guest_, "net1");
  pod_.run(be_a_pod);

  const auto& a = ipv4;
  const auto& b = ipv6;
  ip(pod_, fmt::format("link set lo up\nlink set eth0 up\nlink set net1 up\n"
                       "addr add {}/24 dev eth0\naddr add {}/64 dev eth0\n"
                       "addr add {}/24 dev net1\naddr add {}/64 dev net1\n"
                       "route add default via {}\nroute add default via {}\n",
                       a.pod, b.pod, a.pod_second, b.pod_second, a.client, b.client));
  std::string outside = fmt::format(
      "link set lo up\nlink set pod0 up\naddr add {}/24 dev pod0\naddr add {}/64 dev pod0\n"
      "route add default via {}\nroute add default via {}\n",
      a.client, b.client, a.pod, b.pod);
  for (const auto* family : {&a, &b})
    for (const auto address :
         {family->service, family->other_service, family->excluded, family->dns, family->other_dns})
      outside += fmt::format("addr add {}/{} dev lo\n", address, family == &a ? 32 : 128);
  ip(outside_, outside);
  ip(guest_, fmt::format("link set lo up\nlink set net1 up\naddr add {}/24 dev net1\naddr add {}/64 dev net1\n"
                         "route add default via {}\nroute add default via {}\n",
                         a.guest, b.guest, a.pod_second, b.pod_second));

  const Actor proxy{Place::pod, options.proxy};
  Actor inbound = proxy;
  inbound.identity.keep_capabilities = options.transparent_proxy;
  listen(inbound, Role::proxy_inbound, {.tcp = {15006}, .udp = {}, .transparent = options.transparent_proxy});
  listen(proxy, Role::proxy_outbound, {.tcp = {15001}, .udp = {}});
  listen(proxy, Role::tunnel, {.tcp = {15008}, .udp = {}});
  listen(proxy, Role::dns, {.tcp = {15053}, .udp = {15053}});
  listen(as_app, Role::app, app_ports);
  listen(from_outside, Role::outside, outside_ports);
  listen(from_guest, Role::guest, guest_ports);
}

const Namespace& Pod::at(Place place) const {
  return place == Place::pod ? pod_ : place == Place::outside ? outside_ : guest_;
}

void Pod::listen(const Actor& actor, Role role, const Ports& ports) {
  servers_.push_back(std::make_unique<Server>(at(actor.place), actor.identity, role, ports));
}

Landing Pod::connect(const Actor& actor, const Request& request) const {
  return netns::connect(at(actor.place), actor.identity, request);
}

void Pod::link(const std::string& name, const Namespace& other, const std::string& other_name) const {
  ip(pod_,
     fmt::format("link add {} type veth peer name {} netns /proc/{}/fd/{}\n", name, other_name, getpid(), other.fd()));
}

}  // namespace sidetrack::netns
