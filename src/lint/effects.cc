// SPDX-License-Identifier: GPL-2.0-or-later
#include "lint/effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "evaluate/explain.h"
#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "model/ports.h"
#include "options/flags.h"

namespace sidetrack::lint {
namespace {

using namespace space;

// A value of a list, as it was given, and the packets that it speaks of.
struct ListValue {
  std::string text;
  std::optional<Family> family;  // of an address
  Interval values;
};

// What a list speaks of.
struct Packets {
  std::vector<Direction> ways;
  Field field;
};

// An option that was given, what it says, and how everything would be without it.
struct Option {
  std::string flag;   // "-x"
  std::string value;  // "10.0.0.0/8,10.1.0.0/16"; empty: none
  std::vector<ListValue> values;
  Packets packets{{Direction::out}, Field::destination_port};
  Side without;
  bool same_plan = false;               // without it, not even the rules differ
  bool only_by_plan = false;            // what it changes is seen in no packet: its rules decide
  bool only_covered = false;            // its values are compared with each other alone
  std::vector<std::string> usual{};     // values that nobody asked for
  std::optional<std::uint16_t> port{};  // to which what it is about goes
};

// ---- The options of a configuration.

std::vector<ListValue> listed(const std::vector<std::uint16_t>& ports) {
  std::vector<ListValue> all;
  for (const std::uint16_t port : ports) all.push_back({fmt::format("{}", port), {}, {port, port}});
  return all;
}
std::vector<ListValue> listed(const std::vector<std::uint32_t>& ids) {
  std::vector<ListValue> all;
  for (const std::uint32_t id : ids) all.push_back({fmt::format("{}", id), {}, {id, id}});
  return all;
}
std::vector<ListValue> listed(const std::vector<AddressRange>& ranges) {
  std::vector<ListValue> all;
  for (const AddressRange& range : ranges)
    all.push_back({range.text(), range.family(), {value_of(range.first), value_of(range.last)}});
  return all;
}
template <typename T>
std::vector<ListValue> listed(const Selection<T>& selection) {
  return listed(selection.list);
}

struct ListInfo {
  std::string_view flag;
  Packets packets;
  std::vector<ListValue> (*values)(const Config&);
  void (*clear)(Config&);
  bool only_covered = false;         // its values are compared with each other alone
  std::vector<std::string> usual{};  // values that the injector adds for ports of the proxy
};

template <auto member>
ListInfo list_info(std::string_view flag, std::vector<Direction> ways, Field field, bool only_covered = false,
                   std::vector<std::string> usual = {}) {
  return {flag,
          {std::move(ways), field},
          [](const Config& config) { return listed(config.*member); },
          [](Config& config) { config.*member = {}; },
          only_covered,
          std::move(usual)};
}

std::vector<ListInfo> lists() {
  using enum Direction;
  return {
      list_info<&Config::inbound_ports>("-b", {in}, Field::destination_port),
      list_info<&Config::inbound_exclude_ports>("-d", {in}, Field::destination_port, false,
                                                {"15020", "15021", "15090"}),
      list_info<&Config::outbound_ranges>("-i", {out, lo, in}, Field::destination),
      list_info<&Config::outbound_exclude_ranges>("-x", {out, lo}, Field::destination),
      list_info<&Config::outbound_ports>("-q", {out, lo}, Field::destination_port),
      list_info<&Config::outbound_exclude_ports>("-o", {out, lo}, Field::destination_port),
      list_info<&Config::owner_groups_exclude>("ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE", {out, lo}, Field::gid),
      list_info<&Config::proxy_uids>("-u", {out, lo}, Field::uid, true),
      list_info<&Config::proxy_gids>("-g", {out, lo}, Field::gid, true),
  };
}

// What is to be known of an option as a whole, beside what its flag says.
struct WholeInfo {
  std::string_view flag;
  bool only_by_plan = false;
  Direction way = Direction::out;       // of what it is about
  std::optional<std::uint16_t> port{};  // to which that goes
  // Whether it tells what else the host is asked: without it, nobody knows.
  bool (*is_in_place_of_host)(const Config&) = nullptr;
};
constexpr WholeInfo wholes[] = {
    {"-z", false, Direction::in},
    {"-e", true},
    {"-t", true},
    {"-r", true},
    {"-m", false, Direction::in},
    {"-b", false, Direction::in},
    {"--redirect-dns", false, Direction::out, dns_port},
    {"--capture-all-dns", false, Direction::out, dns_port},
    {"--dns-server", false, Direction::out, dns_port,
     [](const Config& config) { return config.redirect_dns && !config.capture_all_dns; }},
    {"--dual-stack", false, Direction::out, {}, [](const Config& config) { return !config.families.has_value(); }},
};

// A value as it was given; nothing, if it is as without the flag.
std::string given(const Flag& flag, const Config& config) {
  Config without = config;
  flag.value_of.reset(without);
  const OptionValue value = flag.value_of.get(flag, config);
  if (value == flag.value_of.get(flag, without)) return {};
  if (const auto* one = std::get_if<std::uint32_t>(&value)) return fmt::format("{}", *one);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    return *texts == std::vector<std::string>{"*"} ? "'*'" : fmt::format("{}", fmt::join(*texts, ","));
  }
  if (const auto* numbers = std::get_if<std::vector<std::uint32_t>>(&value))
    return fmt::format("{}", fmt::join(*numbers, ","));
  return "true";
}

struct NamesInfo {
  std::string_view flag;
  std::vector<std::string> Config::*names;
};
constexpr NamesInfo interface_lists[] = {{"-c", &Config::exclude_interfaces}, {"-k", &Config::virtual_interfaces}};

// ---- What is compared.

PodView with_routing(PodView pod, const Plan& plan) {
  drop_our_rules(pod);
  for (const Address& address : plan.routing.loopback_addresses) {
    Interface* lo = pod.interface("lo");
    if (lo == nullptr) continue;
    std::erase_if(lo->addresses, [&](const InterfaceAddress& one) { return one.address == address; });
  }
  add(pod, plan.routing);
  return pod;
}

class Comparing {
 public:
  Comparing(Side all, Families families, std::vector<Option> options)
      : families_(families), options_(std::move(options)), regions_(sides(std::move(all))) {}

