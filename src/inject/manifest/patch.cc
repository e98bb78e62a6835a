// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/patch.h"

#include <fmt/format.h>

#include <algorithm>

#include "inject/manifest/key_index.h"
#include "inject/manifest/write.h"

namespace sidetrack::manifest {
namespace {

// A reference token of a JSON Pointer (RFC 6901).
std::string token(std::string_view key) {
  std::string made;
  for (const char c : key) (c == '~' || c == '/') ? made += (c == '~' ? "~0" : "~1") : made += c;
  return made;
}

class Patch {
 public:
  explicit Patch(std::size_t most) : most_(most) {}

  // False: it would be too long.
  bool compare(const Node& before, const Node& after) {
    if (before == after) return true;
    const bool is_deep = path_.size() >= longest_path;
    if (!is_deep && before.type == Node::Type::mapping && after.type == Node::Type::mapping)
      return mappings(before.entries, after.entries);
    if (!is_deep && before.type == Node::Type::list && after.type == Node::Type::list)
      return lists(before.items, after.items);
    return operation("replace", &after);
  }

  std::string made = "[";

 private:
  // What differs below is replaced with what it is in: each level compares again what is below it, and the path of each
  // change names all above it.
  static constexpr std::size_t longest_path = 10;

  bool operation(std::string_view op, const Node* value) {
    std::string path;
    for (const std::string& each : path_) path += "/" + each;
    if (made.size() + path.size() >= most_) return false;
    if (made.size() > 1) made += ',';
    made += fmt::format(R"({{"op":"{}","path":{})", op, json_text(Node::string(path)));
    if (value != nullptr) made += R"(,"value":)" + json_text(*value);
    made += '}';
    return made.size() < most_;  // with the bracket at the end
  }

  // What `act` does, below the key or index.
  template <typename Act>
  bool below(std::string key, Act act) {
    path_.push_back(std::move(key));
    const bool fits = act();
    path_.pop_back();
    return fits;
  }
  bool remove(std::string key) {
    return below(std::move(key), [&] { return operation("remove", nullptr); });
  }
  bool add(std::string key, const Node& value) {
    return below(std::move(key), [&] { return operation("add", &value); });
  }

  bool mappings(const Shared<Entry>& before, const Shared<Entry>& after) {
    const KeyIndex old_keys(before, &Entry::key);
    const KeyIndex new_keys(after, &Entry::key);
    for (const Entry& entry : before) {
      if (!new_keys.contains(entry.key) && !remove(token(entry.key))) return false;
    }
    return std::ranges::all_of(after, [&](const Entry& entry) {
      const auto same = old_keys.find(entry.key);
      if (!same) return add(token(entry.key), entry.value);
      return below(token(entry.key), [&] { return compare(before[*same].value, entry.value); });
    });
  }

  // What both begin and end with stays. Of the rest as many are compared as both have, the others removed or added.
  bool lists(const Shared<Node>& old, const Shared<Node>& now) {
    const std::size_t shorter = std::min(old.size(), now.size());
    std::size_t first = 0;
    while (first < shorter && old[first] == now[first]) ++first;
    std::size_t last = 0;
    while (last < shorter - first && old[old.size() - 1 - last] == now[now.size() - 1 - last]) ++last;
    const std::size_t old_end = old.size() - last;
    const std::size_t now_end = now.size() - last;
    const std::size_t both = std::min(old_end, now_end);
    for (std::size_t i = first; i < both; ++i) {
      if (!below(std::to_string(i), [&] { return compare(old[i], now[i]); })) return false;
    }
    for (std::size_t i = old_end; i > std::max(both, first); --i) {
      if (!remove(std::to_string(i - 1))) return false;
    }
    for (std::size_t i = std::max(both, first); i < now_end; ++i) {
      if (!add(std::to_string(i), now[i])) return false;
    }
    return true;
  }

  std::size_t most_;
  std::vector<std::string> path_;  // from key to key, as tokens
};

}  // namespace

std::optional<std::string> patch(const Node& before, const Node& after, std::size_t most) {
  Patch patch(most);
  if (!patch.compare(before, after)) return std::nullopt;
  return std::move(patch.made) + "]";
}

}  // namespace sidetrack::manifest
