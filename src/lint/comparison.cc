// SPDX-License-Identifier: GPL-2.0-or-later
#include "lint/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "mesh/describe.h"
#include "model/interface_pattern.h"
#include "space/witness.h"
#include "walk/explain.h"

namespace sidetrack::lint {
namespace {

using namespace space;

class Comparing {
 public:
  Comparing(Regions& regions, Families families, const std::vector<Option>& options)
      : families_(families), options_(options), regions_(regions) {}

  Findings run() {
    std::vector<Found> found;
    std::size_t side = regions_.sides() - options_.size();
    for (const Option& option : options_) inspect(option, side++, found);
    Findings all;
    for (const Found& one : found) {
      if (!has_to_stay(one, found)) all.push_back(one.finding);
    }
    return all;
  }

 private:
  struct Found {
    Finding finding;
    const Option* option;
    std::vector<ListValue> values;  // without effect
    std::string decides;            // the option that decides about the witness; empty: none, or it is not to be said
  };

  // Options that say the same, in part at least, are each without effect while the other is there: that which decides
  // stays.
  static bool has_to_stay(const Found& one, const std::vector<Found>& all) {
    if (one.decides != one.option->flag) return false;
    return std::ranges::any_of(all, [&](const Found& other) {
      return other.option->flag != one.option->flag && other.option->field == one.option->field &&
             overlap(one.values, other.values);
    });
  }

  static bool overlap(const std::vector<ListValue>& some, const std::vector<ListValue>& others) {
    return std::ranges::any_of(some, [&](const ListValue& one) {
      return std::ranges::any_of(others, [&](const ListValue& other) {
        return one.family == other.family && one.values.first <= other.values.last &&
               other.values.first <= one.values.last;
      });
    });
  }

  // Asks which of these packets have another outcome on that side. What was found out serves the next box of them.
  struct Question {
    std::size_t side;
    std::vector<Box> boxes;
    std::map<Scope, Regions::Node> candidates{};   // as the first side has them; all others are no such packet
    std::map<Scope, Regions::Node> differences{};  // the leaves are `alike` or not
  };
  static constexpr Leaf alike = 2;
  static bool is_alike(Leaf leaf) { return leaf == alike || leaf == no_such_packet; }

  Regions::Node base(Scope scope) {
    const auto [known, added] = base_.try_emplace(scope);
    if (added) known->second = regions_.of(0, scope);
    return known->second;
  }
  Regions::Node difference(Question& question, Scope scope) {
    const auto [known, added] = question.differences.try_emplace(scope);
    if (!added) return known->second;
    const bool by_boxes = scope == Scope::everything;
    const Regions::Node one = by_boxes ? regions_.of(0, question.boxes) : base(scope);
    const Regions::Node other =
        by_boxes ? regions_.of(question.side, question.boxes) : regions_.of(question.side, scope);
    known->second = regions_.diagrams().combined(
        one, other, [&](Leaf a, Leaf b) { return regions_.end_alike(a, b) ? alike : alike + 1; });
    return known->second;
  }
  Regions::Node candidates(Question& question, Scope scope) {
    const auto [known, added] = question.candidates.try_emplace(scope);
    if (!added) return known->second;
    const Regions::Node all = base(scope);
    known->second = regions_.diagrams().combined(all, regions_.may_differ(question.side), [](Leaf leaf, Leaf may) {
      return may == Diagrams::yes ? leaf : no_such_packet;
    });
    return known->second;
  }

  bool differs(Regions::Node node, const Box& box) {
    return !is_empty(box) && !regions_.diagrams().is_within(node, box, is_alike);
  }

  // One packet of each region shows it, for most options: only where none does all packets are asked about.
  bool is_shown_by_example(Question& question, const std::vector<Box>& boxes, Scope scope) {
    bool shown = false;
    regions_.for_each(candidates(question, scope), [&](const Box& region, const Box&, Leaf leaf) {
      if (shown || leaf == no_such_packet) return;
      for (const Box& box : boxes) {
        const Box part = intersection(regions_.sets(), region, box);
        if (shown || is_empty(part)) continue;
        const Point point = regions_.example(part);
        shown = !regions_.end_alike(leaf, regions_.at(question.side, point));
      }
    });
    return shown;
  }

  // All packets of a value.
  std::vector<Box> boxes_of(const Option& option, const ListValue& value, Sets::Id values) {
    std::vector<Box> all;
    for (const Direction way : option.ways) {
      for (const Family family : {Family::ipv4, Family::ipv6}) {
        if (value.family && value.family != family) continue;
        Box box = regions_.everything(way, family);
        Sets::Id& of_field = box[index(option.field)];
        of_field = regions_.sets().intersection(of_field, values);
        if (of_field != Sets::empty) all.push_back(box);
      }
    }
    return all;
  }

  // Found out once: each value of a list asks for it.
  bool is_known_alike(std::size_t side) {
    const auto [known, added] = known_alike_.try_emplace(side);
    if (added) known->second = regions_.are_known_alike(0, side);
    return known->second;
  }

