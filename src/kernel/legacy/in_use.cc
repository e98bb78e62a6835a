// SPDX-License-Identifier: GPL-2.0-or-later
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <sys/socket.h>

#include <bit>
#include <cstring>

#include "kernel/inspect.h"
#include "kernel/legacy/iptc_table.h"
#include "model/error.h"
#include "system/descriptor.h"

namespace sidetrack {
namespace legacy {
namespace {

// A table without any rule has an entry for each hook's policy, and the one that ends it.
template <typename Info>
bool holds_entries(int domain, int level, int option, const std::string& table) {
  const Descriptor socket_fd(socket(domain, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW));
  if (!socket_fd.valid()) return false;  // without CAP_NET_RAW this backend cannot be used anyway
  Info info{};
  std::strncpy(info.name, table.c_str(), sizeof info.name - 1);
  socklen_t size = sizeof info;
  if (getsockopt(socket_fd.get(), level, option, &info, &size) != 0) return false;
  return info.num_entries > static_cast<unsigned>(std::popcount(info.valid_hooks)) + 1;
}

}  // namespace

bool holds_rules(Family family, const std::string& table) {
  return family == Family::ipv4 ? holds_entries<ipt_getinfo>(AF_INET, IPPROTO_IP, IPT_SO_GET_INFO, table)
                                : holds_entries<ip6t_getinfo>(AF_INET6, IPPROTO_IPV6, IP6T_SO_GET_INFO, table);
}

}  // namespace legacy

bool iptables_legacy_in_use() {
  try {
    for (Family family : {Family::ipv4, Family::ipv6}) {
      for (const std::string& table : legacy::table_names(family)) {
        if (legacy::holds_rules(family, table)) return true;
      }
    }
  } catch (const Error&) {  // if they may not be seen, this backend cannot be used anyway
  }
  return false;
}

TableNames legacy_tables() {
  std::vector<std::string> tables;
  try {
    for (Family family : {Family::ipv4, Family::ipv6}) {
      for (const std::string& table : legacy::table_names(family)) {
        tables.push_back(table + " (" + std::string(name(family)) + ")");
      }
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return tables;
}

}  // namespace sidetrack
