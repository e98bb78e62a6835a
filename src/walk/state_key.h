// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "model/packet.h"

namespace sidetrack {

// The bytes of Checkpoint::state. A value of the packet's own is written as which one it is, any other as it is.
class StateKey {
 public:
  StateKey() { bytes_.reserve(usual_size); }
  template <typename Value>
  requires(std::has_unique_object_representations_v<Value>) void add(const Value& value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add(const std::string& text) {
    add(text.size());
    bytes_ += text;
  }
  void add(const Endpoint& endpoint) {
    add(endpoint.address_origin);
    if (endpoint.address_origin == Origin::constant) {
      add(endpoint.address.family);
      add(endpoint.address.bytes);
    }
    add(endpoint.port_origin);
    if (endpoint.port_origin == Origin::constant) add(endpoint.port);
  }
  template <typename Value>
  void add(const std::optional<Value>& value) {
    add(value.has_value());
    if (value) add(*value);
  }

  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  static constexpr std::size_t usual_size = 512;
  std::string bytes_;
};

}  // namespace sidetrack
