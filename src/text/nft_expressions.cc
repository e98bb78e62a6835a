// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/nft_expressions.h"

#include <fmt/format.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>

#include <algorithm>
#include <optional>

#include "kernel/nft/names.h"
#include "kernel/nft/nf_tables.h"
#include "kernel/nft/rule_reader.h"
#include "model/error.h"
#include "model/printable.h"
#include "rule/nft/fields.h"
#include "rule/target/destination.h"
#include "rule/words.h"
#include "text/nft_keys.h"

namespace sidetrack {
namespace {

using namespace nft;

std::string_view bytes_of(const Data& data) { return {reinterpret_cast<const char*>(data.bytes.data()), data.size}; }
Data bytes_of(const Address& address) { return Data(address.view()); }

// The expressions of a rule as the kernel sends them. The attributes of one are added, and then the expression.
class ExpressionBytes {
 public:
  void u32(int type, std::uint32_t number) { put(attributes_, type, bytes_of(Data::network(number))); }
  void u64(int type, std::uint64_t number) { put(attributes_, type, bytes_of(Data::network(number))); }
  void text(int type, std::string_view text) { put(attributes_, type, text.substr(0, longest)); }
  void data(int type, std::string_view bytes, int kind = NFTA_DATA_VALUE) {
    std::string inner;
    put(inner, kind, bytes);
    put(attributes_, type, inner);
  }
  void verdict(int type, std::int32_t code, std::string_view chain) {
    std::string parts;
    put(parts, NFTA_VERDICT_CODE, bytes_of(Data::network(static_cast<std::uint32_t>(code))));
    if (!chain.empty()) put(parts, NFTA_VERDICT_CHAIN, chain.substr(0, longest));
    data(type, parts, NFTA_DATA_VERDICT);
  }
  void add(std::string_view name) {
    std::string expression;
    put(expression, NFTA_EXPR_NAME, name);
    put(expression, NFTA_EXPR_DATA, attributes_);
    put(all_, NFTA_LIST_ELEM, expression);
    attributes_.clear();
  }
  [[nodiscard]] std::span<const std::byte> all() const { return std::as_bytes(std::span(all_)); }

 private:
  static constexpr std::size_t longest = 4096;  // no name or word of nft is as long

  static void put(std::string& into, int type, std::string_view content) {
    const nlattr header{static_cast<std::uint16_t>(sizeof(nlattr) + content.size()), static_cast<std::uint16_t>(type)};
    into.append(reinterpret_cast<const char*>(&header), sizeof header).append(content);
    into.resize(MNL_ALIGN(into.size()));
  }

