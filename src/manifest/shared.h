// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace sidetrack::manifest {

// A list that copies share until one of them is changed: what aliases repeat, and what a pod keeps of itself when it is
// injected, is in memory once.
template <typename T>
class Shared {
 public:
  using value_type = T;

  Shared() = default;
  // Takes no more memory than the list needs.
  Shared(std::vector<T> list) {  // NOLINT: a list is one that nobody else has
    if (list.empty()) return;
    list.shrink_to_fit();
    list_ = std::make_shared<std::vector<T>>(std::move(list));
  }

  [[nodiscard]] const std::vector<T>& get() const {
    static const std::vector<T> none;
    return list_ ? *list_ : none;
  }
  // The list to change, which no copy shares from then on.
  [[nodiscard]] std::vector<T>& own() {
    if (!list_) {
      list_ = std::make_shared<std::vector<T>>();
    } else if (list_.use_count() > 1) {
      list_ = std::make_shared<std::vector<T>>(*list_);
    }
    return *list_;
  }

  [[nodiscard]] auto begin() const { return get().begin(); }
  [[nodiscard]] auto end() const { return get().end(); }
  [[nodiscard]] bool empty() const { return get().empty(); }
  [[nodiscard]] std::size_t size() const { return get().size(); }
  [[nodiscard]] const T& operator[](std::size_t place) const { return get()[place]; }
  [[nodiscard]] const T& front() const { return get().front(); }
  [[nodiscard]] const T& back() const { return get().back(); }

  // Without a look at what is shared.
  friend bool operator==(const Shared& a, const Shared& b) { return a.list_ == b.list_ || a.get() == b.get(); }

 private:
  std::shared_ptr<std::vector<T>> list_;
};

}  // namespace sidetrack::manifest
