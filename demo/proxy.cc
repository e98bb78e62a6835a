// SPDX-License-Identifier: GPL-2.0-or-later
// The smallest sidecar: takes redirected connections, asks the kernel where they wanted to go, and passes one HTTP
// request on to there. The answer gets a Via header that tells.   demo-proxy OUTBOUND_PORT INBOUND_PORT
// Says "listening" when it does.
#include <arpa/inet.h>  // first: the kernel's headers would clash with <netinet/in.h> otherwise
#include <linux/netfilter_ipv4.h>
#include <poll.h>

#include "sockets.h"

namespace {

enum class Direction { outbound, inbound };

const char* name(Direction direction) { return direction == Direction::outbound ? "outbound" : "inbound"; }

// Connects under the proxy's own uid, which the rules let pass. Inbound, to the app over lo, they do so only from
// 127.0.0.6: else "the proxy to its own pod" is a connection that has to come in through the proxy.
int connect_to(const sockaddr_in& destination, Direction direction) {
  const int upstream = socket(AF_INET, SOCK_STREAM, 0);
  demo::be_patient_for_5_seconds(upstream);
  if (direction == Direction::inbound) {
    sockaddr_in source{};
    source.sin_family = AF_INET;
    inet_pton(AF_INET, "127.0.0.6", &source.sin_addr);
    if (bind(upstream, reinterpret_cast<const sockaddr*>(&source), sizeof source) != 0) demo::give_up("bind");
  }
  if (connect(upstream, reinterpret_cast<const sockaddr*>(&destination), sizeof destination) == 0) return upstream;
  close(upstream);
  return -1;
}

std::string answer_of(const sockaddr_in& destination, Direction direction, const std::string& request) {
  const int upstream = connect_to(destination, direction);
  if (upstream < 0) return "HTTP/1.0 502 Bad Gateway\r\n\r\n";
  demo::send_all(upstream, request);
  std::string answer = demo::receive_until(upstream, "");
  close(upstream);

  const std::size_t status_end = answer.find("\r\n");
  if (status_end == std::string::npos) return "HTTP/1.0 502 Bad Gateway\r\n\r\n";
  const std::string via = std::string("Via: 1.0 proxy (") + name(direction) + ", " + demo::text(destination) + ")\r\n";
  return answer.insert(status_end + 2, via);
}

void pass_on(int connection, Direction direction) {
  demo::be_patient_for_5_seconds(connection);
  sockaddr_in original{};
  socklen_t size = sizeof original;
  if (getsockopt(connection, SOL_IP, SO_ORIGINAL_DST, &original, &size) != 0) {
    demo::send_all(connection, "HTTP/1.0 421 Misdirected Request\r\n\r\n");  // not redirected: it was for us
    return;
  }
  const std::string request = demo::receive_until(connection, "\r\n\r\n");
  demo::send_all(connection, answer_of(original, direction, request));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: demo-proxy OUTBOUND_PORT INBOUND_PORT\n", stderr);
    return 2;
  }
  pollfd listeners[] = {{demo::listen_on(demo::port_number(argv[1])), POLLIN, 0},
                        {demo::listen_on(demo::port_number(argv[2])), POLLIN, 0}};
  std::puts("listening");
  std::fflush(stdout);

  while (poll(listeners, 2, -1) >= 0) {
    for (const Direction direction : {Direction::outbound, Direction::inbound}) {
      const pollfd& listener = listeners[direction == Direction::outbound ? 0 : 1];
      if (listener.revents == 0) continue;
      const int connection = accept(listener.fd, nullptr, nullptr);
      pass_on(connection, direction);
      close(connection);
    }
  }
  demo::give_up("poll");
}