  Findings run() {
    Findings found;
    for (std::size_t i = 0; i < options_.size(); ++i) inspect(options_[i], i + 1, found);
    return found;
  }

 private:
  std::vector<Side> sides(Side all) {
    std::vector<Side> made{std::move(all)};
    for (Option& option : options_) made.push_back(std::move(option.without));
    return made;
  }

  // Where an option makes a difference, by scope: the leaves are `alike` or not.
  using Difference = std::array<std::optional<Regions::Node>, 2>;
  static constexpr Scope scopes[] = {Scope::ordinary, Scope::everything};
  static constexpr Leaf alike = 2;
  static bool is_alike(Leaf leaf) { return leaf == alike || leaf == no_such_packet; }

  Regions::Node base(Scope scope) {
    std::optional<Regions::Node>& known = base_[scope == Scope::everything ? 1 : 0];
    if (!known) known = regions_.of(0, scope);
    return *known;
  }
  Regions::Node difference(std::size_t side, Scope scope) {
    const Regions::Node one = base(scope);
    const Regions::Node other = regions_.of(side, scope);
    return regions_.diagrams().combined(
        one, other, [&](Leaf a, Leaf b) { return regions_.by_ending(a) == regions_.by_ending(b) ? alike : alike + 1; });
  }

  bool differs(Regions::Node node, const Box& box) {
    return !is_empty(box) && !regions_.diagrams().is_within(node, box, is_alike);
  }

  // One packet of each region shows it, for most options: only where none does all packets are asked about.
  bool is_shown_by_example(std::size_t side, const std::vector<Box>& boxes) {
    bool shown = false;
    regions_.for_each(base(Scope::ordinary), [&](const Box& region, const Box&, Leaf leaf) {
      if (leaf == no_such_packet) return;
      for (const Box& box : boxes) {
        const Box part = both(regions_.sets(), region, box);
        if (shown || is_empty(part)) continue;
        const Point point = regions_.example(part);
        Box one{};
        for (std::size_t i = 0; i < field_count; ++i) one[i] = regions_.sets().single(point[i]);
        const Leaf without = regions_.diagrams().at(regions_.of(side, {&one, 1}), point);
        shown = regions_.by_ending(leaf) != regions_.by_ending(without);
      }
    });
    return shown;
  }

  // All packets of a value.
  std::vector<Box> boxes_of(const Option& option, const ListValue& value, Sets::Id values) {
    std::vector<Box> all;
    for (const Direction way : option.packets.ways) {
      for (const Family family : {Family::ipv4, Family::ipv6}) {
        if (value.family && value.family != family) continue;
        Box box = regions_.everything(way, family);
        Sets::Id& of_field = box[index(option.packets.field)];
        of_field = regions_.sets().both(of_field, values);
        if (of_field != Sets::empty) all.push_back(box);
      }
    }
    return all;
  }

