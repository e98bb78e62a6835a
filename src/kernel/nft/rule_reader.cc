// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/rule_reader.h"

#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables_compat.h>

#include <algorithm>
#include <span>

#include "kernel/nft/loaded_value.h"
#include "kernel/nft/names.h"
#include "kernel/nft/plain_words.h"
#include "kernel/nft/raw_expression.h"
#include "kernel/nft/registers.h"
#include "kernel/nft/test_words.h"
#include "model/scan.h"
#include "rule/nft/comparison.h"
#include "rule/target/destination.h"
#include "rule/xt/rule_extensions.h"

namespace sidetrack::nft {
namespace {

constexpr std::size_t most_rules = 1024;         // that one rule of the kernel may become, by several conditions
constexpr std::size_t most_elements = 1U << 14;  // and by one that looks up elements of a set or a map
constexpr std::size_t few_rules = 4;             // that it may become when all together are too many
constexpr std::size_t most_values = 1U << 20;    // in the lists of their matches, if they are several

bool begins_with_ports(Protocol protocol) {
  constexpr std::uint8_t with[] = {6, 17, 33, 132, 136};  // tcp, udp, dccp, sctp, udplite: ports stand first
  return std::ranges::find(with, static_cast<std::uint8_t>(protocol)) != std::end(with);
}

// Whether packets see changed by the target of a rule, where it goes on, what the match is about.
bool changes(const Target& target, const Match& match) {
  const auto* set = std::get_if<SetMark>(&target);
  const auto* mark = std::get_if<MarkMatch>(&match);
  if (set != nullptr && mark != nullptr) return ((set->mask | set->mark) & mark->mask) != 0;
  return (changes(target) & reads(match)) != 0;
}

class Reader {
 public:
  Reader(const KernelRule& rule, const RuleContext& context)
      : rule_(rule),
        context_(context),
        families_(context.families),
        may_be_arp_(context.device),
        most_(most_of(context.reading)),
        expressions_(expressions_of(rule.expressions)) {}

  static std::size_t most_of(const Reading* reading) {
    return reading == nullptr ? most_elements : std::clamp(1 + reading->more_rules, few_rules, most_elements);
  }

  std::vector<LiveRule> read() && {
    while (next_ < expressions_.size() && !done_) take(expressions_[next_++]);
    if (tproxy_ && !done_) decide(UnknownTarget{fmt::format("tproxy to :{} without accept", tproxy_->port)});
    if (!done_ && made_.empty()) emit(NonTerminating{});
    if (counters_) made_.back().counters = *counters_;
    if (context_.reading != nullptr)
      context_.reading->more_rules -= std::min(made_.size() - 1, context_.reading->more_rules);
    return std::move(made_);
  }

 private:
  using Branch = std::vector<Match>;
  using Take = void (Reader::*)(const RawExpression&);
  struct Kind {
    std::string_view name;
    std::uint32_t attributes;  // that are understood; of those that are opaque anyway: all
    Take take;
  };
  static std::span<const Kind> kinds();

  void take(const RawExpression& e) {
    if (context_.frames && !is_known_of_frames(e)) {
      return is_condition_of_frames(e) ? unknown(e.words()) : opaque(e.words());
    }
    for (const Kind& kind : kinds()) {
      if (kind.name != e.name()) continue;
      if (!e.has_only(kind.attributes)) break;
      return (this->*kind.take)(e);
    }
    opaque(e.words());
  }

  // What means the same of any packet.
  static bool is_known_of_frames(const RawExpression& e) {
    if (e.name() == "immediate") return e.u32(NFTA_IMMEDIATE_DREG) == NFT_REG_VERDICT;
    static constexpr std::string_view names[] = {"counter", "log", "limit", "reject", text_expression};
    return std::ranges::find(names, e.name()) != std::end(names);
  }
  // What loads, compares or notes something, and decides nothing but whether the rule goes on.
  static bool is_condition_of_frames(const RawExpression& e) {
    static constexpr std::string_view names[] = {"meta", "payload", "cmp",   "bitwise",  "byteorder",
                                                 "ct",   "range",   "match", "immediate"};
    if (e.name() == "lookup") return !e.has(NFTA_LOOKUP_DREG);
    return std::ranges::find(names, e.name()) != std::end(names);
  }

  // ---- What comes of it.

  // A rule for each way in which all matches so far can hold. Where they become too many, nothing is known of the rest.
  void emit(const Target& target) {
    made_values_ += branches_.size() * values_of(branches_);
    if (made_.size() + branches_.size() > most_ || (!made_.empty() && made_values_ > most_values)) {
      branches_ = {{UnknownMatch{"a rule of too many parts"}}};
      families_ = context_.families;
      emit_each(UnknownTarget{"a rule of too many parts"});
      done_ = true;
    } else {
      emit_each(target);
    }
  }
  void emit_each(const Target& target) {
    const std::size_t first = made_.size();
    for (const Branch& branch : branches_) {
      LiveRule& live = made_.emplace_back();
      live.rule = {families_, context_.table, context_.chain, branch, target, {}, {}};
      live.handle = rule_.handle;
      live.may_be_arp = may_be_arp_;
    }
    if (made_.empty()) {  // it never matches; what it would do does not matter
      LiveRule& live = made_.emplace_back();
      live.rule = {context_.families, context_.table, context_.chain, {}, target, {}, {}};
      live.handle = rule_.handle;
    }
    if (first < made_.size() && counters_) made_[first].counters = *std::exchange(counters_, std::nullopt);
  }
  void decide(const Target& target) {
    emit(target);
    done_ = true;
  }
  // Goes on after it, with what it changed.
  void effect(const Target& target) {
    if (tproxy_) return opaque("a statement after tproxy");
    emit(target);
    changed_.push_back(target);
    const std::size_t asked_once = common_of(branches_);  // see LiveRule
    for (Branch& branch : branches_) {
      for (Match& match : std::span(branch).subspan(asked_once)) {
        if (changes(target, match)) match = UnknownMatch{"a match of what this rule changes"};
      }
    }
  }
  // Returns how many matches all of them have in front.
  static std::size_t common_of(const std::vector<Branch>& branches) {
    std::size_t count = branches.empty() ? 0 : branches.front().size();
    for (const Branch& branch : branches) {
      const auto end = std::ranges::mismatch(branches.front(), branch).in2;
      count = std::min(count, static_cast<std::size_t>(end - branch.begin()));
    }
    return count;
  }
  // Nothing is known of the rest of the rule.
  void opaque(const std::string& words) { decide(UnknownTarget{words}); }