  bool makes_difference(Question question) { return makes_difference(question, question.boxes); }

  // `boxes`: within those of the question.
  bool makes_difference(Question& question, const std::vector<Box>& boxes) {
    if (is_shown_by_example(question, boxes, Scope::ordinary)) return true;
    if (is_known_alike(question.side)) return false;
    if (is_shown_by_example(question, boxes, Scope::invalid)) return true;
    return std::ranges::any_of(std::array{Scope::ordinary, Scope::everything}, [&](Scope scope) {
      const Regions::Node found = difference(question, scope);
      return std::ranges::any_of(boxes, [&](const Box& box) { return differs(found, box); });
    });
  }

  void inspect(const Option& option, std::size_t side, std::vector<Found>& found) {
    const bool by_packets = !option.only_by_plan && !option.only_covered;
    if (!option.only_values && (option.same_plan || (by_packets && !makes_difference({side, regions_.wholes()})))) {
      found.push_back(of_option(option));
      return;
    }
    if (option.values.empty() || option.only_whole) return;
    std::vector<Found> values = values_without_effect(option, side, 0);
    if (!values.empty() && changes_others(option)) values = values_without_effect(option, side, most_planned);
    std::ranges::move(values, std::back_inserter(found));
  }

  // Without any of the values that were found so far as without effect, the rules of the other values, or of other
  // options, may change, and packets end otherwise.
  bool changes_others(const Option& option) {
    if (!option.without_values) return false;
    Regions both(list_of(regions_.side(0), option.without_values(without_effect_)));
    Comparing comparing(both, families_, options_);
    return !comparing.is_known_alike(1) && comparing.makes_difference({1, both.wholes()});
  }

  static constexpr std::size_t most_planned = 32;
  // Tries, one by one, whether up to `planned` values change others, and takes the rest for ones that do. 0: tries
  // none.
  std::vector<Found> values_without_effect(const Option& option, std::size_t side, std::size_t planned) {
    std::vector<Found> found;
    // The others of the list, without those that were found: of two that are equal one is left.
    std::map<int, Covering> covering;
    std::map<std::optional<Family>, Intervals> listed;
    for (const ListValue& value : option.values) {
      covering[family_of(value)].add(value.values);
      listed[value.family].push_back(value.values);
    }
    Question question{side, {}};
    for (auto& [family, values] : listed) {
      std::ranges::move(boxes_of(option, {{}, family, {}}, regions_.sets().of(normal(std::move(values)))),
                        std::back_inserter(question.boxes));
    }
    without_effect_.clear();
    std::size_t tried = 0;
    for (auto value = option.values.rbegin(); value != option.values.rend(); ++value) {
      if (std::ranges::find(option.usual, value->text) != option.usual.end()) continue;
      Covering& others = covering[family_of(*value)];
      others.remove(value->values);
      const Sets::Id all = regions_.sets().of({value->values});
      const Sets::Id own = regions_.sets().of(others.uncovered(value->values));
      bool has_effect =
          own != Sets::empty && (option.only_covered || makes_difference(question, boxes_of(option, *value, own)));
      if (!has_effect) {
        without_effect_.insert(place_of(option, *value));
        has_effect = planned > 0 && (++tried > planned || changes_others(option));
      }
      if (has_effect) {
        without_effect_.erase(place_of(option, *value));
        others.add(value->values);
      } else {
        found.push_back(of_value(option, *value, own == Sets::empty, all));
      }
    }
    return found;
  }

