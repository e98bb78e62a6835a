// SPDX-License-Identifier: GPL-2.0-or-later
#include "backend/nft/rule_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "backend/nft/fields.h"

namespace sidetrack::nft {
namespace {

using Values = std::vector<std::pair<Data, Data>>;

// What register 1 holds at a point of a rule.
struct Register {
  std::optional<MetaLoad> meta;
  std::optional<CtLoad> ct;
  std::optional<PayloadLoad> payload;
  std::optional<Data> constant;
  std::optional<Bitwise> changed;
  bool network_order = false;
  std::optional<Data> at_least;  // cmp gte: the lower end of a range
};

class Reader {
 public:
  explicit Reader(const RuleContext& context) : context_(context) {
    live_.rule.families = context.families;
    live_.rule.table = context.table;
    live_.rule.chain = context.chain;
    live_.rule.target = Continue{};
  }

  LiveRule read(const KernelRule& rule) && {
    for (const Expression& expression : rule.expressions) {
      std::visit([this](const auto& e) { this->take(e); }, expression);
    }
    if (tproxy_) finish_tproxy();
    live_.handle = rule.handle;
    if (family_) live_.rule.families = *family_;
    return std::move(live_);
  }

 private:
  // ---- Loading.
  Register& loaded() { return register_ = {}; }
  void take(const MetaLoad& e) { loaded().meta = e; }
  void take(const CtLoad& e) { loaded().ct = e; }
  void take(const PayloadLoad& e) { loaded().payload = e; }
  void take(const Load& e) { loaded().constant = e.value; }
  void take(const Bitwise& e) {
    if (register_.changed) return unknown("bitwise");
    register_.changed = e;
  }
  void take(const ToNetworkOrder&) { register_.network_order = true; }
  void take(const Count& e) { live_.counters = {e.packets, e.bytes}; }

  // ---- Testing.
  void take(const Compare& e) {
    const bool negated = e.operation == NFT_CMP_NEQ;
    if (e.operation == NFT_CMP_GTE) {
      register_.at_least = e.with;
    } else if (e.operation == NFT_CMP_LTE && register_.at_least) {
      values({{*register_.at_least, e.with}}, false);
    } else if (e.operation != NFT_CMP_EQ && !negated) {
      unknown("cmp");
    } else if (!compare_whole(e.with, negated)) {
      values({{e.with, e.with}}, negated);
    }
  }
  void take(const CompareRange& e) { values({{e.first, e.last}}, e.negated); }
  void take(const Lookup& e) {
    const auto set = context_.sets.find(e.set);
    if (set == context_.sets.end()) return unknown("lookup @" + e.set);
    values(set->second, e.negated);
  }

  // Comparisons with one value, whose form is not that of a list.
  bool compare_whole(const Data& with, bool negated) {
    if (register_.meta) {
      switch (register_.meta->key) {
        case NFT_META_NFPROTO:
          return family(with, negated);
        case NFT_META_L4PROTO:
          return protocol(with, negated);
        case NFT_META_IIFNAME:
          return interface(Direction::in, with, negated);
        case NFT_META_OIFNAME:
          return interface(Direction::out, with, negated);
        case NFT_META_MARK:
          return mark<MarkMatch>(with, negated);
        default:
          return false;
      }
    }
    if (register_.ct && register_.ct->key == NFT_CT_MARK) return mark<ConnmarkMatch>(with, negated);
    if (register_.ct && register_.ct->key == NFT_CT_STATE) return state(with, negated);
    return register_.payload && address_prefix(with, negated);
  }

  bool family(const Data& with, bool negated) {
    const auto number = with.to_host<std::uint8_t>();
    if (number != NFPROTO_IPV4 && number != NFPROTO_IPV6) return false;
    family_ = (number == NFPROTO_IPV4) != negated ? Family::ipv4 : Family::ipv6;
    return true;
  }

  bool protocol(const Data& with, bool negated) {
    static constexpr Protocol known[] = {Protocol::icmp, Protocol::tcp, Protocol::udp, Protocol::icmpv6};
    const auto number = static_cast<Protocol>(with.to_host<std::uint8_t>());
    if (std::ranges::find(known, number) == std::end(known)) return false;
    match(ProtocolMatch{number, negated});
    return true;
  }

