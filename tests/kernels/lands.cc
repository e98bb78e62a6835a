// SPDX-License-Identifier: GPL-2.0-or-later
// Where a connection lands: a server that answers each with its own port, and a client that prints the answer.
//   lands serve UID PROTOCOL PORT…          as this user; takes connections to other addresses too, as TPROXY needs
//   lands ask UID PROTOCOL ADDRESS PORT     as this user; prints the port of the server that answers, or why none does
// PROTOCOL: tcp or udp.
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

struct Server {
  int fd;
  int type;
  std::string port;
};

[[noreturn]] void fail(const char* what) {
  std::printf("%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

Address address_of(const char* text, const std::string& port) {
  Address address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  address.storage.ss_family = inet_pton(AF_INET, text, &v4->sin_addr) == 1 ? AF_INET : AF_INET6;
  if (address.storage.ss_family == AF_INET6 && inet_pton(AF_INET6, text, &v6->sin6_addr) != 1) fail(text);
  v4->sin_port = htons(static_cast<uint16_t>(std::stoi(port)));  // where sin6_port is
  return address;
}

int type_of(const std::string& protocol) { return protocol == "udp" ? SOCK_DGRAM : SOCK_STREAM; }

// One socket for each family that the kernel has. It belongs to the user who makes it; to make it transparent takes
// root.
void listen_at(uid_t uid, const std::string& protocol, const std::string& port, std::vector<Server>& servers) {
  const int on = 1;
  const int type = type_of(protocol);
  for (const char* any : {"0.0.0.0", "::"}) {
    Address address = address_of(any, port);
    const int family = address.storage.ss_family;
    const int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
    if (seteuid(uid) != 0) fail("seteuid");
    const int fd = socket(family, type, 0);
    if (seteuid(0) != 0) fail("seteuid");
    if (fd < 0 && family == AF_INET6) continue;
    if (family == AF_INET6) setsockopt(fd, level, IPV6_V6ONLY, &on, sizeof on);
    setsockopt(fd, level, family == AF_INET ? IP_TRANSPARENT : IPV6_TRANSPARENT, &on, sizeof on);
    setsockopt(fd, level, family == AF_INET ? IP_PKTINFO : IPV6_RECVPKTINFO, &on, sizeof on);
    if (bind(fd, address.get(), address.size) != 0) fail("bind");
    if (type == SOCK_STREAM && listen(fd, 8) != 0) fail("listen");
    servers.push_back({fd, type, port});
  }
}

void answer(const Server& server) {
  if (server.type == SOCK_STREAM) {
    const int connection = accept(server.fd, nullptr, nullptr);
    (void)!write(connection, server.port.data(), server.port.size());
    close(connection);
    return;
  }
  char text[64];
  iovec data{text, sizeof text};
  Address sender;
  alignas(cmsghdr) char asked[128];  // the address that was asked, which is the one to answer from
  msghdr message{};
  message.msg_name = &sender.storage;
  message.msg_namelen = sender.size;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = asked;
  message.msg_controllen = sizeof asked;
  if (recvmsg(server.fd, &message, 0) < 0) return;
  auto* asked_at = CMSG_DATA(CMSG_FIRSTHDR(&message));  // the interface is routing's to choose
  if (sender.storage.ss_family == AF_INET) {
    reinterpret_cast<in_pktinfo*>(asked_at)->ipi_ifindex = 0;
  } else {
    reinterpret_cast<in6_pktinfo*>(asked_at)->ipi6_ifindex = 0;
  }
  data.iov_len = server.port.copy(text, sizeof text);
  sendmsg(server.fd, &message, 0);
}

[[noreturn]] void serve(const std::vector<Server>& servers) {
  std::vector<pollfd> ready;
  for (const Server& server : servers) ready.push_back({server.fd, POLLIN, 0});
  std::puts("listening");
  std::fflush(stdout);
  for (;;) {
    poll(ready.data(), ready.size(), -1);
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if (ready[i].revents != 0) answer(servers[i]);
    }
  }
}

void ask(uid_t uid, const std::string& protocol, Address address) {
  if (setgid(uid) != 0 || setuid(uid) != 0) fail("setuid");
  const int fd = socket(address.storage.ss_family, type_of(protocol), 0);
  const timeval limit{5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(fd, address.get(), address.size) != 0) fail("connect");
  if (protocol == "udp" && send(fd, "?", 1, 0) != 1) fail("send");
  char text[16];
  const ssize_t size = recv(fd, text, sizeof text, 0);
  if (size < 0) fail("recv");
  std::printf("%.*s\n", static_cast<int>(size), text);
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> said(words + 1, words + count);
  if (said.size() < 4) {
    std::fputs("lands: expected serve UID PROTOCOL PORT… or ask UID PROTOCOL ADDRESS PORT\n", stderr);
    return 2;
  }
  const auto uid = static_cast<uid_t>(std::stoi(said[1]));
  if (said[0] == "ask") {
    ask(uid, said[2], address_of(words[4], said[4]));
    return 0;
  }
  std::vector<Server> servers;
  for (std::size_t i = 2; i + 1 < said.size(); i += 2) listen_at(uid, said[i], said[i + 1], servers);
  serve(servers);
}
