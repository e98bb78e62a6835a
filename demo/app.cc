// SPDX-License-Identifier: GPL-2.0-or-later
// A web server that answers every request with its own name:   demo-app NAME PORT…
// Says "listening" when it does.
#include <poll.h>

#include <vector>

#include "sockets.h"

namespace {

void answer(int connection, const std::string& name) {
  demo::be_patient_for_5_seconds(connection);
  demo::receive_until(connection, "\r\n\r\n");
  const std::string body = "Hello from " + name + ".\n";
  demo::send_all(connection, "HTTP/1.0 200 OK\r\nServer: " + name +
                                 "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: demo-app NAME PORT...\n", stderr);
    return 2;
  }
  std::vector<pollfd> listeners;
  for (int i = 2; i < argc; ++i) listeners.push_back({demo::listen_on(demo::port_number(argv[i])), POLLIN, 0});
  std::puts("listening");
  std::fflush(stdout);

  while (poll(listeners.data(), listeners.size(), -1) >= 0) {
    for (const auto& listener : listeners) {
      if (listener.revents == 0) continue;
      const int connection = accept(listener.fd, nullptr, nullptr);
      answer(connection, argv[1]);
      close(connection);
    }
  }
  demo::give_up("poll");
}