  std::string attributes_, all_;
};

// What a header asks for beside its field.
struct Header {
  std::string_view name;
  std::optional<Family> family;
  std::uint32_t protocol;  // 0: of any
};
constexpr Header known_headers[] = {
    {"ip", Family::ipv4, 0},   {"ip6", Family::ipv6, 0}, {"icmp", Family::ipv4, 1}, {"icmpv6", Family::ipv6, 58},
    {"igmp", Family::ipv4, 2}, {"tcp", {}, 6},           {"udp", {}, 17},           {"sctp", {}, 132},
    {"dccp", {}, 33},          {"udplite", {}, 136},     {"esp", {}, 50},           {"ah", {}, 51},
    {"comp", {}, 108},
};

struct NamedVerdict {
  std::string_view name;
  std::int32_t verdict;
};
constexpr NamedVerdict kernel_verdicts[] = {{"accept", NF_ACCEPT},  {"drop", NF_DROP},  {"continue", NFT_CONTINUE},
                                            {"return", NFT_RETURN}, {"jump", NFT_JUMP}, {"goto", NFT_GOTO}};
const NamedVerdict* verdict_named(std::string_view name) {
  const auto* found = std::ranges::find(kernel_verdicts, name, &NamedVerdict::name);
  return found != std::end(kernel_verdicts) ? found : nullptr;
}

struct NatFlag {
  std::string_view name, of_iptables;
  std::uint32_t bit;
};
constexpr NatFlag known_nat_flags[] = {{"random", "--random", NF_NAT_RANGE_PROTO_RANDOM},
                                       {"fully-random", "--random-fully", NF_NAT_RANGE_PROTO_RANDOM_FULLY},
                                       {"persistent", "--persistent", NF_NAT_RANGE_PERSISTENT},
                                       {"netmap", "", NF_NAT_RANGE_NETMAP}};

struct NatStatement {
  std::string_view name, of_iptables, option, expression;
  int first_port, last_port, flags;  // attributes
};
constexpr NatStatement known_nat[] = {
    {"redirect", "REDIRECT", "--to-ports", "redir", NFTA_REDIR_REG_PROTO_MIN, NFTA_REDIR_REG_PROTO_MAX,
     NFTA_REDIR_FLAGS},
    {"masquerade", "MASQUERADE", "--to-ports", "masq", NFTA_MASQ_REG_PROTO_MIN, NFTA_MASQ_REG_PROTO_MAX,
     NFTA_MASQ_FLAGS},
    {"dnat", "DNAT", "--to-destination", "nat", NFTA_NAT_REG_PROTO_MIN, NFTA_NAT_REG_PROTO_MAX, NFTA_NAT_FLAGS},
    {"snat", "SNAT", "--to-source", "nat", NFTA_NAT_REG_PROTO_MIN, NFTA_NAT_REG_PROTO_MAX, NFTA_NAT_FLAGS}};

constexpr std::uint32_t value_register = NFT_REG32_00;
constexpr std::uint32_t looked_up_register = NFT_REG32_15;  // holds what a map has for a key, which is not known

using Keys = std::vector<LoadedKey>;

const NftNode& key_of_element(const NftNode& element) {
  const NftNode& key = element.word == ":" && !element.parts.empty() ? element.parts[0] : element;
  return key.word == "elem" && !key.parts.empty() ? key.parts[0] : key;
}
bool take_verdict(const NftNode& element, KernelElement& into) {
  if (element.word != ":" || element.parts.size() != 2) return false;
  const NamedVerdict* verdict = verdict_named(element.parts[1].word);
  if (verdict == nullptr) return false;
  into.verdict = verdict->verdict;
  into.chain = element.parts[1].text(0);
  return true;
}

class RuleMaker {
 public:
  RuleMaker(const NftTable& listed, MadeTable& made)
      : listed_(listed),
        made_(made),
        of_iptables_(is_of_iptables(listed.key)),
        frames_(listed.key.family == NFPROTO_ARP || listed.key.family == NFPROTO_BRIDGE) {}

  KernelRule make(const NftRule& rule) && {
    of_iptables_ = of_iptables_ && !rule.of_command;
    if (listed_.lacks_extensions && rule.may_lack_match) words(text_condition, "[matches that nft may not print]");
    for (const NftStatement& each : rule.statements) take(each);
    if (rule.lacks_target) words(text_end, "[a target that nft does not print]");
    const auto bytes = bytes_.all();
    return {++made_.handles, {bytes.begin(), bytes.end()}, rule.comment};
  }

 private:
  // False: not understood, and nothing is made of it.
  using Take = bool (RuleMaker::*)(const NftStatement&);
  struct Known {
    std::string_view name;
    TextAttribute otherwise;  // what it is if only its words are known
    Take take = nullptr;
  };

