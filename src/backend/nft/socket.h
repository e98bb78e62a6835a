// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace sidetrack::nft {

// What the kernel answered to one message: 0 or an errno.
struct Answer {
  std::uint32_t sequence = 0;
  int error = 0;
  std::optional<std::uint32_t> offset;  // of the attribute at fault, from the start of the message
};

// A netlink socket to nf_tables of the network namespace of the calling thread. Throws
//   kernel_lacks   if the kernel has no nfnetlink
//   busy           if what is being read changes under the reader
class Socket {
 public:
  Socket();

  // Changes with every commit in the namespace, whoever makes it.
  [[nodiscard]] std::uint32_t generation();

  // Sends a request and gives every message of the answer to `take`. Throws busy unless all of it came, undisturbed; it
  // may be asked again then, but for what is still under way of the old answer only after `reopen`.
  void request(std::span<const std::byte> message, const std::function<void(const nlmsghdr*)>& take);

  // Sends a whole transaction with one system call and returns all answers, which the kernel gave before it returned.
  [[nodiscard]] std::vector<Answer> transact(std::span<const std::byte> batch);

  // A socket without anything left over in it.
  void reopen();

  [[nodiscard]] std::uint32_t next_sequence() { return ++sequence_; }

 private:
  void make_room_for(std::size_t size);
  void send(std::span<const std::byte> message);
  // Into buffer_. 0 if there is nothing (MSG_DONTWAIT); nothing if something was lost.
  [[nodiscard]] std::optional<std::size_t> receive(int flags);

  struct Close {
    void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
  };
  std::unique_ptr<mnl_socket, Close> socket_;
  std::unique_ptr<std::byte[]> buffer_;
  std::uint32_t sequence_ = 0;
};

// nf_tables refuses: an Error that names the right that is missing, if that is the reason.
[[noreturn]] void throw_unavailable(int error, const char* doing);

// The kernel has no nf_tables. Only of an answer that can mean nothing else.
[[noreturn]] void throw_lacking(int error, const char* doing);

}  // namespace sidetrack::nft
