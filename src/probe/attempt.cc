// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/attempt.h"

#include <fmt/format.h>
#include <linux/filter.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>

#include "model/error.h"
#include "probe/socket_table.h"

namespace sidetrack::probe {
namespace {

using std::chrono::milliseconds;

// The next hop drops it, and says so: nothing gets further, whatever the rules do. Nothing counts down on the way to a
// socket of this pod.
bool stay_near(const Descriptor& socket, Family family) {
  return family == Family::ipv4 ? set(socket, SOL_IP, IP_TTL, 1) : set(socket, SOL_IPV6, IPV6_UNICAST_HOPS, 1);
}

// Takes in nothing, since whatever is sent in this pod starts with less: the connection is answered at the other end's
// socket, and never completed. (A filter would need CAP_NET_ADMIN on a tcp socket: tried on 6.18.)
bool drop_replies(const Descriptor& socket, Family family) {
  return family == Family::ipv4 ? set(socket, SOL_IP, IP_MINTTL, 255) : set(socket, SOL_IPV6, IPV6_MINHOPCOUNT, 255);
}

// A datagram that comes in by another interface than lo is cut down to its UDP header, which leaves nothing to read. It
// takes a filter to tell: IP_PKTINFO has for what came by lo the interface that owns its destination address. On a udp
// socket a filter needs no right. (Tried on 6.18.)
bool read_from_inside_only(const Descriptor& socket) {
  constexpr unsigned interface = static_cast<unsigned>(SKF_AD_OFF) + SKF_AD_IFINDEX;
  constexpr unsigned lo = 1;  // in every network namespace (LOOPBACK_IFINDEX)
  constexpr unsigned whole = 0xffff, udp_header = 8;
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, interface), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, lo, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, whole), BPF_STMT(BPF_RET | BPF_K, udp_header)};
  return set(socket, SOL_SOCKET, SO_ATTACH_FILTER, sock_fprog{std::size(program), program});
}

// What came back to the client's socket. A network error is an ICMP message: of the next hop, where the hop limit ends.
Landing came_back(int error) {
  return {.kind = error == ECONNREFUSED ? Landing::Kind::refused : Landing::Kind::strayed, .error = error};
}

Landing not_sent(int error) {
  return {.kind = error == ECONNREFUSED ? Landing::Kind::refused : Landing::Kind::not_sent, .error = error};
}

// ---- The client's side.

// Bound to a port at random that no socket here has: connect(2) would take those of an address in turn, others'
// connections to elsewhere notwithstanding. Else errno says why not.
Descriptor bound(const Attempt& attempt) {
  const Family family = attempt.to.address.family;
  const bool tcp = attempt.protocol == Protocol::tcp;
  Descriptor fd = open_socket(attempt.protocol, family);
  if (!fd.valid() || !stay_near(fd, family)) return Descriptor();
  if (attempt.mark != 0 && !set(fd, SOL_SOCKET, SO_MARK, attempt.mark)) return Descriptor();
  if (tcp) {
    if (!attempt.complete && !drop_replies(fd, family)) return Descriptor();
    set(fd, SOL_SOCKET, SO_LINGER, linger{.l_onoff = 1, .l_linger = 0});  // leaves nothing behind
  } else {
    const bool v6 = family == Family::ipv6;
    set(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_RECVERR : IP_RECVERR, 1);
    if (!read_from_inside_only(fd)) return Descriptor();
  }
  const SocketAddress from(Endpoint{attempt.from.value_or(Address::any(family)), std::nullopt});
  if (bind(fd.get(), from.get(), SocketAddress::size()) != 0) return Descriptor();
  return fd;
}

// Bound to a port of its own. (From the port that it connects to it might reach itself.) If there is none left, one
// will do from which an earlier attempt was completed or answered, and has ended.
Descriptor bound(const Attempt& attempt, SourcePorts& ports) {
  std::vector<Descriptor> others;  // keep their ports meanwhile
  while (true) {
    Descriptor fd = bound(attempt);
    if (!fd.valid()) {
      const bool leaves_traces = attempt.protocol == Protocol::tcp && !attempt.complete;
      if (others.empty() || leaves_traces) return fd;
      return std::move(others.front());
    }
    const std::uint16_t port = own_end(fd.get()).port.value();
    if (port != attempt.to.port && ports.insert(port).second) return fd;
    others.push_back(std::move(fd));
  }
}

// Connected, or on its way; else errno says why not.
Descriptor sent(const Attempt& attempt, SourcePorts& ports) {
  const ActingAs owner(attempt.as);
  Descriptor fd = bound(attempt, ports);
  if (!fd.valid()) return fd;
  const SocketAddress to(attempt.to);
  if (connect(fd.get(), to.get(), SocketAddress::size()) != 0 && errno != EINPROGRESS) return Descriptor();
  return fd;
}

