// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "inject/manifest/scalar.h"
#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::manifest {

Node Node::string(std::string_view text) {
  Node node;
  node.type = Type::string;
  node.text = text;
  node.style = Style::double_quoted;
  return node;
}

const Node* Node::find_any(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &Entry::key);
  return found == entries.end() ? nullptr : &found->value;
}

const Node* Node::find(std::string_view key) const {
  const Node* found = find_any(key);
  if (found != nullptr) found->check_fault(key);
  return found != nullptr && !found->is_null() ? found : nullptr;
}

Node* Node::find(std::string_view key) {
  const Node* found = std::as_const(*this).find(key);
  if (found == nullptr) return nullptr;
  auto& own = entries.own();
  return &std::ranges::find(own, key, &Entry::key)->value;
}

void Node::check_fault(std::string_view key, std::string_view where) const {
  if (fault == Fault::none) return;
  throw Error(ExitCode::usage, fmt::format("{}line {}: '{}': {}", where, line, excerpt(key),
                                           fault == Fault::repeated ? "duplicate key" : "!!binary: expected text"));
}

const Node* child(const Node* mapping, std::string_view key) {
  return mapping != nullptr && mapping->type == Node::Type::mapping ? mapping->find(key) : nullptr;
}

std::string child_text(const Node* mapping, std::string_view key) {
  const Node* found = child(mapping, key);
  return found == nullptr ? "" : found->text;
}

bool Node::is_true() const { return type == Type::boolean && manifest::is_true(text); }

namespace {

bool same_scalar(const Node& a, const Node& b) {
  if (a.is_null() || a.text == b.text) return true;
  if (a.type == Node::Type::boolean) return a.is_true() == b.is_true();
  return a.type == Node::Type::number && json_number(a.text) == json_number(b.text);
}

}  // namespace

bool operator==(const Node& a, const Node& b) {
  return a.type == b.type && same_scalar(a, b) && a.items == b.items && a.entries == b.entries;
}

bool operator==(const Entry& a, const Entry& b) { return a.key == b.key && a.value == b.value; }

std::string_view name(Node::Type type) {
  constexpr std::string_view names[] = {"null", "a boolean", "a number", "a string", "a list", "a mapping"};
  return names[static_cast<std::size_t>(type)];  // in the order of the enumeration
}

}  // namespace sidetrack::manifest
