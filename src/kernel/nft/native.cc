// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/native.h"

#include <fmt/format.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_conntrack_tuple_common.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <set>

#include "kernel/nft/fields.h"
#include "model/error.h"
#include "model/fold.h"
#include "model/iptables.h"
#include "model/reach.h"

namespace sidetrack::nft {
namespace {

// ---- Sets.

// Returns the name of the set that holds a rule's values.
std::string set_name(const Rule& rule, const char* name, const std::string& suffix) {
  if (name == nullptr) return chain_name(rule.table, rule.chain) + suffix;
  for (const Match& match : rule.matches) {
    const auto* owner = std::get_if<OwnerMatch>(&match);
    if (owner != nullptr) return fmt::format("{}-{}s{}", name, owner->kind == OwnerKind::uid ? "uid" : "gid", suffix);
  }
  return name + suffix;
}

class Sets {
 public:
  // The set of these values: "{ 15020, 15090 }" or "@excluded-ranges-ipv4".
  std::pair<std::string, Lookup> holding(Set set, bool negated, const Rule& rule, const char* name,
                                         const std::string& suffix) {
    set.anonymous = set.values.size() <= longest_in_a_rule;
    if (!set.anonymous) {
      const auto same = std::ranges::find_if(
          all_, [&](const Set& other) { return other.type.number == set.type.number && other.values == set.values; });
      if (same != all_.end()) return {"@" + same->name, {same->name, negated, same->id}};
    }
    set.id = static_cast<std::uint32_t>(all_.size() + 1);
    set.name = set.anonymous ? "__set%d" : unused(set_name(rule, name, suffix));
    std::string text = set.anonymous ? fmt::format("{{ {} }}", fmt::join(set.texts(), ", ")) : "@" + set.name;
    Lookup lookup{set.name, negated, set.id};
    all_.push_back(std::move(set));
    return {std::move(text), std::move(lookup)};
  }
  [[nodiscard]] std::vector<Set> take() { return std::move(all_); }

 private:
  std::string unused(const std::string& name) {
    std::string candidate = name;
    for (int n = 2; !names_.insert(candidate).second; ++n) candidate = fmt::format("{}-{}", name, n);
    return candidate;
  }
  std::vector<Set> all_;
  std::set<std::string> names_;
};

// ---- One rule.

const char* not_equal(bool negated) { return negated ? "!= " : ""; }

// A value or a range of values that is compared: its ends in the byte order of the comparison.
struct EncodedRange {
  Data first;
  Data last;
};

Compare equal(bool negated, const Data& value) { return {std::uint32_t{negated ? NFT_CMP_NEQ : NFT_CMP_EQ}, value}; }

EncodedRange encoded(const AddressRange& range) { return {Data(range.first.view()), Data(range.last.view())}; }

EncodedRange encoded(const PortRange& range) { return {Data::network(range.first), Data::network(range.last)}; }

// Ids are compared in host order, but for ranges: to order them byte by byte takes network order.
EncodedRange encoded(const IdRange& range, bool network) {
  const auto data = [network](std::uint32_t id) { return network ? Data::network(id) : Data::host(id); };
  return {data(range.first), data(range.last)};
}

// 10.0.0.0/8, 10.0.0.1
std::string text_of(const AddressRange& range) { return range.first == range.last ? range.first.text() : range.text(); }

// 80, 1000-2000
template <typename Number>
std::string text_of(const Range<Number>& range) {
  return text(range);
}

// Texts that are made when they are asked for: what is sent to the kernel needs none.
template <typename Item>
std::function<std::vector<std::string>()> texts_of(const std::vector<Item>& items) {
  return [&items] {
    std::vector<std::string> texts;
    for (const Item& item : items) texts.push_back(text_of(item));
    return texts;
  };
}

class RuleTranslation {
 public:
  RuleTranslation(const Rule& rule, RuleNotes notes, Families arriving, Sets& sets)
      : rule_(rule), notes_(std::move(notes)), sets_(sets) {
    for (const Match& match : rule.matches) {
      has_address_ = has_address_ || std::holds_alternative<AddressMatch>(match);
      has_port_ = has_port_ || std::holds_alternative<PortMatch>(match);
      if (const auto* protocol = std::get_if<ProtocolMatch>(&match); protocol != nullptr && !protocol->negated) {
        protocol_ = protocol->protocol;
      }
    }
    if (rule.families != arriving && rule.families != Families::both() && !has_address_) {
      only_family_ = rule.families.list().front();
      // meta nfproto ipv4
      add(fmt::format("meta nfproto {}", name(*only_family_)), {});
      require_family(*only_family_, statements_.back().expressions);
    }
  }

