// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace sidetrack {

struct NamedPort {
  std::uint16_t port;
  std::string_view name;
};

// The ports of a sidecar, as Istio's documentation names them ("Ports used by Istio").
inline constexpr NamedPort named_ports[] = {
    {15000, "Envoy admin"},
    {15001, "Envoy outbound"},
    {15004, "debug"},
    {15006, "Envoy inbound"},
    {15008, "HBONE tunnel"},
    {15020, "merged Prometheus telemetry and agent health"},
    {15021, "readiness"},
    {15053, "DNS"},
    {15090, "Envoy Prometheus telemetry"},
};

// Empty if the port is none of them.
[[nodiscard]] constexpr std::string_view port_name(std::uint16_t port) {
  for (const NamedPort& named : named_ports) {
    if (named.port == port) return named.name;
  }
  return {};
}

}  // namespace sidetrack
