// SPDX-License-Identifier: GPL-2.0-or-later
// What was asked for (Config), and what the host says where the command line is silent (HostFacts). Everything is
// parsed: past this header no string could be a port. Ports, marks and ids are in host byte order.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/address.h"
#include "model/backend_kind.h"
#include "model/range.h"

namespace sidetrack {

enum class Mode : std::uint8_t { redirect, tproxy, none };  // -m

// --dataplane: whose rules a pod gets: those of a proxy in the pod itself, or those of the node's ztunnel, which has
// sockets in the pod.
enum class Dataplane : std::uint8_t { sidecar, ambient };

// A list that may also be everything ("*").
template <typename T>
struct Selection {
  bool all = false;
  std::vector<T> list;
  [[nodiscard]] bool empty() const { return !all && list.empty(); }
  friend bool operator==(const Selection&, const Selection&) = default;
};

// Users, and ports of what they send.
struct UidPorts {
  IdRange uids;
  std::vector<PortRange> ports;  // never empty
  friend bool operator==(const UidPorts&, const UidPorts&) = default;
};

// A cgroup (v2).
struct Cgroup {
  std::string path;      // without a slash at its ends; after gather() within the hierarchy
  std::uint64_t id = 0;  // see CgroupMatch; after gather()
  std::string given{};   // as it was written, for messages
  friend bool operator==(const Cgroup& a, const Cgroup& b) { return a.path == b.path && a.id == b.id; }
};

inline constexpr std::uint32_t istio_proxy_id = 1337;  // uid and gid of istio-proxy in Istio's images

// The options of the Istio command line, in the order of its documentation. Defaults are upstream's.
struct Config {
  std::uint16_t proxy_port = 15001;                   // -p
  std::uint16_t inbound_port = 15006;                 // -z
  std::uint16_t tunnel_port = 15008;                  // -e
  std::vector<std::uint32_t> proxy_uids;              // -u; resolved, never empty
  std::vector<std::uint32_t> proxy_gids;              // -g; resolved, never empty
  Mode mode = Mode::redirect;                         // -m
  Selection<PortRange> inbound_ports;                 // -b
  std::vector<PortRange> inbound_exclude_ports;       // -d
  Selection<AddressRange> inbound_ranges;             // --include-inbound-ranges; empty, too, is every source
  std::vector<AddressRange> inbound_exclude_ranges;   // --exclude-inbound-ranges
  std::vector<std::string> exclude_interfaces;        // -c
  Selection<AddressRange> outbound_ranges;            // -i
  std::vector<AddressRange> outbound_exclude_ranges;  // -x
  std::vector<PortRange> outbound_ports;              // -q
  std::vector<PortRange> outbound_exclude_ports;      // -o
  std::vector<std::string> virtual_interfaces;        // -k
  std::uint32_t tproxy_mark = 1337;                   // -t; host byte order
  std::uint32_t tproxy_route_table = 133;             // -r
  // ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR: what counts as loopback in IPv4; 127.0.0.1/32
  AddressRange loopback_ipv4 = AddressRange::single({Family::ipv4, {127, 0, 0, 1}});
  Selection<std::uint32_t> owner_groups{true, {}};  // ISTIO_OUTBOUND_OWNER_GROUPS; gids
  std::vector<std::uint32_t> owner_groups_exclude;  // ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE; gids
  // Users and groups, other than the proxy's, whose outbound bypasses it.
  std::vector<IdRange> exclude_uids;        // --exclude-uids
  std::vector<IdRange> exclude_gids;        // --exclude-gids
  std::vector<UidPorts> exclude_uid_ports;  // --exclude-uid-ports
  std::vector<Cgroup> bypass_cgroups;       // --bypass-cgroup
  std::vector<PortRange> capture_udp;       // --capture-udp; mode TPROXY alone
  bool redirect_dns = false;
  bool capture_all_dns = false;
  bool track_forwarded_dns = false;  // of the interfaces of -k
  bool drop_invalid = false;
  bool dual_stack = false;
  Dataplane dataplane = Dataplane::sidecar;
  // Of ambient pods alone: the source that the node gives the kubelet's probes, and whether inbound traffic is left
  // alone. Istio, cni/pkg/nodeagent/options.go: DefaultHostProbeSNATIP, 169.254.7.127, and DefaultHostProbeSNATIPV6.
  Address probe_address = {Family::ipv4, {169, 254, 7, 127}};
  Address probe_address6 = {
      Family::ipv6, {0xfd, 0x16, 0x92, 0x54, 0x71, 0x27, 0x13, 0x37, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
  bool ingress = false;

  // What the host would otherwise be asked.
  std::optional<std::vector<Address>> dns_servers;  // --dns-server
  std::optional<Families> families;                 // --ip-families

  // What --run-validation and verify --probe connect to, and for how long they try.
  std::uint16_t probe_port = 15002;
  std::chrono::nanoseconds probe_timeout = std::chrono::seconds(5);

  // A plan with more rules is refused: of interfaces and ranges each pair is one, so that few words may ask for
  // millions.
  std::size_t most_rules = 100'000;
};

// How the rules are installed, whatever they are.
struct ApplyOptions {
  bool reconcile = false;    // accepted: what differs is always replaced
  bool force_apply = false;  // equal rules are written again
  bool strict = false;       // --strict: nothing is applied where others keep traffic from the proxy
  bool cni_mode = false;     // called by a CNI plugin on the node
  bool native_nftables = false;
  std::optional<BackendKind> force_iptables_binary;
  std::optional<BackendKind> backend;                              // --backend; nothing: auto
  std::chrono::milliseconds lock_wait = std::chrono::seconds(30);  // --wait
};

// What was asked for by name. The host's user and group databases turn it into the numbers of Config (see host.h).
struct Names {
  std::string envoy_user = "istio-proxy";         // ENVOY_USER: whose uid proxy_uids is if -u is not given
  bool envoy_user_given = false;                  // the environment named it
  Selection<std::string> owner_groups{true, {}};  // ISTIO_OUTBOUND_OWNER_GROUPS: names or gids
  std::vector<std::string> owner_groups_exclude;  // ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE: names or gids
};

// What the host says. A dry run that is given --dns-server and --ip-families asks nothing.
struct HostFacts {
  Families families = Family::ipv4;   // IPv4 always; IPv6 if the pod has it (and see --dual-stack)
  std::vector<Address> dns_servers;   // of both families, in the order of resolv.conf
  std::vector<std::string> warnings;  // e.g. "no name server in /etc/resolv.conf: DNS is not captured"
};

}  // namespace sidetrack
