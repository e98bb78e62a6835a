// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>
#include <variant>

#include "mesh/catalogue.h"
#include "model/printable.h"
#include "options/flags.h"
#include "render/json_parts.h"
#include "render/render.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

// By the names of the flags, and of the variables that are no flags: "envoy_port".
std::string key(const Flag& flag) {
  std::string made(flag.name.empty() ? flag.variables[0] : flag.name);
  for (char& c : made) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return made;
}

template <typename Value>
Json as_json(const Value& value) {
  return value;
}
Json as_json(const std::vector<AddressRange>& ranges) {
  return array_of(ranges, [](const AddressRange& range) { return range.text(); });
}

// One as a number, a range as it is written.
template <typename Number>
Json as_json(const std::vector<Range<Number>>& ranges) {
  return array_of(ranges, [](const Range<Number>& range) {
    return range.first == range.last ? Json(range.first) : Json(text(range));
  });
}

// What shaped the plan.
Json configuration(const Config& config, const Plan& plan) {
  Json made = Json::object();
  for (const Flag& flag : flags()) {
    if (!flag.is_of_plan()) continue;
    std::visit([&](const auto& value) { made[key(flag)] = as_json(value); }, flag.value_of.get(flag, config));
  }
  made["ip_families"] = families_json(plan.families);
  made["dns_server"] = array_of(plan.dns_servers, [](const Address& server) { return server.text(); });
  return made;
}

Json rule(const Rule& rule) {
  Json matches = array_of(rule.matches, [](const Match& match) { return iptables_words(match); });
  const Reason reason = reason_of(rule);
  return object({{"families", families_json(rule.families)},
                 {"table", name(rule.table)},
                 {"chain", rule.chain},
                 {"rule", iptables_words(rule)},
                 {"matches", std::move(matches)},
                 {"target", iptables_words(rule.target)},
                 {"flag", reason.flag},
                 {"reason", reason.sentence}});
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

// As dump() does it, which makes a serializer for each value.
void add_text(std::string_view text, std::string& line) {
  const auto is_plain = [](unsigned char c) { return c >= 0x20 && c != '"' && c != '\\' && c != 0x7f; };
  if (std::ranges::all_of(text, is_plain)) {
    line.append(1, '"').append(text).append(1, '"');
  } else {
    line += Json(text).dump();
  }
}

// Returns whether the line is no longer than `most`; what is longer is not worked out.
bool add_line(const Json& value, std::size_t most, std::string& line) {
  if (value.is_string()) {
    add_text(value.get_ref<const std::string&>(), line);
  } else if (!value.is_structured()) {
    line += value.dump();
  } else {
    line += value.is_object() ? "{" : "[";
    bool is_first = true;
    for (const auto& [key, item] : value.items()) {
      if (!std::exchange(is_first, false)) line += ", ";
      if (value.is_object()) {
        add_text(key, line);
        line += ": ";
      }
      if (!add_line(item, most, line)) return false;
    }
    line += value.is_object() ? "}" : "]";
  }
  return line.size() <= most;
}

// "15090", "10.0.0.0/8", "ipv4"; no sentence.
bool is_word(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().find(' ') == std::string::npos : value.is_primitive();
}

// What fits on a line stands on one, and each rule and each list of words does, however long: a change of rules then
// reads as what it is.
std::string lines_of(const Json& value, std::size_t indent, bool alone) {
  const bool words = value.is_array() && std::ranges::all_of(value, is_word);
  const bool is_one = !value.is_structured() || alone || words;
  std::string line;
  if (add_line(value, is_one ? ~std::size_t{0} : widest_line - std::min(widest_line, indent), line)) return line;
  const std::string margin(indent + 2, ' ');
  std::string text;
  for (const auto& [key, item] : value.items()) {
    text += (text.empty() ? "\n" : ",\n") + margin;
    if (value.is_object()) text += Json(key).dump() + ": ";
    text += lines_of(item, indent + 2, value.is_array() && item.is_object() && item.contains("rule"));
  }
  const std::string end = "\n" + std::string(indent, ' ');
  return value.is_object() ? "{" + text + end + "}" : "[" + text + end + "]";
}

}  // namespace

std::string dumped(Json document, Lines lines) {
  if (lines == Lines::many) return laid_out(std::move(document), 0) + "\n";
  make_valid(document);
  return printable_json(document.dump()) + "\n";
}

std::string laid_out(Json value, std::size_t indent) {
  make_valid(value);
  return printable_json(lines_of(value, indent, false));
}

std::string member_text(std::string_view key, Json value, std::size_t indent) {
  return fmt::format("{}: {}", Json(key).dump(), laid_out(std::move(value), indent));
}

Json obstacles_json(std::span<const Obstacle> obstacles) {
  const auto text = [](const std::string& words) { return words.empty() ? Json() : Json(words); };
  return array_of(obstacles, [&](const Obstacle& obstacle) -> Json {
    return object({{"rule", obstacle.rule},
                   {"packet", text(obstacle.packet)},
                   {"planned", text(obstacle.planned)},
                   {"instead", text(obstacle.instead)}});
  });
}

Json object(std::initializer_list<std::pair<const char*, Json>> members) {
  Json made = Json::object();
  for (const auto& [key, value] : members) made[key] = value;
  return made;
}

Json families_json(Families families) {
  return array_of(families.list(), [](Family family) { return name(family); });
}

Json routing_json(const Routing& routing) {
  Json rules = array_of(routing.policy_rules, [](const PolicyRule& r) {
    Json rule = object({{"family", name(r.family)}, {"fwmark", r.mark}, {"lookup", r.table}});
    if (r.mask != 0xffffffff) rule["fwmask"] = r.mask;
    if (r.priority) rule["priority"] = *r.priority;
    return rule;
  });
  Json routes = array_of(routing.local_routes, [](const Route& r) -> Json {
    return object(
        {{"family", name(r.family())}, {"type", "local"}, {"to", "default"}, {"dev", "lo"}, {"table", r.table}});
  });
  Json addresses = array_of(routing.loopback_addresses, [](const Address& address) -> Json {
    return object({{"address", AddressRange::single(address).text()}, {"dev", "lo"}});
  });
  return object({{"rules", std::move(rules)}, {"routes", std::move(routes)}, {"addresses", std::move(addresses)}});
}

std::string json(const Plan& plan, const Config& config) {
  Json document = object({{"configuration", configuration(config, plan)},
                          {"rules", array_of(plan.ruleset.rules, rule)},
                          {"routing", routing_json(plan.routing)},
                          {"warnings", plan.warnings}});
  return dumped(std::move(document));
}

}  // namespace sidetrack
