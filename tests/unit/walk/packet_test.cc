// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/packet.h"

#include <gtest/gtest.h>

#include "model/error.h"
#include "unit/asking.h"

namespace sidetrack {
namespace {

std::string refusal(std::string_view words) {
  try {
    (void)packet_of(words);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.hint(), "") << error.what();
    return error.what();
  }
  return "taken";
}

TEST(Packet, OfTheCommandLine) {
  const Packet out = packet_of("out tcp 10.96.0.10:443 --uid 1000");
  EXPECT_EQ(out.direction, Direction::out);
  EXPECT_EQ(out.protocol, Protocol::tcp);
  EXPECT_EQ(out.destination->text(), "10.96.0.10");
  EXPECT_EQ(out.destination_port, 443);
  EXPECT_EQ(out.owner, (Owner{1000, 1000}));
  EXPECT_EQ(packet_of("out tcp 10.96.0.10:443 --uid 1 --gid 2").owner, (Owner{1, 2}));
  EXPECT_EQ(packet_of("out tcp 10.96.0.10:443").owner, (Owner{0, 0}));
  EXPECT_EQ(packet_of("out udp [fd00::1]:53").destination->text(), "fd00::1");
  EXPECT_EQ(packet_of("out icmp fd00::1").destination->text(), "fd00::1");
  EXPECT_EQ(packet_of("out icmp [fd00::1]").destination->text(), "fd00::1");

  const Packet in = packet_of("in tcp :8080 --from 10.1.2.3 --in-interface eth1 --state invalid");
  EXPECT_EQ(in.destination, std::nullopt);
  EXPECT_EQ(in.source->text(), "10.1.2.3");
  EXPECT_EQ(in.interface, "eth1");
  EXPECT_EQ(in.owner, std::nullopt);
  EXPECT_EQ(in.state, ConnectionState::invalid);
  EXPECT_EQ(packet_of("lo tcp :8080 --mark 0x539").mark, 1337U);
  // A socket that is bound to no address has the one that the kernel chooses.
  EXPECT_EQ(packet_of("out tcp 10.96.0.10:443 --from 0.0.0.0").source, std::nullopt);
  EXPECT_EQ(packet_of("lo tcp [::1]:443 --from ::").source, std::nullopt);
}

TEST(Packet, ThatDoesNotParseIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"out tcp",
       "the packet 'out tcp': expected three words: out, in or lo; tcp, udp or icmp; ADDRESS:PORT, :PORT or ADDRESS"},
      {"away tcp 10.0.0.1:1", "the packet's direction 'away': expected one of out, in, lo"},
      {"out sctp 10.0.0.1:1", "the packet's protocol 'sctp': expected one of tcp, udp, icmp"},
      {"out tcp :443",
       "the packet's destination ':443': expected an address before the port: 'out' goes to another host"},
      {"out tcp 10.0.0.1", "the packet's destination '10.0.0.1': expected ADDRESS:PORT, [ADDRESS]:PORT or :PORT"},
      {"out tcp 10.0.0.1:0", "the packet's destination '10.0.0.1:0': expected a port from 1 to 65535 after the colon"},
      {"out tcp 10.0.0.1:65536",
       "the packet's destination '10.0.0.1:65536': expected a port from 1 to 65535 after the colon"},
      {"out tcp 10.0.0.1:http",
       "the packet's destination '10.0.0.1:http': expected a port from 1 to 65535 after the colon"},
      {"out tcp 10.0.0.1:80x",
       "the packet's destination '10.0.0.1:80x': expected a port from 1 to 65535 after the colon"},
      {"out tcp kubernetes:443",
       "the packet's destination 'kubernetes:443': expected ADDRESS:PORT, [ADDRESS]:PORT or :PORT"},
      {"out tcp fd00::1:443", "the packet's destination 'fd00::1:443': expected ADDRESS:PORT, [ADDRESS]:PORT or :PORT"},
      {"out tcp [10.0.0.1]:443",
       "the packet's destination '[10.0.0.1]:443': expected ADDRESS:PORT, [ADDRESS]:PORT or :PORT"},
      {"out tcp [fd00::1:443",
       "the packet's destination '[fd00::1:443': expected ADDRESS:PORT, [ADDRESS]:PORT or :PORT"},
      {"out tcp [fd00::1]443",
       "the packet's destination '[fd00::1]443': expected ADDRESS:PORT, [ADDRESS]:PORT or :PORT"},
      {"out icmp 10.0.0.1 --from-port 53", "--from-port '53': expected no port: icmp has none"},
      {"out icmp 10.0.0.1:80", "the packet's destination '10.0.0.1:80': expected no port: icmp has none"},
      {"in tcp 10.0.0.1:80 --from fd00::1", "--from 'fd00::1': expected an ipv4 address, as the destination is"},
      {"in tcp 10.0.0.1:80 --from 0.0.0.0",
       "--from '0.0.0.0': expected the address of a host: no packet comes from the unspecified address"},
      {"in tcp :80 --uid 0", "--uid '0': only valid with 'out' or 'lo'"},
      {"in tcp :80 --gid 0", "--gid '0': only valid with 'out' or 'lo'"},
      {"in tcp :80 --out-interface eth0", "--out-interface 'eth0': only valid with 'out'"},
      {"out tcp 10.0.0.1:80 --in-interface eth0", "--in-interface 'eth0': only valid with 'in'"},
  };
  for (const auto& [words, message] : cases) EXPECT_EQ(refusal(words), message);
}

}  // namespace
}  // namespace sidetrack
