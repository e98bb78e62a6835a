// SPDX-License-Identifier: GPL-2.0-or-later
#include "lint/effects.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "lint/comparison.h"
#include "mesh/catalogue.h"
#include "model/interface_pattern.h"
#include "model/ports.h"
#include "options/annotations.h"
#include "options/flags.h"

namespace sidetrack::lint {
namespace {

using namespace space;
using Role = ListMeaning::Role;

const std::vector<std::string> everything_listed{"*"};

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
    {"--ingress", false, Direction::in},
    {"--redirect-dns", false, Direction::out, dns_port},
    {"--capture-all-dns", false, Direction::out, dns_port},
    {"--track-forwarded-dns", true, Direction::in, dns_port},  // where sources are translated, which others do
    {"--dns-server", false, Direction::out, dns_port,
     [](const Config& config) { return config.redirect_dns && !config.capture_all_dns; }},
    {"--dual-stack", false, Direction::out, {}, [](const Config& config) { return !config.families.has_value(); }},
};

// ---- The values of an option that is a list

template <typename Number>
ListValue one_value(const Range<Number>& range) {
  return {text(range), {}, {range.first, range.last}};
}
ListValue one_value(std::uint32_t number) { return one_value(IdRange{number, number}); }
ListValue one_value(const AddressRange& range) {
  return {range.text(), range.family(), {space::value_of(range.first), space::value_of(range.last)}};
}

template <typename List>
std::vector<ListValue> each_value(const List& list) {
  std::vector<ListValue> all;
  std::ranges::transform(list, std::back_inserter(all), [](const auto& one) { return one_value(one); });
  return all;
}

// Collects the values that a match asks for in one field.
class ValuesOf : public sidetrack::Asked {
 public:
  explicit ValuesOf(Field field) : field_(field) {}
  std::vector<ListValue> take() { return std::move(values_); }

  void addresses(End end, const std::vector<AddressRange>& ranges) override {
    add(end == End::destination ? Field::destination : Field::source, ranges);
  }
  void ports(End end, const std::vector<PortRange>& ports) override {
    add(end == End::destination ? Field::destination_port : Field::source_port, ports);
  }
  void ids(OwnerKind kind, const std::vector<IdRange>& ids) override {
    add(kind == OwnerKind::uid ? Field::uid : Field::gid, ids);
  }
  // In no list of an option.
  void interface(InterfaceDirection, const std::string&) override {}
  void address_type(const AddressTypeMatch&) override {}
  void ends(const ConnectionMatch&) override {}
  void protocol(Protocol) override {}
  void socket() override {}
  void cgroup(const std::string&) override {}
  void mark(std::uint32_t, std::uint32_t) override {}
  void connmark(std::uint32_t, std::uint32_t) override {}
  void connection() override {}

 private:
  template <typename List>
  void add(Field field, const List& list) {
    if (field == field_) std::ranges::move(each_value(list), std::back_inserter(values_));
  }

  Field field_;
  std::vector<ListValue> values_;
};

// Returns the values of a list that was given, one by one; none of "*", or of names.
std::vector<ListValue> values_of(const OptionValue& value) {
  if (const auto* ranges = std::get_if<std::vector<AddressRange>>(&value)) return each_value(*ranges);
  if (const auto* ports = std::get_if<std::vector<PortRange>>(&value)) return each_value(*ports);
  if (const auto* ids = std::get_if<std::vector<IdRange>>(&value)) return each_value(*ids);
  const auto* numbers = std::get_if<std::vector<std::uint32_t>>(&value);
  return numbers == nullptr ? std::vector<ListValue>() : each_value(*numbers);
}

// Returns what a rule's matches say of that field, of those that are not negated.
std::vector<ListValue> values_of(const Rule& rule, Field field) {
  ValuesOf asked(field);
  for (const Match& match : rule.matches) {
    if (!is_negated(match)) ask(match, asked);
  }
  return asked.take();
}

// "22,443,8000-8100,9000,… (6 values)"
std::string joined(const std::vector<ListValue>& values) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), shown); ++i) text += (i == 0 ? "" : ",") + values[i].text;
  return values.size() > shown ? fmt::format("{},… ({} values)", text, values.size()) : text;
}

// A value as it was given.
std::string as_given(const OptionValue& value) {
  if (const auto* one = std::get_if<std::uint32_t>(&value)) return fmt::format("{}", *one);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
    return *texts == everything_listed ? "'*'" : fmt::format("{}", fmt::join(*texts, ","));
  if (const auto* numbers = std::get_if<std::vector<std::uint32_t>>(&value))
    return fmt::format("{}", fmt::join(*numbers, ","));
  return "true";
}

// Of a configuration: each option that was given, with the plan without it.
class OfConfig {
 public:
  explicit OfConfig(const Subject& subject)
      : subject_(subject),
        whole_(plan(subject.config, subject.facts)),
        pod_(with_routing(subject.pod ? *subject.pod : assumed_pod(whole_), whole_.routing)) {}

