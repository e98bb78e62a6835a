// SPDX-License-Identifier: GPL-2.0-or-later
// The TCP sockets that the kernel lists.
#include "kernel/tcp_sockets.h"

#include <gmock/gmock.h>
#include <linux/netlink.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "support/backend_test.h"
#include "support/endpoint.h"
#include "support/network.h"
#include "support/refused_call.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;

struct TcpSocketsTest : KernelTest {
  Namespace space;

  // Of anybody's address, or of IPv6 alone, at a port of the kernel's choice.
  [[nodiscard]] FileDescriptor listening(const char* address, bool ipv6_only) const {
    return space.run([&] {
      const Endpoint at(address, 0);
      FileDescriptor made(check(::socket(at.domain(), SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
      const int only = ipv6_only ? 1 : 0;
      if (at.domain() == AF_INET6)
        check(setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only), "IPV6_V6ONLY");
      const sockaddr_storage any = at.socket_address();
      check(bind(made.get(), pointer(any), socket_address_size), "bind");
      check(listen(made.get(), 1), "listen");
      return made;
    });
  }
  [[nodiscard]] std::vector<TcpSocket> listening_at(std::uint16_t port) const {
    return space.run([&] { return TcpSockets().listening(port); });
  }
};

TEST_F(TcpSocketsTest, ListsWhoListensAtAPort) {
  for (const auto& [address, ipv6_only] :
       {std::pair{"0.0.0.0", false}, std::pair{"::", false}, std::pair{"::", true}}) {
    const FileDescriptor one = listening(address, ipv6_only);
    const FileDescriptor other = listening(address, ipv6_only);
    const std::uint16_t port = local_end(one.get()).port;
    const std::vector<TcpSocket> found = listening_at(port);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found.front().local.port, port);
    EXPECT_EQ(found.front().local.address.text(), address);
    EXPECT_EQ(found.front().ipv6_only, ipv6_only);
    EXPECT_EQ(found.front().uid, 0U);
  }
  EXPECT_TRUE(listening_at(1).empty());
}

// Both ends of it, by the addresses that they have, whatever the family of their sockets.
TEST_F(TcpSocketsTest, ListsConnections) {
  space.must({"ip", "link", "set", "lo", "up"});
  for (const char* where : {"127.0.0.1", "::1"}) {
    const FileDescriptor listener = listening("::", false);
    const std::uint16_t port = local_end(listener.get()).port;
    const FileDescriptor client = space.run(
        [&] {
          const Endpoint to(where, port);
          FileDescriptor made(check(::socket(to.domain(), SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
          const sockaddr_storage address = to.socket_address();
          check(connect(made.get(), pointer(address), socket_address_size), "connect");
          return made;
        },
        {1337, 1337});
    const FileDescriptor server(check(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept"));
    const auto inode = [](const FileDescriptor& socket) {
      struct stat status {};
      check(fstat(socket.get(), &status), "fstat");
      return status.st_ino;
    };
    std::vector<std::string> found;
    for (const TcpSocket& each : space.run([] { return TcpSockets().established(); })) {
      const bool is_server = each.local.port == port;
      EXPECT_EQ(each.inode, inode(is_server ? server : client));
      EXPECT_EQ(each.uid, is_server ? 0U : 1337U);
      EXPECT_EQ((is_server ? each.remote : each.local).port, local_end(client.get()).port);
      EXPECT_EQ((is_server ? each.local : each.remote).port, port);
      found.push_back((is_server ? "server " : "client ") + each.local.address.text() + " " +
                      each.remote.address.text());
    }
    const std::string addresses = std::string(where) + " " + where;
    EXPECT_THAT(found, ::testing::UnorderedElementsAre("server " + addresses, "client " + addresses));
    EXPECT_EQ(listening_at(port).size(), 1U);
  }
}

TEST_F(TcpSocketsTest, SaysWhatTheKernelLacks) {
  const Error error = error_in(space, [] {
    refuse_call(SYS_socket, 2, NETLINK_SOCK_DIAG, EPROTONOSUPPORT);
    static_cast<void>(TcpSockets());
  });
  EXPECT_EQ(error.code(), ExitCode::kernel_lacks);
  EXPECT_THAT(error.what(), HasSubstr("cannot open a netlink socket to list TCP sockets (sock_diag)"));
  EXPECT_EQ(error.hint(), "load it on the node: modprobe tcp_diag (CONFIG_INET_DIAG, CONFIG_INET_TCP_DIAG)");
}

}  // namespace
}  // namespace sidetrack::netns
