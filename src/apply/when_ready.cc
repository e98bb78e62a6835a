// SPDX-License-Identifier: GPL-2.0-or-later
#include "apply/when_ready.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "model/duration.h"
#include "model/error.h"
#include "system/signals.h"

namespace sidetrack {
namespace {

// The kernel tells of no socket that begins to listen, so it is asked: a question takes some microseconds.
constexpr std::chrono::milliseconds between_looks{50};

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

using Led = AwaitedProxy::Led;

// Whether it takes the connections that the rules lead to its port, or just any.
bool takes(const TcpSocket& listening, Family family, Led led) {
  const Address& at = listening.local.address;
  if (at == Address::any(Family::ipv6) && !listening.ipv6_only) return true;
  if (at.family != family) return false;
  return led == Led::nothing || at == Address::any(family) ||
         (led == Led::to_loopback && at == Address::loopback(family));
}

std::string place(const TcpSocket& listening) {
  return listening.local.address.text() + (listening.ipv6_only ? " (IPv6 only)" : "");
}

// "IPv4: 127.0.0.1 or 0.0.0.0"
std::string wanted_places(Families families, Led led) {
  std::vector<std::string> all;
  for (const Family family : families.list()) {
    const std::string any = Address::any(family).text();
    const std::string places = led == Led::nothing       ? "any address"
                               : led == Led::to_loopback ? Address::loopback(family).text() + " or " + any
                                                         : any;
    all.push_back(fmt::format("{}: {}", title(family), places));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

// "the proxy (uid 1337)"
std::string title(const AwaitedProxy& proxy) {
  return proxy.uids.empty() ? "ztunnel" : fmt::format("the proxy (uid {})", fmt::join(proxy.uids, ", "));
}

}  // namespace

AwaitedProxy awaited_proxy(const Config& config, const Plan& plan, std::uint16_t port,
                           std::chrono::nanoseconds timeout) {
  AwaitedProxy proxy{port, timeout, config.proxy_uids, Led::nothing, {}};
  if (config.dataplane == Dataplane::ambient) proxy.uids.clear();
  for (const Rule& rule : plan.ruleset.rules) {
    if (listening_port(rule.target) == port) proxy.families = proxy.families | rule.families;
  }
  if (!proxy.families.empty()) {
    const bool from_outside = port == config.inbound_port || !config.virtual_interfaces.empty();
    proxy.led = from_outside ? Led::anywhere : Led::to_loopback;
  } else {
    proxy.families = plan.families.empty() ? Families::both() : plan.families;
  }
  return proxy;
}

ProxyWatch::ProxyWatch(AwaitedProxy proxy, Told told) : proxy_(std::move(proxy)), told_(std::move(told)) {}

bool ProxyWatch::listens() {
  std::vector<std::uint32_t> others;
  std::vector<std::string> places;
  Families taken;
  for (const TcpSocket& socket : sockets_.listening(proxy_.port)) {
    if (!proxy_.uids.empty() && std::ranges::find(proxy_.uids, socket.uid) == proxy_.uids.end()) {
      if (std::ranges::find(others, socket.uid) == others.end()) others.push_back(socket.uid);
      continue;
    }
    places.push_back(place(socket));
    for (const Family family : proxy_.families.list()) {
      if (takes(socket, family, proxy_.led)) taken = taken | family;
    }
  }
  if (proxy_.led == Led::nothing ? !taken.empty() : taken == proxy_.families) return true;
  std::string in_the_way;
  if (!places.empty()) {
    std::ranges::sort(places);
    in_the_way = fmt::format("{} listens on port {} at {} only, but must also listen at {}", title(proxy_), proxy_.port,
                             fmt::join(places, ", "), wanted_places(proxy_.families, proxy_.led));
    remedy_ = proxy_.families == Families::both()
                  ? "let it listen there, too, or exclude the family that it does not serve with --ip-families"
                  : "let it listen there, too";
  } else if (!others.empty()) {
    std::ranges::sort(others);
    in_the_way = fmt::format("port {} is held by uid {}, not by the proxy (-u {})", proxy_.port,
                             fmt::join(others, ", "), fmt::join(proxy_.uids, ","));
    remedy_ = "stop what holds the port, or give the uid that the proxy has with -u";
  }
  if (!in_the_way.empty() && in_the_way != in_the_way_) told_.warn(in_the_way);
  in_the_way_ = std::move(in_the_way);
  return false;
}

void ProxyWatch::wait() {
  using Clock = AwaitedSignals::Clock;
  AwaitedSignals signals;
  const auto start = Clock::now();
  const auto end = start + proxy_.timeout - waited_;
  const auto count = [&] { return Clock::now() - start; };
  if (listens()) return;
  told_.begins(fmt::format("waiting for {} to listen on port {}, for at most {}", title(proxy_), proxy_.port,
                           duration_words(end - start)));
  do {
    if (Clock::now() >= end) {
      throw Error(
          ExitCode::failed,
          fmt::format("{} did not listen on port {} within {}{}; nothing was changed", title(proxy_), proxy_.port,
                      duration_words(proxy_.timeout), in_the_way_.empty() ? "" : ": " + in_the_way_),
          in_the_way_.empty()
              ? fmt::format("see why it does not start, or wait longer: --when-ready {},10m", proxy_.port)
              : remedy_);
    }
    const auto woken = signals.wait(std::min<Clock::time_point>(end, Clock::now() + between_looks));
    if (woken.signal != 0) {
      throw Error(ExitCode::failed,
                  fmt::format("ended by {} after {:.1f} s of waiting for {} on port {}; nothing was changed",
                              signal_name(woken.signal), seconds(waited_ + count()), title(proxy_), proxy_.port));
    }
  } while (!listens());
  waited_ += count();
  told_.ends(fmt::format("the proxy listens on port {}", proxy_.port));
}

void await_proxy(Kernel& kernel, ProxyWatch& watch) {
  do {
    kernel.release_locks();
    watch.wait();
    kernel.take_locks();
  } while (!watch.listens());  // to wait for a lock takes time, too
}

}  // namespace sidetrack
