// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/iptables_rule.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>

#include <stdexcept>

#include "rule/iptables.h"
#include "rule/nft/fields.h"
#include "rule/xt/rule_extensions.h"

namespace sidetrack::nft {
namespace {

std::uint32_t operation(bool negated) { return negated ? NFT_CMP_NEQ : NFT_CMP_EQ; }

class Translation {
 public:
  Translation(const Rule& rule, Family family) : rule_(rule), family_(family) {}

  IptablesRule translate() && {
    header();
    matches();
    add(Count{0, 0});
    target();
    if (extension_) made_.compat = compat_;
    return std::move(made_);
  }

 private:
  void add(Expression expression) { made_.expressions.push_back(std::move(expression)); }

  template <typename M>
  void each(auto visit) const {
    for (const Match& match : rule_.matches) {
      if (const M* found = std::get_if<M>(&match)) visit(*found);
    }
  }

  // Interfaces, protocol, addresses: in this order, whatever that of the words.
  void header() {
    for (const InterfaceDirection direction : {InterfaceDirection::in, InterfaceDirection::out}) {
      each<InterfaceMatch>([&](const InterfaceMatch& match) {
        if (match.direction == direction) interface(match);
      });
    }
    each<ProtocolMatch>([&](const ProtocolMatch& match) { protocol(match); });
    for (const End end : {End::source, End::destination}) {
      each<AddressMatch>([&](const AddressMatch& match) {
        if (match.end == end) address(match);
      });
    }
  }

  // -i eth0: the name with its final zero; -i eth+: as far as it goes
  void interface(const InterfaceMatch& match) {
    const bool wildcard = match.name.ends_with('+');
    Data name = Data::text(std::string_view(match.name).substr(0, match.name.size() - (wildcard ? 1 : 0)));
    if (name.size == 0) {
      if (match.negated) throw std::logic_error("no packet can match: " + iptables_words(rule_));
      return;
    }
    if (!wildcard) ++name.size;
    add(MetaLoad{match.direction == InterfaceDirection::in ? std::uint32_t{NFT_META_IIFNAME}
                                                           : std::uint32_t{NFT_META_OIFNAME}});
    add(Compare{operation(match.negated), name});
  }

  // -p tcp
  void protocol(const ProtocolMatch& match) {
    const auto number = static_cast<std::uint8_t>(match.protocol);
    add(MetaLoad{NFT_META_L4PROTO});
    add(Compare{operation(match.negated), Data::host(number)});
    compat_ = {number, match.negated ? std::uint32_t{NFT_RULE_COMPAT_F_INV} : 0};
  }

  // -d 10.0.0.0/8
  void address(const AddressMatch& match) {
    if (match.ranges.size() != 1 || !match.ranges.front().prefix_length() || match.ranges.front().family() != family_) {
      throw std::logic_error("iptables matches one prefix of its family: " + iptables_words(rule_));
    }
    const AddressRange& range = match.ranges.front();
    if (range.prefix_length() == 0 && !match.negated) return;
    compare_prefix(range, address_field(family_, match.end), match.negated, made_.expressions);
  }

  // Everything else, in the order of the words.
  void matches() {
    std::vector<xt::Extension> extensions = xt::matches_of(rule_);
    for (xt::Extension& extension : extensions) {
      if (extension.name == "tcp" || extension.name == "udp" || extension.name == "mark") {
        for (const Match& match : xt::decode_match(extension, family_)) native(match);
      } else {
        extension_ = true;
        add(XtMatch{std::move(extension)});
      }
    }
  }

  void native(const Match& match) {
    if (const auto* port = std::get_if<PortMatch>(&match)) return ports(*port);
    if (const auto* packet = std::get_if<MarkMatch>(&match)) return mark(*packet);
    throw std::logic_error("not a match of tcp, udp or mark: " + iptables_words(match));
  }

  // --dport 80, --sport 1000:2000
  void ports(const PortMatch& match) {
    const PortRange& range = match.ports.front();
    add(port_field(match.end).load());
    if (range.first == range.last) {
      add(Compare{operation(match.negated), Data::network(range.first)});
    } else {
      add(CompareRange{match.negated, Data::network(range.first), Data::network(range.last)});
    }
  }

  // -m mark --mark 0x10/0xff
  void mark(const MarkMatch& match) {
    add(MetaLoad{NFT_META_MARK});
    if (match.mask != 0xffffffff) add(Bitwise{Data::host(match.mask), Data::host(std::uint32_t{0})});
    add(Compare{operation(match.negated), Data::host(match.value)});
  }

  // A verdict, a jump or nothing; else an extension, which throws for what is only read.
  void target() {
    static constexpr std::int32_t verdicts[] = {NF_ACCEPT, NF_DROP, NFT_RETURN};  // as Verdict::Kind
    if (const auto* verdict = std::get_if<Verdict>(&rule_.target))
      return add(Decide{verdicts[static_cast<std::size_t>(verdict->kind)], {}});
    if (const auto* jump = std::get_if<Jump>(&rule_.target))
      return add(Decide{jump->is_goto ? NFT_GOTO : NFT_JUMP, jump->chain});
    if (rule_.target == Target(NonTerminating{})) return;
    extension_ = true;
    add(XtTarget{xt::target_of(rule_.target, family_)});
  }

  const Rule& rule_;
  Family family_;
  IptablesRule made_;
  Transaction::Compat compat_;
  bool extension_ = false;
};

}  // namespace

IptablesRule iptables_rule(const Rule& rule, Family family) { return Translation(rule, family).translate(); }

}  // namespace sidetrack::nft
