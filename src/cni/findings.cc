// SPDX-License-Identifier: GPL-2.0-or-later
#include "cni/findings.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/backend_kind.h"

namespace sidetrack::cni {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<PodState, std::string_view> states[] = {
    {PodState::as_recorded, "as_recorded"},   {PodState::repaired, "repaired"}, {PodState::differs, "differs"},
    {PodState::not_recorded, "not_recorded"}, {PodState::gone, "gone"},         {PodState::unknown, "unknown"},
};

// ---- Each value of the document; false for what is none of its type.

bool take(const Json& json, std::string& text) {
  if (!json.is_string()) return false;
  text = json.get_ref<const std::string&>();
  return true;
}

bool take(const Json& json, bool& value) {
  if (!json.is_boolean()) return false;
  value = json.get<bool>();
  return true;
}

bool take(const Json& json, PodState& state) {
  std::string word;
  const auto* found = take(json, word) ? std::ranges::find(states, word, [](const auto& each) { return each.second; })
                                       : std::end(states);
  if (found == std::end(states)) return false;
  state = found->first;
  return true;
}

struct BackendName : std::string {};
bool take(const Json& json, BackendName& backend) {
  std::string& text = backend;
  return take(json, text) && std::ranges::any_of(all_backends, [&](BackendKind kind) { return name(kind) == text; });
}

bool take(const Json& json, Address& address) {
  std::string word;
  const auto parsed = take(json, word) ? Address::parse(word) : std::nullopt;
  if (parsed) address = *parsed;
  return parsed.has_value();
}

template <typename Item, typename Value>
bool take_each(const Json& json, std::vector<Value>& values) {
  if (!json.is_array()) return false;
  for (const Json& each : json) {
    Item item{};
    if (!take(each, item)) return false;
    values.push_back(std::move(item));
  }
  return true;
}

}  // namespace

std::string_view name(PodState state) {
  const auto* found = std::ranges::find(states, state, &std::pair<PodState, std::string_view>::first);
  return found != std::end(states) ? found->second : "";
}

std::string text_of(const Findings& findings) {
  std::vector<std::string> addresses;
  std::ranges::transform(findings.addresses, std::back_inserter(addresses), &Address::text);
  return Json{{"state", name(findings.state)}, {"backends", findings.backends}, {"captured", findings.captured},
              {"addresses", addresses},        {"ambient", findings.ambient},   {"detail", findings.detail}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Findings> findings_of(std::string_view text) {
  constexpr int deepest = 2;  // of the document, its lists, and what is in them
  const auto is_flat = [](int depth, Json::parse_event_t, Json&) { return depth <= deepest; };
  const Json told = Json::parse(text, is_flat, false);
  constexpr std::size_t keys = 6;
  if (!told.is_object() || told.size() != keys) return std::nullopt;
  Findings findings;
  const auto of = [&](const char* key) {
    const auto found = told.find(key);
    return found != told.end() ? *found : Json();
  };
  const bool whole = take(of("state"), findings.state) && take_each<BackendName>(of("backends"), findings.backends) &&
                     take(of("captured"), findings.captured) &&
                     take_each<Address>(of("addresses"), findings.addresses) && take(of("ambient"), findings.ambient) &&
                     take(of("detail"), findings.detail);
  return whole ? std::optional(std::move(findings)) : std::nullopt;
}

}  // namespace sidetrack::cni
