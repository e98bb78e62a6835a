// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string_view>

namespace sidetrack {

// The names are string literals.
struct NamedPort {
  std::uint16_t port;
  std::string_view name;
  std::string_view of_ztunnel{};  // in an ambient pod, if it is another
};

inline constexpr std::uint16_t dns_port = 53;
inline constexpr std::uint16_t proxy_dns_port = 15053;  // where the agent's DNS server listens

// The ports of a sidecar and of ztunnel, as Istio's documentation names them ("Ports used by Istio").
inline constexpr NamedPort named_ports[] = {
    {15000, "Envoy admin"},
    {15001, "Envoy outbound", "ztunnel outbound"},
    {15004, "debug"},
    {15006, "Envoy inbound", "ztunnel inbound plaintext"},
    {15008, "HBONE tunnel"},
    {15020, "merged Prometheus telemetry and agent health"},
    {15021, "readiness"},
    {proxy_dns_port, "DNS"},
    {15090, "Envoy Prometheus telemetry"},
};

// Empty if the port is none of them.
[[nodiscard]] constexpr std::string_view port_name(std::uint16_t port) {
  for (const NamedPort& named : named_ports) {
    if (named.port == port) return named.name;
  }
  return {};
}

// What the kubelet and Prometheus ask the proxy itself, past its inbound listener.
inline constexpr std::uint16_t ports_of_proxy[] = {15020, 15021, 15090};

}  // namespace sidetrack
