// SPDX-License-Identifier: GPL-2.0-or-later
#include "space/interval_set.h"

#include <algorithm>

namespace sidetrack::space {
namespace {

constexpr Value highest = ~Value{0};
constexpr std::size_t most_known = 1U << 20;  // results that are looked up
constexpr std::size_t few_sets = 4;           // so many are laid together one by one

using List = std::span<const Interval>;

// The first that does not end before the value.
List::iterator first_from(List set, Value value) { return std::ranges::lower_bound(set, value, {}, &Interval::last); }

template <typename One>
void for_each_common(List a, List b, const One& one) {
  if (a.empty() || b.empty()) return;
  auto left = first_from(a, b.front().first);
  auto right = first_from(b, a.front().first);
  while (left != a.end() && right != b.end()) {
    const Value first = std::max(left->first, right->first);
    const Value last = std::min(left->last, right->last);
    if (first <= last) one(Interval{first, last});
    ++(left->last < right->last ? left : right);
  }
}

// Adds what is in both to an empty result.
void intersect(List a, List b, Intervals& result) {
  for_each_common(a, b, [&](const Interval& each) { result.push_back(each); });
}

// Adds what is in `a` alone to an empty result.
void subtract(List a, List b, Intervals& result) {
  if (a.empty()) return;
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
}

// Adds one that begins no earlier than what is there.
void append(Intervals& result, const Interval& each) {
  const bool touches = !result.empty() && (result.back().last == highest || each.first <= result.back().last + 1);
  if (!touches) {
    result.push_back(each);
  } else {
    result.back().last = std::max(result.back().last, each.last);
  }
}

// Adds what is in one of them to an empty result.
void unite(List a, List b, Intervals& result) {
  result.reserve(a.size() + b.size());
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() || right != b.end()) {
    const bool of_left = right == b.end() || (left != a.end() && left->first <= right->first);
    append(result, of_left ? *left++ : *right++);
  }
}

std::uint32_t hash_of(List set) {
  std::uint64_t made = set.size();
  const auto add = [&](Value value) {
    for (const auto half : {static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(value >> 64)})
      made = (made ^ half) * 0x9e3779b97f4a7c15U + (made >> 29);
  };
  for (const Interval& each : set) {
    add(each.first);
    add(each.last);
  }
  return static_cast<std::uint32_t>(made ^ made >> 32);
}

double size(const Interval& interval) { return static_cast<double>(interval.last - interval.first) + 1; }

}  // namespace

Intervals normal(Intervals any) {
  std::ranges::sort(any, {}, &Interval::first);
  Intervals result;
  for (const Interval& each : any) append(result, each);
  return result;
}

Sets::Sets() { of({}); }

Sets::Id Sets::of(List set) {
  const std::uint32_t hash = hash_of(set);
  std::uint32_t& number = table_.slot(
      hash, sets_.size(), [&](Id id) { return hashes_[id]; },
      [&](Id id) { return std::ranges::equal(sets_[id], set); });
  if (number != 0) return number - 1;
  double values = 0;
  for (const Interval& each : set) values += size(each);
  sizes_.push_back(values);
  hulls_.push_back(set.empty() ? Hull() : Hull{{set.front().first, set.back().last}, set.size() == 1});
  hashes_.push_back(hash);
  sets_.push_back(kept_.keep(set));
  number = static_cast<Id>(sets_.size());
  return number - 1;
}

Sets::Id Sets::worked_out(Operation operation, Id a, Id b) {
  Memo& known = results_[static_cast<std::size_t>(operation)];
  const std::uint64_t key = std::uint64_t{a} << 32 | b;
  if (const auto* found = known.find(key)) return *found;
  scratch_.clear();
  switch (operation) {
    case Operation::intersection:
      intersect(sets_[a], sets_[b], scratch_);
      break;
    case Operation::difference:
      subtract(sets_[a], sets_[b], scratch_);
      break;
    case Operation::set_union:
      unite(sets_[a], sets_[b], scratch_);
      break;
  }
  const Id result = of(scratch_);
  if (known.size() >= most_known) known.clear();
  known.add(key, result);
  return result;
}

Sets::Id Sets::intersection(Id a, Id b) {
  if (a == b || a == empty || b == empty) return a == b ? a : empty;
  return worked_out(Operation::intersection, std::min(a, b), std::max(a, b));
}

Sets::Id Sets::difference(Id a, Id b) {
  if (a == b || a == empty || b == empty) return b == empty ? a : empty;
  return worked_out(Operation::difference, a, b);
}

