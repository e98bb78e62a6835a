// SPDX-License-Identifier: GPL-2.0-or-later
// Random packets: for explain, for a socket, and what the socket would see if explain is right.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "rule/live.h"
#include "support/pod.h"
#include "walk/explain.h"

namespace sidetrack::netns {

// $SIDETRACK_SEED, or the usual one.
[[nodiscard]] unsigned seed();

class Dice {
 public:
  explicit Dice(unsigned index) {
    std::seed_seq sequence{seed(), index};
    engine_.seed(sequence);
  }

  // The engine's own numbers: the standard's distributions differ from library to library.
  unsigned below(std::size_t end) { return static_cast<unsigned>(engine_() % end); }
  bool percent(unsigned chance) { return below(100) < chance; }
  template <typename T>
  const T& one_of(const std::vector<T>& items) {
    return items[engine_() % items.size()];
  }
  // Some of them, in their order, with commas; maybe none.
  std::string some_of(const std::vector<std::string>& items) {
    std::string list;
    for (const std::string& item : items) {
      if (percent(45)) list += (list.empty() ? "" : ",") + item;
    }
    return list;
  }

 private:
  std::mt19937 engine_;
};

// A packet for explain, and the same for a socket.
struct Probe {
  Packet packet;
  Actor actor;
  Request request;
  [[nodiscard]] std::string text() const {
    return fmt::format("{} {} to {}{} by uid {} gid {}",
                       actor.place == Place::pod     ? "from the pod"
                       : actor.place == Place::guest ? "from the guest"
                                                     : "from outside",
                       name(request.protocol), request.to.text(), request.from ? " from " + request.from->text() : "",
                       actor.identity.uid, actor.identity.gid);
  }
};

[[nodiscard]] Probe random_probe(Dice& dice, bool has_ipv6_source);

// What a socket would see of an outcome that is known.
[[nodiscard]] Landing predicted(const Outcome& outcome, Protocol protocol, const Pod& pod);

// All rules of the namespace that the calling thread is in.
[[nodiscard]] std::vector<Live> read_all();

}  // namespace sidetrack::netns
