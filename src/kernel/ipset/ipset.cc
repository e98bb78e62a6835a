// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/ipset/ipset.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/ipset/ip_set.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <thread>

#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::ipset {
namespace {

constexpr const char* hash_ip = "hash:ip";
constexpr std::uint8_t protocol = 7;       // Linux 4.20: lists say the sets' numbers
constexpr std::uint8_t with_comments = 3;  // the revision of hash:ip whose elements may have comments, Linux 3.14
constexpr int hash_is_full = IPSET_ERR_TYPE_SPECIFIC;  // IPSET_ERR_HASH_FULL
constexpr const char* load =
    "load it on the node: modprobe ip_set_hash_ip (CONFIG_IP_SET, CONFIG_IP_SET_HASH_IP), or "
    "choose --backend nftables";

Error failure(int error, const char* what) {
  if (error == EPROTONOSUPPORT || error == EAFNOSUPPORT) return system_error(error, what, ExitCode::kernel_lacks, load);
  if (error != EPERM && error != EACCES) return system_error(error, what);
  return system_error(error, what, ExitCode::not_permitted,
                      "ip_set needs CAP_NET_ADMIN in the user namespace that owns this network namespace");
}

constexpr netlink::Subsystem ip_set{
    NETLINK_NETFILTER,   "the sets of ip_set",          "cannot open a netlink socket to ip_set",
    "cannot ask ip_set", "cannot read ip_set's answer", failure};

std::uint8_t number_of(Family family) { return family == Family::ipv4 ? NFPROTO_IPV4 : NFPROTO_IPV6; }

struct SetRequest : netlink::Request {
  SetRequest(int command, int flags, Family family = Family::ipv4)
      : Request(NFNL_SUBSYS_IPSET << 8 | command, flags, nfgenmsg{number_of(family), NFNETLINK_V0, 0}) {
    put(IPSET_ATTR_PROTOCOL, protocol);
  }
};

// What the kernel says beside errnos.
std::string words_of(int error) {
  switch (error) {
    case IPSET_ERR_BUSY:
      return "it is in use (IPSET_ERR_BUSY)";
    case IPSET_ERR_MAX_SETS:
      return "there are as many sets as the kernel allows (IPSET_ERR_MAX_SETS)";
    case hash_is_full:
      return "it is full (IPSET_ERR_HASH_FULL)";
    case IPSET_ERR_PROTOCOL:
      return "it holds something else (IPSET_ERR_PROTOCOL)";
    default:
      return error >= IPSET_ERR_PRIVATE ? fmt::format("error {} of ip_set", error) : errno_words(error);
  }
}

// EINVAL: nfnetlink knows no such subsystem; none of these requests is wrong.
bool means_absence(int error) { return error == EINVAL || error == EOPNOTSUPP; }

Error refusal(int error, const std::string& doing, std::string hint = {}) {
  const std::string what = "cannot " + doing;
  if (error == EPERM || error == EACCES) return failure(error, what.c_str());
  if (means_absence(error)) return {ExitCode::kernel_lacks, what + ": the kernel has no ip_set", load};
  if (error == IPSET_ERR_FIND_TYPE)
    return {ExitCode::kernel_lacks, what + ": the kernel has no sets of type hash:ip", load};
  return {ExitCode::failed, fmt::format("{}: {}", what, words_of(error)), std::move(hint)};
}

// The first answer says so; later ones mean the elements by the same number.
Error too_old() {
  return {ExitCode::kernel_lacks, "cannot list the sets of ip_set: the kernel's ip_set is older than Linux 4.20",
          "choose --backend nftables"};
}

std::string when_full(const std::string& set) {
  return fmt::format(
      "'ipset list {0}' says its maxelem; remove addresses (--remove), or let apply make one of 65536: 'sidetrack "
      "host-probes clean' first, which destroys it (ipset destroy {0})",
      set);
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
  set.type = netlink::string(type);
  if (const nlattr* family = attributes.find(IPSET_ATTR_FAMILY)) {
    const auto number = netlink::host_order<std::uint8_t>(family);
    if (number == NFPROTO_IPV4) set.family = Family::ipv4;
    if (number == NFPROTO_IPV6) set.family = Family::ipv6;
  }
  const nlattr* created = attributes.find(IPSET_ATTR_DATA);
  if (created == nullptr) return;
  const netlink::Attributes how(created);
  if (const nlattr* references = how.find(IPSET_ATTR_REFERENCES))
    set.references = netlink::network_order<std::uint32_t>(references);
  const bool masked = how.find(IPSET_ATTR_NETMASK) != nullptr;
  const bool expires = how.find(IPSET_ATTR_TIMEOUT) != nullptr;
  const bool of_addresses = set.type == hash_ip || set.type == "hash:net" || set.type == "bitmap:ip";
  if (of_addresses && !masked && !expires) set.members.emplace();
  set.of_single_addresses = set.type == hash_ip && !masked;
  if (masked) set.more = " with a netmask";
  if (expires) set.more += masked ? " and a timeout" : " with a timeout";
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

void put_element(netlink::Request& request, const SetEntry& entry) {
  request.put(IPSET_ATTR_SETNAME, entry.set);
  request.nest(IPSET_ATTR_DATA, [&] {
    request.nest(IPSET_ATTR_IP, [&] {
      const bool ipv4 = entry.address.family == Family::ipv4;
      request.put(NLA_F_NET_BYTEORDER | (ipv4 ? IPSET_ATTR_IPADDR_IPV4 : IPSET_ATTR_IPADDR_IPV6), entry.address.view());
    });
  });
}

}  // namespace

netlink::Socket Sets::open_socket() { return netlink::Socket(ip_set); }

Sets::Fetched Sets::fetch() {
  return netlink::read_undisturbed(socket_, [&]() -> std::optional<Fetched> {
    Fetched messages;
    SetRequest question(IPSET_CMD_LIST, NLM_F_DUMP);
    const auto answer = netlink::read_whole(socket_, question, [&](const netlink::Message& message) {
      messages.emplace_back(message.bytes().begin(), message.bytes().end());
    });
    if (answer.end.error == IPSET_ERR_PROTOCOL) throw too_old();
    if (answer.end.error != 0) throw refusal(answer.end.error, "list the sets of ip_set");
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

int Sets::request(netlink::Request& request) {
  const netlink::Answer answer = netlink::ask(socket_, request, [](const netlink::Message&) {});
  if (answer.lost != nullptr) throw system_error(ENOBUFS, "ip_set: the answer to a request is lost");
  return answer.end.error;
}

// ipset create NAME hash:ip family inet comment: as Istio's agent does, which may take it over. Whether it was not
// there.
bool Sets::create(const AddressSet& set) {
  SetRequest request(IPSET_CMD_CREATE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, set.family);
  request.put(IPSET_ATTR_SETNAME, set.name);
  request.put(IPSET_ATTR_TYPENAME, std::string(hash_ip));
  request.put(IPSET_ATTR_REVISION, with_comments);
  request.put(IPSET_ATTR_FAMILY, number_of(set.family));
  request.nest(IPSET_ATTR_DATA, [&] {
    request.put(IPSET_ATTR_CADT_FLAGS | NLA_F_NET_BYTEORDER, htonl(std::uint32_t{IPSET_FLAG_WITH_COMMENT}));
  });
  const int error = this->request(request);
  if (error != 0 && error != EEXIST) throw refusal(error, "create the set " + set.name);
  return error == 0;
}

// nf_tables lets go of the sets of deleted rules some milliseconds after the commit.
void Sets::destroy(const std::string& name) {
  constexpr std::chrono::seconds patience{2};
  constexpr std::chrono::milliseconds pause{2};
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    SetRequest request(IPSET_CMD_DESTROY, NLM_F_ACK);
    request.put(IPSET_ATTR_SETNAME, name);
    const int error = this->request(request);
    if (error == 0 || error == ENOENT) return;
    if (error != IPSET_ERR_BUSY || std::chrono::steady_clock::now() > until)
      throw refusal(error, "destroy the set " + name, "'ipset list " + name + "' says how many rules and sets use it");
    std::this_thread::sleep_for(pause);
  }
}

Routing Sets::add(const Routing& wanted) {
  Routing added;
  try {
    for (const AddressSet& set : wanted.sets) {
      added.sets.push_back(set);                // also if the answer is lost: then it may be there, and is to be undone
      if (!create(set)) added.sets.pop_back();  // made by another program meanwhile
    }
    for (const SetEntry& entry : wanted.set_entries) {
      SetRequest request(IPSET_CMD_ADD, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, entry.address.family);
      put_element(request, entry);
      added.set_entries.push_back(entry);
      const int error = this->request(request);
      if (error == 0) continue;
      added.set_entries.pop_back();
      if (error == IPSET_ERR_EXIST) continue;  // added by another program meanwhile
      throw refusal(error, fmt::format("add {} to the set {}", entry.address.text(), entry.set),
                    error == hash_is_full ? when_full(entry.set) : "");
    }
  } catch (const std::exception&) {
    try {
      remove(added);
    } catch (const std::exception&) {  // the first error is the one to report
    }
    throw;
  }
  return added;
}

void Sets::remove(const Routing& unwanted) {
  for (const SetEntry& entry : unwanted.set_entries) {
    if (std::ranges::find(unwanted.sets, entry.set, &AddressSet::name) != unwanted.sets.end()) continue;
    SetRequest request(IPSET_CMD_DEL, NLM_F_ACK, entry.address.family);
    put_element(request, entry);
    const int error = this->request(request);
    if (error != 0 && error != ENOENT && error != IPSET_ERR_EXIST)
      throw refusal(error, fmt::format("remove {} from the set {}", entry.address.text(), entry.set));
  }
  for (const AddressSet& set : unwanted.sets) destroy(set.name);
}

}  // namespace sidetrack::ipset
