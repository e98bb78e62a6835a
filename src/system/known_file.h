// SPDX-License-Identifier: GPL-2.0-or-later
// The files of /proc that are read beside the rules, of the namespaces of the calling thread.
#pragma once

#include <cstdint>
#include <string>

namespace sidetrack {

enum class KnownFile : std::uint8_t {
  ip_tables_names,       // the tables of legacy iptables, a line each; not there without it in the kernel
  ip6_tables_names,      // the same of IPv6
  ip_tables_matches,     // the matches of xtables that the kernel has loaded, a line each
  ephemeral_ports,       // net.ipv4.ip_local_port_range
  rp_filter,             // net.ipv4.conf.all.rp_filter
  src_valid_mark,        // net.ipv4.conf.all.src_valid_mark
  route_localnet,        // net.ipv4.conf.all.route_localnet
  tcp_fwmark_accept,     // net.ipv4.tcp_fwmark_accept
  rules_of_frames_ipv4,  // net.bridge.bridge-nf-call-iptables; not there without br_netfilter in the kernel
  rules_of_frames_ipv6,  // net.bridge.bridge-nf-call-ip6tables; likewise
  ipv4_tables,           // the prefixes of IPv4's tables of routes: fib_trie in /proc/net
  // Who changes rules does not read these: by none of them does a rule come in the way of what is captured.
  accept_local,         // net.ipv4.conf.all.accept_local
  fwmark_reflect_ipv4,  // net.ipv4.fwmark_reflect
  fwmark_reflect_ipv6,  // net.ipv6.fwmark_reflect; not there without IPv6 in the kernel
  ignored_echos_ipv4,   // net.ipv4.icmp_echo_ignore_all
  ignored_echos_ipv6,   // net.ipv6.icmp.echo_ignore_all; not there without IPv6 in the kernel
  // Only who changes rules reads these.
  uid_map,
  gid_map,
  locks,
  // Only who makes connections reads these: proc_net_tcp(5).
  tcp_sockets,
  tcp6_sockets,  // not there without IPv6 in the kernel
};

[[nodiscard]] const char* path_of(KnownFile file);

// What it holds. `error` is an errno; 0 if it could be read.
struct KnownText {
  std::string text;
  int error = 0;
};
[[nodiscard]] KnownText read_known_file(KnownFile file);

// Opens them: from then on they are read anew, but not opened again. For a process that cannot open files any more. In
// a new network namespace each setting takes 30 microseconds.
enum class KnownFilesFor : std::uint8_t { answers, changes, all };
void preopen_proc_files(KnownFilesFor what);

}  // namespace sidetrack
