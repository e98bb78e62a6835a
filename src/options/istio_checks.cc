// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/istio_checks.h"

#include <algorithm>
#include <cstdint>

#include "model/address.h"
#include "model/scan.h"
#include "options/values.h"

namespace sidetrack {
namespace {

template <typename Accepts>
bool all_items(std::string_view list, const Accepts& accepts) {
  return std::ranges::all_of(options::list_items(list), accepts);
}

bool is_mode(std::string_view text) { return text == "REDIRECT" || text == "TPROXY" || text == "NONE"; }

// Of netip.ParsePrefix: with its length, and with nothing around it.
bool is_range(std::string_view text) {
  return text.find('/') != std::string_view::npos && AddressRange::parse(text).has_value();
}
bool are_ranges(std::string_view text) { return text.empty() || all_items(text, is_range); }
bool are_ranges_or_all(std::string_view text) { return text == "*" || are_ranges(text); }

bool is_port(std::string_view text) { return to_number<std::uint16_t>(options::without_blanks(text)).has_value(); }
bool are_ports(std::string_view text) { return options::without_blanks(text).empty() || all_items(text, is_port); }
bool are_ports_or_all(std::string_view text) { return text == "*" || are_ports(text); }

bool is_interface(std::string_view text) {
  constexpr std::size_t longest = 15;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const std::string_view name = options::without_blanks(text);
  return !name.empty() && name.size() <= longest && is_letter(name[0]) && std::ranges::all_of(name, [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
  });
}
bool are_interfaces(std::string_view text) { return text.empty() || all_items(text, is_interface); }

bool is_number(std::string_view text) { return to_number<std::uint32_t>(text).has_value(); }

bool is_boolean(std::string_view text) {
  constexpr std::string_view known[] = {"1", "t", "T", "TRUE",  "true",  "True",
                                        "0", "f", "F", "FALSE", "false", "False"};
  return std::ranges::find(known, text) != std::end(known);
}

}  // namespace

bool is_quantity(std::string_view text) {
  constexpr std::string_view digits = "0123456789";
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  const auto take_digits = [&] {
    const auto count = std::min(text.find_first_not_of(digits), text.size());
    text.remove_prefix(count);
    return count;
  };
  auto count = take_digits();
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    count += take_digits();
  }
  if (count == 0) return false;
  constexpr std::string_view units[] = {"",  "n", "u",  "m",  "k",  "M",  "G",  "T",
                                        "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  if (std::ranges::find(units, text) != std::end(units)) return true;
  if (!text.starts_with('e') && !text.starts_with('E')) return false;
  text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return take_digits() > 0 && text.empty();
}

namespace {

struct Check {
  std::string_view annotation;
  bool (*accepts)(std::string_view value);
  std::string_view expected;
};
constexpr std::string_view ranges = "address ranges with their lengths, as 10.0.0.0/8,10.1.2.3/32, without blanks";
constexpr std::string_view ports = "ports from 0 to 65535, separated by commas";
constexpr std::string_view interfaces = "names of interfaces that begin with a letter";
constexpr std::string_view a_number = "a number from 0 to 4294967295";
constexpr std::string_view quantity = "a quantity, as 100m or 1Gi";
constexpr Check checks[] = {
    {mode_annotation, is_mode, "one of REDIRECT|TPROXY|NONE"},
    {status_port_annotation, is_port, "a port from 0 to 65535"},
    {"readiness.status.sidecar.istio.io/initialDelaySeconds", is_number, a_number},
    {"readiness.status.sidecar.istio.io/periodSeconds", is_number, a_number},
    {"readiness.status.sidecar.istio.io/failureThreshold", is_number, a_number},
    {"traffic.sidecar.istio.io/includeOutboundIPRanges", are_ranges_or_all, ranges},
    {"traffic.sidecar.istio.io/excludeOutboundIPRanges", are_ranges, ranges},
    {"traffic.sidecar.istio.io/includeInboundPorts", are_ports_or_all, ports},
    {"traffic.sidecar.istio.io/excludeInboundPorts", are_ports, ports},
    {"traffic.sidecar.istio.io/excludeOutboundPorts", are_ports, ports},
    {"traffic.sidecar.istio.io/excludeInterfaces", are_interfaces, interfaces},
    {"traffic.sidecar.istio.io/kubevirtInterfaces", are_interfaces, interfaces},
    {"istio.io/reroute-virtual-interfaces", are_interfaces, interfaces},
    {"prometheus.istio.io/merge-metrics", is_boolean, "true or false"},
    {"sidecar.istio.io/proxyCPU", is_quantity, quantity},
    {"sidecar.istio.io/proxyMemory", is_quantity, quantity},
    {"sidecar.istio.io/proxyCPULimit", is_quantity, quantity},
    {"sidecar.istio.io/proxyMemoryLimit", is_quantity, quantity},
};

}  // namespace

void check_as_istio(const Annotations& annotations) {
  for (const Check& check : checks) {
    const auto value = find(annotations, check.annotation);
    if (value && !check.accepts(*value))
      options::refuse(given_by(check.annotation, *value), check.expected,
                      "Istio's injector refuses the pod; --injector sidetrack answers for Sidetrack's");
  }
}

std::string in_template(std::string_view annotation, std::string_view value) {
  if (value.find_first_of("\"\\") != std::string_view::npos)
    options::refuse(given_by(annotation, value),
                    "neither quotes nor backslashes: Istio's template writes it in quotes");
  constexpr std::string_view blanks = " \t";
  const std::vector<std::string_view> lines = options::list_items(value, '\n');
  std::string made;
  std::size_t breaks = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view text = lines[i];
    const bool is_last = i + 1 == lines.size();
    if (!is_last) text = text.substr(0, text.find_last_not_of(blanks) + 1);
    if (i > 0) {
      ++breaks;
      text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
      if (text.empty() && !is_last) continue;
      made += breaks == 1 ? " " : std::string(breaks - 1, '\n');
      breaks = 0;
    }
    made += text;
  }
  return made;
}

}  // namespace sidetrack
