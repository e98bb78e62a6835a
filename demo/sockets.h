// SPDX-License-Identifier: GPL-2.0-or-later
// The little of sockets that both programs need. IPv4 only; a failed call ends the program with its reason.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace demo {

[[noreturn]] inline void give_up(const char* doing) {
  std::perror(doing);
  std::exit(1);
}

inline std::uint16_t port_number(const char* text) {
  return static_cast<std::uint16_t>(std::strtoul(text, nullptr, 10));
}

inline std::string text(const sockaddr_in& end) {
  char address[INET_ADDRSTRLEN];
  return std::string(inet_ntop(AF_INET, &end.sin_addr, address, sizeof address)) + ':' +
         std::to_string(ntohs(end.sin_port));
}

inline int listen_on(std::uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(port);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 || listen(listener, SOMAXCONN) != 0)
    give_up("listen");
  return listener;
}

// A peer that says nothing is given up after a while.
inline void be_patient_for_5_seconds(int connection) {
  const timeval patience{.tv_sec = 5, .tv_usec = 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

// What comes in until `end` is part of it, or until the other side closes if `end` is empty.
inline std::string receive_until(int connection, const std::string& end) {
  std::string received;
  char buffer[4096];
  while (end.empty() || received.find(end) == std::string::npos) {
    const ssize_t size = recv(connection, buffer, sizeof buffer, 0);
    if (size <= 0) break;
    received.append(buffer, static_cast<std::size_t>(size));
  }
  return received;
}

inline void send_all(int connection, const std::string& message) {
  for (std::size_t sent = 0; sent < message.size();) {
    const ssize_t size = send(connection, message.data() + sent, message.size() - sent, MSG_NOSIGNAL);
    if (size <= 0) return;
    sent += static_cast<std::size_t>(size);
  }
}

}  // namespace demo