  void match(const Alternatives& ways) {
    if (tproxy_) return opaque("a match after tproxy");
    const std::size_t count = branches_.size() * ways.size();
    const std::size_t most = branches_.size() == 1 ? most_ : std::min(most_, most_rules);
    if (count > most || (count > 1 && count * std::max(values_of(branches_), values_of(ways)) > most_values))
      return unknown("a condition of too many parts");
    std::vector<Branch> longer;
    const bool few = count <= 32;  // they cannot become too many: no copy is kept
    for (Branch& branch : branches_) {
      for (const std::vector<Match>& way : ways) {
        std::vector<Branch> grown;
        grown.push_back(few && &way == &ways.back() ? std::move(branch) : branch);
        for (const Match& each : way) grown = with(std::move(grown), each);
        std::ranges::move(grown, std::back_inserter(longer));
      }
    }
    if (longer.size() > most) return unknown("a condition of too many parts");
    branches_ = std::move(longer);
    if (branches_.empty()) end_never("a condition that never holds");
  }
  // The longest list that one of the ways has.
  static std::size_t values_of(const Alternatives& ways) {
    std::size_t most = 0;
    for (const std::vector<Match>& way : ways) {
      for (const Match& match : way) most = std::max(most, count_of_values(match));
    }
    return most;
  }
  void unknown(const std::string& words) {
    if (tproxy_) return opaque("a match after tproxy");
    for (Branch& branch : branches_) branch.emplace_back(UnknownMatch{words});
  }
  // A test of what was loaded just before, if whether it could be loaded is not known either: one condition.
  void unknown_test(const std::string& loaded, const std::string& words) {
    for (Branch& branch : branches_) {
      if (!tproxy_ && !branch.empty() && branch.back() == Match(UnknownMatch{loaded})) branch.pop_back();
    }
    unknown(words);
  }
  // Returns the last match that asks for a protocol.
  static const ProtocolMatch* protocol_of(const Branch& branch) {
    const ProtocolMatch* found = nullptr;
    for (const Match& each : branch) {
      if (const auto* one = std::get_if<ProtocolMatch>(&each); one != nullptr && !one->negated) found = one;
    }
    return found;
  }
  // The protocol of the packets that come here, if all are of one.
  [[nodiscard]] std::optional<Protocol> protocol() const {
    std::optional<Protocol> found;
    for (const Branch& branch : branches_) {
      const ProtocolMatch* match = protocol_of(branch);
      if (match == nullptr || (found && *found != match->protocol)) return {};
      found = match->protocol;
    }
    return found;
  }
  void end_never(const std::string& words) {
    branches_.clear();
    if (made_.empty()) emit(NonTerminating{words});
    done_ = true;
  }

  // Ports are those of tcp, udp and their likes; of another protocol the same bytes are something else.
  static std::vector<Branch> with(std::vector<Branch> branches, const Match& match) {
    std::vector<Branch> result;
    for (Branch& branch : branches) {
      const auto* ports = std::get_if<PortMatch>(&match);
      const ProtocolMatch* protocol = protocol_of(branch);
      if (ports == nullptr || (protocol != nullptr && begins_with_ports(protocol->protocol))) {
        branch.push_back(match);
        result.push_back(std::move(branch));
      } else if (protocol != nullptr) {
        branch.emplace_back(UnknownMatch{"ports of a protocol without ports"});
        result.push_back(std::move(branch));
      } else {
        for (const Protocol each : {Protocol::tcp, Protocol::udp}) {
          Branch& one = result.emplace_back(branch);
          one.emplace_back(ProtocolMatch{each, false});
          one.push_back(match);
        }
        branch.emplace_back(ProtocolMatch{Protocol::tcp, true});
        branch.emplace_back(ProtocolMatch{Protocol::udp, true});
        branch.emplace_back(UnknownMatch{"ports of any protocol"});
        result.push_back(std::move(branch));
      }
    }
    return result;
  }

  // ---- Loading.

  void load(const RawExpression& e, int destination, Value value) {
    if (value.size == 0 || !registers_.load(e.u32(destination), std::move(value))) forget(e);
  }
  // What writes to a register that is not looked up, and may break off the rule.
  void forget(const RawExpression& e) {
    unknown(e.words());
    registers_.forget(e.words());
  }

  void take_meta(const RawExpression& e) {
    const std::uint32_t key = e.u32(NFTA_META_KEY);
    if (e.has(NFTA_META_SREG)) return store_meta(e, key);
    load(e, NFTA_META_DREG, {.of = Value::Of::meta, .key = key, .size = meta_size(key), .epoch = changed_.size()});
  }
  void take_ct(const RawExpression& e) {
    const std::uint32_t key = e.u32(NFTA_CT_KEY);
    if (e.has(NFTA_CT_SREG)) return store_ct(e, key);
    if (e.has(NFTA_CT_DIRECTION) || ct_size(key) == 0) return take_unknown_load(e);
    load(e, NFTA_CT_DREG, {.of = Value::Of::ct, .key = key, .size = ct_size(key), .epoch = changed_.size()});
  }
  void take_payload(const RawExpression& e) {
    if (e.has(NFTA_PAYLOAD_SREG)) return store_payload(e);
    load(e, NFTA_PAYLOAD_DREG,
         {.of = Value::Of::payload,
          .key = e.u32(NFTA_PAYLOAD_BASE),
          .offset = e.u32(NFTA_PAYLOAD_OFFSET),
          .size = e.u32(NFTA_PAYLOAD_LEN)});
  }
  void take_socket(const RawExpression& e) {
    if (e.u32(NFTA_SOCKET_KEY) != std::uint32_t{NFT_SOCKET_CGROUPV2}) return take_unknown_load(e);
    load(e, NFTA_SOCKET_DREG,
         {.of = Value::Of::socket, .key = NFT_SOCKET_CGROUPV2, .offset = e.u32(NFTA_SOCKET_LEVEL), .size = 8});
  }
  void take_fib(const RawExpression& e) {
    const std::uint32_t flags = e.u32(NFTA_FIB_FLAGS);
    const auto words = fib_words(flags);
    if (e.u32(NFTA_FIB_RESULT) != NFT_FIB_RESULT_ADDRTYPE || !words) return take_unknown_load(e);
    load(e, NFTA_FIB_DREG, {.of = Value::Of::fib, .key = flags, .size = 4, .words = *words + " type"});
  }
  void take_immediate(const RawExpression& e) {
    if (e.u32(NFTA_IMMEDIATE_DREG) == NFT_REG_VERDICT) return take_verdict(e);
    std::string bytes = e.data(NFTA_IMMEDIATE_DATA);
    const auto size = static_cast<std::uint32_t>(bytes.size());
    load(e, NFTA_IMMEDIATE_DREG, {.of = Value::Of::constant, .size = size, .constant = std::move(bytes)});
  }

