// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "model/list_text.h"
#include "model/ports.h"
#include "model/printable.h"
#include "render/layout.h"
#include "render/map_parts.h"
#include "render/show.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

using namespace space;

constexpr std::size_t most_packets = 20'000;  // that are followed: some seconds

// With what a usual pod has where this one lacks it, so that rules are said as they are meant to work.
PodView usual_pod(PodView pod) {
  const PodView usual = assumed_pod(Plan{});
  for (const Interface& interface : usual.interfaces) {
    if (pod.interface(interface.name) == nullptr && (interface.name == "lo" || pod.interfaces.size() < 2))
      pod.interfaces.push_back(interface);
  }
  for (Interface& interface : pod.interfaces) interface.up = true;
  Interface& lo = *pod.interface("lo");
  if (lo.addresses.empty()) lo.addresses = usual.interface("lo")->addresses;
  Interface& way_out = *std::ranges::find_if(pod.interfaces, [](const Interface& one) { return one.name != "lo"; });
  for (const InterfaceAddress& address : usual.interface("eth0")->addresses) {
    if (!pod.has_address(address.address.family)) way_out.addresses.push_back(address);
  }
  for (const Route& route : usual.routes) {
    const auto is_same = [&](const Route& one) { return one.kind == Route::Kind::unicast && one.to == route.to; };
    if (std::ranges::none_of(pod.routes, is_same)) pod.routes.push_back({route.to, way_out.name});
  }
  return pod;
}

// Values that have a sentence in common: "TCP" and "DNS" of "goes to port 15001". Each once, in the order in which they
// come.
class Groups {
 public:
  void add(const std::string& in_common, const std::string& value) {
    auto group = std::ranges::find(all_, in_common, &Group::first);
    if (group == all_.end()) group = all_.insert(group, {in_common, {}});
    if (std::ranges::find(group->second, value) == group->second.end()) group->second.push_back(value);
  }
  [[nodiscard]] bool is_any() const { return !all_.empty(); }
  [[nodiscard]] std::vector<std::string> sentences() const {
    std::vector<std::string> result;
    for (const auto& [in_common, values] : all_)
      result.push_back(fmt::format("{} {}", some(values, [](const std::string& value) { return value; }), in_common));
    return result;
  }

 private:
  using Group = std::pair<std::string, std::vector<std::string>>;
  std::vector<Group> all_;
};

// Nobody knows where it ends.
bool is_unknown(const Ending& ending) { return ending.kind == Outcome::Kind::unknown && ending.either.empty(); }

bool may_be_captured(const Ending& ending) {
  return is_captured(ending) || is_unknown(ending) || std::ranges::any_of(ending.either, space::is_captured);
}

// "goes to port 15001 (Envoy outbound)"; "perhaps …" if it is not known.
std::string goes_to(const Ending& ending) {
  if (is_unknown(ending)) return fmt::format("has an unknown outcome ({})", unknown_words(ending));
  if (!is_captured(ending)) return "perhaps " + goes_to(*std::ranges::find_if(ending.either, space::is_captured));
  const std::string who = ending.listener.empty() ? "" : fmt::format(" ({})", ending.listener);
  if (ending.transparent) return fmt::format("goes to port {}{} by TPROXY", ending.transparent_port, who);
  if (!ending.port) return "goes to " + (ending.to ? ending.to->text() : std::string("the same address"));
  return fmt::format("goes to port {}{}", *ending.port, who);
}

// What is said of one way and family.
struct Said {
  Groups captured;
  std::vector<std::string> left_out;

  void leave_out(std::string words) {
    if (std::ranges::find(left_out, words) == left_out.end()) left_out.push_back(std::move(words));
  }
};

// The endings of a kind, by the first of them.
class Kinds {
 public:
  explicit Kinds(const Regions& regions) : regions_(regions) {}
  Leaf operator()(Leaf leaf) {
    return leaf == no_such_packet ? leaf
                                  : known_.try_emplace(kind_of(regions_.decision(leaf).ending), leaf).first->second;
  }

