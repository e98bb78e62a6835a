// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/plain_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "rule/words.h"

namespace sidetrack::nft {
namespace {

// Names a period, as iptables and nft do.
struct Unit {
  std::uint64_t seconds;
  const char* of_iptables;
  const char* of_nft;
};
constexpr Unit units[] = {{1, "sec", "second"},
                          {60, "min", "minute"},
                          {60 * 60, "hour", "hour"},
                          {24 * 60 * 60, "day", "day"},
                          {7 * 24 * 60 * 60, nullptr, "week"}};

// 100 mbytes, as nft has it
std::string bytes_words(std::uint64_t bytes) {
  constexpr const char* byte_units[] = {"bytes", "kbytes", "mbytes"};
  std::size_t unit = 0;
  for (; unit < 2 && bytes >= 1024 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return fmt::format("{} {}", bytes, byte_units[unit]);
}

}  // namespace

std::string limit_words(const RawExpression& limit, bool native) {
  const std::uint64_t rate = limit.u64(NFTA_LIMIT_RATE);
  const std::uint32_t burst = limit.u32(NFTA_LIMIT_BURST);
  const std::uint32_t flags = limit.u32(NFTA_LIMIT_FLAGS);
  const auto* unit = std::ranges::find(units, limit.u64(NFTA_LIMIT_UNIT), &Unit::seconds);
  const bool counts_packets = limit.u32(NFTA_LIMIT_TYPE) == NFT_LIMIT_PKTS;
  if (unit == std::end(units) || (flags & ~unsigned{NFT_LIMIT_F_INV}) != 0) return limit.words();
  if (native) {
    return fmt::format("limit rate {}{}/{} burst {}", flags != 0 ? "over " : "",
                       counts_packets ? fmt::format("{}", rate) : bytes_words(rate), unit->of_nft,
                       counts_packets ? fmt::format("{} packets", burst) : bytes_words(burst));
  }
  constexpr std::uint32_t usual_burst = 5;
  if (!counts_packets || flags != 0 || unit->of_iptables == nullptr) return limit.words();
  const std::string words = fmt::format("-m limit --limit {}/{}", rate, unit->of_iptables);
  return burst == usual_burst ? words : words + fmt::format(" --limit-burst {}", burst);
}

std::string log_words(const RawExpression& log, bool native) {
  native = native || !log.has(NFTA_LOG_GROUP);  // iptables has no words for the others
  std::string words = native ? "log" : "-j NFLOG";
  const auto add = [&](std::uint32_t number, const char* of_nft, const char* of_iptables) {
    words += fmt::format(" {} {}", native ? of_nft : of_iptables, number);
  };
  constexpr const char* levels[] = {"emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "audit"};
  constexpr std::uint32_t usual_level = 4;
  const std::uint32_t level = log.has(NFTA_LOG_LEVEL) ? log.u32(NFTA_LOG_LEVEL) : usual_level;
  const bool is_other = log.u32(NFTA_LOG_FLAGS) != 0 || level >= std::size(levels);
  if (is_other) return log.words();
  if (log.has(NFTA_LOG_PREFIX)) {
    const std::string prefix = log.text(NFTA_LOG_PREFIX);
    const bool plain = !native && prefix.find_first_of(" \t\"'\\") == std::string::npos && !prefix.empty();
    words += fmt::format(" {} {}", native ? "prefix" : "--nflog-prefix", plain ? prefix : in_quotes(prefix));
  }
  const std::uint16_t group = log.u16(NFTA_LOG_GROUP);
  if (native ? log.has(NFTA_LOG_GROUP) : group != 0) add(group, "group", "--nflog-group");
  if (native && level != usual_level) words += fmt::format(" level {}", levels[level]);
  if (log.has(NFTA_LOG_SNAPLEN)) add(log.u32(NFTA_LOG_SNAPLEN), "snaplen", "--nflog-size");
  if (log.has(NFTA_LOG_QTHRESHOLD)) add(log.u16(NFTA_LOG_QTHRESHOLD), "queue-threshold", "--nflog-threshold");
  return words;
}

std::string reject_words(const RawExpression& reject, bool ipv4) {
  struct Code {
    const char* type;
    const char* name;
    std::uint8_t number;
  };
  static constexpr Code codes[] = {{"icmp", "net-unreachable", 0},
                                   {"icmp", "host-unreachable", 1},
                                   {"icmp", "prot-unreachable", 2},
                                   {"icmp", "port-unreachable", 3},
                                   {"icmp", "net-prohibited", 9},
                                   {"icmp", "host-prohibited", 10},
                                   {"icmp", "admin-prohibited", 13},
                                   {"icmpv6", "no-route", 0},
                                   {"icmpv6", "admin-prohibited", 1},
                                   {"icmpv6", "addr-unreachable", 3},
                                   {"icmpv6", "port-unreachable", 4},
                                   {"icmpv6", "policy-fail", 5},
                                   {"icmpv6", "reject-route", 6},
                                   {"icmpx", "no-route", NFT_REJECT_ICMPX_NO_ROUTE},
                                   {"icmpx", "port-unreachable", NFT_REJECT_ICMPX_PORT_UNREACH},
                                   {"icmpx", "host-unreachable", NFT_REJECT_ICMPX_HOST_UNREACH},
                                   {"icmpx", "admin-prohibited", NFT_REJECT_ICMPX_ADMIN_PROHIBITED}};
  const std::uint32_t kind = reject.u32(NFTA_REJECT_TYPE);
  if (kind == NFT_REJECT_TCP_RST) return "reject with tcp reset";
  const std::string_view type = kind == NFT_REJECT_ICMPX_UNREACH ? "icmpx" : ipv4 ? "icmp" : "icmpv6";
  const auto* code = std::ranges::find_if(codes, [&](const Code& each) {
    return reject.has(NFTA_REJECT_ICMP_CODE) && type == each.type &&
           each.number == network_order<std::uint8_t>(reject.at(NFTA_REJECT_ICMP_CODE));
  });
  return code == std::end(codes) ? reject.words() : fmt::format("reject with {} {}", type, code->name);
}

std::string condition_words(const RawExpression& condition) {
  if (condition.name() == "quota" && condition.has(NFTA_QUOTA_BYTES)) {
    const bool is_over = (condition.u32(NFTA_QUOTA_FLAGS) & NFT_QUOTA_F_INV) != 0;
    return fmt::format("quota {}{}", is_over ? "over " : "", bytes_words(condition.u64(NFTA_QUOTA_BYTES)));
  }
  if (condition.name() == "connlimit" && condition.has(NFTA_CONNLIMIT_COUNT)) {
    const bool is_over = (condition.u32(NFTA_CONNLIMIT_FLAGS) & NFT_CONNLIMIT_F_INV) != 0;
    return fmt::format("ct count {}{}", is_over ? "over " : "", condition.u32(NFTA_CONNLIMIT_COUNT));
  }
  constexpr const char* operations[] = {"add", "update", "delete"};  // NFT_DYNSET_OP_…
  const std::uint32_t operation = condition.u32(NFTA_DYNSET_OP);
  const bool is_plain = condition.name() == "dynset" && condition.has(NFTA_DYNSET_SET_NAME) &&
                        operation < std::size(operations) && !condition.has(NFTA_DYNSET_EXPR) &&
                        !condition.has(NFTA_DYNSET_EXPRESSIONS);
  if (is_plain) return fmt::format("{} @{}", operations[operation], condition.text(NFTA_DYNSET_SET_NAME));
  return condition.words();
}

std::string end_words(const RawExpression& end) {
  if (end.name() != "queue" || !end.has(NFTA_QUEUE_NUM) || end.has(NFTA_QUEUE_SREG_QNUM)) return end.words();
  const unsigned first = end.u16(NFTA_QUEUE_NUM), count = end.u16(NFTA_QUEUE_TOTAL), flags = end.u16(NFTA_QUEUE_FLAGS);
  std::string words = "queue";
  if ((flags & NFT_QUEUE_FLAG_BYPASS) != 0) words += " flags bypass";
  if ((flags & NFT_QUEUE_FLAG_CPU_FANOUT) != 0) words += words == "queue" ? " flags fanout" : ",fanout";
  words += fmt::format(" to {}", first);
  return count > 1 ? words + fmt::format("-{}", first + count - 1) : words;
}

}  // namespace sidetrack::nft