  void take_bitwise(const RawExpression& e) {
    const std::uint32_t size = e.u32(NFTA_BITWISE_LEN);
    const std::string mask = e.data(NFTA_BITWISE_MASK);
    const std::string xor_value = e.data(NFTA_BITWISE_XOR);
    const std::vector<Value> from = registers_.read(e.u32(NFTA_BITWISE_SREG), size);
    const bool plain = e.u32(NFTA_BITWISE_OP) == std::uint32_t{NFT_BITWISE_BOOL} && from.size() == 1 &&
                       from.front().size == size && mask.size() == size && xor_value.size() == size;
    if (!plain || from.front().of == Value::Of::constant) {
      return calculated(e, NFTA_BITWISE_DREG, size);
    }
    Value value = from.front();
    if (!value.changed()) {
      value.mask.assign(size, '\xff');
      value.xor_value.assign(size, '\0');
    }
    for (std::uint32_t i = 0; i < size; ++i) {
      value.mask[i] = static_cast<char>(value.mask[i] & mask[i]);
      value.xor_value[i] = static_cast<char>((value.xor_value[i] & mask[i]) ^ xor_value[i]);
    }
    load(e, NFTA_BITWISE_DREG, std::move(value));
  }

  void take_byteorder(const RawExpression& e) {
    const std::uint32_t length = e.u32(NFTA_BYTEORDER_LEN);
    const std::vector<Value> from = registers_.read(e.u32(NFTA_BYTEORDER_SREG), length);
    const bool plain = from.size() == 1 && from.front().size == length && length == e.u32(NFTA_BYTEORDER_SIZE) &&
                       (length == 2 || length == 4 || length == 8) && !from.front().changed();
    if (!plain || from.front().of == Value::Of::constant || from.front().of == Value::Of::payload) {
      return calculated(e, NFTA_BYTEORDER_DREG, length);
    }
    Value value = from.front();
    value.swapped = !value.swapped;
    load(e, NFTA_BYTEORDER_DREG, std::move(value));
  }

  // A value that the model has no words for, which never breaks off the rule.
  void calculated(const RawExpression& e, int destination, std::uint32_t size) {
    load(e, destination, {.of = Value::Of::unknown, .size = size, .words = e.words()});
  }

  // ---- Testing.

  void take_cmp(const RawExpression& e) {
    const std::string data = e.data(NFTA_CMP_DATA);
    const std::uint32_t from = e.u32(NFTA_CMP_SREG);
    const std::string lowest(data.size(), '\0');
    const std::string highest(data.size(), '\xff');
    std::string limit = data;
    switch (e.u32(NFTA_CMP_OP)) {
      case NFT_CMP_EQ:
        return test(from, {{data, data}}, false, e);
      case NFT_CMP_NEQ:
        return test(from, {{data, data}}, true, e);
      case NFT_CMP_LT:
        if (data == lowest) return end_never(e.words());
        for (std::size_t i = limit.size() - 1; limit[i]-- == '\0'; --i) {
        }
        return test(from, {{lowest, limit}}, false, e);
      case NFT_CMP_LTE:
        return test(from, {{lowest, data}}, false, e);
      case NFT_CMP_GT:
        if (data == highest) return end_never(e.words());
        for (std::size_t i = limit.size() - 1; limit[i]++ == '\xff'; --i) {
        }
        return test(from, {{limit, highest}}, false, e);
      case NFT_CMP_GTE:
        return test(from, {{data, end_of_range(e).value_or(highest)}}, false, e);
      default:
        return opaque(e.words());
    }
  }

  // A range is written as two comparisons: cmp gte A, cmp lte B.
  std::optional<std::string> end_of_range(const RawExpression& start) {
    if (next_ >= expressions_.size()) return std::nullopt;
    const RawExpression& e = expressions_[next_];
    const bool ends = e.name() == "cmp" && e.has_only(cmp_attributes) && e.u32(NFTA_CMP_OP) == NFT_CMP_LTE &&
                      e.u32(NFTA_CMP_SREG) == start.u32(NFTA_CMP_SREG) &&
                      e.data(NFTA_CMP_DATA).size() == start.data(NFTA_CMP_DATA).size();
    if (!ends) return std::nullopt;
    ++next_;
    return e.data(NFTA_CMP_DATA);
  }

  void take_range(const RawExpression& e) {
    const std::uint32_t operation = e.u32(NFTA_RANGE_OP);
    if (operation > NFT_RANGE_NEQ) return opaque(e.words());
    test(e.u32(NFTA_RANGE_SREG), {{e.data(NFTA_RANGE_FROM_DATA), e.data(NFTA_RANGE_TO_DATA)}},
         operation == NFT_RANGE_NEQ, e);
  }

  // Whether what begins in the register lies within one of the bounds, all of one size.
  void test(std::uint32_t from, const std::vector<Bounds>& bounds, bool negated, const RawExpression& e) {
    const auto size = static_cast<std::uint32_t>(bounds.front().first.size());
    const std::vector<Value> values = registers_.read(from, size);
    const auto ways = size > 0 ? within(values, bounds, negated) : std::nullopt;
    if (ways) return match(*ways);
    if (values.size() == 1 && size > 0)
      return unknown_test(values.front().words, test_words(values.front(), bounds, negated, families_, protocol()));
    unknown(fmt::format("{}: {}", words_of(values), e.words()));
  }
  [[nodiscard]] std::string words_of(const std::vector<Value>& values) const {
    std::string what = values.empty() ? registers_.forgotten() : std::string();
    for (const Value& value : values) what += (what.empty() ? "" : " . ") + words(value);
    return what;
  }