  static std::size_t place_of(const Option& option, const ListValue& value) {
    return static_cast<std::size_t>(&value - option.values.data());
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
  Point witness(const std::vector<Box>& boxes, Protocol protocol) {
    for (const Box& box : boxes) {
      const auto way = static_cast<Direction>(regions_.sets().intervals(box[index(Field::way)]).front().first);
      const Family family = space::family_of(regions_.sets(), box);
      Box usual = intersection(regions_.sets(), regions_.ordinary(regions_.side(0).pod, way, family), box);
      usual[index(Field::protocol)] = regions_.sets().intersection(
          usual[index(Field::protocol)], regions_.sets().single(protocol == Protocol::udp ? udp : tcp));
      if (!is_empty(usual)) return regions_.example(usual);
    }
    return regions_.example(boxes.front());
  }

  // `says_why`: with the option that decides about the witness, if it is another than this.
  void show(Found& found, const std::vector<Box>& boxes, const Option& option, bool says_why) {
    Finding& finding = found.finding;
    Point point = witness(boxes, option.protocol);
    Leaf leaf = regions_.diagrams().at(base(Scope::ordinary), point);
    if (leaf == no_such_packet) leaf = regions_.at(0, point);
    if (leaf == no_such_packet) return;
    const Decision& decision = regions_.decision(leaf);
    const auto packet = space::witness(regions_, 0, point, decision.ending);
    if (!packet) return;
    finding.witness = explain_words(*packet);
    finding.ending = ending_text(decision.ending);
    if (decision.step == nullptr || decision.step->live == nullptr) return;
    const Reason reason = describe_live(*decision.step->live);
    const bool says_where =
        reason.rule == MeshRule::outbound_listener || reason.rule == MeshRule::inbound_listener;  // and not why
    if (!says_why || says_where) return;
    found.decides = reason.option;
    if (!reason.option.empty() && reason.option != option.flag)
      finding.message += fmt::format("; {} decides about the witness", reason.flag);
  }

  static std::string cover_words(const std::string& cover, const std::string& value) {
    return cover == value ? "it is given twice" : fmt::format("{} covers it", cover);
  }

  // Those that an option for interfaces names, as far as the pod has them.
  Sets::Id interfaces_of(const Option& option) {
    Intervals named;
    if (option.field == Field::interface) {
      const std::vector<std::string>& all = regions_.universe().interfaces;
      for (std::size_t i = unbound + 1; i < all.size(); ++i) {
        if (matches_interface(option.value, all[i])) named.push_back({i, i});
      }
    }
    return regions_.sets().of(normal(std::move(named)));
  }

  Found of_option(const Option& option) {
    Found found{{}, &option, option.values, {}};
    Finding& made = found.finding;
    made.code = Code::option_without_effect;
    made.subject = option.value.empty() ? option.flag : fmt::format("{} {}", option.flag, option.value);
    const bool lacks_interface = option.field == Field::interface &&
                                 std::ranges::none_of(regions_.side(0).pod.interfaces, [&](const Interface& interface) {
                                   return matches_interface(option.value, interface.name);
                                 });
    if (!option.cover.empty()) made.code = Code::value_without_effect;
    made.message = !option.cover.empty() ? cover_words(option.cover, option.value)
                   : option.same_plan    ? "makes no rule"
                   : lacks_interface     ? option.value.ends_with('+') ? "the pod has no interface whose name begins so"
                                                                       : "the pod has no interface of that name"
                                         : "without it, every packet has the same outcome";
    made.remedy = "leave it out";
    std::vector<Box> boxes;
    if (!option.values.empty())
      boxes = boxes_of(option, option.values.front(), regions_.sets().of({option.values.front().values}));
    if (boxes.empty()) {
      for (const Direction way : option.ways) {
        Box& box = boxes.emplace_back(regions_.everything(way, Family::ipv4));
        if (option.port) box[index(Field::destination_port)] = regions_.sets().single(*option.port);
        for (const auto& [field, values] : option.about) box[index(field)] = regions_.sets().of({values});
        if (const Sets::Id named = interfaces_of(option); named != Sets::empty) box[index(Field::interface)] = named;
        const std::vector<std::string>& cgroups = regions_.universe().cgroups;
        const auto cgroup = std::ranges::find(cgroups, option.value);
        if (option.flag == "--bypass-cgroup" && cgroup != cgroups.end())
          box[index(Field::cgroup)] = regions_.sets().single(static_cast<Value>(cgroup - cgroups.begin()));
      }
    }
    show(found, boxes, option, true);
    return found;
  }

  Found of_value(const Option& option, const ListValue& value, bool covered, Sets::Id values) {
    Found found{{}, &option, {value}, {}};
    Finding& made = found.finding;
    made.code = Code::value_without_effect;
    made.subject = fmt::format("{} {}", option.flag, value.text);
    if (covered) {
      const auto cover = std::ranges::find_if(option.values, [&](const ListValue& other) {
        return !without_effect_.contains(place_of(option, other)) && other.family == value.family &&
               other.values.first <= value.values.first && value.values.last <= other.values.last;
      });
      made.message =
          cover == option.values.end() ? "the other values of the list cover it" : cover_words(cover->text, value.text);
    } else if (value.family && !families_.contains(*value.family)) {
      made.message = "IPv6 is not captured in this pod";
    } else {
      made.message = "without it, every packet has the same outcome";
    }
    made.remedy = covered ? "leave it out" : "leave it out, or change what decides before it";
    std::vector<Box> boxes = boxes_of(option, value, values);
    if (boxes.empty()) boxes.push_back(regions_.everything(option.ways.front(), Family::ipv4));
    show(found, boxes, option, !covered);
    return found;
  }

  const Families families_;  // that have rules
  const std::vector<Option>& options_;
  Regions& regions_;
  std::map<Scope, Regions::Node> base_;
  std::map<std::size_t, bool> known_alike_;  // by side
  std::set<std::size_t> without_effect_;     // the places of values of the option that is inspected
};

}  // namespace

void add_without(std::vector<Side>& sides, std::vector<Option>& options) {
  for (Option& option : options) sides.push_back(std::move(option.without));
}

Findings without_effect(Regions& regions, Families families, const std::vector<Option>& options) {
  return Comparing(regions, families, options).run();
}

}  // namespace sidetrack::lint
