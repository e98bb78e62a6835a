// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/client.h"

#include <netinet/in.h>
#include <sys/time.h>

#include <array>
#include <csignal>
#include <string_view>

namespace sidetrack::netns {
namespace {

constexpr std::string_view question = "who are you?\n";

void set(int socket, int level, int option, const auto& value, const std::string& doing) {
  check(setsockopt(socket, level, option, &value, sizeof value), doing);
}

// SIGCHLD stays away from this thread. While another thread runs programs it may be sent here, and although no process
// handles it, a system call on a socket with a time-out ends with EINTR instead of going on (sock_intr_errno()).
class Undisturbed {
 public:
  Undisturbed() {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &children, &before_);
  }
  ~Undisturbed() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  sigset_t before_{};
};

FileDescriptor open_socket(const Request& request) {
  const int type = request.protocol == Protocol::tcp ? SOCK_STREAM : SOCK_DGRAM;
  FileDescriptor socket(check(::socket(request.to.domain(), type | SOCK_CLOEXEC, 0), "socket"));
  const bool v6 = request.to.domain() == AF_INET6;
  const auto patience = request.patience.count();
  const timeval guard{.tv_sec = patience / 1000, .tv_usec = patience % 1000 * 1000};
  set(socket.get(), SOL_SOCKET, SO_RCVTIMEO, guard, "SO_RCVTIMEO");
  set(socket.get(), SOL_SOCKET, SO_SNDTIMEO, guard, "SO_SNDTIMEO");
  // A refusal is an error for a datagram socket that is not connected, too.
  set(socket.get(), v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_RECVERR : IP_RECVERR, 1, "IP_RECVERR");
  if (request.mark) set(socket.get(), SOL_SOCKET, SO_MARK, *request.mark, "SO_MARK");
  if (!request.interface.empty()) {
    check(setsockopt(socket.get(), SOL_SOCKET, SO_BINDTODEVICE, request.interface.c_str(),
                     static_cast<socklen_t>(request.interface.size())),
          "SO_BINDTODEVICE");
  }
  if (request.transparent)
    set(socket.get(), v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TRANSPARENT : IP_TRANSPARENT, 1, "IP_TRANSPARENT");
  if (request.from) {
    const sockaddr_storage from = request.from->socket_address();
    set(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    check(bind(socket.get(), pointer(from), socket_address_size), "bind to " + request.from->text());
  }
  return socket;
}

// What a failed system call says about the other end; anything else is a fault of the test.
Role nobody(const std::string& doing) {
  switch (errno) {
    case ECONNREFUSED:
    case ECONNRESET:
      return Role::refused;
    case EAGAIN:
    case EINPROGRESS:  // SO_SNDTIMEO in connect(2)
    case ETIMEDOUT:
    case EPERM:  // dropped on the way out; rejected with another answer than that no process listens
    case EACCES:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Role::no_answer;
    default:
      check(-1, doing);
      return {};
  }
}

// "LANDING from CLIENT": `own` is the client's address as the client knows it.
Landing understood(const std::string& answer, const Endpoint& own) {
  const auto from = answer.find(" from ");
  if (from == std::string::npos) throw std::runtime_error("an answer that is none of ours: " + answer);
  Landing landing = Landing::parse(answer.substr(0, from));
  const Endpoint seen(answer.substr(from + 6, answer.find('\n') - from - 6));
  // Its port may be another: where two connections from one port are redirected to one listener, the kernel gives the
  // second a free one (nf_nat_l4proto_unique_tuple).
  if (seen.address != own.address) landing.oddity = "the client " + own.text() + " is seen as " + seen.text();
  return landing;
}

}  // namespace

Connection::Connection(const Namespace& where, Identity identity, const Request& request) : request_(request) {
  where.run(
      [&] {
        const Undisturbed undisturbed;
        socket_ = open_socket(request);
        if (request.protocol != Protocol::tcp) return;
        const sockaddr_storage to = request.to.socket_address();
        if (::connect(socket_.get(), pointer(to), socket_address_size) != 0)
          nobody_ = nobody("connect to " + request.to.text());
      },
      identity);
}

Landing Connection::ask() {
  const Undisturbed undisturbed;
  if (nobody_) return landed(*nobody_);
  return request_.protocol == Protocol::tcp ? ask_tcp() : ask_udp();
}

Landing Connection::ask_tcp() {
  std::array<char, 512> answer;
  if (send(socket_.get(), question.data(), question.size(), MSG_NOSIGNAL) < 0) return landed(nobody("send"));
  const ssize_t size = recv(socket_.get(), answer.data(), answer.size(), 0);
  if (size < 0) return landed(nobody("receive from " + request_.to.text()));
  return understood(std::string(answer.data(), static_cast<std::size_t>(size)), local_end(socket_.get()));
}

Landing Connection::ask_udp() {
  const sockaddr_storage to = request_.to.socket_address();
  if (sendto(socket_.get(), question.data(), question.size(), 0, pointer(to), socket_address_size) < 0)
    return landed(nobody("send to " + request_.to.text()));
  std::array<char, 512> answer;
  sockaddr_storage from{};
  socklen_t from_size = sizeof from;
  const ssize_t size = recvfrom(socket_.get(), answer.data(), answer.size(), 0, pointer(from), &from_size);
  if (size < 0) return landed(nobody("receive from " + request_.to.text()));

  // The socket is not connected: its port is known, its address only if it was bound to one.
  const std::string text(answer.data(), static_cast<std::size_t>(size));
  Endpoint own = local_end(socket_.get());
  if (!request_.from) own.address = Endpoint(std::string_view(text).substr(text.find(" from ") + 6)).address;
  Landing landing = understood(text, own);
  if (Endpoint(from) != request_.to) landing.oddity = "the answer came from " + Endpoint(from).text();
  return landing;
}

Landing connect(const Namespace& where, Identity identity, const Request& request) {
  Connection connection(where, identity, request);
  Landing first = connection.ask();
  if (first.role == Role::refused || first.role == Role::no_answer) return first;
  Landing second = connection.ask();
  if (second != first) second.oddity = "the first answer was: " + first.line();
  return second;
}

}  // namespace sidetrack::netns
