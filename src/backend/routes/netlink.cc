// SPDX-License-Identifier: GPL-2.0-or-later
#include "backend/routes/netlink.h"

#include <fmt/format.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>

#include "sidetrack/error.h"

namespace sidetrack::routes {
namespace {

// What the kernel fills at most in a dump. Not cleared beforehand: most answers need a page of it, and to touch the
// others would cost each its page fault.
constexpr std::size_t largest_datagram = 32768;
constexpr int attempts = 10;  // of a dump that changes disturb

// The sentence of NETLINK_EXT_ACK (kernel 4.12).
std::string words_of(const nlmsghdr& message) {
  if ((message.nlmsg_flags & NLM_F_ACK_TLVS) == 0) return "";
  for (const nlattr& attribute : Attributes(message, sizeof(nlmsgerr))) {
    if (mnl_attr_get_type(&attribute) == NLMSGERR_ATTR_MSG) return mnl_attr_get_str(&attribute);
  }
  return "";
}

// Of NLMSG_ERROR, and of NLMSG_DONE, which without a payload says that the dump ended well: a negative errno.
int error_of_end(const nlmsghdr& message) {
  if (mnl_nlmsg_get_payload_len(&message) < sizeof(int)) return 0;
  return -*static_cast<const int*>(mnl_nlmsg_get_payload(&message));
}

}  // namespace

Socket::Socket()
    : socket_(mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC)),
      buffer_(std::make_unique_for_overwrite<char[]>(largest_datagram)) {
  if (!socket_ || mnl_socket_bind(socket_.get(), 0, MNL_SOCKET_AUTOPID) < 0) {
    throw system_error(errno, "cannot talk to the kernel's routing (rtnetlink)");
  }
  int on = 1;  // the kernel's own words, without a copy of the request; old kernels have neither
  mnl_socket_setsockopt(socket_.get(), NETLINK_EXT_ACK, &on, sizeof on);
  mnl_socket_setsockopt(socket_.get(), NETLINK_CAP_ACK, &on, sizeof on);
}

unsigned Socket::send(Request& request) {
  request.message().nlmsg_seq = ++sequence_;
  while (mnl_socket_sendto(socket_.get(), &request.message(), request.message().nlmsg_len) < 0) {
    if (errno != EINTR) throw system_error(errno, "rtnetlink: cannot send");
  }
  return sequence_;
}

// Calls `visit` for each answer to the request of this number until it returns true. False: some of it is lost, since
// the kernel had more to say than the socket or the buffer holds (ENOSPC: libmnl's word for MSG_TRUNC).
template <typename Visit>
bool Socket::receive(unsigned sequence, Visit visit) {
  while (true) {
    const ssize_t received = mnl_socket_recvfrom(socket_.get(), buffer_.get(), largest_datagram);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0 && (errno == ENOBUFS || errno == ENOSPC)) return false;
    if (received < 0) throw system_error(errno, "rtnetlink: cannot receive");
    int left = static_cast<int>(received);
    const auto* message = reinterpret_cast<const nlmsghdr*>(buffer_.get());
    for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left)) {
      if (message->nlmsg_seq == sequence && visit(*message)) return true;
    }
    if (left != 0) return false;  // the last message is cut off
  }
}

Reply Socket::request(Request& request) {
  request.message().nlmsg_flags |= NLM_F_ACK;
  Reply reply;
  const bool answered = receive(send(request), [&](const nlmsghdr& message) {
    if (message.nlmsg_type != NLMSG_ERROR) return false;
    reply = {-static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(&message))->error, words_of(message)};
    return true;
  });
  if (!answered) throw system_error(ENOBUFS, "rtnetlink: the answer to a request is lost");
  return reply;
}

std::vector<Message> Socket::dump(Request& request) {
  request.message().nlmsg_flags |= NLM_F_DUMP;
  for (int attempt = 1; attempt <= attempts; ++attempt) {
    std::vector<Message> messages;
    bool disturbed = false;
    int error = 0;
    const bool whole = receive(send(request), [&](const nlmsghdr& message) {
      if ((message.nlmsg_flags & NLM_F_DUMP_INTR) != 0) disturbed = true;
      if (message.nlmsg_type == NLMSG_DONE || message.nlmsg_type == NLMSG_ERROR) {
        error = error_of_end(message);
        return true;
      }
      if (message.nlmsg_type < NLMSG_MIN_TYPE) disturbed = true;  // NLMSG_OVERRUN
      messages.emplace_back(message);
      return false;
    });
    if (messages.empty() && (error == EAFNOSUPPORT || error == EOPNOTSUPP)) return {};
    if (!whole || error == EINTR || error == ENOBUFS || error == EAGAIN) {
      disturbed = true;
    } else if (error != 0) {
      throw system_error(error, "rtnetlink: cannot list");
    }
    if (!disturbed) return messages;
    *this = Socket();  // a dump that is still under way would refuse the next one (EBUSY)
  }
  throw Error(ExitCode::busy,
              fmt::format("rtnetlink: routes or addresses could not be read as a whole in {} attempts: somebody keeps "
                          "changing them, or the kernel is short of memory",
                          attempts),
              "run it again");
}

bool Socket::loopback_is_up() const {
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  // What cannot be asked is taken to be as it should.
  return ioctl(mnl_socket_get_fd(socket_.get()), SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_UP) != 0;
}

}  // namespace sidetrack::routes