  Findings run() {
    for (const Flag& flag : flags()) {
      if (flag.value_of.get == nullptr || !flag.commands.contains(Command::lint)) continue;
      const OptionValue value = flag.value_of.get(flag, subject_.config);
      if (value == flag.value_of.get(flag, Config())) continue;  // not given
      const ListMeaning& meaning = flag.value_of.meaning;
      const bool is_whole = std::ranges::find(wholes, short_name(flag), &WholeInfo::flag) != std::end(wholes);
      const auto* names = std::get_if<std::vector<std::string>>(&value);
      if (!is_whole && names != nullptr && *names != everything_listed) {
        add_each_name(flag, *names);
      } else if (meaning.role == Role::none || value == OptionValue(everything_listed)) {
        add_whole(flag, as_given(value));
      } else {
        add_list(flag, values_of(value));
      }
    }
    if (options_.empty()) return {};
    std::vector<Side> sides = list_of(Side{pod_, {as_live(whole_.ruleset, backend)}});
    add_without(sides, options_);
    Regions regions(std::move(sides));
    return without_effect(regions, whole_.families, options_);
  }

 private:
  static constexpr BackendKind backend = BackendKind::iptables_nft;  // every value has a rule of its own there

  Side side_of(const Plan& left) const { return {with_routing(pod_, left.routing), {as_live(left.ruleset, backend)}}; }

  void add(Option option, const Config& config) {
    const Plan left = plan(config, subject_.facts);
    option.same_plan = left.ruleset.rules == whole_.ruleset.rules && left.routing == whole_.routing;
    option.without = side_of(left);
    options_.push_back(std::move(option));
  }

  void add_whole(const Flag& flag, std::string value) {
    if (value.empty()) return;
    const std::string name = short_name(flag);
    const auto* info = std::ranges::find(wholes, name, &WholeInfo::flag);
    const WholeInfo about = info == std::end(wholes) ? WholeInfo{} : *info;
    if (about.is_in_place_of_host != nullptr && about.is_in_place_of_host(subject_.config)) return;
    Config config = subject_.config;
    flag.value_of.reset(config);
    if (value == "true") value.clear();
    Option option{name, value};
    option.ways = {about.way};
    option.only_by_plan = about.only_by_plan;
    option.port = about.port;
    add(std::move(option), config);
  }

  // Whether a value of the flag says all that the other one does.
  static bool covers(const Flag& flag, const std::string& one, const std::string& other) {
    if (flag.name == "bypass-cgroup") return is_within_cgroup(other, one);
    return one == other || (flag.value_of.meaning.field == Field::interface && matches_interface(one, other));
  }

  void add_each_name(const Flag& flag, const std::vector<std::string>& names) {
    const bool is_interface = flag.value_of.meaning.field == Field::interface;
    for (std::size_t i = 0; i < names.size(); ++i) {
      Config config = subject_.config;
      Option option{short_name(flag), names[i]};
      for (std::size_t j = names.size(); j-- > 0;) {
        const bool is_same = names[j] == names[i];
        // Of equal ones the last is found, if one of them has an effect.
        if (j == i || (is_same && j > i)) flag.value_of.erase(config, j);
        if (j != i && !(is_same && j > i) && covers(flag, names[j], names[i])) option.cover = names[j];
      }
      option.ways = {is_interface ? Direction::in : Direction::out};
      if (is_interface) option.field = Field::interface;
      if (flag.name == "exclude-uid-ports") {
        const auto& [uids, ports] = subject_.config.exclude_uid_ports[i];
        option.about = {{Field::uid, {uids.first, uids.last}},
                        {Field::destination_port, {ports.front().first, ports.front().last}}};
      }
      add(std::move(option), config);
    }
  }

  void add_list(const Flag& flag, std::vector<ListValue> values) {
    const ListMeaning& meaning = flag.value_of.meaning;
    const bool only_covered = meaning.role == Role::is_proxy;
    if (only_covered && values.size() < 2) return;
    const std::string name = short_name(flag);
    if (name == "-g" && subject_.config.proxy_gids == subject_.config.proxy_uids) return;  // -u says them
    Option option{name,          joined(values),  std::move(values), {meaning.ways.begin(), meaning.ways.end()},
                  meaning.field, meaning.protocol};
    option.only_covered = only_covered;
    // The injector adds these ports of the proxy to those that it is told.
    if (flag.name == excluded_ports_flag && are_excluded_unasked(subject_.config.inbound_exclude_ports)) return;
    if (subject_.manifest != nullptr && flag.name == excluded_ports_flag) {
      for (const std::uint16_t port : ports_of_proxy) option.usual.push_back(fmt::format("{}", port));
    }
    Config config = subject_.config;
    if (!only_covered) flag.value_of.reset(config);
    option.without_values = [this, &flag](const std::set<std::size_t>& places) {
      Config left = subject_.config;
      for (auto place = places.rbegin(); place != places.rend(); ++place) flag.value_of.erase(left, *place);
      return side_of(plan(left, subject_.facts));
    };
    if (meaning.role == Role::narrows) return add_narrowing(flag, std::move(option), config);
    add(std::move(option), config);
    if (only_covered) options_.back().same_plan = false;
  }

