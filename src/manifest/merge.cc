// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>

#include "manifest/template.h"

namespace sidetrack::manifest {
namespace {

// What an item of a list is known by, as in the API of Kubernetes. Other lists are replaced.
struct ListKey {
  std::string_view list;
  std::string_view key;
};
constexpr ListKey list_keys[] = {
    {"env", "name"}, {"ports", "containerPort"}, {"volumeMounts", "mountPath"}, {"volumeDevices", "devicePath"}};

// Items of `own` in their place, then those that `base` alone has.
Node merged_list(const Node& base, const Node& own, std::string_view key) {
  Node made = own;
  const auto own_size = static_cast<std::ptrdiff_t>(own.items.size());
  const auto known_by = [&](const Node& item) {
    const Node* id = item.find(key);
    return id == nullptr ? std::string() : id->text;
  };
  for (const Node& item : base.items) {
    const std::string id = known_by(item);
    const auto own_end = made.items.begin() + own_size;
    const auto same = std::ranges::find(made.items.begin(), own_end, id, known_by);
    if (same == own_end) {
      made.items.push_back(item);
    } else {
      *same = merged(item, *same);
    }
  }
  return made;
}

}  // namespace

Node merged(const Node& base, const Node& own) {
  if (base.type != Node::Type::mapping || own.type != Node::Type::mapping) return own;
  Node made = own;
  for (const Entry& entry : base.entries) {
    const auto same = std::ranges::find(made.entries, entry.key, &Entry::key);
    if (same == made.entries.end()) {
      made.entries.push_back(entry);
      continue;
    }
    const auto* const list = std::ranges::find(list_keys, entry.key, &ListKey::list);
    const bool of_named =
        list != std::end(list_keys) && entry.value.type == Node::Type::list && same->value.type == Node::Type::list;
    same->value = of_named ? merged_list(entry.value, same->value, list->key) : merged(entry.value, same->value);
  }
  return made;
}

}  // namespace sidetrack::manifest
