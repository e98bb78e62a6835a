// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/interval_set.h"

#include <algorithm>

namespace sidetrack::space {
namespace {

constexpr Value highest = ~Value{0};

// The first that does not end before the value.
Intervals::const_iterator first_from(const Intervals& set, Value value) {
  return std::ranges::lower_bound(set, value, {}, &Interval::last);
}

Intervals common(const Intervals& a, const Intervals& b) {
  Intervals result;
  if (a.empty() || b.empty()) return result;
  auto left = first_from(a, b.front().first);
  auto right = first_from(b, a.front().first);
  while (left != a.end() && right != b.end()) {
    const Value first = std::max(left->first, right->first);
    const Value last = std::min(left->last, right->last);
    if (first <= last) result.push_back({first, last});
    ++(left->last < right->last ? left : right);
  }
  return result;
}

Intervals difference(const Intervals& a, const Intervals& b) {
  Intervals result;
  if (a.empty()) return result;
  auto taken = first_from(b, a.front().first);
  for (Interval rest : a) {
    while (taken != b.end() && taken->last < rest.first) ++taken;
    bool left = true;
    for (auto each = taken; left && each != b.end() && each->first <= rest.last; ++each) {
      if (each->first > rest.first) result.push_back({rest.first, each->first - 1});
      left = each->last < rest.last;
      if (left) rest.first = each->last + 1;
    }
    if (left) result.push_back(rest);
  }
  return result;
}

double size(const Intervals& set) {
  double sum = 0;
  for (const Interval& each : set) sum += static_cast<double>(each.last - each.first) + 1;
  return sum;
}

}  // namespace

Intervals normal(Intervals any) {
  std::ranges::sort(any, {}, &Interval::first);
  Intervals result;
  for (const Interval& each : any) {
    const bool touches = !result.empty() && (result.back().last == highest || each.first <= result.back().last + 1);
    if (!touches) {
      result.push_back(each);
    } else {
      result.back().last = std::max(result.back().last, each.last);
    }
  }
  return result;
}

Sets::Sets() { of({}); }

std::size_t Sets::hash(const Intervals& set) {
  std::uint64_t made = set.size();
  const auto add = [&](Value value) {
    for (const auto half : {static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(value >> 64)})
      made = (made ^ half) * 0x9e3779b97f4a7c15U + (made >> 29);
  };
  for (const Interval& each : set) {
    add(each.first);
    add(each.last);
  }
  return made;
}

Sets::Id Sets::of(Intervals set) {
  const std::size_t key = hash(set);
  const auto [first, last] = ids_.equal_range(key);
  const auto found = std::find_if(first, last, [&](const auto& one) { return one.second.first == set; });
  if (found != last) return found->second.second;
  const auto id = static_cast<Id>(sets_.size());
  const auto added = ids_.emplace(key, std::pair(std::move(set), id));
  sets_.push_back(&added->second.first);
  return id;
}

Sets::Id Sets::worked_out(Operation operation, Id a, Id b) {
  Memo& known = results_[static_cast<std::size_t>(operation)];
  const std::uint64_t key = std::uint64_t{a} << 32 | b;
  if (const auto* found = known.find(key)) return *found;
  Intervals made;
  switch (operation) {
    case Operation::both:
      made = common(*sets_[a], *sets_[b]);
      break;
    case Operation::without:
      made = difference(*sets_[a], *sets_[b]);
      break;
    case Operation::either:
      made = *sets_[a];
      made.insert(made.end(), sets_[b]->begin(), sets_[b]->end());
      made = normal(std::move(made));
      break;
  }
  const Id result = of(std::move(made));
  known.add(key, result);
  return result;
}

Sets::Id Sets::both(Id a, Id b) {
  if (a == b || a == empty || b == empty) return a == b ? a : empty;
  return worked_out(Operation::both, std::min(a, b), std::max(a, b));
}

Sets::Id Sets::without(Id a, Id b) {
  if (a == b || a == empty || b == empty) return b == empty ? a : empty;
  return worked_out(Operation::without, a, b);
}

Sets::Id Sets::either(Id a, Id b) {
  if (a == b || a == empty || b == empty) return a == empty ? b : a;
  return worked_out(Operation::either, std::min(a, b), std::max(a, b));
}

bool Sets::contains(Id set, Value value) const {
  const Intervals& all = *sets_[set];
  const auto next = std::ranges::upper_bound(all, value, {}, &Interval::first);
  return next != all.begin() && std::prev(next)->last >= value;
}

double Sets::share(Id part, Id whole) const {
  const double of = size(*sets_[whole]);
  return of == 0 ? 0 : size(*sets_[part]) / of;
}

}  // namespace sidetrack::space