  // The ways in which the values, as one key, lie within the bounds; nothing if that is not known.
  std::optional<Alternatives> within(const std::vector<Value>& values, const std::vector<Bounds>& bounds,
                                     bool negated) {
    const DecodeContext context{families_, context_.native,
                                context_.reading != nullptr ? &context_.reading->cgroups : nullptr};
    if (values.size() == 1) {
      for (const Bounds& each : bounds) {
        if (each.first.size() != values.front().size || each.second.size() != values.front().size) return std::nullopt;
      }
      if (is_stale(values.front())) return std::nullopt;
      if (const auto families = family_condition(values.front(), bounds, negated)) {
        may_be_arp_ = may_be_arp_ && has_ethertype(values.front(), bounds, ethertype_arp) != negated;
        const Alternatives ways = narrow(*families);
        if (!ways.empty() || !may_be_arp_) return ways;
        families_ = {};
        return {{{UnknownMatch{test_words(values.front(), bounds, negated, families_, protocol())}}}};
      }
      if (values.front().is_meta(NFT_META_L4PROTO)) may_be_arp_ = false;
      return condition(values.front(), bounds, negated, context);
    }
    if (values.empty() || negated || bounds.size() > most_) return std::nullopt;
    Alternatives all;
    for (const Bounds& each : bounds) {
      const auto ways = concatenated(values, each, context);
      if (!ways || all.size() + ways->size() > most_) return std::nullopt;
      std::ranges::copy(*ways, std::back_inserter(all));
    }
    return all;
  }

  std::optional<Alternatives> concatenated(const std::vector<Value>& values, const Bounds& bounds,
                                           const DecodeContext& context) {
    Alternatives ways{{}};
    std::size_t at = 0;
    for (const Value& value : values) {
      if (is_stale(value)) return std::nullopt;
      const Bounds part{bounds.first.substr(at, value.size), bounds.second.substr(at, value.size)};
      at += (value.size + 3) / 4 * 4;
      const auto of_part = condition(value, std::span(&part, 1), false, context);
      if (!of_part || ways.size() * of_part->size() > most_rules) return std::nullopt;
      Alternatives longer;
      for (const auto& way : ways) {
        for (const auto& more : *of_part) {
          longer.push_back(way);
          std::ranges::copy(more, std::back_inserter(longer.back()));
        }
      }
      ways = std::move(longer);
    }
    return ways;
  }

  Alternatives narrow(Families families) {
    const Families left = families_ & families;
    if (left.empty()) return {};
    families_ = left;
    return {{}};
  }

  // Whether the rule has changed what it loaded before.
  [[nodiscard]] bool is_stale(const Value& value) const {
    const auto changed = [&](const Match& match) {
      const auto since = std::span(changed_).subspan(value.epoch);
      return std::ranges::any_of(since, [&](const Target& target) { return changes(target, match); });
    };
    if (value.of == Value::Of::meta && value.key == NFT_META_MARK) return changed(MarkMatch{});
    if (value.of == Value::Of::ct || value.of == Value::Of::tuple)
      return changed(ConnmarkMatch{}) || changed(ConntrackStateMatch{});
    return false;
  }

  void take_lookup(const RawExpression& e) {
    const auto found = context_.sets.find(e.text(NFTA_LOOKUP_SET));
    const std::uint32_t flags = e.u32(NFTA_LOOKUP_FLAGS);
    const bool maps = e.has(NFTA_LOOKUP_DREG);
    const bool verdicts = maps && e.u32(NFTA_LOOKUP_DREG) == NFT_REG_VERDICT;
    const bool known = found != context_.sets.end() && found->second.opaque.empty() &&
                       (flags & ~std::uint32_t{NFT_LOOKUP_F_INV}) == 0 &&
                       (!verdicts || (found->second.verdicts && flags == 0));
    if (!known) {
      const std::string why = found != context_.sets.end() ? ": " + found->second.opaque : "";
      if (verdicts) return opaque(fmt::format("vmap @{}{}", e.text(NFTA_LOOKUP_SET), why));
      unknown(fmt::format("@{}{}", e.text(NFTA_LOOKUP_SET), why));
      return maps ? registers_.forget(e.words()) : void();
    }
    const KernelSet& set = found->second;
    const std::vector<Value> values = registers_.read(e.u32(NFTA_LOOKUP_SREG), set.key_size);
    if (verdicts) return look_up_verdict(set, values, e);
    if (!maps || !has_all(set, values)) membership(set, values, flags != 0, e);
    if (maps && !done_) registers_.forget(e.words());
  }

  // numgen inc mod 2 map { 0 : 10.0.0.1, 1 : 10.0.0.2 }
  static bool has_all(const KernelSet& set, const std::vector<Value>& values) {
    if (values.size() != 1 || values.front().modulus == 0 || values.front().changed()) return false;
    const Value& value = values.front();
    std::uint64_t count = 0;  // no two elements have a value in common
    for (const KernelElement& each : set.elements) {
      const std::uint64_t first = number_of(value, each.first), last = number_of(value, each.last);
      if (last < first || last >= value.modulus) return false;
      count += last - first + 1;
    }
    return count == value.modulus;
  }

  // Says in full what is unknown about a value within few elements of an anonymous set.
  void unknown_within(const std::vector<Value>& values, const std::vector<Bounds>& bounds, bool negated,
                      const std::string& set, const std::string& otherwise) {
    constexpr std::size_t few = 16;
    const bool is_short = set.starts_with("__set") && values.size() == 1 && bounds.size() <= few;
    if (!is_short) return unknown(fmt::format("{} {}@{}", words_of(values), otherwise, set));
    unknown_test(values.front().words, test_words(values.front(), bounds, negated, families_, protocol()));
  }

  void membership(const KernelSet& set, const std::vector<Value>& values, bool negated, const RawExpression& e) {
    if (set.any_other) return negated ? end_never(e.words()) : void();
    if (set.elements.empty()) return negated ? void() : end_never("@" + e.text(NFTA_LOOKUP_SET) + " is empty");
    std::vector<Bounds> bounds;
    bounds.reserve(set.elements.size());
    for (const KernelElement& element : set.elements) bounds.emplace_back(element.first, element.last);
    const auto ways = within(values, bounds, negated);
    if (ways) return match(*ways);
    unknown_within(values, bounds, negated, e.text(NFTA_LOOKUP_SET), negated ? "!= " : "");
  }