 private:
  static std::string kind_of(const Ending& ending) {
    if (may_be_captured(ending)) return goes_to(ending);
    const bool never = ending.kind == Outcome::Kind::unroutable;
    return never ? "never sent" : ending.kind == Outcome::Kind::dropped ? "dropped" : "";
  }
  const Regions& regions_;
  std::map<std::string, Leaf> known_;
};

class Sentences {
 public:
  Sentences(Regions& regions, const Section& section, Said& said)
      : regions_(regions), section_(section), whole_(section.rest.box), said_(said) {}

  void add() {
    most_is_captured_ = may_be_captured(section_.rest.ending);
    for (const space::Line& line : section_.lines) {
      const bool is_said = !line.steps.empty() || line.ending.kind != Outcome::Kind::unroutable;
      if (most_is_captured_ && !may_be_captured(line.ending) && is_said) add_left_out(line);
    }
    if (most_is_captured_) add_captured(section_.rest);
    for (const space::Line& line : section_.lines) {
      if (!may_be_captured(line.ending)) continue;
      if (!most_is_captured_) add_exceptions(line.box);
      add_captured(line);
    }
  }

 private:
  // Returns " to port 22 sent by uid 7"; exceptions that are excluded as a whole are not repeated.
  std::string words(const Box& box) {
    std::string text;
    for (const Field field : said_fields) {
      const Sets::Id values = box[index(field)];
      if (values == whole_[index(field)] || is_left_out(field, values)) continue;
      text += " " + field_words(regions_, field, values, whole_);
    }
    return printable(text);
  }

  // What the values leave out of most; nothing: they are not most.
  std::optional<std::string> exceptions(Field field, Sets::Id values) {
    const Sets::Id whole = whole_[index(field)];
    if (!is_most(regions_.sets(), values, whole)) return {};
    const Sets::Id others = regions_.sets().difference(whole, values);
    return with_way(" " + printable(field_words(regions_, field, others, whole_)));
  }
  bool is_left_out(Field field, Sets::Id values) {
    const auto words = exceptions(field, values);
    return words && std::ranges::find(said_.left_out, *words) != said_.left_out.end();
  }

  void add_captured(const space::Line& line) {
    const Sets::Id only_dns = regions_.sets().single(dns_port);
    Box box = line.box;
    std::string what = section_.protocol == udp ? "UDP" : "TCP";
    if (box[index(Field::destination_port)] == only_dns) {
      what = "DNS";
      box[index(Field::destination_port)] = whole_[index(Field::destination_port)];
    }
    if (!section_.forwarded_from.empty())
      what = fmt::format("forwarded {} from {}", what, printable(section_.forwarded_from));
    what += words(box);
    said_.captured.add(goes_to(line.ending), what);
  }

  void add_left_out(const space::Line& line) {
    std::string what = with_way(words(line.box));
    if (line.has_exceptions) what += " (with exceptions)";
    said_.leave_out(line.ending.kind == Outcome::Kind::dropped ? what + " (dropped)" : what);
  }

  // Adds what is excluded from the captured box, unless another line captures it.
  void add_exceptions(const Box& box) {
    for (const Field field : said_fields) {
      auto words = exceptions(field, box[index(field)]);
      if (!words) continue;
      Box part = box;
      part[index(field)] = regions_.sets().difference(whole_[index(field)], box[index(field)]);
      const bool is_captured_so = std::ranges::any_of(section_.lines, [&](const space::Line& line) {
        return may_be_captured(line.ending) && !is_empty(intersection(regions_.sets(), line.box, part));
      });
      if (!is_captured_so) said_.leave_out(*std::move(words));
    }
  }

