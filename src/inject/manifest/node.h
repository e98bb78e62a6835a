// SPDX-License-Identifier: GPL-2.0-or-later
// A document of YAML or JSON as a value: its types as Kubernetes reads them, its order and its quotes as written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

// Whoever wrote the document decides how large it is: beyond these it is refused. A List of all pods of a large cluster
// is within them.
inline constexpr std::size_t largest_document = 32U << 20;  // bytes
inline constexpr std::size_t deepest_node = 100;            // how deep lists and mappings nest
inline constexpr std::size_t most_aliased = 100'000;  // nodes that aliases stand for: a few bytes each of the text
struct Limits {
  std::size_t nodes = 2'000'000;                 // with each alias counted as what it stands for
  std::size_t aliased_bytes = largest_document;  // of the texts that aliases stand for
};
// What an annotation holds is small, and anybody who may make pods may write it.
inline constexpr Limits limits_of_annotation{.nodes = 50'000, .aliased_bytes = 1U << 20};

struct Entry;

struct Node {
  enum class Type : std::uint8_t { null, boolean, number, string, list, mapping };
  enum class Style : std::uint8_t { plain, single_quoted, double_quoted, literal, folded };

  Type type = Type::null;
  Style style = Style::plain;  // of a scalar
  bool flow = false;           // a list or mapping in brackets
  // Says what is wrong with a mapping's value: its key is a duplicate, and this is the last; or its bytes are in
  // base64.
  enum class Fault : std::uint8_t { none, repeated, binary };
  Fault fault = Fault::none;
  std::uint32_t line = 0;  // counts from 1; 0: not known
  std::string text;        // of a scalar, as written: "yes", "0x1F", "~"; of a string what it says
  Shared<Node> items;      // of a list
  Shared<Entry> entries;   // of a mapping, in order; no two of one key

  [[nodiscard]] static Node string(std::string_view text);
  [[nodiscard]] bool is_null() const { return type == Type::null; }
  [[nodiscard]] bool is_scalar() const { return type != Type::list && type != Type::mapping; }

  // Returns the value of a mapping's key; nullptr if there is none. A value of null counts as none, as it does for
  // Kubernetes. Throws as check_fault() does.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] Node* find(std::string_view key);

  // The same without a look at what is wrong with the value.
  [[nodiscard]] const Node* find_any(std::string_view key) const;

  // Throws Error (usage) that begins with `where` for a value that is not read, whose key is `key`: what is read must
  // not depend on who reads it.
  void check_fault(std::string_view key, std::string_view where = {}) const;

  // Of a boolean.
  [[nodiscard]] bool is_true() const;
};

struct Entry {
  std::string key;
  Node::Style style = Node::Style::plain;  // of the key
  Node value;
};

// Returns the value of a key; nullptr if there is none, or nothing that has keys. Throws as Node::find() does.
[[nodiscard]] const Node* child(const Node* mapping, std::string_view key);
// Returns the text of the same; empty if there is none, or it is no scalar.
[[nodiscard]] std::string child_text(const Node* mapping, std::string_view key);

// Equal in meaning: the same types, values and order, however they are written.
[[nodiscard]] bool operator==(const Node& a, const Node& b);
[[nodiscard]] bool operator==(const Entry& a, const Entry& b);

// "a string", "a mapping": for messages.
[[nodiscard]] std::string_view name(Node::Type type);

}  // namespace sidetrack::manifest