  // tcp dport vmap { 22 : accept, 80 : jump web }: a rule for each element.
  void look_up_verdict(const KernelSet& set, const std::vector<Value>& values, const RawExpression& e) {
    const auto comes_back = [](const KernelElement& element) {
      return element.verdict == NFT_JUMP || element.verdict == NFT_CONTINUE;
    };
    const bool any_comes_back = std::ranges::any_of(set.elements, comes_back);
    const bool changeable = std::ranges::any_of(values, [](const Value& value) {
      return value.of == Value::Of::ct || value.of == Value::Of::tuple ||
             (value.of == Value::Of::meta && value.key == NFT_META_MARK);
    });
    // Where a chain that was jumped to returns, the rules of the other elements must not match.
    const bool clear = !any_comes_back || (!changeable && !set.any_other && next_ == expressions_.size());
    const bool are_many = branches_.size() * set.elements.size() > most_;
    if (!clear || are_many || tproxy_)
      return opaque(fmt::format("vmap @{}{}", e.text(NFTA_LOOKUP_SET), are_many ? ": too many elements" : ""));
    const bool is_whole = (!any_comes_back || set.elements.size() == 1) && has_all(set, values);
    const auto start_again = [this, branches = branches_, families = families_, may_be_arp = may_be_arp_] {
      branches_ = branches;
      families_ = families;
      may_be_arp_ = may_be_arp;
    };
    const auto made_before = static_cast<std::ptrdiff_t>(made_.size());
    for (const KernelElement& element : set.elements) {
      const std::vector<Bounds> bounds{{element.first, element.last}};
      start_again();
      const auto ways = within(values, bounds, false);
      if (ways && ways->empty()) continue;
      if (ways) {
        match(*ways);
      } else if (!is_whole || &element != &set.elements.back()) {
        unknown_within(values, bounds, false, e.text(NFTA_LOOKUP_SET), "in ");
      }
      emit(target_of(element.verdict, element.chain));
      if (!done_) continue;
      // Too many: nothing is known of what it looks up, but when.
      made_.erase(made_.begin() + made_before, made_.end());
      made_values_ = 0;
      start_again();
      return opaque("vmap @" + e.text(NFTA_LOOKUP_SET));
    }
    if (set.any_other) {
      start_again();
      emit(target_of(set.any_other->verdict, set.any_other->chain));
    }
    if (made_.empty()) return end_never("@" + e.text(NFTA_LOOKUP_SET) + " is empty");
    done_ = true;
  }

  // ---- Deciding.

  void take_verdict(const RawExpression& e) {
    const nlattr* verdict =
        e.has(NFTA_IMMEDIATE_DATA) ? Attributes(e.at(NFTA_IMMEDIATE_DATA)).find(NFTA_DATA_VERDICT) : nullptr;
    const nlattr* code = verdict != nullptr ? Attributes(verdict).find(NFTA_VERDICT_CODE) : nullptr;
    if (code == nullptr) return opaque(e.words());
    const nlattr* chain = Attributes(verdict).find(NFTA_VERDICT_CHAIN);
    const auto number_of_verdict = static_cast<std::int32_t>(network_order<std::uint32_t>(code));
    if (number_of_verdict == NFT_CONTINUE) return;
    const Target target = target_of(number_of_verdict, chain != nullptr ? string(chain) : std::string());
    if (!tproxy_) return decide(target);
    decide(target == Target(Verdict::accept) ? Target(*tproxy_) : UnknownTarget{"tproxy and another verdict"});
  }

  [[nodiscard]] Target target_of(std::int32_t verdict, const std::string& chain) const {
    switch (verdict) {
      case NF_ACCEPT:
        return Verdict::accept;
      case NF_DROP:
        return Verdict::drop;
      case NFT_RETURN:
        return Verdict::return_;
      case NFT_CONTINUE:
        return NonTerminating{};
      case NFT_JUMP:
        return Jump{model_name(chain)};
      case NFT_GOTO:
        return Jump{model_name(chain), true};
      default:
        return UnknownTarget{fmt::format("verdict {}", verdict)};
    }
  }

  // The chain of the model: ISTIO_OUTPUT for nat-ISTIO_OUTPUT.
  [[nodiscard]] std::string model_name(const std::string& chain) const {
    return chain.starts_with(context_.prefix) ? chain.substr(context_.prefix.size()) : chain;
  }

  // The number that a register holds for certain.
  template <typename Number>
  [[nodiscard]] std::optional<Number> constant(std::uint32_t from, bool network) const {
    const Value* value = registers_.at(from);
    if (value == nullptr || value->of != Value::Of::constant || value->size != sizeof(Number)) return std::nullopt;
    Data data = Data::text(value->constant);
    return network ? data.from_network<Number>() : data.to_host<Number>();
  }

  // meta mark set 1, meta mark set ct mark, meta mark set meta mark & ~1 ^ 1
  void store_meta(const RawExpression& e, std::uint32_t key) {
    if (key != NFT_META_MARK) {
      const bool traces = key == NFT_META_NFTRACE && constant<std::uint8_t>(e.u32(NFTA_META_SREG), false) == 1;
      const Value* value = registers_.at(e.u32(NFTA_META_SREG));
      const Value key_of_meta{.of = Value::Of::meta, .key = key, .size = meta_size(key)};
      if (traces && !context_.native) return effect(NonTerminating{"-j TRACE"});
      const std::string text = value != nullptr ? words(key_of_meta) + " set " + words(*value) : e.words();
      // Goes on where no match of the model asks for the key. By the type (pkttype) the kernel discards packets.
      if (key == NFT_META_PRIORITY || key == NFT_META_NFTRACE || key == NFT_META_SECMARK)
        return effect(NonTerminating{text});
      return opaque(text);
    }
    const Value* from = registers_.at(e.u32(NFTA_META_SREG));
    const auto set = constant<std::uint32_t>(e.u32(NFTA_META_SREG), false);
    const bool itself = from != nullptr && from->of == Value::Of::meta && from->key == NFT_META_MARK &&
                        from->changed() && !from->swapped && !is_stale(*from);
    const auto restored =
        from != nullptr && from->of == Value::Of::ct && from->key == NFT_CT_MARK && !from->swapped && !is_stale(*from)
            ? bits_of(*from)
            : std::nullopt;
    std::optional<SetMark> mark;
    if (set) mark = SetMark{*set, 0xffffffff};
    if (itself) mark = SetMark{host_number(from->xor_value), ~host_number(from->mask)};
    if (mark && tproxy_ && !tproxy_marked_) {
      tproxy_->mark = mark->mark;
      tproxy_->mask = mark->mask;
      tproxy_marked_ = true;
    } else if (mark) {
      effect(*mark);
    } else if (restored) {
      effect(Connmark{Connmark::Kind::restore, 0xffffffff, *restored});
    } else {
      opaque("meta mark set " + (from != nullptr ? words(*from) : registers_.forgotten()));
    }
  }

