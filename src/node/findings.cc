// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/findings.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "mesh/other_meshes.h"
#include "model/backend_kind.h"
#include "render/json_parts.h"

namespace sidetrack::cni {
namespace {

void require(bool is_right) {
  if (!is_right) throw std::invalid_argument("not of a finding");
}

PodState state_of(std::string_view word) {
  const auto* const found = std::ranges::find(state_names, word);
  require(found != std::end(state_names));
  return static_cast<PodState>(found - state_names);
}
Address address_of(const std::string& word) {
  const auto parsed = Address::parse(word);
  require(parsed.has_value());
  return *parsed;
}
std::string backend_of(std::string word) {
  require(std::ranges::find(all_backends, word, [](BackendKind kind) { return name(kind); }) != std::end(all_backends));
  return word;
}
std::string mesh_of(std::string word) {
  require(is_other_mesh(word));
  return word;
}

template <typename Read>
auto each(const Json& texts, const Read& read) {
  std::vector<decltype(read(std::string()))> values;
  for (std::string& text : texts.get<std::vector<std::string>>()) values.push_back(read(std::move(text)));
  return values;
}

}  // namespace

std::string text_of(const Findings& findings) {
  return object({{"state", name(findings.state)},
                 {"backends", findings.backends},
                 {"meshes", findings.meshes},
                 {"captured", findings.captured},
                 {"addresses", array_of(findings.addresses, [](const Address& address) { return address.text(); })},
                 {"ambient", findings.ambient},
                 {"detail", findings.detail}})
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
