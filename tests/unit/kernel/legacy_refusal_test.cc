// SPDX-License-Identifier: GPL-2.0-or-later
// What is said where the kernel has no legacy iptables, or refuses its rules.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "kernel/legacy/refusal.h"
#include "mesh/istio_rules.h"
#include "model/error.h"

namespace sidetrack::legacy {
namespace {

// "CODE of one backend: WHAT; HINT"
std::string text(const Error& error) {
  return fmt::format("{}{}: {}{}{}\n", static_cast<int>(error.code()), error.of_one_backend() ? " of one backend" : "",
                     error.what(), error.hint().empty() ? "" : "; ", error.hint());
}

TEST(LegacyRefusal, WhatTheKernelLacksIsNamed) {
  std::string all = "\n";
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    for (const Table table : {Table::raw, Table::mangle, Table::nat, Table::filter, Table::security})
      all += text(cannot_open(ENOENT, family, table));
    for (const int error : {EAFNOSUPPORT, ENOPROTOOPT, EPROTONOSUPPORT, EIO})
      all += text(cannot_open(error, family, Table::nat));
  }
  EXPECT_EQ(all, R"(
3 of one backend: iptables-legacy, table raw (ipv4): the kernel has no such table; load module iptable_raw on the node (modprobe iptable_raw), or build the kernel with CONFIG_IP_NF_RAW
3 of one backend: iptables-legacy, table mangle (ipv4): the kernel has no such table; load module iptable_mangle on the node (modprobe iptable_mangle), or build the kernel with CONFIG_IP_NF_MANGLE
3 of one backend: iptables-legacy, table nat (ipv4): the kernel has no such table; load module iptable_nat on the node (modprobe iptable_nat), or build the kernel with CONFIG_IP_NF_NAT
3 of one backend: iptables-legacy, table filter (ipv4): the kernel has no such table; load module iptable_filter on the node (modprobe iptable_filter), or build the kernel with CONFIG_IP_NF_FILTER
3 of one backend: iptables-legacy, table security (ipv4): the kernel has no such table; load module iptable_security on the node (modprobe iptable_security), or build the kernel with CONFIG_IP_NF_SECURITY
3 of one backend: iptables-legacy, table nat (ipv4): the kernel has no IPv4
3 of one backend: iptables-legacy, table nat (ipv4): the kernel has no legacy iptables; load module ip_tables on the node (modprobe ip_tables), or build the kernel with CONFIG_IP_NF_IPTABLES_LEGACY, or use an nf_tables backend
3 of one backend: iptables-legacy, table nat (ipv4): the kernel has no legacy iptables; load module ip_tables on the node (modprobe ip_tables), or build the kernel with CONFIG_IP_NF_IPTABLES_LEGACY, or use an nf_tables backend
1: iptables-legacy, table nat (ipv4): cannot read it: Input/output error (EIO)
3 of one backend: iptables-legacy, table raw (ipv6): the kernel has no such table; load module ip6table_raw on the node (modprobe ip6table_raw), or build the kernel with CONFIG_IP6_NF_RAW
3 of one backend: iptables-legacy, table mangle (ipv6): the kernel has no such table; load module ip6table_mangle on the node (modprobe ip6table_mangle), or build the kernel with CONFIG_IP6_NF_MANGLE
3 of one backend: iptables-legacy, table nat (ipv6): the kernel has no such table; load module ip6table_nat on the node (modprobe ip6table_nat), or build the kernel with CONFIG_IP6_NF_NAT
3 of one backend: iptables-legacy, table filter (ipv6): the kernel has no such table; load module ip6table_filter on the node (modprobe ip6table_filter), or build the kernel with CONFIG_IP6_NF_FILTER
3 of one backend: iptables-legacy, table security (ipv6): the kernel has no such table; load module ip6table_security on the node (modprobe ip6table_security), or build the kernel with CONFIG_IP6_NF_SECURITY
3 of one backend: iptables-legacy, table nat (ipv6): the kernel has no IPv6; IPv6 may be switched off at boot (ipv6.disable=1); --ip-families ipv4 leaves it out
3 of one backend: iptables-legacy, table nat (ipv6): the kernel has no legacy iptables; load module ip6_tables on the node (modprobe ip6_tables), or build the kernel with CONFIG_IP6_NF_IPTABLES_LEGACY, or use an nf_tables backend
3 of one backend: iptables-legacy, table nat (ipv6): the kernel has no legacy iptables; load module ip6_tables on the node (modprobe ip6_tables), or build the kernel with CONFIG_IP6_NF_IPTABLES_LEGACY, or use an nf_tables backend
1: iptables-legacy, table nat (ipv6): cannot read it: Input/output error (EIO)
)");
}

TEST(LegacyRefusal, OfRules) {
  EXPECT_EQ(text(refused(EAGAIN, Family::ipv4, Table::mangle, {}, istio_rules)),
            "5: iptables-legacy, table mangle (ipv4): another program changed it meanwhile; run it again\n");
  EXPECT_EQ(text(refused(ENOMEM, Family::ipv6, Table::nat, {}, istio_rules)),
            "1: iptables-legacy, table nat (ipv6): the kernel has no memory for the rules: Cannot allocate memory "
            "(ENOMEM)\n");
}

}  // namespace
}  // namespace sidetrack::legacy