  // Without such a list all is captured, without one of its values that is not: the values are compared with nothing
  // being captured, all else as it is.
  void add_narrowing(const Flag& flag, Option option, const Config& config) {
    Option whole = option;
    whole.values = {option.values.front()};
    whole.only_whole = true;
    add(std::move(whole), config);
    if (options_.back().same_plan) return;
    Config nothing = subject_.config;
    flag_named(flag.value_of.meaning.narrowed).value_of.reset(nothing);
    option.only_values = true;
    option.without = {pod_, {as_live(plan(nothing, subject_.facts).ruleset, backend)}};
    options_.push_back(std::move(option));
  }

  const Subject& subject_;
  const Plan whole_;
  const PodView pod_;
  std::vector<Option> options_;
};

// ---- Of live rules.

std::vector<std::string> interfaces_of(const Rule& rule) {
  std::vector<std::string> names;
  for (const Match& match : rule.matches) {
    const auto* interface = std::get_if<InterfaceMatch>(&match);
    if (interface != nullptr && !interface->negated) names.push_back(interface->name);
  }
  return names;
}

// Each option that rules were asked for by, with the rules without those of it.
class OfLive {
 public:
  OfLive(const PodView& pod, const std::vector<Live>& live) : pod_(pod), live_(live) {
    each_rule([&](const Rule& rule, std::string_view option) {
      given_.insert(option);
      if (option != "-k") return;
      for (std::string& name : interfaces_of(rule)) virtual_.insert(std::move(name));
    });
  }

  std::vector<Option> options() {
    for (const Flag& flag : flags()) {
      const ListMeaning& meaning = flag.value_of.meaning;
      const bool is_asked_about =
          meaning.role == Role::captures || meaning.role == Role::leaves_out || meaning.role == Role::narrows;
      if (!is_asked_about || !given_.contains(short_name(flag))) continue;
      if (meaning.field == Field::interface) {
        add_each_name(short_name(flag));
      } else {
        add_list(short_name(flag), meaning);
      }
    }
    return std::move(options_);
  }

 private:
  static std::string_view option_of(const LiveRule& rule) {
    if (!rule.ours) return {};
    const Row* row = row_of(rule.rule);
    return row == nullptr ? std::string_view() : row->flag.option;
  }

  template <typename Use>
  void each_rule(const Use& use) {
    for_each_rule(live_, [&](const LiveRule& rule) {
      if (const auto option = option_of(rule); !option.empty()) use(rule.rule, option);
    });
  }

  template <typename Is>
  std::vector<Live> without(const Is& is) {
    std::vector<Live> left = live_;
    for (Live& one : left) {
      for (LiveChain& chain : one.chains) std::erase_if(chain.rules, is);
    }
    return left;
  }

  void add_list(const std::string& flag, const ListMeaning& meaning) {
    Option option{flag, "", {}, {meaning.ways.begin(), meaning.ways.end()}, meaning.field, meaning.protocol};
    std::set<std::tuple<std::optional<Family>, Value, Value>> known;  // families and protocols have each again
    option.without = {pod_, without([&](const LiveRule& rule) {
                        if (option_of(rule) != flag) return false;
                        const std::vector<ListValue> values = values_of(rule.rule, meaning.field);
                        for (const ListValue& one : values) {
                          if (known.emplace(one.family, one.values.first, one.values.last).second)
                            option.values.push_back(one);
                        }
                        return !values.empty();
                      })};
    if (option.values.empty()) return;
    option.value = joined(option.values);
    options_.push_back(std::move(option));
  }

  // The rule that keeps a virtual machine's traffic from being inbound is that of an excluded interface.
  bool is_of(const std::string& name, std::string_view option, std::string_view flag) const {
    return flag == (virtual_.contains(name) ? "-k" : option);
  }

  void add_each_name(const std::string& flag) {
    std::set<std::string> names;
    each_rule([&](const Rule& rule, std::string_view option) {
      for (const std::string& name : interfaces_of(rule)) {
        if (is_of(name, option, flag)) names.insert(name);
      }
    });
    for (const std::string& name : names) {
      Option option{flag, name};
      option.ways = {Direction::in};
      option.field = Field::interface;
      option.without = {pod_, without([&](const LiveRule& rule) {
                          const std::vector<std::string> of = interfaces_of(rule.rule);
                          return std::ranges::find(of, name) != of.end() && is_of(name, option_of(rule), flag);
                        })};
      options_.push_back(std::move(option));
    }
  }

  const PodView& pod_;
  const std::vector<Live>& live_;
  std::set<std::string_view> given_;  // options
  std::set<std::string> virtual_;     // machines' interfaces: -k
  std::vector<Option> options_;
};

}  // namespace

Findings without_effect(const Subject& subject) { return OfConfig(subject).run(); }

std::vector<Option> options_of(const PodView& pod, const std::vector<Live>& live) {
  return OfLive(pod, live).options();
}

}  // namespace sidetrack::lint