  bool makes_difference(Difference& known, std::size_t side, const std::vector<Box>& boxes) {
    if (is_shown_by_example(side, boxes)) return true;
    return std::ranges::any_of(scopes, [&](Scope scope) {
      std::optional<Regions::Node>& node = known[scope == Scope::everything ? 1 : 0];
      if (!node) node = difference(side, scope);
      return std::ranges::any_of(boxes, [&](const Box& box) { return differs(*node, box); });
    });
  }

  void inspect(const Option& option, std::size_t side, Findings& found) {
    Difference known;
    const bool by_packets = !option.only_by_plan && !option.only_covered;
    if (option.same_plan || (by_packets && !makes_difference(known, side, everything()))) {
      found.push_back(of_option(option));
      return;
    }
    if (option.values.empty()) return;
    // The others of the list, without those that were found: of two that are equal one is left.
    std::map<int, Covering> covering;
    for (const ListValue& value : option.values) covering[family_of(value)].add(value.values);
    for (auto value = option.values.rbegin(); value != option.values.rend(); ++value) {
      if (std::ranges::find(option.usual, value->text) != option.usual.end()) continue;
      Covering& others = covering[family_of(*value)];
      others.remove(value->values);
      const Sets::Id all = regions_.sets().of({value->values});
      const Sets::Id own = regions_.sets().of(others.uncovered(value->values));
      const bool has_effect =
          own != Sets::empty && (option.only_covered || makes_difference(known, side, boxes_of(option, *value, own)));
      if (has_effect) {
        others.add(value->values);
      } else {
        found.push_back(of_value(option, *value, own == Sets::empty, all));
      }
    }
  }

  std::vector<Box> everything() {
    std::vector<Box> all;
    for (const Direction way : {Direction::out, Direction::in, Direction::lo}) {
      for (const Family family : {Family::ipv4, Family::ipv6}) all.push_back(regions_.everything(way, family));
    }
    return all;
  }

  static int family_of(const ListValue& value) { return value.family ? static_cast<int>(*value.family) + 1 : 0; }

  // How many values of a list have each number.
  class Covering {
   public:
    void add(const Interval& one) { change(one, 1); }
    void remove(const Interval& one) { change(one, -1); }
    // What of it no value has.
    [[nodiscard]] Intervals uncovered(const Interval& one) const {
      Intervals left;
      auto at = counts_.upper_bound(one.first);
      int count = at == counts_.begin() ? 0 : std::prev(at)->second;
      Value from = one.first;
      for (;; ++at) {
        const bool ends = at == counts_.end() || at->first > one.last;
        if (count == 0) left.push_back({from, ends ? one.last : at->first - 1});
        if (ends) break;
        from = at->first;
        count = at->second;
      }
      return normal(std::move(left));
    }

   private:
    // From each key on, that many: a step function.
    void change(const Interval& one, int by) {
      const auto split = [&](Value at) {
        const auto after = counts_.upper_bound(at);
        const int count = after == counts_.begin() ? 0 : std::prev(after)->second;
        return counts_.try_emplace(at, count).first;
      };
      const auto first = split(one.first);
      const bool is_open = one.last == ~Value{0};
      const auto last = is_open ? counts_.end() : split(one.last + 1);
      for (auto at = first; at != last; ++at) at->second += by;
    }
    std::map<Value, int> counts_;
  };

  // A packet of these, best one that people send.
  Point witness(const std::vector<Box>& boxes) {
    for (const Box& box : boxes) {
      const auto way = static_cast<Direction>(regions_.sets().intervals(box[index(Field::way)]).front().first);
      const Family family = space::family_of(regions_.sets(), box);
      Box usual = both(regions_.sets(), regions_.ordinary(regions_.side(0).pod, way, family), box);
      usual[index(Field::protocol)] = regions_.sets().both(usual[index(Field::protocol)], regions_.sets().single(tcp));
      if (!is_empty(usual)) return regions_.example(usual);
    }
    return regions_.example(boxes.front());
  }