  std::vector<NativeRule> translate() && {
    for (const Match& match : rule_.matches) std::visit([this](const auto& m) { this->match(m); }, match);
    const std::vector<Statement> matched = statements_;
    add("counter", {Count{0, 0}});
    std::visit([this](const auto& t) { this->target(t); }, rule_.target);

    std::vector<NativeRule> rules;
    rules.push_back({std::move(statements_), comment(notes_.flag, notes_.sentence), &rule_});
    if (std::holds_alternative<Tproxy>(rule_.target)) {
      // The xtables target drops what no transparent socket takes; the native statement ends the rule and lets it pass.
      NativeRule drop{matched, comment(notes_.flag, "dropped if no transparent socket takes it"), &rule_};
      drop.statements.push_back({"counter", {Count{0, 0}}});
      drop.statements.push_back({"drop", {Decide{NF_DROP, {}}}});
      rules.push_back(std::move(drop));
    }
    return rules;
  }

 private:
  void add(std::string text, std::vector<Expression> expressions) {
    statements_.push_back({std::move(text), std::move(expressions)});
  }

  // What comes before a look into the network header of an inet table: meta load nfproto, cmp eq ipv4
  void require_family(Family family, std::vector<Expression>& expressions) {
    if (std::exchange(family_required_, true)) return;
    expressions.emplace_back(MetaLoad{NFT_META_NFPROTO});
    expressions.emplace_back(equal(false, Data::host(nfproto(family))));
  }

  // What comes before a look into the transport header: meta load l4proto, cmp eq tcp
  void require_protocol(std::vector<Expression>& expressions) {
    if (!protocol_ || (*protocol_ != Protocol::tcp && *protocol_ != Protocol::udp)) {
      throw Error(ExitCode::usage, "a match of ports without -p tcp or -p udp: " + iptables_words(rule_));
    }
    if (std::exchange(protocol_required_, true)) return;
    expressions.emplace_back(MetaLoad{NFT_META_L4PROTO});
    expressions.emplace_back(equal(false, Data::host(static_cast<std::uint8_t>(*protocol_))));
  }

  // iifname "eth0", oifname != "eth*": a name that may go on is compared as far as it is given
  void match(const InterfaceMatch& m) {
    const bool wildcard = m.name.ends_with('+');
    const std::string_view given = std::string_view(m.name).substr(0, m.name.size() - (wildcard ? 1 : 0));
    if (given.empty()) throw Error(ExitCode::usage, "no packet can match: " + iptables_words(rule_));
    Data data = Data::text(given);
    if (!wildcard) data.size = 16;  // IFNAMSIZ
    const bool in = m.direction == InterfaceDirection::in;
    add(fmt::format("{} {}\"{}{}\"", in ? "iifname" : "oifname", not_equal(m.negated), given, wildcard ? "*" : ""),
        {MetaLoad{in ? std::uint32_t{NFT_META_IIFNAME} : std::uint32_t{NFT_META_OIFNAME}}, equal(m.negated, data)});
  }

  // ip daddr 10.0.0.0/8, ip6 saddr != fd00::1, ip daddr { 10.0.0.0/8, 192.168.0.0/16 }
  void match(const AddressMatch& m) {
    const Family family = m.ranges.front().family();
    const bool ipv4 = family == Family::ipv4;
    const Field& field = address_field(family, m.end);
    std::vector<Expression> expressions;
    require_family(family, expressions);
    std::string text;
    if (m.ranges.size() == 1) {
      text = text_of(m.ranges.front());
      compare_address(m.ranges.front(), field, m.negated, expressions);
    } else {
      Set set(ipv4 ? ipv4_addr : ipv6_addr);
      for (const AddressRange& range : m.ranges) take(set, encoded(range));
      set.texts = texts_of(m.ranges);
      expressions.emplace_back(field.load());
      text = look_up(std::move(set), m.negated, ipv4 ? "-ipv4" : "-ipv6", expressions);
    }
    add(fmt::format("{} {}{}", field.text, not_equal(m.negated), text), std::move(expressions));
  }