  // Returns which bits of a byte of the network header may be written: of the type of service, of the flow label, and
  // of the number that fragments have. No match asks for them, and no packet is discarded for them.
  [[nodiscard]] std::uint8_t free_bits(std::uint32_t at) const {
    if (families_ == Families(Family::ipv4)) return at == 1 || at == 4 || at == 5 ? 0xff : 0;
    if (families_ == Families(Family::ipv6)) return at == 0 ? 0x0f : at < 4 ? 0xff : 0;
    return 0;
  }

  // ip dscp set cs1. What is written beside it is what was there.
  void store_payload(const RawExpression& e) {
    const std::uint32_t base = e.u32(NFTA_PAYLOAD_BASE), first = e.u32(NFTA_PAYLOAD_OFFSET);
    const std::uint32_t size = e.u32(NFTA_PAYLOAD_LEN);
    const Value* from = registers_.at(e.u32(NFTA_PAYLOAD_SREG));
    const Value to{.of = Value::Of::payload, .key = base, .offset = first, .size = size};
    const bool itself = from != nullptr && from->of == to.of && from->key == base && from->offset == first &&
                        from->size == size && from->changed() && !from->swapped && !is_stale(*from);
    bool is_harmless = base == NFT_PAYLOAD_NETWORK_HEADER && from != nullptr && !tproxy_;
    for (std::uint32_t i = 0; i < size && is_harmless; ++i) {
      const int written = itself ? ~from->mask[i] | from->xor_value[i] : 0xff;
      is_harmless = (written & ~free_bits(first + i) & 0xff) == 0;
    }
    const std::string text = from != nullptr ? words(to) + " set " + words(*from) : e.words();
    if (!is_harmless) return opaque(text);
    effect(NonTerminating{text});
  }

  // tcp option maxseg size set 1400. Where that fails the rule breaks off, since Linux 5.17.
  void take_exthdr(const RawExpression& e) {
    if (!e.has(NFTA_EXTHDR_SREG)) return take_unknown_load(e);
    const auto option = loaded_value(e);
    const Value* from = registers_.at(e.u32(NFTA_EXTHDR_SREG));
    if (!option || from == nullptr || e.u32(NFTA_EXTHDR_OP) != std::uint32_t{NFT_EXTHDR_OP_TCPOPT} || tproxy_)
      return opaque(e.words());
    const std::string text = option->value.words + " set " + words(*from);
    effect(NonTerminating{text});
    unknown(text);
  }

  // ct mark set meta mark, ct zone set 1
  void store_ct(const RawExpression& e, std::uint32_t key) {
    const std::uint32_t source = e.u32(NFTA_CT_SREG);
    const Value* from = registers_.at(source);
    if (key == NFT_CT_ZONE && !e.has(NFTA_CT_DIRECTION)) {
      if (const auto zone = constant<std::uint16_t>(source, false)) return effect(CtZone{*zone});
    }
    if (key == NFT_CT_MARK && !e.has(NFTA_CT_DIRECTION) && from != nullptr && !is_stale(*from) && !from->swapped) {
      const bool packet = from->of == Value::Of::meta && from->key == NFT_META_MARK;
      const bool itself = from->of == Value::Of::ct && from->key == NFT_CT_MARK;
      const auto saved = packet ? bits_of(*from) : std::nullopt;
      if (saved) return effect(Connmark{Connmark::Kind::save, *saved, 0xffffffff});
      if (itself && from->changed()) return effect(SetConnmark{host_number(from->xor_value), ~host_number(from->mask)});
      if (const auto mark = constant<std::uint32_t>(source, false)) return effect(SetConnmark{*mark, 0xffffffff});
    }
    const bool is_harmless = key == NFT_CT_LABELS || key == NFT_CT_EVENTMASK || key == NFT_CT_SECMARK;
    const auto events = key == NFT_CT_EVENTMASK ? constant<std::uint32_t>(source, false) : std::nullopt;
    if (is_harmless && from != nullptr)
      return effect(NonTerminating{words(Value{.of = Value::Of::ct, .key = key}) + " set " +
                                   (events ? event_words(*events) : words(*from))});
    opaque(e.words());
  }

  // Returns which bits of a mark it has, the others being 0; nothing if it has other ones, too.
  static std::optional<std::uint32_t> bits_of(const Value& value) {
    if (!value.changed()) return 0xffffffff;
    return host_number(value.xor_value) == 0 ? std::optional(host_number(value.mask)) : std::nullopt;
  }
  static std::uint32_t host_number(const std::string& bytes) { return Data::text(bytes).to_host<std::uint32_t>(); }

  void take_redir(const RawExpression& e) {
    nat(End::destination, "redirect", e, {0, 0, NFTA_REDIR_REG_PROTO_MIN, NFTA_REDIR_REG_PROTO_MAX}, NFTA_REDIR_FLAGS);
  }
  void take_masq(const RawExpression& e) {
    nat(End::source, "masquerade", e, {0, 0, NFTA_MASQ_REG_PROTO_MIN, NFTA_MASQ_REG_PROTO_MAX}, NFTA_MASQ_FLAGS);
  }
  void take_nat(const RawExpression& e) {
    if (e.u32(NFTA_NAT_TYPE) > NFT_NAT_DNAT) return opaque(e.words());
    const bool source = e.u32(NFTA_NAT_TYPE) == NFT_NAT_SNAT;
    nat(source ? End::source : End::destination, source ? "snat" : "dnat", e,
        {NFTA_NAT_REG_ADDR_MIN, NFTA_NAT_REG_ADDR_MAX, NFTA_NAT_REG_PROTO_MIN, NFTA_NAT_REG_PROTO_MAX}, NFTA_NAT_FLAGS);
  }

