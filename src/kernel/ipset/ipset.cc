// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/ipset/ipset.h"

#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/ipset/ip_set.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <cerrno>

#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::ipset {
namespace {

constexpr std::uint8_t protocol = 7;  // Linux 4.20: lists say the sets' numbers
constexpr const char* load =
    "load it on the node: modprobe ip_set_hash_ip (CONFIG_IP_SET, CONFIG_IP_SET_HASH_IP), or choose --backend nftables";

Error failure(int error, const char* what) {
  if (error == EPROTONOSUPPORT || error == EAFNOSUPPORT) return system_error(error, what, ExitCode::kernel_lacks, load);
  if (error != EPERM && error != EACCES) return system_error(error, what);
  return system_error(error, what, ExitCode::not_permitted,
                      "ip_set needs CAP_NET_ADMIN in the user namespace that owns this network namespace");
}

constexpr netlink::Subsystem ip_set{
    NETLINK_NETFILTER,   "the sets of ip_set",          "cannot open a netlink socket to ip_set",
    "cannot ask ip_set", "cannot read ip_set's answer", failure};

struct SetRequest : netlink::Request {
  SetRequest(int command, int flags)
      : Request(NFNL_SUBSYS_IPSET << 8 | command, flags, nfgenmsg{NFPROTO_IPV4, NFNETLINK_V0, 0}) {
    put(IPSET_ATTR_PROTOCOL, protocol);
  }
};

// EINVAL: nfnetlink knows no such subsystem; none of these requests is wrong.
bool means_absence(int error) { return error == EINVAL || error == EOPNOTSUPP; }

Error ipset_refusal(int error) {
  constexpr const char* what = "cannot list the sets of ip_set";
  if (means_absence(error)) return {ExitCode::kernel_lacks, fmt::format("{}: the kernel has no ip_set", what), load};
  return failure(error, what);
}

// The first answer says so; later ones mean the elements by the same number.
Error too_old() {
  return {ExitCode::kernel_lacks, "cannot list the sets of ip_set: the kernel's ip_set is older than Linux 4.20",
          "choose --backend nftables"};
}

// ---- Reading.

std::optional<Address> address_in(const nlattr* nest) {
  if (nest == nullptr) return {};
  for (const auto& [type, family] :
       {std::pair{IPSET_ATTR_IPADDR_IPV4, Family::ipv4}, std::pair{IPSET_ATTR_IPADDR_IPV6, Family::ipv6}}) {
    const nlattr* found = netlink::Attributes(nest).find(type);
    if (found == nullptr) continue;
    const auto bytes = netlink::payload(found);
    Address address{family, {}};
    if (bytes.size() != address.size()) return {};
    std::memcpy(address.bytes.data(), bytes.data(), bytes.size());
    return address;
  }
  return {};
}

// An element of a set of addresses or networks; nothing if it says more.
std::optional<AddressRange> range_in(const nlattr* element) {
  const netlink::Attributes attributes(element);
  const auto address = address_in(attributes.find(IPSET_ATTR_IP));
  const nlattr* flags = attributes.find(IPSET_ATTR_CADT_FLAGS);
  const bool left_out = flags != nullptr && (netlink::network_order<std::uint32_t>(flags) & IPSET_FLAG_NOMATCH) != 0;
  if (!address || left_out || attributes.find(IPSET_ATTR_TIMEOUT) != nullptr) return {};
  const nlattr* length = attributes.find(IPSET_ATTR_CIDR);
  const int bits = length != nullptr ? netlink::host_order<std::uint8_t>(length) : address->bits();
  if (bits > address->bits()) return {};
  return AddressRange::prefix(*address, bits);
}

// The first message of a set has its header; any may have elements.
void take_header(KnownSet& set, const netlink::Attributes& attributes) {
  const nlattr* type = attributes.find(IPSET_ATTR_TYPENAME);
  if (type == nullptr) return;
  const std::string name = netlink::string(type);
  const nlattr* created = attributes.find(IPSET_ATTR_DATA);
  if (created == nullptr) return;
  const netlink::Attributes how(created);
  const bool masked = how.find(IPSET_ATTR_NETMASK) != nullptr;
  const bool expires = how.find(IPSET_ATTR_TIMEOUT) != nullptr;
  const bool of_addresses = name == "hash:ip" || name == "hash:net" || name == "bitmap:ip";
  if (of_addresses && !masked && !expires) set.members.emplace();
}

void take_elements(KnownSet& set, const netlink::Attributes& attributes) {
  const nlattr* elements = attributes.find(IPSET_ATTR_ADT);
  if (elements == nullptr || !set.members) return;
  for (const nlattr* element : netlink::Attributes(elements)) {
    if (mnl_attr_get_type(element) != IPSET_ATTR_DATA) continue;
    const auto range = range_in(element);
    if (!range) return set.members.reset();
    set.members->push_back(*range);
  }
}

}  // namespace

netlink::Socket Sets::open_socket() { return netlink::Socket(ip_set); }

Sets::Fetched Sets::fetch() {
  return netlink::read_consistent(socket_, [&]() -> std::optional<Fetched> {
    Fetched messages;
    SetRequest question(IPSET_CMD_LIST, NLM_F_DUMP);
    const auto answer = netlink::read_whole(socket_, question, [&](const netlink::Message& message) {
      messages.emplace_back(message.bytes().begin(), message.bytes().end());
    });
    if (answer.end.error == IPSET_ERR_PROTOCOL) throw too_old();
    if (answer.end.error != 0) throw ipset_refusal(answer.end.error);
    return messages;
  });
}

KnownSets Sets::decoded(const Fetched& messages) {
  KnownSets sets;
  std::map<std::string, std::uint16_t> numbers;
  for (const std::vector<std::byte>& bytes : messages) {
    const auto attributes = netlink::Message(reinterpret_cast<const nlmsghdr*>(bytes.data())).attributes<nfgenmsg>();
    const nlattr* name = attributes.find(IPSET_ATTR_SETNAME);
    if (name == nullptr) continue;
    const std::string called = netlink::string(name);
    if (const nlattr* index = attributes.find(IPSET_ATTR_INDEX))
      numbers[called] = netlink::network_order<std::uint16_t>(index);
    const auto number = numbers.find(called);
    if (number == numbers.end()) continue;
    KnownSet& set = sets[number->second];
    set.name = called;
    take_header(set, attributes);
    take_elements(set, attributes);
  }
  for (auto& [number, set] : sets) {
    if (set.members) std::ranges::sort(*set.members);
  }
  return sets;
}

}  // namespace sidetrack::ipset
