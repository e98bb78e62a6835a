// SPDX-License-Identifier: GPL-2.0-or-later
// The pieces that the JSON documents share.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "apply/diff.h"
#include "apply/obstacles.h"
#include "pod/routing.h"

namespace sidetrack {

using Json = nlohmann::ordered_json;

// Returns the array of what `make` returns for each.
template <typename List, typename Make>
[[nodiscard]] Json array_of(const List& list, const Make& make) {
  Json all = Json::array();
  for (const auto& each : list) all.push_back(make(each));
  return all;
}

// Returns the object of these members, in order. Braces alone make code for each length of a key.
[[nodiscard]] Json object(std::initializer_list<std::pair<const char*, Json>> members);

[[nodiscard]] Json families_json(Families families);      // ["ipv4", "ipv6"]
[[nodiscard]] Json routing_json(const Routing& routing);  // {"rules": […], "routes": […], "addresses": […]}

[[nodiscard]] Json obstacles_json(std::span<const Obstacle> obstacles);
[[nodiscard]] Json pod_diff_json(const PodDiff& pod_diff);

// The document as text. Never throws: bytes that are no UTF-8 are escaped, what a terminal would obey is written as
// JSON's \uXXXX.
enum class Lines : bool { one, many };
[[nodiscard]] std::string dumped(Json document, Lines lines = Lines::many);

// The pieces of a document that is written piece by piece, laid out as dumped() does at that indent.
inline constexpr std::size_t widest_line = 120;
[[nodiscard]] std::string laid_out(Json value, std::size_t indent);
[[nodiscard]] std::string member_text(std::string_view key, Json value, std::size_t indent);  // "key": value

}  // namespace sidetrack
