// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/netlink/socket.h"

#include <sys/socket.h>

#include <cerrno>

namespace sidetrack::netlink {
namespace {

// The kernel fills at most 32 KiB per datagram of a dump when it is offered that much; an old one quotes the request in
// its answer. Not cleared: most answers need a page of it, and to touch the others would cost each its page fault.
constexpr std::size_t buffer_size = 64UL * 1024;

// Old kernels and user namespaces may refuse these: they are optional.
void set_option(int fd, int level, int option, int value) {
  static_cast<void>(setsockopt(fd, level, option, &value, sizeof value));
}

}  // namespace

Socket::Socket(const Subsystem& subsystem)
    : subsystem_(&subsystem),
      socket_(mnl_socket_open2(subsystem.protocol, SOCK_CLOEXEC)),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(buffer_size)) {
  if (!socket_ || mnl_socket_bind(socket_.get(), 0, MNL_SOCKET_AUTOPID) != 0) {
    throw subsystem.failure(errno, subsystem.cannot_open);
  }
  // The kernel's own words and the place of the fault (Linux 4.12), without a copy of the request (4.3).
  set_option(fd(), SOL_NETLINK, NETLINK_EXT_ACK, 1);
  set_option(fd(), SOL_NETLINK, NETLINK_CAP_ACK, 1);
}

int Socket::try_send(std::span<const std::byte> messages) {
  // Not to an address, as mnl_socket_sendto does: then the kernel also asks for the rights with which the socket was
  // opened (netlink_ns_capable), and one that was opened without any can read alone.
  while (::send(fd(), messages.data(), messages.size(), 0) < 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

void Socket::send(std::span<const std::byte> messages) {
  if (const int error = try_send(messages); error != 0) throw subsystem_->failure(error, subsystem_->cannot_send);
}

std::optional<Datagram> Socket::receive(int flags) {
  for (;;) {
    const ssize_t size = recv(fd(), buffer_.get(), buffer_size, flags | MSG_TRUNC);  // the whole length, even if cut
    const auto length = static_cast<std::size_t>(size);
    if (size >= 0 && length <= buffer_size) return Datagram({buffer_.get(), length});
    if (size >= 0 || errno == ENOBUFS) return std::nullopt;
    if (errno == EAGAIN) return Datagram({});
    if (errno != EINTR) throw subsystem_->failure(errno, subsystem_->cannot_receive);
  }
}

void Socket::make_room_for(std::size_t size) {
  // The kernel takes a message of at most the buffer's size less 32 bytes (netlink_sendmsg), and doubles what is set.
  const std::size_t needed = size + 32;
  const auto enough = [&] {
    int room = 0;
    socklen_t length = sizeof room;
    return getsockopt(fd(), SOL_SOCKET, SO_SNDBUF, &room, &length) == 0 && static_cast<std::size_t>(room) >= needed;
  };
  if (enough()) return;
  set_option(fd(), SOL_SOCKET, SO_SNDBUF, static_cast<int>(needed));
  if (enough()) return;
  set_option(fd(), SOL_SOCKET, SO_SNDBUFFORCE, static_cast<int>(needed));  // EPERM in a user namespace
}

}  // namespace sidetrack::netlink
