// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/xt/rule_extensions.h"

#include <algorithm>

#include "rule/first_kind.h"

namespace sidetrack::xt {
namespace {

// Reads an extension as the first kind does that understands it; the last one, unknown, takes any.
template <typename Any>
auto decoded(const ExtensionView& extension, Family family) {
  return *first_kind(std::type_identity<Any>{},
                     [&]<typename Kind>(std::type_identity<Kind>) { return Kind::from_xt(extension, family); });
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
  return decoded<Match>(extension, family);
}

Target decode_target(const ExtensionView& extension, Family family) { return decoded<Target>(extension, family); }

Source source_of(ExtensionKind kind, std::string_view name) {
  return kind == ExtensionKind::match ? source_in(name, std::type_identity<Match>{})
                                      : source_in(name, std::type_identity<Target>{});
}

}  // namespace sidetrack::xt
