// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "inject/injector/service.h"

namespace sidetrack::injector {

// What one client can take of the server. Whole requests count: a byte now and then keeps nothing open. Of more
// connections than there may be, the one that is idle longest ends, else the one that is busy longest.
struct Limits {
  std::size_t connections = 128;        // fewer if the process may open fewer files
  std::size_t body = 8U << 20;          // bytes
  std::size_t small_body = 128U << 10;  // of larger ones, or of those that do not say how large they are, few at once,
                                        // until their answer is taken; and of larger answers
  std::size_t large_bodies = 2;         // more are answered 503
  std::size_t header = 16U << 10;       // bytes
  std::chrono::seconds handshake{5};
  std::chrono::seconds request{10};
  std::chrono::seconds busy{1};             // after that a handshake or a request makes room for another one
  std::chrono::seconds idle{120};           // longer than the 90 s after which Go's client ends it: no request is lost
  std::chrono::seconds still_accepting{3};  // after drain(): until Kubernetes sends no one here any more
  std::chrono::seconds draining{10};
};

// HTTPS on one thread. What the network sends is bounded in size, time and number.
class Server {
 public:
  using Context = std::shared_ptr<boost::asio::ssl::context>;

  // Listens. Throws Error (usage) if it cannot.
  Server(Service& service, const std::string& address, std::uint16_t port, Context context, const Limits& limits = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server();

  // Serves until drain() has finished.
  void run();

  // From other threads: connections that are made from now on have this certificate; answers what is there, and ends.
  void use(Context context);
  void count_failed_reload();
  void drain();

  [[nodiscard]] std::uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sidetrack::injector
