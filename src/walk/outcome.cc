// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/printable.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

std::string answers_of(const Outcome& outcome) {
  switch (outcome.answers) {
    case Outcome::Answers::arrive:
      return "";
    case Outcome::Answers::lost:
      return "; replies are lost: " + outcome.answers_why;
    case Outcome::Answers::unknown:
      return "; unknown whether replies arrive: " + outcome.answers_why;
  }
  return "";
}

std::string sentence_of(const Outcome& outcome) {
  const std::string at = outcome.at.text();
  const std::string source = outcome.source ? ", from " + outcome.source->text() : "";
  const std::string untouched = outcome.original || outcome.source ? "" : ", untouched";
  const std::string who = outcome.listener.empty() ? "" : fmt::format(" ({})", outcome.listener);
  const std::string original =
      outcome.original ? fmt::format("; original destination {}", outcome.original->text()) : "";
  const std::string answers = answers_of(outcome);
  switch (outcome.kind) {
    case Outcome::Kind::lands:
      if (outcome.transparent) {
        return fmt::format("lands on port {}{} by TPROXY{}; original destination {}{}", outcome.transparent_port, who,
                           source, at, answers);
      }
      return fmt::format("lands on {}{}{}{}{}{}{}", at, who, source, original, untouched,
                         outcome.why.empty() ? "" : ": " + outcome.why, answers);
    case Outcome::Kind::leaves:
      return fmt::format("leaves the pod by {} to {}{}{}{}{}", ways_out(outcome), at, source, original, untouched,
                         answers);
    case Outcome::Kind::forwarded:
      return fmt::format("is not for this pod: goes on by {} to {}{} if the pod forwards, else it is dropped{}",
                         ways_out(outcome), at, source, answers);
    case Outcome::Kind::dropped:
      return fmt::format("dropped: {}", outcome.why);
    case Outcome::Kind::unroutable:
      return fmt::format("never sent: {}", outcome.why);
    case Outcome::Kind::unknown:
      return fmt::format("unknown: {}", outcome.why);
  }
  return "";
}

// DNAT to where it goes anyway changes nothing of what TPROXY has taken.
std::optional<Endpoint> original(const Outcome& outcome) {
  return outcome.transparent ? outcome.original.value_or(outcome.at) : outcome.original;
}

}  // namespace

std::string joined_ways(std::vector<std::string> interfaces) {
  std::ranges::sort(interfaces);
  return fmt::format("{}", fmt::join(interfaces, " or "));
}

std::string ways_out(const Outcome& outcome) {
  std::vector<std::string> all = outcome.other_interfaces;
  all.push_back(outcome.interface);
  return joined_ways(std::move(all));
}

bool same_place(const Outcome& a, const Outcome& b) {
  if (a.kind != b.kind) return false;
  // What is gone is nowhere: whether it was translated before is no matter.
  if (a.kind == Outcome::Kind::dropped || a.kind == Outcome::Kind::unroutable) return true;
  return a.at == b.at && ways_out(a) == ways_out(b) && original(a) == original(b) && a.transparent == b.transparent &&
         a.transparent_port == b.transparent_port;
}

bool operator==(const Outcome& a, const Outcome& b) {
  const bool known = a.kind != Outcome::Kind::unknown && a.answers != Outcome::Answers::unknown;
  return same_place(a, b) && a.answers == b.answers && (known || (a.why == b.why && a.answers_why == b.answers_why));
}

std::string sentence(const Outcome& outcome) { return printable(sentence_of(outcome)); }

}  // namespace sidetrack