  struct NatRegisters {
    int first_address, last_address, first_port, last_port;  // attributes; 0: has none
  };
  void nat(End end, const char* what, const RawExpression& e, const NatRegisters& in, int flags_in) {
    constexpr std::uint32_t known = NF_NAT_RANGE_MAP_IPS | NF_NAT_RANGE_PROTO_SPECIFIED |
                                    NF_NAT_RANGE_PROTO_RANDOM_ALL | NF_NAT_RANGE_PERSISTENT | NF_NAT_RANGE_NETMAP;
    const std::uint32_t flags = e.u32(flags_in);
    if ((flags & ~known) != 0) return opaque(e.words());
    std::optional<AddressRange> addresses;
    std::optional<PortRange> ports;
    const bool to_network = (flags & NF_NAT_RANGE_NETMAP) != 0;
    if (in.first_address != 0 && e.has(in.first_address)) {
      const auto first = address(e.u32(in.first_address), e.u32(NFTA_NAT_FAMILY));
      const auto last = e.has(in.last_address) ? address(e.u32(in.last_address), e.u32(NFTA_NAT_FAMILY)) : first;
      if (!first || !last) return opaque(fmt::format("{} to what it looks up", what));
      addresses = AddressRange{*first, *last};
    }
    if (e.has(in.first_port)) {
      const auto first = constant<std::uint16_t>(e.u32(in.first_port), true);
      const auto last = e.has(in.last_port) ? constant<std::uint16_t>(e.u32(in.last_port), true) : first;
      if (!first || !last) return opaque(fmt::format("{} to a port that it looks up", what));
      ports = PortRange{*first, *last};
    }
    const bool redirects =
        e.name() == "redir" && ports && ports->first == ports->last && flags == NF_NAT_RANGE_PROTO_SPECIFIED;
    if (redirects) return decide(Redirect{ports->first});
    if (to_network && (!addresses || !addresses->prefix_length())) return opaque(e.words());
    const Nat::To to = to_network ? Nat::To::network : in.first_address == 0 ? Nat::To::own : Nat::To::given;
    decide(native_nat(end, to, addresses, ports, flags));
  }
  [[nodiscard]] std::optional<Address> address(std::uint32_t from, std::uint32_t family) const {
    const Value* value = registers_.at(from);
    if (value == nullptr || value->of != Value::Of::constant) return std::nullopt;
    Address result{family == NFPROTO_IPV6 ? Family::ipv6 : Family::ipv4, {}};
    if (value->size != result.size()) return std::nullopt;
    result.bytes = Data::text(value->constant).bytes;
    return result;
  }

  // tproxy to :15006 meta mark set 1 accept
  void take_tproxy(const RawExpression& e) {
    const auto port = constant<std::uint16_t>(e.u32(NFTA_TPROXY_REG_PORT), true);
    const auto to = address(e.u32(NFTA_TPROXY_REG_ADDR), e.u32(NFTA_TPROXY_FAMILY));
    if (port && to) return opaque("tproxy to " + destination_words(AddressRange::single(*to), PortRange{*port, *port}));
    if (!port || e.has(NFTA_TPROXY_REG_ADDR) || tproxy_) return opaque("tproxy to an unknown port");
    tproxy_ = Tproxy{*port, 0, 0};
  }

  void take_counter(const RawExpression& e) {
    counters_ = Counters{e.u64(NFTA_COUNTER_PACKETS), e.u64(NFTA_COUNTER_BYTES)};
  }
  void take_notrack(const RawExpression&) { effect(Notrack{}); }
  void take_reject(const RawExpression& e) { decide(Reject{reject_words(e, families_.contains(Family::ipv4))}); }

  void take_match(const RawExpression& e) {
    match({xt::decode_match(extension(e, NFTA_MATCH_NAME, NFTA_MATCH_REV, NFTA_MATCH_INFO), family())});
  }
  void take_target(const RawExpression& e) {
    const Target target =
        xt::decode_target(extension(e, NFTA_TARGET_NAME, NFTA_TARGET_REV, NFTA_TARGET_INFO), family());
    next_ == expressions_.size() ? decide(target) : effect(target);
  }
  [[nodiscard]] Family family() const { return families_.contains(Family::ipv4) ? Family::ipv4 : Family::ipv6; }
  static xt::Extension extension(const RawExpression& e, int name, int revision, int info) {
    xt::Extension result{e.text(name), static_cast<std::uint8_t>(e.u32(revision)), {}};
    if (e.has(info)) {
      const auto bytes = payload(e.at(info));
      result.data.assign(bytes.begin(), bytes.end());
    }
    return result;
  }

  void take_text(const RawExpression& e) {
    if (e.has(text_condition)) return unknown(e.text(text_condition));
    if (e.has(text_effect)) return effect(NonTerminating{e.text(text_effect)});
    if (e.has(text_reject)) return decide(Reject{e.text(text_reject)});
    if (!e.has(text_target)) return opaque(e.text(text_end));
    const std::string text = e.text(text_target);
    std::vector<std::string> words;
    for (const std::string_view word : split_words(text)) words.emplace_back(word);
    const Target target = words.size() > 1 ? read_target(words) : UnknownTarget{text};
    goes_on(target) ? effect(target) : decide(target);
  }

