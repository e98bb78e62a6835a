// SPDX-License-Identifier: GPL-2.0-or-later
#include "manifest/patch.h"

#include <fmt/format.h>

#include <algorithm>

#include "manifest/write.h"

namespace sidetrack::manifest {
namespace {

// A reference token of a JSON Pointer (RFC 6901).
std::string token(std::string_view key) {
  std::string made;
  for (const char c : key) made += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return made;
}

class Patch {
 public:
  std::string made = "[";

  void compare(const Node& before, const Node& after, const std::string& path) {
    if (before == after) return;
    if (before.type == Node::Type::mapping && after.type == Node::Type::mapping) {
      mappings(before, after, path);
    } else if (before.type == Node::Type::list && after.type == Node::Type::list) {
      lists(before, after, path);
    } else {
      operation("replace", path, &after);
    }
  }

 private:
  void operation(std::string_view op, const std::string& path, const Node* value) {
    if (made.size() > 1) made += ',';
    made += fmt::format(R"({{"op":"{}","path":{})", op, json_text(Node::string(path)));
    if (value != nullptr) made += R"(,"value":)" + json_text(*value);
    made += '}';
  }

  void mappings(const Node& before, const Node& after, const std::string& path) {
    for (const Entry& entry : before.entries) {
      if (std::ranges::find(after.entries, entry.key, &Entry::key) == after.entries.end())
        operation("remove", fmt::format("{}/{}", path, token(entry.key)), nullptr);
    }
    for (const Entry& entry : after.entries) {
      const auto same = std::ranges::find(before.entries, entry.key, &Entry::key);
      const std::string member = fmt::format("{}/{}", path, token(entry.key));
      if (same == before.entries.end()) {
        operation("add", member, &entry.value);
      } else {
        compare(same->value, entry.value, member);
      }
    }
  }

  // What both begin and end with stays. Of the rest as many are compared as both have, the others removed or added.
  void lists(const Node& before, const Node& after, const std::string& path) {
    const auto& old = before.items;
    const auto& now = after.items;
    const std::size_t shorter = std::min(old.size(), now.size());
    std::size_t first = 0;
    while (first < shorter && old[first] == now[first]) ++first;
    std::size_t last = 0;
    while (last < shorter - first && old[old.size() - 1 - last] == now[now.size() - 1 - last]) ++last;
    const std::size_t old_end = old.size() - last;
    const std::size_t now_end = now.size() - last;
    const std::size_t both = std::min(old_end, now_end);
    for (std::size_t i = first; i < both; ++i) compare(old[i], now[i], fmt::format("{}/{}", path, i));
    for (std::size_t i = old_end; i > std::max(both, first); --i)
      operation("remove", fmt::format("{}/{}", path, i - 1), nullptr);
    for (std::size_t i = std::max(both, first); i < now_end; ++i)
      operation("add", fmt::format("{}/{}", path, i), &now[i]);
  }
};

}  // namespace

std::string patch(const Node& before, const Node& after) {
  Patch patch;
  patch.compare(before, after, "");
  return patch.made + "]";
}

}  // namespace sidetrack::manifest
