// SPDX-License-Identifier: GPL-2.0-or-later
// The pieces that the JSON documents share.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "apply/diff.h"
#include "apply/obstacles.h"
#include "pod/routing.h"

namespace sidetrack {

using Json = nlohmann::ordered_json;

[[nodiscard]] Json families_json(Families families);      // ["ipv4", "ipv6"]
[[nodiscard]] Json routing_json(const Routing& routing);  // {"rules": […], "routes": […], "addresses": […]}

[[nodiscard]] Json obstacles_json(std::span<const Obstacle> obstacles);
[[nodiscard]] Json comparison_json(const PodDiff& comparison);

// The document as text. Never throws: bytes that are no UTF-8 are escaped, what a terminal would obey is written as
// JSON's \uXXXX.
enum class Lines : bool { one, many };
[[nodiscard]] std::string dumped(Json document, Lines lines = Lines::many);

// A document of one list, {"NAME": […]}, that is written item by item.
class JsonList {
 public:
  JsonList(std::string_view name, const std::function<void(std::string_view)>& write);
  void add(Json item);
  void end();  // once, after the last item

 private:
  const std::function<void(std::string_view)>& write_;
  std::string text_;
  bool is_empty_ = true;
};

}  // namespace sidetrack
