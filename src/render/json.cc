// SPDX-License-Identifier: GPL-2.0-or-later
#include <algorithm>

#include "mesh/catalogue.h"
#include "model/iptables.h"
#include "model/printable.h"
#include "render/json_parts.h"
#include "render/render.h"

namespace sidetrack {
namespace {

std::string text_of(const AddressRange& range) { return range.text(); }
std::string text_of(const Address& address) { return address.text(); }
const std::string& text_of(const std::string& text) { return text; }
std::uint32_t text_of(std::uint32_t number) { return number; }

template <typename T>
Json list(const std::vector<T>& values) {
  Json result = Json::array();
  for (const T& value : values) result.push_back(text_of(value));
  return result;
}

template <typename T>
Json list(const Selection<T>& selection) {
  return selection.all ? Json::array({"*"}) : list(selection.list);
}

const char* mode(Mode mode) {
  switch (mode) {
    case Mode::redirect:
      return "REDIRECT";
    case Mode::tproxy:
      return "TPROXY";
    case Mode::none:
      return "NONE";
  }
  return "";
}

// What shaped the plan, by the names of the flags and of the variables that are no flags, in snake_case.
Json configuration(const Config& config, const Plan& plan) {
  return {
      {"envoy_port", config.proxy_port},
      {"inbound_capture_port", config.inbound_port},
      {"inbound_tunnel_port", config.tunnel_port},
      {"proxy_uid", list(config.proxy_uids)},
      {"proxy_gid", list(config.proxy_gids)},
      {"istio_inbound_interception_mode", mode(config.mode)},
      {"istio_inbound_ports", list(config.inbound_ports)},
      {"istio_local_exclude_ports", list(config.inbound_exclude_ports)},
      {"istio_exclude_interfaces", list(config.exclude_interfaces)},
      {"istio_service_cidr", list(config.outbound_ranges)},
      {"istio_service_exclude_cidr", list(config.outbound_exclude_ranges)},
      {"istio_outbound_ports", list(config.outbound_ports)},
      {"istio_local_outbound_ports_exclude", list(config.outbound_exclude_ports)},
      {"kube_virt_interfaces", list(config.virtual_interfaces)},
      {"istio_inbound_tproxy_mark", config.tproxy_mark},
      {"istio_inbound_tproxy_route_table", config.tproxy_route_table},
      {"redirect_dns", config.redirect_dns},
      {"capture_all_dns", config.capture_all_dns},
      {"drop_invalid", config.drop_invalid},
      {"dual_stack", config.dual_stack},
      {"istio_outbound_ipv4_loopback_cidr", config.loopback_ipv4.text()},
      {"istio_outbound_owner_groups", list(config.owner_groups)},
      {"istio_outbound_owner_groups_exclude", list(config.owner_groups_exclude)},
      {"ip_families", families_json(plan.families)},
      {"dns_server", list(plan.dns_servers)},
  };
}

Json rule(const Rule& rule) {
  Json matches = Json::array();
  for (const Match& match : rule.matches) matches.push_back(iptables_words(match));
  const Reason reason = reason_of(rule);
  return {{"families", families_json(rule.families)},
          {"table", name(rule.table)},
          {"chain", rule.chain},
          {"rule", iptables_words(rule)},
          {"matches", std::move(matches)},
          {"target", iptables_words(rule.target)},
          {"flag", reason.flag},
          {"reason", reason.sentence}};
}

// The JSON library takes UTF-8 alone.
void make_valid(Json& value) {
  if (value.is_string()) {
    auto& text = value.get_ref<std::string&>();
    text = valid_utf8(text);
  } else if (value.is_structured()) {
    for (Json& item : value) make_valid(item);
  }
}

std::string one_line(const Json& value) {
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [key, item] : value.items()) {
    text += text.empty() ? "" : ", ";
    if (value.is_object()) text += Json(key).dump() + ": ";
    text += one_line(item);
  }
  return value.is_object() ? "{" + text + "}" : "[" + text + "]";
}

// "15090", "10.0.0.0/8", "ipv4"; no sentence.
bool is_word(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().find(' ') == std::string::npos : value.is_primitive();
}

// What fits on a line stands on one, and each rule and each list of words does, however long: a change of rules then
// reads as what it is.
std::string laid_out(const Json& value, std::size_t indent, bool alone) {
  constexpr std::size_t widest = 120;
  std::string line = one_line(value);
  const bool words = value.is_array() && std::ranges::all_of(value, is_word);
  if (!value.is_structured() || alone || words || indent + line.size() <= widest) return line;
  const std::string margin(indent + 2, ' ');
  std::string text;
  for (const auto& [key, item] : value.items()) {
    text += (text.empty() ? "\n" : ",\n") + margin;
    if (value.is_object()) text += Json(key).dump() + ": ";
    text += laid_out(item, indent + 2, value.is_array() && item.is_object() && item.contains("rule"));
  }
  const std::string end = "\n" + std::string(indent, ' ');
  return value.is_object() ? "{" + text + end + "}" : "[" + text + end + "]";
}

}  // namespace

std::string dumped(Json document, Lines lines) {
  make_valid(document);
  return printable_json(lines == Lines::one ? document.dump() : laid_out(document, 0, false)) + "\n";
}

Json obstacles_json(std::span<const Obstacle> obstacles) {
  Json made = Json::array();
  for (const Obstacle& obstacle : obstacles) {
    const auto text = [](const std::string& words) { return words.empty() ? Json() : Json(words); };
    made.push_back({{"rule", obstacle.rule},
                    {"packet", text(obstacle.packet)},
                    {"planned", text(obstacle.planned)},
                    {"instead", text(obstacle.instead)}});
  }
  return made;
}

Json families_json(Families families) {
  Json list = Json::array();
  for (Family family : families.list()) list.push_back(name(family));
  return list;
}

Json routing_json(const Routing& routing) {
  Json rules = Json::array();
  for (const PolicyRule& r : routing.policy_rules) {
    Json& rule = rules.emplace_back(Json{{"family", name(r.family)}, {"fwmark", r.mark}, {"lookup", r.table}});
    if (r.after_others) rule["priority"] = *r.after_others;
  }
  Json routes = Json::array();
  for (const LocalRoute& r : routing.local_routes) {
    routes.push_back(
        {{"family", name(r.family)}, {"type", "local"}, {"to", "default"}, {"dev", "lo"}, {"table", r.table}});
  }
  Json addresses = Json::array();
  for (const Address& address : routing.loopback_addresses) {
    addresses.push_back({{"address", AddressRange::single(address).text()}, {"dev", "lo"}});
  }
  return {{"rules", std::move(rules)}, {"routes", std::move(routes)}, {"addresses", std::move(addresses)}};
}

std::string json(const Plan& plan, const Config& config) {
  Json rules = Json::array();
  for (const Rule& r : plan.ruleset.rules) rules.push_back(rule(r));
  Json document = {{"configuration", configuration(config, plan)},
                   {"rules", std::move(rules)},
                   {"routing", routing_json(plan.routing)},
                   {"warnings", plan.warnings}};
  return dumped(std::move(document));
}

}  // namespace sidetrack