Sets::Id Sets::set_union(Id a, Id b) {
  if (a == b || a == empty || b == empty) return a == empty ? b : a;
  return worked_out(Operation::set_union, std::min(a, b), std::max(a, b));
}

bool Sets::contains(Id set, Value value) const {
  const List all = sets_[set];
  const auto next = std::ranges::upper_bound(all, value, {}, &Interval::first);
  return next != all.begin() && std::prev(next)->last >= value;
}

bool Sets::is_within(Id part, Id whole) const {
  if (part == whole || part == empty) return true;
  const Hull& inner = hulls_[part];
  const Hull& outer = hulls_[whole];
  if (inner.all.first < outer.all.first || inner.all.last > outer.all.last) return false;
  if (outer.is_full) return true;
  const List all = sets_[whole];
  return std::ranges::all_of(sets_[part], [&](const Interval& one) {
    const auto there = first_from(all, one.first);
    return there != all.end() && there->first <= one.first && one.last <= there->last;
  });
}

bool Sets::meet(Id a, Id b) const {
  if (a == empty || b == empty) return false;
  const Hull& one = hulls_[a];
  const Hull& other = hulls_[b];
  if (one.all.last < other.all.first || other.all.last < one.all.first) return false;
  if (a == b || (one.is_full && other.is_full)) return true;
  const bool fewer = sets_[a].size() <= sets_[b].size();
  const List few = sets_[fewer ? a : b];
  const List many = sets_[fewer ? b : a];
  return std::ranges::any_of(few, [&](const Interval& each) {
    const auto there = first_from(many, each.first);
    return there != many.end() && there->first <= each.last;
  });
}

Intervals Sets::together(std::span<const Id> all) const {
  Intervals any;
  for (const Id each : all) any.insert(any.end(), sets_[each].begin(), sets_[each].end());
  return normal(std::move(any));
}

Sets::Id Sets::difference(Id a, std::span<const Id> all) {
  if (all.empty()) return a;
  if (all.size() == 1) return difference(a, all.front());
  scratch_.clear();
  subtract(sets_[a], together(all), scratch_);
  return of(scratch_);
}

Sets::Id Sets::set_union(std::span<const Id> all) {
  if (all.size() > few_sets) return of(together(all));
  Id result = empty;
  for (const Id each : all) result = set_union(result, each);
  return result;
}

std::vector<Sets::Common> Sets::in_common(std::span<const Id> left, std::span<const Id> right) {
  struct Piece {
    Interval interval;
    std::uint32_t set;
  };
  const auto pieces = [&](std::span<const Id> list) {
    std::vector<Piece> all;
    for (std::uint32_t i = 0; i < list.size(); ++i) {
      for (const Interval& each : sets_[list[i]]) all.push_back({each, i});
    }
    const auto first = [](const Piece& piece) { return piece.interval.first; };
    if (!std::ranges::is_sorted(all, {}, first)) std::ranges::sort(all, {}, first);
    return all;
  };
  struct Part {
    std::uint64_t pair;
    Interval interval;
  };
  std::vector<Part> parts;
  const std::vector<Piece> ones = pieces(left), others = pieces(right);
  for (auto one = ones.begin(), other = others.begin(); one != ones.end() && other != others.end();) {
    const Value first = std::max(one->interval.first, other->interval.first);
    const Value last = std::min(one->interval.last, other->interval.last);
    if (first <= last) parts.push_back({std::uint64_t{one->set} << 32 | other->set, {first, last}});
    ++(one->interval.last < other->interval.last ? one : other);
  }
  if (!std::ranges::is_sorted(parts, {}, &Part::pair)) std::ranges::stable_sort(parts, {}, &Part::pair);
  std::vector<Common> result;
  for (auto part = parts.begin(); part != parts.end();) {
    scratch_.clear();
    const std::uint64_t pair = part->pair;
    for (; part != parts.end() && part->pair == pair; ++part) append(scratch_, part->interval);
    result.push_back({static_cast<std::uint32_t>(pair >> 32), static_cast<std::uint32_t>(pair), of(scratch_)});
  }
  return result;
}

double Sets::share(Id part, Id whole) const {
  if (part == whole || sizes_[whole] == 0) return part == whole && part != empty ? 1 : 0;
  double values = 0;
  for_each_common(sets_[part], sets_[whole], [&](const Interval& each) { values += size(each); });
  return values / sizes_[whole];
}

}  // namespace sidetrack::space
