// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/printable.h"
#include "render/json_parts.h"
#include "sidetrack/render.h"

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

// What shaped the plan, by the names of the flags; environment-only settings by their variables.
Json configuration(const Config& config, const Plan& plan) {
  return {
      {"envoy-port", config.proxy_port},
      {"inbound-capture-port", config.inbound_port},
      {"inbound-tunnel-port", config.tunnel_port},
      {"proxy-uid", list(config.proxy_uids)},
      {"proxy-gid", list(config.proxy_gids)},
      {"istio-inbound-interception-mode", mode(config.mode)},
      {"istio-inbound-ports", list(config.inbound_ports)},
      {"istio-local-exclude-ports", list(config.inbound_exclude_ports)},
      {"istio-exclude-interfaces", list(config.exclude_interfaces)},
      {"istio-service-cidr", list(config.outbound_ranges)},
      {"istio-service-exclude-cidr", list(config.outbound_exclude_ranges)},
      {"istio-outbound-ports", list(config.outbound_ports)},
      {"istio-local-outbound-ports-exclude", list(config.outbound_exclude_ports)},
      {"kube-virt-interfaces", list(config.virtual_interfaces)},
      {"istio-inbound-tproxy-mark", config.tproxy_mark},
      {"istio-inbound-tproxy-route-table", config.tproxy_route_table},
      {"redirect-dns", config.redirect_dns},
      {"capture-all-dns", config.capture_all_dns},
      {"drop-invalid", config.drop_invalid},
      {"dual-stack", config.dual_stack},
      {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", config.loopback_ipv4.text()},
      {"ISTIO_OUTBOUND_OWNER_GROUPS", list(config.owner_groups)},
      {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE", list(config.owner_groups_exclude)},
      {"ip-families", families_json(plan.families)},
      {"dns-server", list(plan.dns_servers)},
  };
}

Json rule(const Rule& rule) {
  Json matches = Json::array();
  for (const Match& match : rule.matches) matches.push_back(iptables_words(match));
  return {{"families", families_json(rule.families)},
          {"table", name(rule.table)},
          {"chain", rule.chain},
          {"rule", iptables_words(rule)},
          {"matches", std::move(matches)},
          {"target", iptables_words(rule.target)},
          {"flag", rule.reason.flag},
          {"reason", rule.reason.sentence}};
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

}  // namespace

std::string dumped(Json document, int indent) {
  make_valid(document);
  return printable_json(document.dump(indent)) + "\n";
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
    if (r.behind_others) rule["priority"] = *r.behind_others;
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
