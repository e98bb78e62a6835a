// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/stray_packet.h"

#include <netinet/tcp.h>
#include <sched.h>
#include <sys/time.h>

#include <array>
#include <cstring>
#include <stdexcept>

namespace sidetrack::netns {
namespace {

// RFC 1071, over the IPv4 pseudo header and the segment; for IPv6 the kernel does it (IPV6_CHECKSUM).
std::uint16_t checksum(const Endpoint& from, const Endpoint& to, const tcphdr& segment) {
  std::uint32_t sum = IPPROTO_TCP + sizeof segment;
  const auto add = [&sum](const std::uint8_t* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; i += 2) sum += static_cast<std::uint32_t>(bytes[i] << 8 | bytes[i + 1]);
  };
  add(from.address.bytes.data(), from.address.size());
  add(to.address.bytes.data(), to.address.size());
  add(reinterpret_cast<const std::uint8_t*>(&segment), sizeof segment);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return htons(static_cast<std::uint16_t>(~sum));
}

void send_segment(int socket, const Endpoint& from, const Endpoint& to, std::uint8_t flags) {
  tcphdr segment{};
  segment.th_sport = htons(from.port);
  segment.th_dport = htons(to.port);
  segment.th_seq = htonl(1000);
  segment.th_ack = (flags & ack) != 0 ? htonl(2000) : 0;
  segment.th_off = sizeof segment / 4;
  segment.th_flags = flags;
  segment.th_win = htons(1024);
  if (to.address.family == Family::ipv4) segment.th_sum = checksum(from, to, segment);
  check(send(socket, &segment, sizeof segment, 0), "send a raw segment");
}

FileDescriptor raw_socket(const Endpoint& from, const Endpoint& to) {
  FileDescriptor socket(check(::socket(to.domain(), SOCK_RAW | SOCK_CLOEXEC, IPPROTO_TCP), "raw socket"));
  if (to.address.family == Family::ipv6) {
    const int offset = offsetof(tcphdr, th_sum);
    check(setsockopt(socket.get(), SOL_IPV6, IPV6_CHECKSUM, &offset, sizeof offset), "IPV6_CHECKSUM");
  }
  constexpr timeval guard{.tv_sec = 5, .tv_usec = 0};
  check(setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &guard, sizeof guard), "SO_RCVTIMEO");
  const sockaddr_storage own = Endpoint(from.address.text(), 0).socket_address();
  const sockaddr_storage other = Endpoint(to.address.text(), 0).socket_address();
  check(bind(socket.get(), pointer(own), socket_address_size), "bind to " + from.text());
  check(connect(socket.get(), pointer(other), socket_address_size), "connect to " + to.text());
  return socket;
}

// Of the next segment that comes in: the port that it is for.
std::uint16_t next_destination_port(int socket, Family family) {
  std::array<std::uint8_t, 256> packet;
  check(recv(socket, packet.data(), packet.size(), 0), "wait for the answer to a SYN");
  // A raw IPv4 socket hands out the IP header, too.
  const std::size_t header = family == Family::ipv4 ? (packet[0] & 0x0fU) * 4U : 0;
  tcphdr segment;
  std::memcpy(&segment, packet.data() + header, sizeof segment);
  return ntohs(segment.th_dport);
}

// Packets that one processor sends are delivered in order.
void stay_on_this_processor() {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<unsigned>(check(sched_getcpu(), "sched_getcpu")), &here);
  check(sched_setaffinity(0, sizeof here, &here), "sched_setaffinity");
}

}  // namespace

bool is_answered(const Namespace& where, const Endpoint& from, const Endpoint& to, std::uint8_t flags) {
  return where.run([&] {
    stay_on_this_processor();
    Endpoint last = from;
    last.port = static_cast<std::uint16_t>(from.port + 1);
    const FileDescriptor socket = raw_socket(from, to);
    send_segment(socket.get(), from, to, flags);
    send_segment(socket.get(), last, to, syn);
    while (true) {
      const std::uint16_t port = next_destination_port(socket.get(), to.address.family);
      if (port == from.port) return true;
      if (port == last.port) return false;
    }
  });
}

}  // namespace sidetrack::netns
