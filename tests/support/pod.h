// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pod/routing.h"
#include "support/client.h"
#include "support/landing.h"
#include "support/namespace.h"
#include "support/server.h"

namespace sidetrack::netns {

// Where a connection starts, and under whose ids.
enum class Place : std::uint8_t { pod, outside, guest };
struct Actor {
  Place place = Place::pod;
  Identity identity;
};
inline constexpr Identity proxy_identity{1337, 1337};
inline constexpr Identity app_identity{1000, 1000};
inline constexpr Actor as_proxy{Place::pod, proxy_identity};
inline constexpr Actor as_proxy_user{Place::pod, {1337, 1000}};   // the proxy's uid, another gid
inline constexpr Actor as_proxy_group{Place::pod, {2000, 1337}};  // another uid, the proxy's gid
inline constexpr Actor as_app{Place::pod, app_identity};
inline constexpr Actor as_ztunnel{Place::pod, {0, 0, true}};  // a process of the node, which may set marks
inline constexpr Actor from_outside{Place::outside, {}};
inline constexpr Actor from_guest{Place::guest, {}};

// The addresses of one family; all but the pod's two belong to the outside or the guest.
struct Addresses {
  std::string_view any_loopback;  // 127.0.0.1, ::1
  std::string_view pod;           // eth0
  std::string_view client;        // the outside's end of eth0, the pod's gateway
  std::string_view service;
  std::string_view service_range;   // holds `service` and `dns`
  std::string_view other_service;   // outside of service_range
  std::string_view excluded;        // a host that rules leave out
  std::string_view excluded_range;  // holds `excluded`
  std::string_view dns;
  std::string_view other_dns;   // a name server that the pod is not configured for
  std::string_view pod_second;  // net1
  std::string_view guest;       // the guest's end of net1
};
[[nodiscard]] const Addresses& addresses(Family family);

//              pod                                        outside
//   app      :8080 :8081 :15020 …                  any of `outside_ports`
//   proxy    :15001 :15006 :15008 :15053               tcp and udp
//            eth0 ─────────────────────────────────── pod0
//            net1 ────────── net1 of the guest, whose default route is the pod
//
// IPv4 and IPv6, everybody listening, no rules.
class Pod {
 public:
  struct Options {
    Identity proxy = proxy_identity;
    bool transparent_proxy = false;  // the proxy's inbound port is that of mode TPROXY: IP_TRANSPARENT, and NET_ADMIN
    bool ztunnel = false;            // the proxy is the node's: its sockets have the mark 0x539
  };
  Pod() : Pod(Options{}) {}
  explicit Pod(Options options, Namespace pod = {});

  [[nodiscard]] const Namespace& at(Place place) const;
  [[nodiscard]] const Namespace& ns() const { return pod_; }

  // One more process that listens, from now on.
  void listen(const Actor& actor, Role role, const Ports& ports);

  // Who listens on a port of all addresses there; refused if none does.
  [[nodiscard]] Role listener(Place place, Protocol protocol, std::uint16_t port) const;

  [[nodiscard]] Landing connect(const Actor& actor, const Request& request) const;

 private:
  Namespace pod_;
  Namespace outside_;
  Namespace guest_;
  std::vector<std::unique_ptr<Server>> servers_;
  struct Listener {
    Place place;
    Role role;
    Ports ports;
  };
  std::vector<Listener> listeners_;
};

}  // namespace sidetrack::netns