  // meta l4proto tcp; a match of ports says it by itself
  void match(const ProtocolMatch& m) {
    if (has_port_ && !m.negated) return;
    add(fmt::format("meta l4proto {}{}", not_equal(m.negated), name(m.protocol)),
        {MetaLoad{NFT_META_L4PROTO}, equal(m.negated, Data::host(static_cast<std::uint8_t>(m.protocol)))});
  }

  // tcp dport 80, udp sport != 1000-2000, tcp dport { 15020, 15090 }
  void match(const PortMatch& m) {
    std::vector<Expression> expressions;
    require_protocol(expressions);
    const Field& field = port_field(m.end);
    expressions.emplace_back(field.load());
    std::string text;
    if (m.ports.size() == 1) {
      text = text_of(m.ports.front());
      compare(encoded(m.ports.front()), m.negated, expressions);
    } else {
      Set set(inet_service);
      for (const PortRange& range : m.ports) take(set, encoded(range));
      set.texts = texts_of(m.ports);
      text = look_up(std::move(set), m.negated, m.end == End::source ? "-source" : "", expressions);
    }
    add(fmt::format("{} {} {}{}", name(*protocol_), field.text, not_equal(m.negated), text), std::move(expressions));
  }

  // meta skuid 1337, meta skgid != { 1000, 3000 }
  //
  // A packet without a socket (sent by the kernel itself) has no owner: `-m owner ! --uid-owner 1337` matches it,
  // `meta skuid != 1337` does not. nf_tables has no expression for it; iptables-translate makes the same of the rule.
  void match(const OwnerMatch& m) {
    const bool uid = m.kind == OwnerKind::uid;
    const bool ranges = m.ids.size() > longest_in_a_rule ||
                        std::ranges::any_of(m.ids, [](const IdRange& range) { return range.first != range.last; });
    std::vector<Expression> expressions{MetaLoad{uid ? std::uint32_t{NFT_META_SKUID} : std::uint32_t{NFT_META_SKGID}}};
    if (ranges) expressions.emplace_back(ToNetworkOrder{});
    std::string text;
    if (m.ids.size() == 1) {
      text = text_of(m.ids.front());
      compare(encoded(m.ids.front(), ranges), m.negated, expressions);
    } else {
      Set set(uid ? uid_type : gid_type);
      for (const IdRange& range : m.ids) take(set, encoded(range, ranges));
      set.texts = texts_of(m.ids);
      text = look_up(std::move(set), m.negated, "", expressions);
    }
    add(fmt::format("meta {} {}{}", uid ? "skuid" : "skgid", not_equal(m.negated), text), std::move(expressions));
  }

  // socket cgroupv2 level 2 "kubepods/pod1"
  void match(const CgroupMatch& m) {
    const auto level = static_cast<std::uint32_t>(std::ranges::count(m.path, '/') + 1);
    add(fmt::format("socket cgroupv2 level {} {}\"{}\"", level, not_equal(m.negated), m.path),
        {CgroupLoad{level}, equal(m.negated, Data::host(m.id))});
  }

  // ct state established,related; ct state ! invalid
  void match(const ConntrackStateMatch& m) {
    std::uint32_t bits = 0;
    std::vector<std::string_view> names;
    for (const ConntrackState& state : conntrack_states) {
      if ((m.states & state.model) == 0) continue;
      bits |= state.kernel;
      names.push_back(state.name);
    }
    add(fmt::format("ct state {}{}", m.negated ? "! " : "", fmt::join(names, ",")),
        {CtLoad{NFT_CT_STATE}, Bitwise{Data::host(bits), Data::host(std::uint32_t{0})},
         equal(!m.negated, Data::host(std::uint32_t{0}))});
  }

  // ct direction reply
  void match(const ConntrackDirectionMatch& m) {
    const auto direction = static_cast<std::uint8_t>(m.reply ? IP_CT_DIR_REPLY : IP_CT_DIR_ORIGINAL);
    add(fmt::format("ct direction {}", m.reply ? "reply" : "original"),
        {CtLoad{NFT_CT_DIRECTION}, equal(false, Data::host(direction))});
  }

