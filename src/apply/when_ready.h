// SPDX-License-Identifier: GPL-2.0-or-later
// apply --when-ready: the rules are installed when the proxy listens, and not before.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tcp_sockets.h"
#include "mesh/plan.h"
#include "model/config.h"

namespace sidetrack {

struct AwaitedProxy {
  // What the rules lead to the port, and so at which addresses the proxy has to listen.
  enum class Led : std::uint8_t {
    nothing,      // at any address of one of the families
    to_loopback,  // REDIRECT of OUTPUT: 127.0.0.1, ::1. There or at all addresses, in each family
    anywhere,     // REDIRECT of PREROUTING: the address of the interface; TPROXY. At all addresses, in each family
  };
  std::uint16_t port = 0;
  std::chrono::nanoseconds timeout{};
  std::vector<std::uint32_t> uids;  // any of them is the proxy; none: whoever listens is
  Led led{};
  Families families;
};
// With --dataplane ambient whoever listens is ztunnel: it is known by the mark of what it sends.
[[nodiscard]] AwaitedProxy awaited_proxy(const Config& config, const Plan& plan, std::uint16_t port,
                                         std::chrono::nanoseconds timeout);

// Whether the proxy listens: sockets that its user made, at that port, which take the connections. The sockets are
// those of the network namespace, and the users those of the user namespace, of the thread that makes this object.
class ProxyWatch {
 public:
  using Say = std::function<void(const std::string&)>;
  struct Told {
    Say warn;    // once, that another user has the port: it is not the proxy, and may go away; or where the proxy lacks
    Say begins;  // a wait
    Say ends;
  };
  ProxyWatch(AwaitedProxy proxy, Told told);

  [[nodiscard]] bool listens();
  // Until it listens: asks some times a second. Throws failed when the time is over, counted from the first call on, or
  // a signal asks the process to end, which it does at once.
  void wait();
  // In wait() altogether.
  [[nodiscard]] std::chrono::nanoseconds waited() const { return waited_; }

 private:
  AwaitedProxy proxy_;
  Told told_;
  TcpSockets sockets_;
  std::string in_the_way_;  // who has the port, if it is not the proxy; where alone the proxy listens
  std::string remedy_;
  std::chrono::nanoseconds waited_{};
};

// Gives up the kernel's locks, waits, and returns once the proxy has been found to listen with the locks taken again.
// Throws as ProxyWatch::wait and Kernel::take_locks do.
void await_proxy(Kernel& kernel, ProxyWatch& watch);

}  // namespace sidetrack