int error_of(const Descriptor& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

// ---- The listeners' side.

const Listener* ours_at(const std::vector<Listener>& listeners, Protocol protocol, std::uint16_t port) {
  for (const Listener& each : listeners) {
    if (each.protocol == protocol && each.port == port && each.state == Listener::State::ours) return &each;
  }
  return nullptr;
}

std::optional<Landing> taken(const Listener& listener, const Endpoint& client) {
  while (true) {
    const Descriptor connection(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) return std::nullopt;
    if (peer_end(connection.get()) != client) continue;
    return Landing{.kind = Landing::Kind::taken,
                   .at = own_end(connection.get()),
                   .listener = listener.port,
                   .original = original_destination(connection.get(), client.address.family)};
  }
}

std::optional<Landing> received(const Listener& listener, const Endpoint& client) {
  std::array<char, 512> datagram;
  while (true) {
    SocketAddress from;
    socklen_t size = SocketAddress::size();
    if (recvfrom(listener.socket.get(), datagram.data(), datagram.size(), 0, from.get(), &size) < 0)
      return std::nullopt;
    if (from.endpoint() == client)
      return Landing{.kind = Landing::Kind::taken, .at = own_end(listener.socket.get()), .listener = listener.port};
  }
}

// Waits for something to happen to the client or the listeners, for `time` at most.
void wait(const Descriptor& client, const std::vector<Listener>& listeners, short client_events, milliseconds time) {
  std::vector<pollfd> watched{{client.get(), client_events, 0}};
  for (const Listener& each : listeners) {
    if (each.state == Listener::State::ours) watched.push_back({each.socket.get(), POLLIN, 0});
  }
  poll(watched.data(), watched.size(), static_cast<int>(time.count()));
}

// The table of sockets cannot be waited for: it is looked at again after 1, 2, 4, … 16 ms.
class Pace {
 public:
  explicit Pace(Clock::time_point deadline) : deadline_(deadline) {}
  [[nodiscard]] bool over() const { return Clock::now() >= deadline_; }
  milliseconds next() {
    const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
    step_ = std::min(step_ * 2, milliseconds(16));
    return std::clamp(left, milliseconds(0), step_ / 2);
  }

 private:
  Clock::time_point deadline_;
  milliseconds step_{1};
};

Landing land_tcp(const Descriptor& client, const Attempt& attempt, const std::vector<Listener>& listeners,
                 Clock::time_point deadline) {
  const Endpoint own = own_end(client.get());
  for (Pace pace(deadline);;) {
    wait(client, listeners, 0, pace.next());
    for (const Listener& each : listeners) {
      if (each.protocol != Protocol::tcp || each.state != Listener::State::ours) continue;
      if (auto landing = taken(each, own)) return *landing;
    }
    if (const int error = error_of(client); error != 0) return came_back(error);
    // Ours are known by accepting, which tells more.
    if (const auto at = other_end(own)) {
      const Listener* ours = ours_at(listeners, Protocol::tcp, at->port.value());
      if (ours == nullptr || !attempt.complete)
        return {.kind = Landing::Kind::seen, .at = *at, .listener = ours != nullptr ? ours->port : std::uint16_t{0}};
    }
    if (pace.over()) return {.kind = Landing::Kind::unanswered};
  }
}

// A DNS message (RFC 1035, 4.1.1) that asks nothing: a server that answers it at all says "format error", and asks
// no other process.
constexpr std::array<std::uint8_t, 12> empty_query{0x51, 0xde};

// Whether a datagram has come back, and from where.
std::optional<Landing> answered(const Descriptor& client) {
  char byte = 0;
  const ssize_t size = recv(client.get(), &byte, sizeof byte, 0);
  if (size < 0) return std::nullopt;
  return Landing{.kind = size > 0 ? Landing::Kind::answered : Landing::Kind::strayed};
}

Landing land_udp(const Descriptor& client, const std::vector<Listener>& listeners, Clock::time_point deadline) {
  if (send(client.get(), empty_query.data(), empty_query.size(), 0) < 0) return not_sent(errno);
  const Endpoint own = own_end(client.get());
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    wait(client, listeners, POLLIN, std::max(left, milliseconds(0)));
    for (const Listener& each : listeners) {
      if (each.protocol != Protocol::udp || each.state != Listener::State::ours) continue;
      if (auto landing = received(each, own)) return *landing;
    }
    if (auto landing = answered(client)) return *landing;
    if (errno != EAGAIN) return came_back(errno);
    if (Clock::now() >= deadline) return {.kind = Landing::Kind::unanswered};
  }
}

// When all is well an attempt takes less than a millisecond.
constexpr milliseconds patience_with_a_port{100};

}  // namespace

std::string Attempt::text() const {
  std::string who = fmt::format("uid {}", as.uid);
  if (as.gid != as.uid) who += fmt::format(" gid {}", as.gid);
  return fmt::format("{} to {}{}", who, to.text(), mark != 0 ? fmt::format(" with mark {}", mark) : "");
}

SourcePorts source_ports(const std::vector<Listener>& listeners) {
  return any_held(listeners, Protocol::tcp) ? peer_ports() : SourcePorts();
}

Landing land(const Attempt& attempt, const std::vector<Listener>& listeners, SourcePorts& ports,
             Clock::time_point deadline) {
  // Where two connections from one port to two destinations would be one behind nat, also when the earlier has ended
  // but conntrack still knows it, nf_nat gives the later another port. That one cannot be told from others', so another
  // is made from another port. An answer finds its way back, whatever the port: one datagram to a server is enough.
  const bool by_port = attempt.protocol == Protocol::tcp || attempt.complete;
  while (true) {
    const Descriptor client = sent(attempt, ports);
    if (!client.valid()) return not_sent(errno);  // EADDRINUSE: no port is left
    const Clock::time_point next = by_port ? std::min(deadline, Clock::now() + patience_with_a_port) : deadline;
    const Landing landing = attempt.protocol == Protocol::tcp ? land_tcp(client, attempt, listeners, next)
                                                              : land_udp(client, listeners, next);
    if (landing.kind != Landing::Kind::unanswered || Clock::now() >= deadline) return landing;
  }
}

}  // namespace sidetrack::probe