  // `says_why`: with the option that decides about the witness, if it is another than this.
  void show(Finding& finding, const std::vector<Box>& boxes, std::string_view own_flag, bool says_why) {
    Point point = witness(boxes);
    Leaf leaf = regions_.diagrams().at(base(Scope::ordinary), point);
    if (leaf == no_such_packet) leaf = regions_.diagrams().at(base(Scope::everything), point);
    finding.witness = explain_words(regions_.universe().packet(point));
    if (leaf == no_such_packet) return;
    const Decision& decision = regions_.decision(leaf);
    finding.ending = text(decision.ending);
    if (decision.step == nullptr || decision.step->live == nullptr) return;
    const Reason reason = describe(decision.step->live->rule);
    const bool says_where =
        reason.rule == MeshRule::outbound_listener || reason.rule == MeshRule::inbound_listener;  // and not why
    if (says_why && !reason.option.empty() && !says_where && reason.option != own_flag)
      finding.message += fmt::format("; {} decides about the witness", reason.flag);
  }

  Finding of_option(const Option& option) {
    Finding made;
    made.code = Code::option_without_effect;
    made.subject = option.value.empty() ? option.flag : fmt::format("{} {}", option.flag, option.value);
    made.message = option.same_plan ? "makes no rule" : "without it, every packet ends the same";
    made.remedy = "leave it out";
    std::vector<Box> boxes;
    if (!option.values.empty())
      boxes = boxes_of(option, option.values.front(), regions_.sets().of({option.values.front().values}));
    if (boxes.empty()) {
      for (const Direction way : option.packets.ways) {
        Box& box = boxes.emplace_back(regions_.everything(way, Family::ipv4));
        if (option.port) box[index(Field::destination_port)] = regions_.sets().single(*option.port);
      }
    }
    show(made, boxes, option.flag, true);
    return made;
  }

  Finding of_value(const Option& option, const ListValue& value, bool covered, Sets::Id values) {
    Finding made;
    made.code = Code::value_without_effect;
    made.subject = fmt::format("{} {}", option.flag, value.text);
    if (covered) {
      const auto cover = std::ranges::find_if(option.values, [&](const ListValue& other) {
        return &other != &value && other.family == value.family && other.values.first <= value.values.first &&
               value.values.last <= other.values.last;
      });
      if (cover == option.values.end()) {
        made.message = "the other values of the list cover it";
      } else {
        made.message = cover->text == value.text ? "it is given twice" : fmt::format("{} covers it", cover->text);
      }
    } else if (value.family && !families_.contains(*value.family)) {
      made.message = "IPv6 is not captured in this pod";
    } else {
      made.message = "without it, every packet ends the same";
    }
    made.remedy = covered ? "leave it out" : "leave it out, or change what decides before it";
    std::vector<Box> boxes = boxes_of(option, value, values);
    if (boxes.empty()) boxes.push_back(regions_.everything(option.packets.ways.front(), Family::ipv4));
    show(made, boxes, option.flag, !covered);
    return made;
  }

  const Families families_;  // that have rules
  std::vector<Option> options_;
  Regions regions_;
  std::optional<Regions::Node> base_[2];
};

std::string joined(const std::vector<ListValue>& values) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), shown); ++i) text += (i == 0 ? "" : ",") + values[i].text;
  return values.size() > shown ? fmt::format("{},… ({} values)", text, values.size()) : text;
}

}  // namespace

