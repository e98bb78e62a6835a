// SPDX-License-Identifier: GPL-2.0-or-later
// apply --when-ready: the rules are programmed when the proxy listens, and not before.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/tcp_sockets.h"

namespace sidetrack {

struct AwaitedProxy {
  std::uint16_t port = 0;
  std::chrono::nanoseconds timeout{};
  std::vector<std::uint32_t> uids;  // any of them is the proxy
};

// Whether the proxy listens: a socket that its user made, at that port of any address. The sockets are those of the
// network namespace, and the users those of the user namespace, of the thread that makes this object.
class ProxyWatch {
 public:
  using Say = std::function<void(const std::string&)>;
  // `warn` is told, once, that another user has the port: it is not the proxy, and may go away; `note`, when a wait
  // begins and ends.
  ProxyWatch(AwaitedProxy proxy, Say warn, Say note);

  [[nodiscard]] bool listens();
  // Until it listens: asks some times a second. Throws failed when the time is over, counted from the first call on, or
  // a signal asks the process to end, which it does at once.
  void wait();
  // In wait() altogether.
  [[nodiscard]] std::chrono::nanoseconds waited() const { return waited_; }

 private:
  AwaitedProxy proxy_;
  Say warn_;
  Say note_;
  TcpSockets sockets_;
  std::vector<std::uint32_t> others_;  // who has the port, if it is not the proxy
  std::chrono::nanoseconds waited_{};
};

// Gives up the kernel's locks, waits, and returns once the proxy has been found to listen with the locks taken again.
// Throws as ProxyWatch::wait and Kernel::take_locks do.
void await_proxy(Kernel& kernel, ProxyWatch& watch);

}  // namespace sidetrack