  bool interface(Direction direction, const Data& with, bool negated) {
    const auto bytes = with.view();
    const auto end = std::ranges::find(bytes, 0);
    std::string name(bytes.begin(), end);
    if (end == bytes.end()) name += '+';
    match(InterfaceMatch{direction, std::move(name), negated});
    return true;
  }

  template <typename Mark>
  bool mark(const Data& with, bool negated) {
    Mark result{with.to_host<std::uint32_t>(), 0xffffffff, negated};
    if (register_.changed) {
      if (register_.changed->flip.to_host<std::uint32_t>() != 0) return false;
      result.mask = register_.changed->mask.template to_host<std::uint32_t>();
    }
    match(result);
    return true;
  }

  // ct state & bits != 0
  bool state(const Data& with, bool negated) {
    if (!register_.changed || with.to_host<std::uint32_t>() != 0) return false;
    const auto bits = register_.changed->mask.to_host<std::uint32_t>();
    ConntrackStateMatch result{0, !negated};
    std::uint32_t known = 0;
    for (const ConntrackState& each : conntrack_states) {
      if ((bits & each.kernel) == 0) continue;
      known |= each.kernel;
      result.states = static_cast<std::uint8_t>(result.states | each.model);
    }
    if (known != bits) return false;
    match(result);
    return true;
  }

  // An address compared as far as its prefix goes: ip daddr & 255.240.0.0 == 10.0.0.0, or its first bytes alone.
  bool address_prefix(const Data& with, bool negated) {
    const Field* field = field_of(*register_.payload);
    if (field == nullptr || !field->family) return false;
    int length = with.size * 8;
    if (register_.changed) {
      length = 0;
      for (const std::uint8_t byte : register_.changed->mask.view()) length += std::popcount(byte);
    }
    const AddressRange range = AddressRange::prefix({*field->family, with.bytes}, length);
    if (register_.changed && range.mask().bytes != register_.changed->mask.bytes) return false;  // has holes
    match(AddressMatch{field->end, {range}, negated});
    return true;
  }

  // Values of a list or a range.
  void values(const Values& values, bool negated) {
    if (register_.changed) return unknown("bitwise");
    if (register_.payload) {
      const Field* field = field_of(*register_.payload);
      if (field == nullptr || field->size != register_.payload->size) return unknown("payload");
      if (field->family) return addresses(*field, values, negated);
      return match(PortMatch{field->end, numbers<std::uint16_t>(values, true), negated});
    }
    if (register_.meta && register_.meta->key == NFT_META_SKUID) return owner(OwnerKind::uid, values, negated);
    if (register_.meta && register_.meta->key == NFT_META_SKGID) return owner(OwnerKind::gid, values, negated);
    unknown(register_.meta ? fmt::format("meta {}", register_.meta->key) : "cmp");
  }

  void addresses(const Field& field, const Values& values, bool negated) {
    AddressMatch result{field.end, {}, negated};
    for (const auto& [first, last] : values) {
      result.ranges.push_back({{*field.family, first.bytes}, {*field.family, last.bytes}});
    }
    match(std::move(result));
  }

  void owner(OwnerKind kind, const Values& values, bool negated) {
    match(OwnerMatch{kind, numbers<std::uint32_t>(values, register_.network_order), negated});
  }

  template <typename Number>
  static std::vector<Range<Number>> numbers(const Values& values, bool network) {
    std::vector<Range<Number>> result;
    for (const auto& [first, last] : values) {
      if (network) {
        result.push_back({first.template from_network<Number>(), last.template from_network<Number>()});
      } else {
        result.push_back({first.template to_host<Number>(), last.template to_host<Number>()});
      }
    }
    std::ranges::sort(result);
    return result;
  }

  // The field that this is, or begins with what this loads.
  static const Field* field_of(const PayloadLoad& load) {
    const auto* found = std::ranges::find_if(fields, [&](const Field& field) {
      return field.base == load.base && field.offset == load.offset && load.size <= field.size;
    });
    if (found == std::end(fields)) return nullptr;
    return found;
  }

