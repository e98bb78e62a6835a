// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/netlink/ask.h"

#include <sys/socket.h>

#include <cerrno>

namespace sidetrack::netlink {

const char* Answer::inconsistency() const {
  if (lost != nullptr) return lost;
  const int error = end.error;
  if (error == EINTR || error == ENOBUFS || error == EAGAIN || error == EBUSY) return "the kernel aborted the dump";
  return interrupted && error == 0 ? "it changed during the dump" : nullptr;
}

namespace {

// How much of an answer is read before it is refused.
class Bound {
 public:
  explicit Bound(const Socket& socket) : socket_(socket) {}

  void add(std::size_t bytes) {
    received_ += bytes;
    if (received_ <= largest_answer) return;
    throw Error(ExitCode::failed, fmt::format("cannot read {}: the answer has more than {} MiB",
                                              socket_.subsystem().contents, largest_answer >> 20U));
  }

 private:
  const Socket& socket_;
  std::size_t received_ = 0;
};

}  // namespace

Answer ask(Socket& socket, Request& request, const std::function<void(const Message&)>& take) {
  const std::uint32_t sequence = socket.next_sequence();
  request.set_sequence(sequence);
  socket.send(request.bytes());
  Answer answer;
  const auto without = [&](const char* why) {
    answer.lost = why;
    return answer;
  };
  for (Bound bound(socket);;) {
    std::optional<Datagram> datagram = socket.receive();
    if (!datagram) return without("the socket's receive buffer overflowed");
    bound.add(datagram->size());
    while (const nlmsghdr* message = datagram->next()) {
      if (message->nlmsg_seq != sequence) continue;
      answer.interrupted = answer.interrupted || (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (message->nlmsg_type == NLMSG_ERROR || message->nlmsg_type == NLMSG_DONE) {
        answer.end = reply_of(message);
        return answer;
      }
      if (message->nlmsg_type < NLMSG_MIN_TYPE) return without("messages were lost");  // NLMSG_OVERRUN
      ++answer.messages;
      take(Message(message));
    }
    if (!datagram->empty()) return without("a message was truncated");
  }
}

void drain(Socket& socket) {
  constexpr std::size_t of_lost = 1U << 16;  // at least one datagram
  for (Bound bound(socket);;) {
    const std::optional<Datagram> datagram = socket.receive(MSG_DONTWAIT);
    if (datagram && datagram->empty()) return;
    bound.add(datagram ? datagram->size() : of_lost);
  }
}

Answer read_whole(Socket& socket, Request& request, const std::function<void(const Message&)>& take) {
  Answer answer = ask(socket, request, take);
  if (const char* why = answer.inconsistency()) {
    throw Error(ExitCode::busy, fmt::format("cannot read {}: {}", socket.subsystem().contents, why), "run it again");
  }
  return answer;
}

std::vector<Reply> pending_replies(Socket& socket) {
  std::vector<Reply> replies;
  for (;;) {
    std::optional<Datagram> datagram = socket.receive(MSG_DONTWAIT);
    if (!datagram) continue;
    if (datagram->empty()) return replies;
    while (const nlmsghdr* message = datagram->next()) {
      if (message->nlmsg_type == NLMSG_ERROR) replies.push_back(reply_of(message));
    }
  }
}

}  // namespace sidetrack::netlink