  // meta mark 0x00000539, meta mark & 0x000000ff != 0x00000039
  void match(const MarkMatch& m) { match_mark("meta mark", MetaLoad{NFT_META_MARK}, m); }
  // ct mark 0x00000539
  void match(const ConnmarkMatch& m) { match_mark("ct mark", CtLoad{NFT_CT_MARK}, m); }
  void match_mark(std::string_view field, Expression load, const auto& m) {
    const bool masked = m.mask != 0xffffffff;
    std::vector<Expression> expressions{std::move(load)};
    if (masked) expressions.emplace_back(Bitwise{Data::host(m.mask), Data::host(std::uint32_t{0})});
    expressions.emplace_back(equal(m.negated, Data::host(m.value)));
    const char* operation = m.negated ? "!= " : masked ? "== " : "";
    add(fmt::format("{}{} {}{:#010x}", field, masked ? fmt::format(" & {:#010x}", m.mask) : "", operation, m.value),
        std::move(expressions));
  }

  // meta skuid 0-4294967295: a packet that no socket sends has no uid, and nothing holds about it
  void match(const SocketMatch& m) {
    if (m.negated) unknown();
    match(OwnerMatch{OwnerKind::uid, {every_id}, false});
  }

  // Only read, or only of iptables.
  [[noreturn]] void match(const SetMatch&) { unknown(); }
  [[noreturn]] void match(const CommentMatch&) { unknown(); }
  [[noreturn]] void match(const UnknownMatch&) { unknown(); }

  void target(Verdict verdict) {
    switch (verdict) {
      case Verdict::accept:
        return add("accept", {Decide{NF_ACCEPT, {}}});
      case Verdict::drop:
        return add("drop", {Decide{NF_DROP, {}}});
      case Verdict::return_:
        return add("return", {Decide{NFT_RETURN, {}}});
    }
  }
  void target(const Jump& t) {
    const std::string chain = chain_name(rule_.table, t.chain);
    add((t.is_goto ? "goto " : "jump ") + chain, {Decide{t.is_goto ? NFT_GOTO : NFT_JUMP, chain}});
  }
  // redirect to :15001
  void target(const Redirect& t) {
    add(fmt::format("redirect to :{}", t.port), {Load{Data::network(t.port)}, RedirectTo{}});
  }
  // tproxy ip to :15006 meta mark set 0x00000539 accept: where no transparent socket is found, the rule ends before the
  // mark
  void target(const Tproxy& t) {
    const bool one = has_address_ || only_family_.has_value();
    const Family family = rule_.families.list().front();
    const char* words = !one ? "" : family == Family::ipv4 ? "ip " : "ip6 ";
    add(fmt::format("tproxy {}to :{}", words, t.port),
        {Load{Data::network(t.port)}, TproxyTo{one ? nfproto(family) : std::uint32_t{NFPROTO_UNSPEC}}});
    if (t.mask != 0 || t.mark != 0) target(SetMark{t.mark, t.mask});
    target(Verdict::accept);
  }
  // meta mark set 0x00000539
  void target(const SetMark& t) {
    if (t.mask == 0xffffffff) {
      return add(fmt::format("meta mark set {:#010x}", t.mark), {Load{Data::host(t.mark)}, MetaStore{NFT_META_MARK}});
    }
    add(fmt::format("meta mark set meta mark & {:#010x} ^ {:#010x}", ~t.mask, t.mark),
        {MetaLoad{NFT_META_MARK}, Bitwise{Data::host(~t.mask), Data::host(t.mark)}, MetaStore{NFT_META_MARK}});
  }
  void target(Connmark t) {
    if (t == Connmark::save) {
      add("ct mark set meta mark", {MetaLoad{NFT_META_MARK}, CtStore{NFT_CT_MARK}});
    } else {
      add("meta mark set ct mark", {CtLoad{NFT_CT_MARK}, MetaStore{NFT_META_MARK}});
    }
  }
  // ct mark set ct mark & 0xfffff000 ^ 0x00000111
  void target(const SetConnmark& t) {
    if (t.mask == 0xffffffff) {
      return add(fmt::format("ct mark set {:#010x}", t.mark), {Load{Data::host(t.mark)}, CtStore{NFT_CT_MARK}});
    }
    add(fmt::format("ct mark set ct mark & {:#010x} ^ {:#010x}", ~t.mask, t.mark),
        {CtLoad{NFT_CT_MARK}, Bitwise{Data::host(~t.mask), Data::host(t.mark)}, CtStore{NFT_CT_MARK}});
  }
  // ct zone set 1
  void target(const CtZone& t) {
    add(fmt::format("ct zone set {}", t.zone), {Load{Data::host(t.zone)}, CtStore{NFT_CT_ZONE}});
  }
  // snat ip to 169.254.7.127
  void target(const Nat& t) {
    if (!t.addresses || t != source_nat(t.addresses->first)) unknown();
    const Address& to = t.addresses->first;
    add(fmt::format("snat {} to {}", to.family == Family::ipv4 ? "ip" : "ip6", to.text()),
        {Load{Data(to.view())}, SnatTo{nfproto(to.family)}});
  }
  void target(const NonTerminating& t) {
    if (!t.words.empty()) unknown();
  }
  // Only read.
  [[noreturn]] void target(const Notrack&) { unknown(); }
  [[noreturn]] void target(const Reject&) { unknown(); }
  [[noreturn]] void target(const UnknownTarget&) { unknown(); }

