// SPDX-License-Identifier: GPL-2.0-or-later
// Random options, and random rules and settings beside those of a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "pod/pod_view.h"
#include "rule/live.h"
#include "space/interval_set.h"

namespace sidetrack::space {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t end) { return engine_() % end; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  template <typename T, std::size_t N>
  const T& of(const T (&choices)[N]) {
    return choices[below(N)];
  }
  Value in(std::span<const Interval> set) {
    const Interval& one = set[below(set.size())];
    const Value wide = one.last - one.first;
    const Value any = Value{engine_()} << 64 | engine_();
    return one.first + (wide == ~Value{0} ? any : any % (wide + 1));
  }

 private:
  std::mt19937_64 engine_;
};

[[nodiscard]] std::string random_options(Random& random);
[[nodiscard]] Match random_match(Random& random);
// A rule of another program, for that chain.
[[nodiscard]] LiveRule random_rule(Random& random, Families families, Table table, const std::string& chain);
// Chains of another program in iptables' tables.
void add_others(Random& random, Live& live);
// Two interfaces, and settings of the kernel beside the rules.
void add_settings(Random& random, PodView& pod);

}  // namespace sidetrack::space
