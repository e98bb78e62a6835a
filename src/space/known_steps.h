// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <deque>
#include <map>
#include <tuple>

#include "walk/explain.h"

namespace sidetrack::space {

// One copy of each rule or policy that decides, or leaves packets alone: what is known of very many packets points to
// it.
class KnownSteps {
 public:
  const Step* of(const Step& step) {
    const Step*& known = known_[{step.live, step.in, step.number}];
    if (known == nullptr) {
      name_chain(all_.emplace_back(step));
      known = &all_.back();
    }
    return known;
  }

 private:
  std::deque<Step> all_;
  std::map<std::tuple<const LiveRule*, const LiveChain*, unsigned>, const Step*> known_;
};

}  // namespace sidetrack::space
