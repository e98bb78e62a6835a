// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <libmnl/libmnl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "model/error.h"

namespace sidetrack::netlink {

// What one receive brings: messages, in the buffer of the socket until it receives again.
class Datagram {
 public:
  explicit Datagram(std::span<const std::byte> bytes)
      : next_(reinterpret_cast<const nlmsghdr*>(bytes.data())), left_(static_cast<int>(bytes.size())) {}

  // nullptr after the last whole one.
  [[nodiscard]] const nlmsghdr* next() {
    // libmnl takes a length of more than 2 GiB for a negative one, which fits.
    if (!mnl_nlmsg_ok(next_, left_) || next_->nlmsg_len > static_cast<std::uint32_t>(left_)) return nullptr;
    const nlmsghdr* message = next_;
    next_ = mnl_nlmsg_next(next_, &left_);
    return message;
  }

  // Whether nothing is left. Something is after the last whole message if the next one was cut off.
  [[nodiscard]] bool empty() const { return left_ <= 0; }

  // In bytes, of what is left.
  [[nodiscard]] std::size_t size() const { return left_ > 0 ? static_cast<std::size_t>(left_) : 0; }

 private:
  const nlmsghdr* next_;
  int left_;
};

// A part of the kernel that is talked to, and what errors say of it, in string literals. A socket points to it: it
// lives as long as the program.
struct Subsystem {
  int protocol;             // NETLINK_ROUTE, NETLINK_NETFILTER
  const char* contents;     // what is read there: "the nf_tables ruleset"
  const char* cannot_open;  // "cannot open a netlink socket to nf_tables"
  const char* cannot_send;
  const char* cannot_receive;
  Error (*failure)(int error, const char* what);  // of a system call that failed; `what` is one of these three
};

// A socket to a subsystem of the network namespace of the calling thread. Throws what Subsystem::failure makes.
class Socket {
 public:
  // The subsystem must outlive the socket.
  explicit Socket(const Subsystem& subsystem);

  // One or several messages, with one system call. `try_send` returns an errno, or 0.
  void send(std::span<const std::byte> messages);
  [[nodiscard]] int try_send(std::span<const std::byte> messages);

  // The next datagram, in the socket's buffer until the next call. Empty if there is none (MSG_DONTWAIT). Nothing if
  // some of what the kernel said is lost: it was more than the socket or the buffer holds.
  [[nodiscard]] std::optional<Datagram> receive(int flags = 0);

  // Lets a message of `size` bytes pass, if the limits of the system do (net.core.wmem_max).
  void make_room_for(std::size_t size);

  [[nodiscard]] std::uint32_t next_sequence() { return ++sequence_; }
  [[nodiscard]] int fd() const { return mnl_socket_get_fd(socket_.get()); }
  [[nodiscard]] const Subsystem& subsystem() const { return *subsystem_; }

 private:
  struct Close {
    void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
  };

  const Subsystem* subsystem_;
  std::unique_ptr<mnl_socket, Close> socket_;
  std::unique_ptr<std::byte[]> buffer_;
  std::uint32_t sequence_ = 0;
};

}  // namespace sidetrack::netlink
