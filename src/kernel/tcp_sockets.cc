// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/tcp_sockets.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "kernel/netlink/ask.h"
#include "model/error.h"

namespace sidetrack {
namespace {

Error lacking_diag(int error, const char* what) {
  return system_error(error, what, ExitCode::kernel_lacks,
                      "load it on the node: modprobe tcp_diag (CONFIG_INET_DIAG, CONFIG_INET_TCP_DIAG)");
}

constexpr netlink::Subsystem sock_diag{NETLINK_SOCK_DIAG,
                                       "the TCP sockets",
                                       "cannot open a netlink socket to list TCP sockets (sock_diag)",
                                       "sock_diag: cannot ask for TCP sockets",
                                       "sock_diag: cannot read the list of TCP sockets",
                                       lacking_diag};

// A 4-byte or 16-byte address of a message, IPv4 in the first bytes.
Endpoint end_of(unsigned domain, const __be32* address, __be16 port) {
  Address made;
  made.family = domain == AF_INET ? Family::ipv4 : Family::ipv6;
  std::memcpy(made.bytes.data(), address, made.size());
  return {made.unmapped().value_or(made), ntohs(port)};
}

TcpSocket socket_of(const netlink::Message& message) {
  const auto& header = message.header<inet_diag_msg>();
  const nlattr* ipv6_only = message.attributes<inet_diag_msg>().find(INET_DIAG_SKV6ONLY);
  return {end_of(header.idiag_family, header.id.idiag_src, header.id.idiag_sport),
          end_of(header.idiag_family, header.id.idiag_dst, header.id.idiag_dport), header.idiag_uid, header.idiag_inode,
          ipv6_only != nullptr && netlink::host_order<std::uint8_t>(ipv6_only) != 0};
}

}  // namespace

TcpSockets::TcpSockets() : socket_(std::make_unique<netlink::Socket>(sock_diag)) {
  // The kernel loads what lists them when it is first asked; what it lacks is to be known at once.
  static_cast<void>(listening(1));
}

TcpSockets::~TcpSockets() = default;

std::vector<TcpSocket> TcpSockets::listening(std::uint16_t port) { return list(1U << TCP_LISTEN, port); }

std::vector<TcpSocket> TcpSockets::established() { return list(1U << TCP_ESTABLISHED, 0); }

std::vector<TcpSocket> TcpSockets::list(std::uint32_t states, std::uint16_t port) {
  return netlink::read_consistent(*socket_, [&]() -> std::optional<std::vector<TcpSocket>> {
    std::vector<TcpSocket> found;
    for (const int domain : {AF_INET, AF_INET6}) {
      inet_diag_req_v2 wanted{};
      wanted.sdiag_family = static_cast<std::uint8_t>(domain);
      wanted.sdiag_protocol = IPPROTO_TCP;
      wanted.idiag_states = states;
      wanted.id.idiag_sport = htons(port);
      wanted.id.idiag_cookie[0] = wanted.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
      netlink::Request question(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, wanted);
      const netlink::Answer answer = netlink::read_whole(
          *socket_, question, [&](const netlink::Message& message) { found.push_back(socket_of(message)); });
      const int error = answer.end.error;
      const bool no_ipv6 = domain == AF_INET6 && (error == EAFNOSUPPORT || error == EPROTONOSUPPORT);
      if (error != 0 && !no_ipv6) throw lacking_diag(error, "the kernel cannot list TCP sockets (sock_diag)");
    }
    return found;
  });
}

}  // namespace sidetrack