  // "inbound to port 22", "sent by uid 1337"
  std::string with_way(const std::string& conditions) const {
    if (!section_.forwarded_from.empty())
      return fmt::format("forwarded from {}{}", printable(section_.forwarded_from), conditions);
    if (conditions.starts_with(" sent ")) return conditions.substr(1);
    return std::string(way_words(static_cast<Value>(section_.way))) + conditions;
  }

  Regions& regions_;
  const Section& section_;
  const Box& whole_;
  Said& said_;
  bool most_is_captured_ = false;
};

// "sent by uid 1337, gid 1337"
std::vector<std::string> together(std::vector<std::string> all) {
  constexpr std::string_view sent_by = "sent by ";
  std::vector<std::string> result;
  for (std::string& words : all) {
    if (!result.empty() && result.back().starts_with(sent_by) && words.starts_with(sent_by)) {
      result.back() += ", " + words.substr(sent_by.size());
    } else {
      result.push_back(std::move(words));
    }
  }
  return result;
}

// "inbound to port 22; outbound to port 22"
std::string listed(const std::vector<std::string>& all) {
  constexpr std::size_t most = 16;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(all.size(), most));
  std::string text = fmt::format("{}", fmt::join(all.begin(), all.begin() + shown, "; "));
  if (all.size() > most) text += fmt::format("; and {} more that 'sidetrack map' lists", grouped(all.size() - most));
  return text;
}

// What holds for both families, then what holds for one of them alone.
std::string of_both(const std::vector<std::string>& ipv4, const std::vector<std::string>& ipv6, const char* nothing) {
  const auto those = [](const std::vector<std::string>& a, const std::vector<std::string>& b, bool in_both) {
    std::vector<std::string> result;
    std::ranges::copy_if(a, std::back_inserter(result),
                         [&](const std::string& item) { return (std::ranges::find(b, item) != b.end()) == in_both; });
    return listed(result);
  };
  std::vector<std::string> parts;
  if (const std::string both = those(ipv4, ipv6, true); !both.empty()) parts.push_back(both);
  if (const std::string only = those(ipv4, ipv6, false); !only.empty()) parts.push_back("IPv4 only: " + only);
  if (const std::string only = those(ipv6, ipv4, false); !only.empty()) parts.push_back("IPv6 only: " + only);
  return parts.empty() ? nothing : fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

Summary summary(PodView pod, std::span<const Live> live) {
  try {
    Regions regions(list_of(Side{usual_pod(std::move(pod)), {live.begin(), live.end()}}), most_packets);
    std::map<std::pair<Direction, Family>, Said> said;
    const SectionOptions options{
        .ways = {Direction::in, Direction::out}, .plain = true, .exceptions = true, .like = Kinds(regions)};
    for (const Section& section : sections(regions, 0, options)) {
      if (section.protocol != icmp) Sentences(regions, section, said[{section.way, section.family}]).add();
    }
    const auto captured = [&](Direction way) {
      return of_both(said[{way, Family::ipv4}].captured.sentences(), said[{way, Family::ipv6}].captured.sentences(),
                     "nothing is captured");
    };
    const auto left_out = [&](Family family) {
      Said all = said[{Direction::in, family}];
      for (std::string& words : said[{Direction::out, family}].left_out) all.leave_out(std::move(words));
      return together(std::move(all.left_out));
    };
    const bool is_any = std::ranges::any_of(said, [](const auto& one) { return one.second.captured.is_any(); });
    return {captured(Direction::in), captured(Direction::out),
            of_both(left_out(Family::ipv4), left_out(Family::ipv6), is_any ? "nothing" : "everything")};
  } catch (const TooManyRegions&) {
    constexpr const char* unknown = "not known: the rules are too many to follow all packets";
    return {unknown, unknown, unknown};
  }
}

Summary summary(const ShowOptions& options, std::span<const Live> live) {
  return summary(options.pod != nullptr ? *options.pod : assumed_pod(Plan{}), live);
}

}  // namespace sidetrack