Findings without_effect(const Subject& subject) {
  const Plan whole = plan(subject.config, subject.facts);
  const PodView pod = with_routing(subject.pod ? *subject.pod : assumed_pod(whole), whole);
  // Every value has a rule of its own there.
  constexpr BackendKind backend = BackendKind::iptables_nft;
  std::vector<Option> options;
  const auto add = [&](Option option, Config config) {
    const Plan without = plan(config, subject.facts);
    option.same_plan = without.ruleset.rules == whole.ruleset.rules && without.routing == whole.routing;
    option.without = {with_routing(pod, without), {as_live(without.ruleset, backend)}};
    options.push_back(std::move(option));
  };
  std::vector<std::string_view> flags_of_values;
  for (const ListInfo& list : lists()) {
    flags_of_values.push_back(list.flag);
    std::vector<ListValue> values = list.values(subject.config);
    if (values.empty() || (list.only_covered && values.size() < 2)) continue;
    if (list.flag == "-g" && subject.config.proxy_gids == subject.config.proxy_uids) continue;  // -u says them
    Config config = subject.config;
    if (!list.only_covered) list.clear(config);
    Option option{std::string(list.flag), joined(values), values, list.packets, {}, false, false, list.only_covered};
    // The injector adds these ports of the proxy to those that it is told.
    if (subject.manifest != nullptr && !list.usual.empty()) {
      option.usual = list.usual;
      if (std::ranges::all_of(values, [&](const ListValue& value) {
            return std::ranges::find(option.usual, value.text) != option.usual.end();
          }))
        continue;
    }
    add(std::move(option), std::move(config));
    if (list.only_covered) options.back().same_plan = false;
  }
  for (const Flag& flag : flags()) {
    if (flag.value_of.get == nullptr || !flag.commands.contains(Command::lint)) continue;
    const std::string name = short_name(flag);
    std::string value = given(flag, subject.config);
    const bool is_listed = std::ranges::find(flags_of_values, name) != flags_of_values.end() ||
                           std::ranges::find(interface_lists, name, &NamesInfo::flag) != std::end(interface_lists);
    if (value.empty() || (is_listed && value != "'*'")) continue;
    const auto* info = std::ranges::find(wholes, name, &WholeInfo::flag);
    const WholeInfo about = info == std::end(wholes) ? WholeInfo{} : *info;
    if (about.is_in_place_of_host != nullptr && about.is_in_place_of_host(subject.config)) continue;
    Config config = subject.config;
    flag.value_of.reset(config);
    if (value == "true") value.clear();
    Option option{name, value, {}, {{about.way}, {}}, {}};
    option.only_by_plan = about.only_by_plan;
    option.port = about.port;
    add(std::move(option), std::move(config));
  }
  for (const NamesInfo& names : interface_lists) {
    for (const std::string& name : subject.config.*names.names) {
      Config config = subject.config;
      std::vector<std::string>& list = config.*names.names;
      list.erase(std::ranges::find(list, name));
      add({std::string(names.flag), name, {}, {{Direction::in}, Field::interface}, {}}, std::move(config));
    }
  }
  return Comparing({pod, {as_live(whole.ruleset, backend)}}, whole.families, std::move(options)).run();
}

namespace {

// Rules that an option asks for, value by value.
struct RuleInfo {
  MeshRule rule;
  std::string_view flag;
  Packets packets;
};
std::vector<RuleInfo> rules_of_lists() {
  using enum Direction;
  return {
      {MeshRule::inbound_excluded_port, "-d", {{in}, Field::destination_port}},
      {MeshRule::outbound_excluded_port, "-o", {{out, lo}, Field::destination_port}},
      {MeshRule::outbound_excluded_range, "-x", {{out, lo}, Field::destination}},
      {MeshRule::outbound_included_port, "-q", {{out, lo}, Field::destination_port}},
  };
}

// Each once, as often as families and protocols have it.
void add_values(const Rule& rule, Field field, std::vector<ListValue>& values) {
  const auto add = [&](ListValue value) {
    const bool known = std::ranges::any_of(
        values, [&](const ListValue& other) { return other.family == value.family && other.values == value.values; });
    if (!known) values.push_back(std::move(value));
  };
  for (const Match& match : rule.matches) {
    if (is_negated(match)) continue;
    if (const auto* ports = std::get_if<PortMatch>(&match); ports != nullptr && field == Field::destination_port) {
      for (const PortRange& range : ports->ports)
        add({range.first == range.last ? fmt::format("{}", range.first) : fmt::format("{}-{}", range.first, range.last),
             {},
             {range.first, range.last}});
    }
    const auto* addresses = std::get_if<AddressMatch>(&match);
    if (addresses == nullptr || field != Field::destination || addresses->end != End::destination) continue;
    for (ListValue& value : listed(addresses->ranges)) add(std::move(value));
  }
}

}  // namespace

Findings without_effect(const PodView& pod, const std::vector<Live>& live) {
  std::vector<Option> options;
  for (const RuleInfo& info : rules_of_lists()) {
    Option option{std::string(info.flag), "", {}, info.packets, {pod, live}};
    for (Live& one : option.without.live) {
      for (LiveChain& chain : one.chains) {
        std::erase_if(chain.rules, [&](const LiveRule& rule) {
          if (!rule.ours || kind_of(rule.rule) != info.rule) return false;
          add_values(rule.rule, info.packets.field, option.values);
          return true;
        });
      }
    }
    if (option.values.empty()) continue;
    option.value = joined(option.values);
    options.push_back(std::move(option));
  }
  if (options.empty()) return {};
  return Comparing({pod, live}, Families::both(), std::move(options)).run();
}

}  // namespace sidetrack::lint
