// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/xt/rule_extensions.h"

#include <algorithm>

namespace sidetrack::xt {
namespace {

// The first kind that understands the extension reads it; the last one, unknown, takes any.
template <typename Read, typename... Kinds>
Read first_of(const ExtensionView& extension, Family family, std::type_identity<std::variant<Kinds...>>) {
  std::optional<Read> found;
  static_cast<void>(((found = Kinds::from_xt(extension, family)) || ...));
  return *std::move(found);
}

template <typename... Kinds>
Source source_in(std::string_view name, std::type_identity<std::variant<Kinds...>>) {
  for (const Sources& sources : {Kinds::sources()...}) {
    const auto found = std::ranges::find(sources, name, &Source::name);
    if (found != sources.end()) return *found;
  }
  return {};
}

}  // namespace

std::vector<Extension> matches_of(const Rule& rule) {
  std::vector<Extension> extensions;
  for (const Match& match : rule.matches) {
    std::visit([&](const auto& one) { one.to_xt(rule, extensions); }, match);
  }
  return extensions;
}

Extension target_of(const Target& target, Family family) {
  return std::visit([&](const auto& one) { return one.to_xt(family); }, target);
}

std::vector<Match> decode_match(const ExtensionView& extension, Family family) {
  return first_of<std::vector<Match>>(extension, family, std::type_identity<Match>{});
}

Target decode_target(const ExtensionView& extension, Family family) {
  return first_of<Target>(extension, family, std::type_identity<Target>{});
}

Source source_of(ExtensionKind kind, std::string_view name) {
  return kind == ExtensionKind::match ? source_in(name, std::type_identity<Match>{})
                                      : source_in(name, std::type_identity<Target>{});
}

}  // namespace sidetrack::xt
