// SPDX-License-Identifier: GPL-2.0-or-later
// What the rules of a network namespace cost a new TCP connection.
//
//   data-path ROUNDS CONNECTIONS NAMESPACE…
//
// In every namespace (as `ip netns` names them) by turns: listens on port 15001 and connects to 10.96.0.10:15001, which
// is an address of the namespace, or is sent there by its rules. The kernel does all of a handshake over loopback
// within connect(2), so its time is that of the first packet through the rules, and of the two that follow past them.
// Prints a line for each: name, median of the rounds' median time of connect(2) in µs, their first and ninth decile,
// median of new connections per second (connect, accept, close); separated by tabs.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint16_t proxy_port = 15001;
constexpr std::uint32_t service = 0x0a60000a;  // 10.96.0.10

struct Place {
  std::string name;
  int fd = -1;
  int listener = -1;
  std::vector<double> connect_times;  // µs; the median of each round
  std::vector<double> rates;          // connections per second, of each round
};

[[noreturn]] void fail(const std::string& what) {
  std::perror(("data-path: " + what).c_str());
  std::exit(1);
}

int check(int result, const std::string& what) {
  if (result < 0) fail(what);
  return result;
}

sockaddr_in address(std::uint32_t host) {
  sockaddr_in result{};
  result.sin_family = AF_INET;
  result.sin_addr.s_addr = htonl(host);
  result.sin_port = htons(proxy_port);
  return result;
}

const sockaddr* pointer(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

Place enter(const std::string& name) {
  Place place;
  place.name = name;
  place.fd = check(open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC), name);
  check(setns(place.fd, CLONE_NEWNET), name);
  place.listener = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  const sockaddr_in any = address(INADDR_ANY);
  check(bind(place.listener, pointer(any), sizeof any), "bind");
  check(listen(place.listener, 16), "listen");
  return place;
}

// One connection, closed by a reset: nothing of it lingers that would take ports from those to come.
double connect_once(const Place& place) {
  const int client = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  const linger reset{1, 0};
  check(setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), "SO_LINGER");
  const sockaddr_in to = address(service);
  const auto start = Clock::now();
  check(connect(client, pointer(to), sizeof to), place.name + ": the connection does not reach the proxy");
  const std::chrono::duration<double, std::micro> took = Clock::now() - start;
  close(check(accept(place.listener, nullptr, nullptr), "accept"));
  close(client);
  return took.count();
}

double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

void run_round(Place& place, int connections) {
  check(setns(place.fd, CLONE_NEWNET), place.name);
  std::vector<double> times;
  const auto start = Clock::now();
  for (int i = 0; i < connections; ++i) times.push_back(connect_once(place));
  const std::chrono::duration<double> took = Clock::now() - start;
  place.connect_times.push_back(quantile(std::move(times), 0.5));
  place.rates.push_back(connections / took.count());
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 0;
  const int connections = argc > 2 ? std::atoi(argv[2]) : 0;
  if (rounds < 1 || connections < 1 || argc < 4) {
    std::fputs("usage: data-path ROUNDS CONNECTIONS NAMESPACE…\n", stderr);
    return 2;
  }
  std::vector<Place> places;
  for (int i = 3; i < argc; ++i) places.push_back(enter(argv[i]));
  for (int round = 0; round < rounds; ++round) {
    for (Place& place : places) run_round(place, connections);
  }
  for (const Place& place : places) {
    std::printf("%s\t%.1f\t%.1f\t%.1f\t%.0f\n", place.name.c_str(), quantile(place.connect_times, 0.5),
                quantile(place.connect_times, 0.1), quantile(place.connect_times, 0.9), quantile(place.rates, 0.5));
  }
}