  // ---- Ending.
  void take(const MetaStore& e) {
    const bool from_mark = register_.meta && register_.meta->key == NFT_META_MARK && register_.changed;
    if (e.key != NFT_META_MARK) return end(UnknownTarget{"meta set"});
    if (tproxy_ && register_.constant) {
      tproxy_->mark = register_.constant->to_host<std::uint32_t>();
      tproxy_->mask = 0xffffffff;
    } else if (tproxy_ && from_mark) {
      tproxy_->mark = register_.changed->flip.to_host<std::uint32_t>();
      tproxy_->mask = ~register_.changed->mask.to_host<std::uint32_t>();
    } else if (register_.constant) {
      end(SetMark{register_.constant->to_host<std::uint32_t>()});
    } else if (register_.ct && register_.ct->key == NFT_CT_MARK && !register_.changed) {
      end(Connmark::restore);
    } else {
      end(UnknownTarget{"meta mark set"});
    }
  }
  void take(const CtStore& e) {
    if (e.key == NFT_CT_ZONE && register_.constant) return end(CtZone{register_.constant->to_host<std::uint16_t>()});
    const bool mark = register_.meta && register_.meta->key == NFT_META_MARK && !register_.changed;
    if (e.key == NFT_CT_MARK && mark) return end(Connmark::save);
    end(UnknownTarget{"ct set"});
  }
  void take(const RedirectTo&) {
    if (!register_.constant) return end(UnknownTarget{"redirect"});
    end(Redirect{register_.constant->from_network<std::uint16_t>()});
  }
  void take(const TproxyTo&) {
    if (!register_.constant) return end(UnknownTarget{"tproxy"});
    tproxy_ = Tproxy{register_.constant->from_network<std::uint16_t>(), 0, 0};
  }
  void take(const Decide& e) {
    switch (e.verdict) {
      case NF_ACCEPT:
        accepted_ = true;
        return tproxy_ ? void() : end(Verdict::accept);
      case NF_DROP:
        return end(Verdict::drop);
      case NFT_RETURN:
        return end(Verdict::return_);
      case NFT_JUMP:
        return end(Jump{model_name(e.chain)});
      case NFT_GOTO:
        return end(Jump{model_name(e.chain), true});
      default:
        return end(UnknownTarget{fmt::format("verdict {}", e.verdict)});
    }
  }
  void take(const XtMatch& e) {
    for (Match& each : xt::decode_match(e.extension)) match(std::move(each));
  }
  void take(const XtTarget& e) {
    end(xt::decode_target(e.extension, live_.rule.families.contains(Family::ipv4) ? Family::ipv4 : Family::ipv6));
  }
  void take(const Other& e) { unknown(e.name); }

  void finish_tproxy() {
    end(accepted_ ? Target(*tproxy_) : UnknownTarget{fmt::format("tproxy to :{} without accept", tproxy_->port)});
  }

  // The chain of the model: ISTIO_OUTPUT for nat-ISTIO_OUTPUT.
  [[nodiscard]] std::string model_name(const std::string& chain) const {
    return chain.starts_with(context_.prefix) ? chain.substr(context_.prefix.size()) : chain;
  }

  void match(Match match) {
    if (ended()) return unknown("a match behind the target");
    live_.rule.matches.push_back(std::move(match));
  }
  void unknown(const std::string& words) { live_.rule.matches.emplace_back(UnknownMatch{words}); }

  [[nodiscard]] bool ended() const { return live_.rule.target != Target(Continue{}) || tproxy_; }
  void end(Target target) {
    if (live_.rule.target != Target(Continue{})) return unknown("a second target");
    live_.rule.target = std::move(target);
  }

  const RuleContext& context_;
  LiveRule live_;
  Register register_;
  std::optional<Family> family_;
  std::optional<Tproxy> tproxy_;
  bool accepted_ = false;
};

}  // namespace

LiveRule read_rule(const KernelRule& rule, const RuleContext& context) { return Reader(context).read(rule); }

}  // namespace sidetrack::nft
