// SPDX-License-Identifier: GPL-2.0-or-later
#include "backend/routes/live.h"

#include <linux/fib_rules.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include <algorithm>

namespace sidetrack::routes {

std::optional<Family> family_of(unsigned domain) {
  if (domain == AF_INET) return Family::ipv4;
  if (domain == AF_INET6) return Family::ipv6;
  return std::nullopt;
}

namespace {

std::optional<LiveRule> policy_rule(const Message& message) {
  const auto& header = message.payload<fib_rule_hdr>();
  const auto family = family_of(header.family);
  if (!family || header.action != FR_ACT_TO_TBL || header.src_len != 0 || header.dst_len != 0 || header.tos != 0 ||
      header.flags != 0) {
    return std::nullopt;
  }
  LiveRule live;
  live.rule.family = *family;
  for (const nlattr& attribute : Attributes(message.header(), sizeof header)) {
    switch (mnl_attr_get_type(&attribute)) {
      case FRA_FWMARK:
        live.rule.mark = mnl_attr_get_u32(&attribute);
        break;
      case FRA_TABLE:
        live.rule.table = mnl_attr_get_u32(&attribute);
        break;
      case FRA_PRIORITY:
        live.priority = mnl_attr_get_u32(&attribute);
        break;
      case FRA_PROTOCOL:
        live.protocol = mnl_attr_get_u8(&attribute);
        break;
      case FRA_FWMASK:
      case FRA_SUPPRESS_PREFIXLEN:  // listed always: -1 if there is none
        if (mnl_attr_get_u32(&attribute) != 0xffffffff) return std::nullopt;
        break;
      default:  // it asks for something more
        return std::nullopt;
    }
  }
  if (live.rule.mark == 0) return std::nullopt;
  return live;
}

std::optional<LiveRoute> local_route(const Message& message) {
  const auto& header = message.payload<rtmsg>();
  const auto family = family_of(header.rtm_family);
  if (!family || header.rtm_type != RTN_LOCAL || header.rtm_dst_len != 0 || header.rtm_src_len != 0)
    return std::nullopt;
  LiveRoute live{{*family, header.rtm_table}, header.rtm_protocol};
  bool by_loopback = false;
  for (const nlattr& attribute : Attributes(message.header(), sizeof header)) {
    const std::uint16_t type = mnl_attr_get_type(&attribute);
    if (type == RTA_TABLE) live.route.table = mnl_attr_get_u32(&attribute);
    if (type == RTA_OIF) by_loopback = mnl_attr_get_u32(&attribute) == loopback_index;
    if (type == RTA_GATEWAY || type == RTA_MULTIPATH) return std::nullopt;
  }
  if (!by_loopback) return std::nullopt;
  return live;
}

std::optional<Address> loopback_address(const Message& message) {
  const auto& header = message.payload<ifaddrmsg>();
  const auto family = family_of(header.ifa_family);
  if (!family || header.ifa_index != loopback_index) return std::nullopt;
  Address address{*family, {}};
  if (header.ifa_prefixlen != address.bits()) return std::nullopt;
  for (const nlattr& attribute : Attributes(message.header(), sizeof header)) {
    if (mnl_attr_get_type(&attribute) != IFA_ADDRESS || mnl_attr_get_payload_len(&attribute) < address.size()) continue;
    const auto* bytes = static_cast<const std::uint8_t*>(mnl_attr_get_payload(&attribute));
    std::copy_n(bytes, address.size(), address.bytes.begin());
  }
  return address;
}

template <typename Live, typename Header>
std::vector<Live> list(Socket& socket, int type, std::optional<Live> (*parse)(const Message&)) {
  Request request(type, 0, Header{});  // AF_UNSPEC: both families
  std::vector<Live> found;
  for (const Message& message : socket.dump(request)) {
    if (auto live = parse(message)) found.push_back(*live);
  }
  return found;
}

}  // namespace

Everything list_everything(Socket& socket) {
  return {list<LiveRule, fib_rule_hdr>(socket, RTM_GETRULE, policy_rule),
          list<LiveRoute, rtmsg>(socket, RTM_GETROUTE, local_route),
          list<Address, ifaddrmsg>(socket, RTM_GETADDR, loopback_address)};
}

}  // namespace sidetrack::routes