  [[noreturn]] void unknown() const {
    throw Error(ExitCode::failed, "a rule that is not understood cannot be programmed: " + iptables_words(rule_));
  }

  // ---- Comparing what register 1 holds.

  static void take(Set& set, const EncodedRange& range) {
    set.interval = set.interval || range.first != range.last;
    set.values.emplace_back(range.first, range.last);
  }

  // A named set is a tree of intervals, also of single values. Of those alone the kernel would make a hash table, which
  // it enlarges in the background while we read back: a dump then lacks some and shows others twice. Ports it would
  // keep in a bitmap with a list that it walks for each new one: 32,768 take five seconds (Linux 6.18).
  std::string look_up(Set set, bool negated, const std::string& suffix, std::vector<Expression>& expressions) {
    set.interval = set.interval || set.values.size() > longest_in_a_rule;
    auto [text, lookup] = sets_.holding(std::move(set), negated, rule_, notes_.set, suffix);
    expressions.emplace_back(std::move(lookup));
    return text;
  }

  // cmp eq A; or cmp gte A, cmp lte B; or range neq A B
  static void compare(const EncodedRange& value, bool negated, std::vector<Expression>& expressions) {
    if (value.first == value.last) {
      expressions.emplace_back(equal(negated, value.first));
    } else if (negated) {
      expressions.emplace_back(CompareRange{true, value.first, value.last});
    } else {
      expressions.emplace_back(Compare{NFT_CMP_GTE, value.first});
      expressions.emplace_back(Compare{NFT_CMP_LTE, value.last});
    }
  }

  static void compare_address(const AddressRange& range, const Field& field, bool negated,
                              std::vector<Expression>& expressions) {
    if (range.prefix_length()) {
      compare_prefix(range, field, negated, expressions);
    } else {
      expressions.emplace_back(field.load());
      compare(encoded(range), negated, expressions);
    }
  }

  const Rule& rule_;
  RuleNotes notes_;
  Sets& sets_;
  std::vector<Statement> statements_;
  std::optional<Protocol> protocol_;
  std::optional<Family> only_family_;
  bool has_address_ = false;
  bool has_port_ = false;
  bool family_required_ = false;
  bool protocol_required_ = false;
};

}  // namespace

std::string chain_name(Table table, const std::string& chain) { return fmt::format("{}-{}", name(table), chain); }

NativeTable native(const Ruleset& ruleset, const MeshRules& mesh) {
  NativeTable table;
  Sets sets;
  const Reach reach(ruleset);
  for (const Table each : all_tables) {
    for (const Chain& chain : chains(ruleset, each, Families::both())) {
      table.chains.push_back({chain_name(each, chain.name), builtin_hook(each, chain.name), {}});
      NativeChain& made = table.chains.back();
      for (const Rule* rule : chain.rules) {
        for (NativeRule& part : RuleTranslation(*rule, mesh.notes(*rule), reach(each, chain.name), sets).translate()) {
          made.rules.push_back(std::move(part));
        }
      }
    }
  }
  table.sets = sets.take();
  return table;
}

}  // namespace sidetrack::nft
