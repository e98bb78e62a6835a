// SPDX-License-Identifier: GPL-2.0-or-later
#include "probe/listeners.h"

#include <gtest/gtest.h>

namespace sidetrack::probe {
namespace {

// Another process may share its port with whom it likes: it is its own.
TEST(Listeners, LeaveAPortToWhoeverSharesIt) {
  const Endpoint any_port{Address::loopback(Family::ipv4), 0};
  const Listener first = listen_at(Protocol::tcp, {any_port}, Sharing::always);
  ASSERT_EQ(first.state, Listener::State::ours);
  const Endpoint taken{any_port.address, own_end(first.socket.get()).port};
  EXPECT_EQ(listen_at(Protocol::tcp, {taken}, Sharing::if_free).state, Listener::State::held);
  EXPECT_EQ(listen_at(Protocol::tcp, {taken}, Sharing::always).state, Listener::State::ours);
}

// As one has none that was reset before it was accepted.
TEST(Listeners, ASocketWithoutAPeerHasNoOtherEnd) {
  const Descriptor alone = open_socket(Protocol::tcp, Family::ipv4);
  EXPECT_EQ(peer_end(alone.get()), std::nullopt);
  EXPECT_EQ(original_destination(alone.get(), Family::ipv4), std::nullopt);
}

}  // namespace
}  // namespace sidetrack::probe
