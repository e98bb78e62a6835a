// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>
#include <iterator>
#include <optional>

#include "inject/manifest/key_index.h"
#include "inject/manifest/template.h"

namespace sidetrack::manifest {
namespace {

// What an item of a list is known by, as in the API of Kubernetes. Other lists are replaced.
struct ListKey {
  std::string_view list;
  std::string_view key;
};
constexpr ListKey list_keys[] = {
    {"env", "name"}, {"ports", "containerPort"}, {"volumeMounts", "mountPath"}, {"volumeDevices", "devicePath"}};

// The key by which the items of both values are known; nullopt: they are no lists of named things.
std::optional<std::string_view> key_of_items(std::string_view list, const Node& a, const Node& b) {
  const auto* const known = std::ranges::find(list_keys, list, &ListKey::list);
  const bool are_lists = a.type == Node::Type::list && b.type == Node::Type::list;
  return known != std::end(list_keys) && are_lists ? std::optional(known->key) : std::nullopt;
}

auto known_by(std::string_view key) {
  return [key](const Node& item) {
    const Node* id = item.find(key);
    return id == nullptr ? std::string_view() : std::string_view(id->text);
  };
}

// Items of `own` in their place, then those that `base` alone has.
Shared<Node> merged_list(const Shared<Node>& base, const Shared<Node>& own, std::string_view key) {
  const auto id_of = known_by(key);
  const KeyIndex known(own, id_of);
  std::vector<Node> made = own.get();
  for (const Node& item : base) {
    if (const auto same = known.find(id_of(item))) {
      made[*same] = merged(item, made[*same]);
    } else {
      made.push_back(item);
    }
  }
  return made;
}

// Items of `own` of which `base` has none.
std::vector<Node> items_without(const Shared<Node>& own, const Shared<Node>& base, std::string_view key) {
  const auto id_of = known_by(key);
  const KeyIndex known(base, id_of);
  std::vector<Node> made;
  std::ranges::copy_if(own, std::back_inserter(made), [&](const Node& item) { return !known.contains(id_of(item)); });
  return made;
}

}  // namespace

Node merged(const Node& base, const Node& own) {
  if (base.type != Node::Type::mapping || own.type != Node::Type::mapping) return own;
  const KeyIndex known(own.entries, &Entry::key);
  std::vector<Entry> entries = own.entries.get();
  for (const Entry& entry : base.entries) {
    const auto same = known.find(entry.key);
    if (!same) {
      entries.push_back(entry);
      continue;
    }
    Node& value = entries[*same].value;
    if (const auto key = key_of_items(entry.key, entry.value, value)) {
      value.items = merged_list(entry.value.items, value.items, *key);
    } else {
      value = merged(entry.value, value);
    }
  }
  Node made = own;
  made.entries = std::move(entries);
  return made;
}

Node without(const Node& own, const Node& base) {
  const KeyIndex known(base.entries, &Entry::key);
  std::vector<Entry> entries;
  for (const Entry& entry : own.entries) {
    const auto same = known.find(entry.key);
    if (!same) {
      entries.push_back(entry);
      continue;
    }
    const Node& value = base.entries[*same].value;
    Node rest = entry.value;
    if (const auto key = key_of_items(entry.key, entry.value, value)) {
      rest.items = items_without(entry.value.items, value.items, *key);
    } else if (entry.value.type == Node::Type::mapping && value.type == Node::Type::mapping) {
      rest = without(entry.value, value);
    } else {
      continue;
    }
    if (!rest.items.empty() || !rest.entries.empty()) entries.push_back({entry.key, entry.style, std::move(rest)});
  }
  Node made = own;
  made.entries = std::move(entries);
  return made;
}

}  // namespace sidetrack::manifest
