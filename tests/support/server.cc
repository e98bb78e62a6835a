// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/server.h"

#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <optional>
#include <string>

namespace sidetrack::netns {
namespace {

void enable(int socket, int level, int option, const std::string& doing) {
  const int on = 1;
  check(setsockopt(socket, level, option, &on, sizeof on), doing);
}

FileDescriptor listen_on(int domain, int type, std::uint16_t port, const Ports& as) {
  FileDescriptor socket(check(::socket(domain, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket"));
  const bool v6 = domain == AF_INET6;
  if (v6) enable(socket.get(), SOL_IPV6, IPV6_V6ONLY, "IPV6_V6ONLY");
  if (as.mark != 0) check(setsockopt(socket.get(), SOL_SOCKET, SO_MARK, &as.mark, sizeof as.mark), "SO_MARK");
  if (as.transparent)
    enable(socket.get(), v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TRANSPARENT : IP_TRANSPARENT, "IP_TRANSPARENT");
  // Of datagrams: the socket that answers from a captured destination may have the port of another.
  enable(socket.get(), SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR");
  if (type == SOCK_DGRAM) {
    enable(socket.get(), v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, "IP_PKTINFO");
    if (as.transparent)
      enable(socket.get(), v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_RECVORIGDSTADDR : IP_RECVORIGDSTADDR,
             "IP_RECVORIGDSTADDR");
  }
  const sockaddr_storage any = Endpoint(v6 ? "::" : "0.0.0.0", port).socket_address();
  check(bind(socket.get(), pointer(any), socket_address_size), "bind to port " + std::to_string(port));
  if (type == SOCK_STREAM) check(listen(socket.get(), SOMAXCONN), "listen");
  return socket;
}

// The destination before REDIRECT changed it. Nothing where no connection tracking is at work.
std::optional<Endpoint> original_destination(int socket, Family family) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const int failed = family == Family::ipv4 ? getsockopt(socket, SOL_IP, SO_ORIGINAL_DST, &address, &size)
                                            : getsockopt(socket, SOL_IPV6, IP6T_SO_ORIGINAL_DST, &address, &size);
  if (failed != 0) return std::nullopt;
  return Endpoint(address);
}

Landing landing_of(int connection, Role role) {
  const Endpoint own = local_end(connection);
  const auto before = original_destination(connection, own.address.family);
  return before && *before != own ? landed(role, original(*before)) : landed(role, local(own));
}

void accept_into(std::list<FileDescriptor>& connections, int listener) {
  // A client that has given up in the meantime is none.
  const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection >= 0) connections.emplace_back(connection);
}

// False at the end of the connection.
bool answer_connection(int connection, Role role) {
  std::array<char, 512> request;
  if (recv(connection, request.data(), request.size(), 0) <= 0) return false;
  const std::string answer = landing_of(connection, role).line() + " from " + remote_end(connection).text() + '\n';
  return send(connection, answer.data(), answer.size(), MSG_NOSIGNAL) > 0;
}

// The destination address of a datagram, from the message's IP_PKTINFO; and the same message's control part turned into
// the request to answer from that address.
Address destination_and_answer_from(msghdr& message) {
  Address address;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level == SOL_IP && part->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      std::memcpy(&info, CMSG_DATA(part), sizeof info);
      address.family = Family::ipv4;
      std::memcpy(address.bytes.data(), &info.ipi_addr, sizeof info.ipi_addr);
      info = {.ipi_ifindex = 0, .ipi_spec_dst = info.ipi_addr, .ipi_addr = {}};
      std::memcpy(CMSG_DATA(part), &info, sizeof info);
    } else if (part->cmsg_level == SOL_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      std::memcpy(&info, CMSG_DATA(part), sizeof info);
      address.family = Family::ipv6;
      std::memcpy(address.bytes.data(), &info.ipi6_addr, sizeof info.ipi6_addr);
      info.ipi6_ifindex = 0;
      std::memcpy(CMSG_DATA(part), &info, sizeof info);
    }
  }
  return address;
}

// Of a datagram that TPROXY brought: where the client sent it.
std::optional<Endpoint> captured_destination(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if ((part->cmsg_level != SOL_IP || part->cmsg_type != IP_ORIGDSTADDR) &&
        (part->cmsg_level != SOL_IPV6 || part->cmsg_type != IPV6_ORIGDSTADDR))
      continue;
    sockaddr_storage address{};
    std::memcpy(&address, CMSG_DATA(part), std::min(sizeof address, std::size_t{part->cmsg_len - CMSG_LEN(0)}));
    return Endpoint(address);
  }
  return std::nullopt;
}

// From the address that the client sent to, as whom the client knows.
void answer_from(const Endpoint& captured, const std::string& answer, const sockaddr_storage& peer) {
  const FileDescriptor socket(check(::socket(captured.domain(), SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
  const bool v6 = captured.domain() == AF_INET6;
  enable(socket.get(), v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TRANSPARENT : IP_TRANSPARENT, "IP_TRANSPARENT");
  enable(socket.get(), SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR");
  const sockaddr_storage own = captured.socket_address();
  check(bind(socket.get(), pointer(own), socket_address_size), "bind to " + captured.text());
  sendto(socket.get(), answer.data(), answer.size(), MSG_NOSIGNAL, pointer(peer), socket_address_size);
}

void answer_datagram(int socket, Role role) {
  std::array<char, 512> request;
  alignas(cmsghdr) std::array<char, 128> control;
  sockaddr_storage peer{};
  iovec data{request.data(), request.size()};
  msghdr message{};
  message.msg_name = &peer;
  message.msg_namelen = sizeof peer;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(socket, &message, 0) < 0) return;

  if (const auto captured = captured_destination(message); captured && captured->port != local_end(socket).port) {
    answer_from(*captured, landed(role, local(*captured)).line() + " from " + Endpoint(peer).text() + '\n', peer);
    return;
  }
  Endpoint own = local_end(socket);
  own.address = destination_and_answer_from(message);
  std::string answer = landed(role, local(own)).line() + " from " + Endpoint(peer).text() + '\n';
  data = {answer.data(), answer.size()};
  sendmsg(socket, &message, MSG_NOSIGNAL);
}

struct Sockets {
  std::vector<FileDescriptor> listeners;
  std::vector<FileDescriptor> datagrams;
};

Sockets open_all(const Ports& ports) {
  Sockets sockets;
  for (const int domain : {AF_INET, AF_INET6}) {
    for (const auto port : ports.tcp) sockets.listeners.push_back(listen_on(domain, SOCK_STREAM, port, ports));
    for (const auto port : ports.udp) sockets.datagrams.push_back(listen_on(domain, SOCK_DGRAM, port, ports));
  }
  return sockets;
}

void serve(const Sockets& sockets, Role role, int stop) {
  std::list<FileDescriptor> connections;
  while (true) {
    std::vector<pollfd> watched{{stop, POLLIN, 0}};
    for (const auto& socket : sockets.listeners) watched.push_back({socket.get(), POLLIN, 0});
    for (const auto& socket : sockets.datagrams) watched.push_back({socket.get(), POLLIN, 0});
    for (const auto& socket : connections) watched.push_back({socket.get(), POLLIN, 0});
    if (poll(watched.data(), watched.size(), -1) < 0) continue;  // interrupted

    auto next = watched.begin();
    const auto ready = [&next] { return (next++)->revents != 0; };
    if (ready()) return;
    std::list<FileDescriptor> accepted;
    for (const auto& socket : sockets.listeners)
      if (ready()) accept_into(accepted, socket.get());
    for (const auto& socket : sockets.datagrams)
      if (ready()) answer_datagram(socket.get(), role);
    connections.remove_if(
        [&](const FileDescriptor& socket) { return ready() && !answer_connection(socket.get(), role); });
    connections.splice(connections.end(), accepted);
  }
}

}  // namespace

Server::Server(const Namespace& where, Identity identity, Role role, const Ports& ports)
    : stop_(check(eventfd(0, EFD_CLOEXEC), "eventfd")) {
  std::promise<void> listening;
  auto started = listening.get_future();
  thread_ = std::thread([this, &where, &listening, &ports, identity, role] {
    Sockets sockets;
    try {
      where.enter(identity);
      sockets = open_all(ports);
    } catch (...) {
      listening.set_exception(std::current_exception());
      return;
    }
    listening.set_value();
    serve(sockets, role, stop_.get());
  });
  try {
    started.get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

Server::~Server() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

}  // namespace sidetrack::netns
