// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/ending.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "mesh/describe.h"
#include "model/printable.h"

namespace sidetrack::space {
namespace {

Ending of(const Trace& trace) {
  const Outcome& outcome = trace.outcome;
  Ending made;
  made.kind = outcome.kind;
  made.answers = outcome.answers;
  switch (outcome.kind) {
    case Outcome::Kind::leaves:
    case Outcome::Kind::forwarded:
      made.interface = ways_out(outcome);
      [[fallthrough]];
    case Outcome::Kind::lands:
      made.from = outcome.source;
      made.translated = trace.translated;
      made.transparent = outcome.transparent;
      made.transparent_port = outcome.transparent_port;
      if (made.translated && outcome.at.address_origin == Origin::constant) made.to = outcome.at.address;
      if (made.translated && outcome.at.port_origin == Origin::constant) made.port = outcome.at.port;
      if (made.translated || made.transparent) made.listener = outcome.listener;
      break;
    case Outcome::Kind::unknown:
      made.unknowns.push_back(outcome.subject);
      break;
    case Outcome::Kind::dropped:
    case Outcome::Kind::unroutable:
      break;
  }
  return made;
}

bool same_place(Ending a, const Ending& b) {
  a.answers = b.answers;
  return a == b;
}

void sort(std::vector<std::string>& all) {
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

std::string answers_of(const Ending& ending) {
  switch (ending.answers) {
    case Outcome::Answers::arrive:
      return "";
    case Outcome::Answers::lost:
      return "; replies are lost";
    case Outcome::Answers::unknown:
      return "; whether replies arrive is unknown";
  }
  return "";
}

std::string place_of(const Ending& ending) {
  const std::string who = ending.listener.empty() ? "" : fmt::format(" ({})", ending.listener);
  const std::string host = ending.to ? ending.to->text() : "the same address";
  const std::string at = !ending.translated ? ""
                         : !ending.port     ? host + ", port unchanged"
                         : ending.to        ? Endpoint{*ending.to, *ending.port}.text()
                                            : fmt::format("{}, port {}", host, *ending.port);
  const std::string from = ending.from ? " from " + ending.from->text() : "";
  switch (ending.kind) {
    case Outcome::Kind::lands:
      if (ending.transparent) return fmt::format("port {}{} by TPROXY{}", ending.transparent_port, who, from);
      if (ending.translated) return at + who + from;
      return ending.from ? "reaches the pod" + from : "reaches the pod untouched";
    case Outcome::Kind::leaves:
      if (ending.translated) return fmt::format("leaves by {} to {}{}", ending.interface, at, from);
      return ending.from ? fmt::format("leaves{}, by {}", from, ending.interface)
                         : fmt::format("leaves untouched, by {}", ending.interface);
    case Outcome::Kind::forwarded:
      return fmt::format("is not for this pod: goes on by {}{}{}{} if the pod forwards", ending.interface,
                         ending.translated ? " to " : "", at, from);
    case Outcome::Kind::dropped:
      return "dropped";
    case Outcome::Kind::unroutable:
      return "never sent: there is no route";
    case Outcome::Kind::unknown:
      break;
  }
  std::string text = fmt::format("unknown: {}", unknown_words(ending));
  std::string between = " (";
  for (const Ending& one : ending.either) {
    text += between + ending_text(one);
    between = ", or ";
  }
  return ending.either.empty() ? text : text + ")";
}

}  // namespace

std::string unknown_words(const Ending& ending) {
  std::vector<std::string> texts;
  std::ranges::transform(ending.unknowns, std::back_inserter(texts), in_short);
  return fmt::format("{}", fmt::join(texts, ", "));
}

bool operator==(const Ending& a, const Ending& b) {
  const auto all = [](const Ending& one) {
    return std::tie(one.kind, one.translated, one.to, one.port, one.from, one.transparent, one.transparent_port,
                    one.interface, one.answers, one.unknowns);
  };
  return all(a) == all(b) && a.either == b.either;
}

std::size_t hash_of(const Ending& ending) {
  std::size_t made = std::hash<std::string>()(ending.interface);
  const auto add = [&](std::size_t value) { made = made * 31 + value; };
  add(static_cast<std::size_t>(ending.kind));
  add(ending.port.value_or(0));
  add(ending.transparent_port);
  for (const Ending& one : ending.either) add(hash_of(one));
  for (const std::string& subject : ending.unknowns) add(std::hash<std::string>()(subject));
  for (const std::optional<Address>& address : {ending.to, ending.from ? ending.from->address : std::nullopt}) {
    if (!address) continue;
    for (const std::uint8_t byte : address->view()) add(byte);
  }
  return made;
}

Choice choice_of(const std::vector<Possibility>& all) {
  Choice made;
  const auto add = [&](std::size_t value) { made.ways = made.ways * 31 + value; };
  for (const Possibility& one : all) {
    made.unknowns.insert(made.unknowns.end(), one.unknowns.begin(), one.unknowns.end());
    for (const std::string& subject : one.unknowns) add(std::hash<std::string>()(subject));
    for (const std::size_t taken : one.taken) add(taken);
  }
  sort(made.unknowns);
  return made;
}

Ending either_of(const Ending& a, const Ending& b, const Choice& choice) {
  if (a == b && a.ways == b.ways) return a;
  Ending made;
  made.kind = Outcome::Kind::unknown;
  made.ways = choice.ways;
  // Where one ends nobody knows where, the other says nothing.
  const auto is_open = [](const Ending& one) { return one.kind == Outcome::Kind::unknown && one.either.empty(); };
  const bool says_nothing = is_open(a) || is_open(b);
  if (!says_nothing) made.unknowns = choice.unknowns;
  for (const Ending* one : {&a, &b}) {
    made.ways = made.ways * 31 + (one->ways ^ hash_of(*one));
    if (says_nothing && !is_open(*one)) continue;
    made.unknowns.insert(made.unknowns.end(), one->unknowns.begin(), one->unknowns.end());
    if (says_nothing) continue;
    for (const Ending& place : one->either.empty() ? std::vector{*one} : one->either) {
      const auto same = std::ranges::find_if(made.either, [&](const Ending& each) { return same_place(each, place); });
      if (same == made.either.end()) {
        made.either.push_back(place);
      } else if (same->answers != place.answers) {
        same->answers = Outcome::Answers::unknown;
      }
    }
  }
  if (made.either.size() == 1) return std::move(made.either.front());
  std::ranges::sort(made.either, {}, [](const Ending& place) { return ending_text(place); });
  sort(made.unknowns);
  return made;
}

Ending ending_of(const std::vector<Possibility>& all) {
  const Choice choice = choice_of(all);
  Ending made = of(all.front().trace);
  for (std::size_t i = 1; i < all.size(); ++i) made = either_of(made, of(all[i].trace), choice);
  return made;
}

std::string ending_text(const Ending& ending) { return printable(place_of(ending) + answers_of(ending)); }

}  // namespace sidetrack::space
