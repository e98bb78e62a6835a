// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/findings.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "mesh/other_meshes.h"
#include "model/backend_kind.h"

namespace sidetrack::cni {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::pair<PodState, std::string_view> states[] = {
    {PodState::as_recorded, "as_recorded"},   {PodState::repaired, "repaired"}, {PodState::differs, "differs"},
    {PodState::not_recorded, "not_recorded"}, {PodState::gone, "gone"},         {PodState::unknown, "unknown"},
};

// Throws std::invalid_argument for what is none.
PodState state_of(std::string_view word) {
  const auto* const found = std::ranges::find(states, word, &std::pair<PodState, std::string_view>::second);
  if (found == std::end(states)) throw std::invalid_argument("a state");
  return found->first;
}
Address address_of(const std::string& word) {
  const auto parsed = Address::parse(word);
  if (!parsed) throw std::invalid_argument("an address");
  return *parsed;
}
std::string backend_of(std::string word) {
  if (std::ranges::find(all_backends, word, [](BackendKind kind) { return name(kind); }) == std::end(all_backends))
    throw std::invalid_argument("a backend");
  return word;
}

std::string mesh_of(std::string word) {
  if (!is_other_mesh(word)) throw std::invalid_argument("a mesh");
  return word;
}

template <typename Read>
auto each(const Json& texts, const Read& read) {
  std::vector<decltype(read(std::string()))> values;
  for (std::string& text : texts.get<std::vector<std::string>>()) values.push_back(read(std::move(text)));
  return values;
}

}  // namespace

std::string_view name(PodState state) {
  const auto* found = std::ranges::find(states, state, &std::pair<PodState, std::string_view>::first);
  return found != std::end(states) ? found->second : "";
}

std::string text_of(const Findings& findings) {
  std::vector<std::string> addresses;
  std::ranges::transform(findings.addresses, std::back_inserter(addresses), &Address::text);
  return Json{{"state", name(findings.state)}, {"backends", findings.backends}, {"meshes", findings.meshes},
              {"captured", findings.captured}, {"addresses", addresses},        {"ambient", findings.ambient},
              {"detail", findings.detail}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<Findings> findings_of(std::string_view text) {
  constexpr int deepest = 2;  // of the document, its lists, and what is in them
  const auto is_flat = [](int depth, Json::parse_event_t, Json&) { return depth <= deepest; };
  const Json told = Json::parse(text, is_flat, false);
  constexpr std::size_t keys = 7;
  if (!told.is_object() || told.size() != keys) return std::nullopt;
  try {
    return Findings{.backends = each(told.at("backends"), backend_of),
                    .meshes = each(told.at("meshes"), mesh_of),
                    .captured = told.at("captured").get<std::string>(),
                    .addresses = each(told.at("addresses"), address_of),
                    .ambient = told.at("ambient").get<bool>(),
                    .state = state_of(told.at("state").get<std::string>()),
                    .detail = told.at("detail").get<std::string>()};
  } catch (const Json::exception&) {  // a key that is missing, a value of another type
    return std::nullopt;
  } catch (const std::invalid_argument&) {
    return std::nullopt;
  }
}

}  // namespace sidetrack::cni