  // Those that are opaque: whether the rule goes on after it is not known …
  void take_condition(const RawExpression& e) { unknown(condition_words(e)); }
  void take_limit(const RawExpression& e) { unknown(limit_words(e, context_.native)); }
  // … or it certainly does.
  void take_log(const RawExpression& e) { effect(NonTerminating{log_words(e, context_.native)}); }
  void take_side_effect(const RawExpression& e) { effect(NonTerminating{e.words()}); }
  // dup to 10.0.0.1; the interface is a number here
  void take_dup(const RawExpression& e) {
    const Value* to = registers_.at(e.u32(NFTA_DUP_SREG_ADDR));
    const auto gateway =
        to == nullptr ? std::nullopt : address(e.u32(NFTA_DUP_SREG_ADDR), to->size == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
    effect(NonTerminating{gateway ? "dup to " + gateway->text() : e.words()});
  }
  void take_unknown_load(const RawExpression& e) {
    const bool of_one_family = context_.families != Families::both();
    const auto loaded = loaded_value(e, of_one_family ? std::optional(context_.families.list().front()) : std::nullopt);
    if (!loaded || !registers_.load(loaded->destination, loaded->value)) return forget(e);
    if (loaded->may_break_off && loaded->value.of != Value::Of::tuple) unknown(loaded->value.words);
  }
  void take_unknown_end(const RawExpression& e) { opaque(end_words(e)); }
  void take_object(const RawExpression& e) {
    switch (e.u32(NFTA_OBJREF_IMM_TYPE)) {
      case NFT_OBJECT_COUNTER:
      case NFT_OBJECT_CT_HELPER:
      case NFT_OBJECT_CT_TIMEOUT:
      case NFT_OBJECT_CT_EXPECT:
      case NFT_OBJECT_SECMARK:
      case NFT_OBJECT_TUNNEL:
        return take_side_effect(e);
      case NFT_OBJECT_QUOTA:
      case NFT_OBJECT_LIMIT:
      case NFT_OBJECT_CONNLIMIT:
        return take_condition(e);
      default:
        return opaque(e.words());
    }
  }

  static constexpr std::uint32_t cmp_attributes = attributes(NFTA_CMP_SREG, NFTA_CMP_OP, NFTA_CMP_DATA);

  const KernelRule& rule_;
  const RuleContext& context_;
  Families families_;
  bool may_be_arp_;
  const std::size_t most_;  // rules that this one may become
  std::vector<RawExpression> expressions_;
  std::size_t next_ = 0;
  Registers registers_;
  std::vector<Branch> branches_{1};
  std::vector<LiveRule> made_;
  std::vector<Target> changed_;  // what the rule has done so far
  std::size_t made_values_ = 0;
  std::optional<Counters> counters_;  // of what comes next
  std::optional<Tproxy> tproxy_;
  bool tproxy_marked_ = false;
  bool done_ = false;
};

constexpr std::uint32_t any_attributes = 0xffffffff;

// Each with the attributes that the kernel sends of it, as far as they are understood.
std::span<const Reader::Kind> Reader::kinds() {
  static constexpr Kind all[] = {
      {"meta", attributes(NFTA_META_KEY, NFTA_META_DREG, NFTA_META_SREG), &Reader::take_meta},
      {"ct", attributes(NFTA_CT_KEY, NFTA_CT_DREG, NFTA_CT_SREG, NFTA_CT_DIRECTION), &Reader::take_ct},
      {"payload",
       attributes(NFTA_PAYLOAD_DREG, NFTA_PAYLOAD_BASE, NFTA_PAYLOAD_OFFSET, NFTA_PAYLOAD_LEN, NFTA_PAYLOAD_SREG,
                  NFTA_PAYLOAD_CSUM_TYPE, NFTA_PAYLOAD_CSUM_OFFSET, NFTA_PAYLOAD_CSUM_FLAGS),
       &Reader::take_payload},
      {"immediate", attributes(NFTA_IMMEDIATE_DREG, NFTA_IMMEDIATE_DATA), &Reader::take_immediate},
      {"bitwise",
       attributes(NFTA_BITWISE_SREG, NFTA_BITWISE_DREG, NFTA_BITWISE_LEN, NFTA_BITWISE_OP, NFTA_BITWISE_MASK,
                  NFTA_BITWISE_XOR, NFTA_BITWISE_DATA),
       &Reader::take_bitwise},
      {"byteorder",
       attributes(NFTA_BYTEORDER_SREG, NFTA_BYTEORDER_DREG, NFTA_BYTEORDER_OP, NFTA_BYTEORDER_LEN, NFTA_BYTEORDER_SIZE),
       &Reader::take_byteorder},
      {"cmp", cmp_attributes, &Reader::take_cmp},
      {"range", attributes(NFTA_RANGE_SREG, NFTA_RANGE_OP, NFTA_RANGE_FROM_DATA, NFTA_RANGE_TO_DATA),
       &Reader::take_range},
      {"lookup", attributes(NFTA_LOOKUP_SET, NFTA_LOOKUP_SREG, NFTA_LOOKUP_DREG, NFTA_LOOKUP_SET_ID, NFTA_LOOKUP_FLAGS),
       &Reader::take_lookup},
      {"counter", attributes(NFTA_COUNTER_BYTES, NFTA_COUNTER_PACKETS, NFTA_COUNTER_PAD), &Reader::take_counter},
      {"notrack", 0, &Reader::take_notrack},
      {"reject", attributes(NFTA_REJECT_TYPE, NFTA_REJECT_ICMP_CODE), &Reader::take_reject},
      {"redir", attributes(NFTA_REDIR_REG_PROTO_MIN, NFTA_REDIR_REG_PROTO_MAX, NFTA_REDIR_FLAGS), &Reader::take_redir},
      {"masq", attributes(NFTA_MASQ_FLAGS, NFTA_MASQ_REG_PROTO_MIN, NFTA_MASQ_REG_PROTO_MAX), &Reader::take_masq},
      {"nat",
       attributes(NFTA_NAT_TYPE, NFTA_NAT_FAMILY, NFTA_NAT_REG_ADDR_MIN, NFTA_NAT_REG_ADDR_MAX, NFTA_NAT_REG_PROTO_MIN,
                  NFTA_NAT_REG_PROTO_MAX, NFTA_NAT_FLAGS),
       &Reader::take_nat},
      {"tproxy", attributes(NFTA_TPROXY_FAMILY, NFTA_TPROXY_REG_ADDR, NFTA_TPROXY_REG_PORT), &Reader::take_tproxy},
      {"match", attributes(NFTA_MATCH_NAME, NFTA_MATCH_REV, NFTA_MATCH_INFO), &Reader::take_match},
      {"target", attributes(NFTA_TARGET_NAME, NFTA_TARGET_REV, NFTA_TARGET_INFO), &Reader::take_target},
      {text_expression, any_attributes, &Reader::take_text},
      {"objref", any_attributes, &Reader::take_object},
      {"limit", any_attributes, &Reader::take_limit},
      {"quota", any_attributes, &Reader::take_condition},
      {"connlimit", any_attributes, &Reader::take_condition},
      {"dynset", any_attributes, &Reader::take_condition},
      {"flow_offload", any_attributes, &Reader::take_condition},
      {"log", any_attributes, &Reader::take_log},
      {"last", any_attributes, &Reader::take_side_effect},
      {"dup", any_attributes, &Reader::take_dup},
      {"fib", attributes(NFTA_FIB_DREG, NFTA_FIB_RESULT, NFTA_FIB_FLAGS), &Reader::take_fib},
      {"socket", attributes(NFTA_SOCKET_KEY, NFTA_SOCKET_DREG, NFTA_SOCKET_LEVEL), &Reader::take_socket},
      {"rt", any_attributes, &Reader::take_unknown_load},
      {"osf", any_attributes, &Reader::take_unknown_load},
      {"exthdr", any_attributes, &Reader::take_exthdr},
      {"hash", any_attributes, &Reader::take_unknown_load},
      {"numgen", any_attributes, &Reader::take_unknown_load},
      {"xfrm", any_attributes, &Reader::take_unknown_load},
      {"tunnel", any_attributes, &Reader::take_unknown_load},
      {"inner", any_attributes, &Reader::take_unknown_load},
      {"queue", any_attributes, &Reader::take_unknown_end},
      {"fwd", any_attributes, &Reader::take_unknown_end},
      {"synproxy", any_attributes, &Reader::take_unknown_end},
  };
  return all;
}

}  // namespace

std::vector<LiveRule> read_rule(const KernelRule& rule, const RuleContext& context) {
  return Reader(rule, context).read();
}

}  // namespace sidetrack::nft
