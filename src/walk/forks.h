// SPDX-License-Identifier: GPL-2.0-or-later
// What is unknown about a packet's way is chosen; the way is walked again until every choice was made.
//
//   Forks forks(asked_marks);
//   do walk(forks); while (forks.next());
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "walk/in_flight.h"
#include "walk/route.h"

namespace sidetrack {

// Where a walk stands when it has to choose. From equal ones on all walks are alike.
struct ChoiceState {
  std::vector<const void*> place;  // the rules on the way there, or the chains that are left to be asked
  PacketState packet;
  friend bool operator==(const ChoiceState&, const ChoiceState&) = default;
};

struct Fork {
  std::string subject;               // "`-m bpf`"
  std::string what;                  // "whether `-m bpf` of rule 1 of filter OUTPUT holds"
  std::vector<std::string> options;  // "if it does not", "if it does"
  std::size_t steps = 0;             // of the trace, up to this choice
  std::size_t taken = 0;
  std::size_t first = 0;  // the option that was taken first
  // Returns the one that comes next, all in a circle.
  [[nodiscard]] std::size_t next() const { return (taken + 1) % options.size(); }
};

class Forks {
 public:
  // `asked_marks`: the bits of marks that anything asks for; walks that differ in others are alike.
  explicit Forks(std::uint32_t asked_marks) : asked_marks_(asked_marks) {}

  // Looks for a state up to which all is kept (see `keep`): the first walk takes these options, and none ends where
  // another one stood, which the observer tells until then.
  void look_for_state(std::vector<std::size_t> guide);

  // Which option this walk takes: the first one, or that of the guide, until `next`. Nothing: a walk has stood there
  // before, so that this one need not go on.
  std::optional<std::size_t> choose(Fork fork, ChoiceState choice_state);

  // By which of its route's next hops a packet leaves that is not bound to an interface; the same for all that asks
  // about that route and this address within one walk. `steps`: of the trace, up to this choice.
  std::optional<std::string> next_hop(const RouteLookup& way, const Address& destination, std::size_t steps,
                                      ChoiceState choice_state);

  // To the next walk; false if there is none.
  bool next();

  // Keeps what this walk has chosen so far: no other is made, and all that come next begin so.
  void keep();
  // Tells whether this walk still chooses as the one before it.
  [[nodiscard]] bool repeats() const { return at_ < again_; }
  // Tells whether this walk has chosen since then.
  [[nodiscard]] bool any() const { return at_ > kept_; }
  // Returns the options that it took.
  [[nodiscard]] std::vector<std::size_t> taken() const;

  // Of the walk that was made last.
  [[nodiscard]] const std::vector<Fork>& made() const { return made_; }
  // The same, without those that are kept.
  [[nodiscard]] std::span<const Fork> made_since() const { return std::span(made_).subspan(kept_); }

 private:
  std::uint32_t asked_marks_;
  std::vector<std::size_t> guide_;
  bool is_looking_ = false;  // for that state
  std::size_t kept_ = 0;
  std::vector<Fork> made_;
  std::size_t again_ = 0;  // so many of them are to be made as before
  std::size_t at_ = 0;
  std::vector<ChoiceState> seen_;
  std::map<std::pair<const Route*, Address>, std::string> hops_;  // of this walk
};

}  // namespace sidetrack
