// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace sidetrack::manifest {

// Finds items of a list by their key in logarithmic time, whatever the keys are: who writes a manifest chooses them.
// It is of the list as it was, which has to stay.
class KeyIndex {
 public:
  // `key_of` returns, or is the member that is, a text that lives in the item.
  template <typename Items, typename KeyOf>
  KeyIndex(const Items& items, KeyOf key_of) {
    keys_.reserve(items.size());
    for (const auto& item : items) keys_.emplace_back(std::invoke(key_of, item), keys_.size());
    std::ranges::sort(keys_);
  }

  // The place of the first with this key.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view key) const {
    const auto found = std::ranges::lower_bound(keys_, Key(key, 0));
    return found != keys_.end() && found->first == key ? std::optional(found->second) : std::nullopt;
  }
  [[nodiscard]] bool contains(std::string_view key) const { return find(key).has_value(); }

  // The place of an item that has the key of one before it.
  [[nodiscard]] std::optional<std::size_t> repeated() const {
    const auto found = std::ranges::adjacent_find(keys_, {}, &Key::first);
    return found != keys_.end() ? std::optional(std::next(found)->second) : std::nullopt;
  }

 private:
  using Key = std::pair<std::string_view, std::size_t>;
  std::vector<Key> keys_;
};

}  // namespace sidetrack::manifest
