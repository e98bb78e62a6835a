// SPDX-License-Identifier: GPL-2.0-or-later
// What the kernel calls at a hook, in its order.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "rule/hook.h"
#include "rule/live.h"
#include "walk/chain_index.h"
#include "walk/rule_walk.h"

namespace sidetrack {

struct Call {
  enum class Kind : std::uint8_t { conntrack, rules, nat };
  Kind kind = Kind::rules;
  std::int32_t priority = 0;
  BaseChain base;  // of rules
};

// Tells whether a base chain may do something with packets of the family: others are not asked.
[[nodiscard]] bool may_do_something(const LiveChain& chain, Family family);

// The rules that packets of one family meet. Of many packets each hook is asked often, and looked up once.
class FamilyRules {
 public:
  FamilyRules(std::span<const Live> live, Family family);

  // By priority; chains that could do nothing are left out. Those of type nat are one call for the nat core, which asks
  // them at its own priority (nf_nat_register_fn). `device` is that of ingress and egress.
  [[nodiscard]] const std::vector<Call>& at(Hook hook, const std::string& device = {});
  // The chains that the nat core asks, by their own priorities.
  [[nodiscard]] const std::vector<Call>& of_nat(Hook hook);
  [[nodiscard]] std::span<const Live> live() const { return live_; }
  [[nodiscard]] Family family() const { return family_; }
  // Whether any rule sets the mark of a connection.
  [[nodiscard]] bool mark_connections() const { return mark_connections_; }
  // Whether any rule asks for the flags of TCP, by which later answers differ from the first one.
  [[nodiscard]] bool ask_flags() const { return ask_flags_; }
  // The bits of marks, of packets and of connections, that rules ask for.
  [[nodiscard]] std::uint32_t asked_marks() const { return asked_marks_; }
  // Whether the kernel tracks connections: only while a rule is there that needs it (nf_ct_netns_get). Unknown: one may
  // be among those that are not understood.
  enum class Tracking : std::uint8_t { no, unknown, yes };
  [[nodiscard]] Tracking tracking() const { return tracking_; }
  // Tells whether the rules of both ask for the same of packets, as far as that decides beside the rules themselves.
  [[nodiscard]] bool ask_alike(const FamilyRules& other) const {
    const auto asked = [](const FamilyRules& of) {
      return std::tuple(of.mark_connections_, of.ask_flags_, of.asked_marks_, of.tracking_);
    };
    return asked(*this) == asked(other);
  }
  // Returns, by device, why a neighbour there may not be found, which is found out once for all packets; empty: it is.
  [[nodiscard]] std::map<std::string, std::string>& why_no_neighbour() { return why_no_neighbour_; }
  // How many possible paths of one packet are followed. Where one has had more, few of each other one.
  static constexpr std::size_t many_paths = 500;
  [[nodiscard]] std::size_t& most_paths() { return most_paths_; }
  // How many rules packets were asked about, one by one, so far.
  [[nodiscard]] std::size_t asked() const {
    std::size_t all = 0;
    for (const ChainIndex& each : chains_) all += each.asked();
    return all;
  }
  // The chains of one of them, by name.
  [[nodiscard]] ChainIndex& chains(const Live& live) { return chains_[static_cast<std::size_t>(&live - live_.data())]; }

 private:
  std::span<const Live> live_;
  Family family_;
  std::vector<ChainIndex> chains_;  // of each of `live_`
  bool of_devices_ = false;         // some are called for one device alone
  bool mark_connections_ = false;
  bool ask_flags_ = false;
  std::uint32_t asked_marks_ = 0;
  Tracking tracking_ = Tracking::no;
  std::map<std::pair<Hook, std::string>, std::vector<Call>> at_;
  std::map<Hook, std::vector<Call>> of_nat_;
  std::map<std::string, std::string> why_no_neighbour_;
  std::size_t most_paths_ = many_paths;
};

// Holds the rules for packets of each family.
struct RulesByFamily {
  FamilyRules ipv4;
  FamilyRules ipv6;
  explicit RulesByFamily(std::span<const Live> live) : ipv4(live, Family::ipv4), ipv6(live, Family::ipv6) {}
  [[nodiscard]] FamilyRules& of(Family family) { return family == Family::ipv4 ? ipv4 : ipv6; }
  [[nodiscard]] std::size_t asked() const { return ipv4.asked() + ipv6.asked(); }
};

}  // namespace sidetrack