  void take(const NftStatement& statement) {
    static constexpr Known kinds[] = {
        {"match", text_condition, &RuleMaker::match},
        {"vmap", text_end, &RuleMaker::vmap},
        {"counter", text_effect, &RuleMaker::counter},
        {"mangle", text_end, &RuleMaker::mangle},
        {"redirect", text_end, &RuleMaker::translate},
        {"masquerade", text_end, &RuleMaker::translate},
        {"dnat", text_end, &RuleMaker::translate},
        {"snat", text_end, &RuleMaker::translate},
        {"tproxy", text_end, &RuleMaker::tproxy},
        {"notrack", text_end, &RuleMaker::notrack},
        {"xt", text_end, &RuleMaker::extension},
        {"reject", text_reject, &RuleMaker::reject},
        {"limit", text_condition},
        {"quota", text_condition},
        {"ct count", text_condition},
        {"set", text_condition},
        {"meter", text_condition},
        {"log", text_effect},
        {"last", text_effect},
        {"dup", text_effect},
        {"ct helper", text_effect},
        {"ct timeout", text_effect},
        {"ct expectation", text_effect},
        {"secmark", text_effect},
    };
    if (const NamedVerdict* verdict = verdict_named(statement.word)) {
      bytes_.u32(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
      bytes_.verdict(NFTA_IMMEDIATE_DATA, verdict->verdict, statement.text(0));
      return bytes_.add("immediate");
    }
    const auto* kind = std::ranges::find(kinds, statement.word, &Known::name);
    if (kind == std::end(kinds)) return words(text_end, statement.words);
    const bool is_known = kind->take != nullptr && (!frames_ || kind->otherwise == text_effect);
    if (!is_known || !(this->*kind->take)(statement)) words(kind->otherwise, statement.words);
  }

  void words(TextAttribute kind, std::string_view text) {
    bytes_.text(kind, text);
    bytes_.add(text_expression);
  }

  // Only TCP has resets: nft asks for it by itself (stmt_evaluate_reject).
  bool reject(const NftStatement& statement) {
    const bool resets = statement.words.find("tcp reset") != std::string::npos;
    if (resets && protocol_ != IPPROTO_TCP) require("l4proto", IPPROTO_TCP);
    return false;
  }
  bool notrack(const NftStatement&) {
    bytes_.add("notrack");
    return true;
  }
  bool counter(const NftStatement& statement) {
    if (statement.parts.size() != 2) return false;  // it has a name
    bytes_.u64(NFTA_COUNTER_BYTES, number_in(ValueType::number, statement.parts[1]).value_or(0));
    bytes_.u64(NFTA_COUNTER_PACKETS, number_in(ValueType::number, statement.parts[0]).value_or(0));
    bytes_.add("counter");
    return true;
  }
  bool extension(const NftStatement& statement) {
    const bool is_target = statement.text(0) == "target";
    if (!is_target && statement.text(1) == "comment") return true;  // holds of any packet
    ++made_.extensions;
    words(is_target ? text_target : text_condition,
          fmt::format("-{} {} [options that nft does not print]", is_target ? 'j' : 'm', statement.text(1)));
    return true;
  }

  // ---- Loading and comparing.

  void load(const LoadedKey& key, std::uint32_t slot = 0) {
    const std::uint32_t number = value_register + slot;
    if (key.of == Value::Of::payload) {
      bytes_.u32(NFTA_PAYLOAD_BASE, key.key);
      bytes_.u32(NFTA_PAYLOAD_OFFSET, key.offset);
      bytes_.u32(NFTA_PAYLOAD_LEN, key.size);
      bytes_.u32(NFTA_PAYLOAD_DREG, number);
      bytes_.add("payload");
    } else if (key.of == Value::Of::fib) {
      bytes_.u32(NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
      bytes_.u32(NFTA_FIB_FLAGS, key.key);
      bytes_.u32(NFTA_FIB_DREG, number);
      bytes_.add("fib");
    } else if (key.of == Value::Of::unknown) {
      bytes_.u32(NFTA_NG_DREG, number);
      bytes_.u32(NFTA_NG_MODULUS, key.key);
      bytes_.u32(NFTA_NG_TYPE, key.offset);
      bytes_.add("numgen");
    } else {
      const bool meta = key.of == Value::Of::meta;
      bytes_.u32(meta ? int{NFTA_META_KEY} : int{NFTA_CT_KEY}, key.key);
      bytes_.u32(meta ? int{NFTA_META_DREG} : int{NFTA_CT_DREG}, number);
      constexpr std::string_view directions[] = {{"\0", 1}, {"\1", 1}};
      if (key.of == Value::Of::tuple) bytes_.text(NFTA_CT_DIRECTION, directions[key.offset]);
      bytes_.add(meta ? "meta" : "ct");
    }
    if (!key.swapped) return;
    bytes_.u32(NFTA_BYTEORDER_SREG, number);
    bytes_.u32(NFTA_BYTEORDER_DREG, number);
    bytes_.u32(NFTA_BYTEORDER_OP, NFT_BYTEORDER_HTON);
    bytes_.u32(NFTA_BYTEORDER_LEN, key.size);
    bytes_.u32(NFTA_BYTEORDER_SIZE, key.size);
    bytes_.add("byteorder");
  }
  void load_constant(std::uint32_t slot, std::string_view bytes) {
    bytes_.u32(NFTA_IMMEDIATE_DREG, value_register + slot);
    bytes_.data(NFTA_IMMEDIATE_DATA, bytes);
    bytes_.add("immediate");
  }
  void change_bits(const std::string& mask, const std::string& xor_value) {
    bytes_.u32(NFTA_BITWISE_SREG, value_register);
    bytes_.u32(NFTA_BITWISE_DREG, value_register);
    bytes_.u32(NFTA_BITWISE_LEN, static_cast<std::uint32_t>(mask.size()));
    bytes_.u32(NFTA_BITWISE_OP, NFT_BITWISE_BOOL);
    bytes_.data(NFTA_BITWISE_MASK, mask);
    bytes_.data(NFTA_BITWISE_XOR, xor_value);
    bytes_.add("bitwise");
  }
  void within(const Bounds& bounds, bool negated) {
    bytes_.u32(NFTA_RANGE_SREG, value_register);
    bytes_.u32(NFTA_RANGE_OP, negated ? NFT_RANGE_NEQ : NFT_RANGE_EQ);
    bytes_.data(NFTA_RANGE_FROM_DATA, bounds.first);
    bytes_.data(NFTA_RANGE_TO_DATA, bounds.second);
    bytes_.add("range");
  }
  // meta nfproto ipv4
  void require(const char* key, std::uint32_t number) {
    test(*key_of(NftNode("meta", {NftNode(key)})), nullptr, "==", NftNode(fmt::format("{}", number)));
  }

  // ip daddr asks for IPv4, tcp dport for TCP: nft writes so before it, and does not print it.
  void require_headers(const NftNode& key) {
    const auto* header = std::ranges::find(known_headers, key.text(0), &Header::name);
    if (key.word != "payload" || header == std::end(known_headers)) return;
    const bool has_both = listed_.key.family == NFPROTO_INET || listed_.key.family == NFPROTO_NETDEV;
    if (header->family && has_both) require("nfproto", nfproto(*header->family));
    if (header->protocol == 0 || protocol_ == header->protocol) return;
    require("l4proto", header->protocol);
    protocol_ = header->protocol;
  }

  // What it is made of; nothing if not all is known.
  std::optional<Keys> keys_of(const NftNode& left) {
    const std::span<const NftNode> parts = left.word == "concat" ? std::span(left.parts) : std::span(&left, 1);
    Keys keys;
    std::uint32_t registers = 0;
    bool known = !parts.empty();
    for (const NftNode& each : parts) {
      require_headers(each);
      const auto key = key_of(each);
      known = known && key && (registers += key->registers()) <= 16;
      if (known) keys.push_back(*key);
    }
    return known ? std::optional(std::move(keys)) : std::nullopt;
  }

  // iptables 1.8.9 translates --ctstate DNAT and multiport's --ports without their `!`, and ranges of --ports wrongly.
  static bool loses_negation(const NftNode& left) { return is_key(left, "ct", "status") || left.word == "concat"; }

  bool match(const NftStatement& statement) {
    if (statement.parts.size() != 3) return false;
    const NftNode &left = statement.parts[1], &right = statement.parts[2];
    std::string operation = statement.parts[0].word;
    if (is_extension(left, right, operation)) return true;
    if (of_iptables_ && loses_negation(left)) return ++made_.extensions, false;
    const bool has_mask = left.word == "&" && left.parts.size() == 2;
    const auto keys = keys_of(has_mask ? left.parts[0] : left);
    if (!keys) return false;
    const LoadedKey& key = keys->front();
    const bool is_set = right.word == "set" || right.word.starts_with('@');
    if (operation == "in" && (is_set || has_mask || !has_bits(key.type))) operation = "==";
    const bool negated = operation == "!=";
    if (is_set) return !has_mask && (negated || operation == "==") && look_up(*keys, right, negated, false, statement);
    if (keys->size() > 1 || !test(key, has_mask ? &left.parts[1] : nullptr, operation, right)) return false;
    if (operation == "==" && key.type == ValueType::protocol && key.of != Value::Of::ct && !has_mask)
      protocol_ = number_in(key.type, right);
    return true;
  }

  bool test(LoadedKey key, const NftNode* mask, std::string_view operation, const NftNode& value) {
    const bool is_order = operation.starts_with('<') || operation.starts_with('>');
    const bool any = operation == "in", none = operation == "!";  // of the bits
    key.swapped = mask == nullptr && ((is_order && key.host_order && key.size > 1) || needs_swap(key, value));
    const auto bounds = bounds_of(key, value);
    const auto mask_bounds = mask != nullptr ? bounds_of(key, *mask) : any || none ? bounds : std::nullopt;
    const bool is_known = bounds && (mask == nullptr || mask_bounds) &&
                          (any || none || is_order || operation == "==" || operation == "!=");
    if (!is_known) return false;
    const std::string zero(key.size, '\0');
    load(key);
    if (mask_bounds) change_bits(mask_bounds->first, zero);
    if (any || none) {
      within({zero, zero}, any);
    } else if (!is_order) {
      within(*bounds, operation == "!=");
    } else {
      const bool less = operation[0] == '<', equal = operation.size() > 1;
      bytes_.u32(NFTA_CMP_SREG, value_register);
      bytes_.u32(NFTA_CMP_OP, less ? equal ? NFT_CMP_LTE : NFT_CMP_LT : equal ? NFT_CMP_GTE : NFT_CMP_GT);
      bytes_.data(NFTA_CMP_DATA, bounds->first);
      bytes_.add("cmp");
    }
    return true;
  }

  // ---- Sets and maps.

  // tcp dport @ports, ip daddr { 10.0.0.1, 10.0.0.2 }; `verdicts`: vmap.
  bool look_up(Keys keys, const NftNode& in, bool negated, bool verdicts, const NftStatement& statement) {
    const bool is_named = in.word.starts_with('@');
    std::string name = is_named ? in.word.substr(1) : fmt::format("__set{}", made_.table.sets.size());
    const NftNode* elements = &in;
    KernelSet set;
    if (is_named) {
      const auto found = std::ranges::find(listed_.sets, name, &NftSet::name);
      if (found == listed_.sets.end() || !found->elements) return false;
      elements = &*found->elements;
      if (found->changes) set.opaque = "packets and time change what it holds";
    }
    if (set.opaque.empty() && !fill(set, *elements, keys, verdicts)) return false;
    set.verdicts = verdicts;
    // As the kernel's are read; iptables keeps the order of its own lists.
    if (!of_iptables_ || is_named) {
      std::ranges::sort(set.elements, [](const KernelElement& a, const KernelElement& b) { return a.first < b.first; });
    }
    for (const LoadedKey& key : keys) {
      load(key, set.key_size / 4);
      set.key_size += keys.size() == 1 ? key.size : 4 * key.registers();
    }
    bytes_.text(NFTA_LOOKUP_SET, name);
    bytes_.u32(NFTA_LOOKUP_SREG, keys.empty() ? looked_up_register : value_register);
    bytes_.u32(NFTA_LOOKUP_FLAGS, negated ? std::uint32_t{NFT_LOOKUP_F_INV} : 0);
    if (verdicts) bytes_.u32(NFTA_LOOKUP_DREG, NFT_REG_VERDICT);
    if (!verdicts && statement.word != "match") bytes_.u32(NFTA_LOOKUP_DREG, looked_up_register);
    bytes_.add("lookup");
    if (!is_named) ++made_.table.uses;
    made_.table.sets[std::move(name)] = std::move(set);
    return true;
  }

  static const NftNode* part(const NftNode& value, std::size_t i, std::size_t of) {
    if (of == 1) return &value;
    return value.word == "concat" && value.parts.size() == of ? &value.parts[i] : nullptr;
  }

  static bool fill(KernelSet& set, const NftNode& elements, Keys& keys, bool verdicts) {
    for (const NftNode& each : elements.parts) {
      if (each.word == "elem" || (each.word == ":" && each.text(0) == "elem")) set.opaque = "its elements expire";
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const NftNode* value = part(key_of_element(each), i, keys.size());
        if (value != nullptr && needs_swap(keys[i], *value)) keys[i].swapped = true;
      }
    }
    for (const NftNode& each : elements.parts) {
      KernelElement element;
      const NftNode& value = key_of_element(each);
      const bool any_other = value.word == "*" && value.parts.empty();
      for (std::size_t i = 0; i < keys.size() && !any_other; ++i) {
        const NftNode* of_key = part(value, i, keys.size());
        auto bounds = of_key != nullptr ? bounds_of(keys[i], *of_key) : std::nullopt;
        if (!bounds) return false;
        if (keys.size() > 1) {
          bounds->first.resize(std::size_t{4} * keys[i].registers());
          bounds->second.resize(bounds->first.size());
        }
        element.first += bounds->first;
        element.last += bounds->second;
      }
      if (verdicts && !take_verdict(each, element)) return false;
      if (any_other) {
        set.any_other = std::move(element);
      } else {
        set.elements.push_back(std::move(element));
      }
    }
    return true;
  }

  // Where the key is not known, each of its elements may be meant.
  bool vmap(const NftStatement& statement) {
    if (statement.parts.size() != 2) return false;
    const auto keys = keys_of(statement.parts[0]);
    if (!keys) words(text_condition, statement.words);
    return look_up(keys.value_or(Keys()), statement.parts[1], false, true, statement);
  }

  // Looks up a value that is unknown to the rest of the rule.
  bool look_up_value(const NftNode& value, const NftStatement& statement) {
    if (value.word != "map" || value.parts.size() != 2) return false;
    const auto keys = keys_of(value.parts[0]);
    // Leaves unknown what an unknown key finds, of which nft's words say more.
    const bool is_known =
        keys && std::ranges::none_of(*keys, [](const LoadedKey& key) { return key.of == Value::Of::unknown; });
    return is_known && look_up(*keys, value.parts[1], false, false, statement);
  }

  // ---- What changes packets.

  // A mark changed to (mark & mask) ^ xor_value.
  struct ChangedMark {
    const NftNode* key = nullptr;  // nullptr: the value is xor_value
    std::uint32_t mask = 0, xor_value = 0;
  };
  static std::optional<ChangedMark> changed_mark(const NftNode& value) {
    if (is_key(value, "meta", "mark") || is_key(value, "ct", "mark")) return ChangedMark{&value, all_bits, 0};
    const auto number = number_in(ValueType::number, value);
    if (number) return ChangedMark{nullptr, 0, static_cast<std::uint32_t>(*number)};
    if (value.parts.size() != 2 || (value.word != "&" && value.word != "|" && value.word != "^")) return {};
    auto left = changed_mark(value.parts[0]);
    const auto right = changed_mark(value.parts[1]);
    if (!left || !right || right->key != nullptr) return {};
    const std::uint32_t with = right->xor_value;
    if (value.word != "^") left->mask &= value.word == "&" ? with : ~with;
    left->xor_value = value.word == "&"   ? left->xor_value & with
                      : value.word == "|" ? left->xor_value | with
                                          : left->xor_value ^ with;
    return left;
  }
  // iptables has its mask last, whatever nft would take first: ct mark set ct mark xor 0x5 and 0xfffffff8
  static NftNode with_mask_first(const NftNode& value) {
    const bool is_last =
        value.word == "^" && value.parts.size() == 2 && value.parts[1].word == "&" && value.parts[1].parts.size() == 2;
    if (!is_last) return value;
    return NftNode("^", {NftNode("&", {value.parts[0], value.parts[1].parts[1]}), value.parts[1].parts[0]});
  }

  // meta mark set 1; ct mark set meta mark; ct zone set 5
  bool mangle(const NftStatement& statement) {
    if (statement.parts.size() != 2) return false;
    const NftNode& to = statement.parts[0];
    for (const std::string_view without_effect : {"priority", "nftrace", "secmark"}) {
      if (is_key(to, "meta", without_effect)) return words(text_effect, statement.words), true;
    }
    for (const std::string_view without_effect : {"event", "label", "secmark"}) {
      if (is_key(to, "ct", without_effect)) return words(text_effect, statement.words), true;
    }
    const auto key = to.word != "payload" ? key_of(to) : std::nullopt;
    if (!key) return false;
    const NftNode value = of_iptables_ ? with_mask_first(statement.parts[1]) : statement.parts[1];
    const auto mark = changed_mark(value);
    const bool is_constant = mark && mark->key == nullptr;
    const auto bytes = is_constant ? number_bytes(*key, mark->xor_value) : std::nullopt;
    std::uint32_t source = value_register;
    if (bytes) {
      load_constant(0, *bytes);
    } else if (mark && !is_constant && is_key(to, to.word, "mark")) {
      load(*key_of(*mark->key));
      if (mark->mask != all_bits || mark->xor_value != 0)
        change_bits(*number_bytes(*key, mark->mask), *number_bytes(*key, mark->xor_value));
    } else if (look_up_value(value, statement)) {
      source = looked_up_register;
    } else {
      return false;
    }
    const bool meta = key->of == Value::Of::meta;
    bytes_.u32(meta ? int{NFTA_META_KEY} : int{NFTA_CT_KEY}, key->key);
    bytes_.u32(meta ? int{NFTA_META_SREG} : int{NFTA_CT_SREG}, source);
    bytes_.add(meta ? "meta" : "ct");
    return true;
  }

  // redirect to :15001; dnat ip to 10.0.0.1:80 random; masquerade
  bool translate(const NftStatement& statement) {
    if (statement.parts.empty()) return false;
    const NatStatement& nat = *std::ranges::find(known_nat, statement.word, &NatStatement::name);
    const bool has_address = nat.expression == "nat";
    NftNode to = statement.parts[0];
    if (!has_address && read_number<std::uint16_t>(to.word)) to.word.insert(0, ":");  // redirect to 15001
    std::optional<AddressRange> addresses;
    std::optional<PortRange> ports;
    const bool looks_up = look_up_value(to, statement);
    if (to.word.find('/') != std::string::npos) addresses = AddressRange::parse(to.word);
    const bool is_plain = addresses || (to.parts.empty() &&
                                        (to.word.empty() ? !has_address : read_destination(to.word, addresses, ports)));
    if (!looks_up && !is_plain) return false;
    std::string of_iptables = fmt::format("-j {}", nat.of_iptables);
    if (!to.word.empty()) of_iptables += fmt::format(" {} {}", nat.option, to.word.substr(has_address ? 0 : 1));
    std::uint32_t flags = (addresses ? NF_NAT_RANGE_MAP_IPS : 0U) | (ports ? NF_NAT_RANGE_PROTO_SPECIFIED : 0U);
    for (std::size_t i = 1; i < statement.parts.size(); ++i) {
      const auto* flag = std::ranges::find(known_nat_flags, statement.text(i), &NatFlag::name);
      if (flag == std::end(known_nat_flags)) return false;
      flags |= flag->bit;
      of_iptables += fmt::format(" {}", flag->of_iptables);
    }
    if (of_iptables_ && !looks_up) return words(text_target, of_iptables), true;
    if (addresses) {
      load_constant(0, bytes_of(bytes_of(addresses->first)));
      load_constant(4, bytes_of(bytes_of(addresses->last)));
    }
    if (ports) {
      load_constant(8, bytes_of(Data::network(ports->first)));
      load_constant(9, bytes_of(Data::network(ports->last)));
      bytes_.u32(nat.first_port, NFT_REG32_08);
      bytes_.u32(nat.last_port, NFT_REG32_09);
    }
    if (looks_up && !has_address) bytes_.u32(nat.first_port, looked_up_register);
    if (has_address) {
      const bool ipv6 = addresses && addresses->family() == Family::ipv6;
      bytes_.u32(NFTA_NAT_TYPE, statement.word == "snat" ? NFT_NAT_SNAT : NFT_NAT_DNAT);
      bytes_.u32(NFTA_NAT_FAMILY, ipv6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
      if (addresses || looks_up) bytes_.u32(NFTA_NAT_REG_ADDR_MIN, looks_up ? looked_up_register : value_register);
      if (addresses) bytes_.u32(NFTA_NAT_REG_ADDR_MAX, NFT_REG32_04);
    }
    bytes_.u32(nat.flags, flags);
    bytes_.add(nat.expression);
    return true;
  }

  // tproxy to :15006
  bool tproxy(const NftStatement& statement) {
    std::optional<AddressRange> addresses;
    std::optional<PortRange> ports;
    if (!read_destination(statement.text(0), addresses, ports) || !ports) return false;
    load_constant(8, bytes_of(Data::network(ports->first)));
    if (addresses) load_constant(0, bytes_of(bytes_of(addresses->first)));
    bytes_.u32(NFTA_TPROXY_REG_PORT, NFT_REG32_08);
    if (addresses) {  // it is not followed to another one
      bytes_.u32(NFTA_TPROXY_FAMILY, addresses->family() == Family::ipv6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
      bytes_.u32(NFTA_TPROXY_REG_ADDR, value_register);
    }
    bytes_.add("tproxy");
    return true;
  }

  // ---- What stands for an extension of iptables: in its tables, and where nft prints more than the kernel has.

  // skuid != 1337, which in a table of iptables holds without a socket, too
  static std::optional<Match> owner(const NftNode& left, const NftNode& right, bool negated) {
    const bool uid = is_key(left, "meta", "skuid");
    if (left.text(1) != "bare" || (!uid && !is_key(left, "meta", "skgid"))) return {};
    const auto ids = numbers_in(ValueType::number, right);
    if (!ids || ids->second > all_bits || ids->first > ids->second) return {};
    const IdRange range{static_cast<std::uint32_t>(ids->first), static_cast<std::uint32_t>(ids->second)};
    return OwnerMatch{uid ? OwnerKind::uid : OwnerKind::gid, {range}, negated};
  }
  // ct state related,established
  static std::optional<Match> state(const NftNode& left, const NftNode& right, bool negated) {
    const auto bits = is_key(left, "ct", "state") ? number_in(ValueType::state, right) : std::nullopt;
    if (!bits) return {};
    constexpr std::uint64_t of_nft[] = {1, 2, 4, 8, 64};  // in the order of ConntrackStateMatch::State
    ConntrackStateMatch match{0, negated};
    for (std::size_t i = 0; i < std::size(of_nft); ++i) {
      if ((*bits & of_nft[i]) != 0) match.states = static_cast<std::uint8_t>(match.states | 1U << i);
    }
    return match;
  }
  // socket cgroupv2 level 2 "kubepods/pod1": the kernel has its number alone
  static std::optional<Match> cgroup(const NftNode& left, const NftNode& right, bool negated) {
    if (!is_key(left, "socket", "cgroupv2") || right.word.empty() || right.word.size() > 500) return {};
    return CgroupMatch{right.word, 0, negated};
  }
  bool is_extension(const NftNode& left, const NftNode& right, std::string_view operation) {
    std::optional<Match> match = cgroup(left, right, operation == "!=");
    if (!match && of_iptables_) match = owner(left, right, operation == "!=");
    if (!match && of_iptables_ && (operation == "in" || operation == "!")) match = state(left, right, operation == "!");
    if (!match) return false;
    std::vector<xt::Extension> extensions;
    std::visit([&](const auto& each) { each.to_xt({}, extensions); }, *match);
    const xt::Extension& made = extensions.front();
    bytes_.text(NFTA_MATCH_NAME, made.name);
    bytes_.u32(NFTA_MATCH_REV, made.revision);
    bytes_.text(NFTA_MATCH_INFO, {reinterpret_cast<const char*>(made.data.data()), made.data.size()});
    bytes_.add("match");
    return true;
  }

  const NftTable& listed_;
  MadeTable& made_;
  bool of_iptables_;
  bool frames_;
  ExpressionBytes bytes_;
  std::optional<std::uint64_t> protocol_;  // that the rule is about, if it names one
};

// ---- Chains.

KernelChain chain_of(const NftTable& listed, const NftChain& chain, MadeTable& made) {
  KernelChain result;
  result.name = chain.name;
  result.devices = chain.devices;
  if (!chain.hook.empty()) {
    const auto hook = hook_called(chain.hook);
    const auto type = type_named(chain.type);
    if (!hook || !type)
      throw Error(
          ExitCode::usage,
          fmt::format("{}: the chain {} is of type {} at the hook {}: expected filter, nat or route, at prerouting, "
                      "input, forward, output, postrouting, ingress or egress",
                      listed.source, excerpt(chain.name), excerpt(chain.type), excerpt(chain.hook)));
    result.hook = HookPoint{*hook, chain.priority, *type, {}};
    if (chain.drops) result.policy = Verdict::drop;
  }
  for (const NftRule& rule : chain.rules) result.rules.push_back(RuleMaker(listed, made).make(rule));
  return result;
}

void add_jumps(const std::string& map, const NftNode& elements, std::vector<MapJump>& jumps) {
  for (const NftNode& each : elements.parts) {
    KernelElement element;
    if (!take_verdict(each, element) || element.chain.empty()) continue;
    MapJump jump{map, element.chain};
    if (std::ranges::find(jumps, jump) == jumps.end()) jumps.push_back(std::move(jump));
  }
}

}  // namespace

MadeTable kernel_table(const NftTable& listed) {
  MadeTable made;
  made.table.key = listed.key;
  made.table.flags = listed.dormant ? std::uint32_t{NFT_TABLE_F_DORMANT} : 0;
  for (const NftChain& chain : listed.chains) made.table.chains.push_back(chain_of(listed, chain, made));
  made.table.uses += static_cast<std::uint32_t>(listed.chains.size() + listed.sets.size() + listed.other_objects);
  for (const NftSet& set : listed.sets) {
    if (set.elements) add_jumps(set.name, *set.elements, made.table.jumps);
  }
  return made;
}

}  // namespace sidetrack
