// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/routes/rtnetlink.h"

#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <cerrno>
#include <cstring>

namespace sidetrack::routes {
namespace {

constexpr netlink::Subsystem rtnetlink{NETLINK_ROUTE,
                                       "routes or addresses (rtnetlink)",
                                       "cannot open a netlink socket to the kernel's routing (rtnetlink)",
                                       "rtnetlink: cannot send",
                                       "rtnetlink: cannot receive",
                                       [](int error, const char* what) { return system_error(error, what); }};

// Of a point-to-point link IFA_ADDRESS is the other end, IFA_LOCAL this one.
std::optional<ListedAddress> live_address(const netlink::Message& message) {
  const auto& header = message.header<ifaddrmsg>();
  const auto family = family_of(header.ifa_family);
  if (!family) return {};
  const netlink::Attributes attributes = message.attributes<ifaddrmsg>();
  const nlattr* local = attributes.find(IFA_LOCAL);
  if (local == nullptr) local = attributes.find(IFA_ADDRESS);
  const auto address = local != nullptr ? address_of(*family, local) : std::nullopt;
  if (!address) return {};
  const bool usable = (header.ifa_flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) == 0;
  const bool deprecated = (header.ifa_flags & IFA_F_DEPRECATED) != 0;
  return ListedAddress{{*address, header.ifa_prefixlen, deprecated, header.ifa_scope}, header.ifa_index, usable};
}

}  // namespace

netlink::Socket open_socket() { return netlink::Socket(rtnetlink); }

netlink::Reply request(netlink::Socket& socket, netlink::Request& request) {
  netlink::Answer answer = netlink::ask(socket, request, [](const netlink::Message&) {});
  if (answer.lost != nullptr) throw system_error(ENOBUFS, "rtnetlink: the answer to a request is lost");
  return std::move(answer.end);
}

void dump(netlink::Socket& socket, netlink::Request& request,
          const std::function<void(const netlink::Message&)>& take) {
  const netlink::Answer answer = netlink::read_whole(socket, request, take);
  const int error = answer.end.error;
  if (error == 0 || (answer.messages == 0 && (error == EAFNOSUPPORT || error == EOPNOTSUPP))) return;
  throw system_error(error, "rtnetlink: cannot list");
}

std::optional<Family> family_of(unsigned domain) {
  if (domain == AF_INET) return Family::ipv4;
  if (domain == AF_INET6) return Family::ipv6;
  return std::nullopt;
}

std::optional<Address> address_of(Family family, const nlattr* attribute) {
  const auto bytes = netlink::payload(attribute);
  Address address{family, {}};
  if (bytes.size() < address.size()) return {};
  std::memcpy(address.bytes.data(), bytes.data(), address.size());
  return address;
}

std::optional<std::uint32_t> setting(const nlattr* of_families, Family family, std::size_t which) {
  const bool ipv4 = family == Family::ipv4;
  for (const int type : {ipv4 ? AF_INET : AF_INET6, ipv4 ? int{IFLA_INET_CONF} : int{IFLA_INET6_CONF}}) {
    if (of_families != nullptr) of_families = netlink::Attributes(of_families).find(type);
  }
  if (of_families == nullptr) return std::nullopt;
  const auto numbers = netlink::payload(of_families);
  std::uint32_t value = 0;
  if (numbers.size() < (which + 1) * sizeof value) return std::nullopt;
  std::memcpy(&value, &numbers[which * sizeof value], sizeof value);
  return value;
}

std::vector<ListedAddress> list_addresses(netlink::Socket& socket) {
  return list<ifaddrmsg>(socket, RTM_GETADDR, live_address);
}

}  // namespace sidetrack::routes
