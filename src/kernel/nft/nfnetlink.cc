// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/nfnetlink.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <cerrno>

namespace sidetrack::nft {
namespace {

// Only of an answer that can mean nothing else.
Error lacking(int error, const char* doing) {
  return system_error(error, doing, ExitCode::kernel_lacks,
                      "load it on the node: modprobe nf_tables (CONFIG_NETFILTER_NETLINK, CONFIG_NF_TABLES)")
      .as_of_one_backend();
}

// Only to open the socket fails for want of a protocol.
Error failure(int error, const char* what) {
  return error == EPROTONOSUPPORT || error == EAFNOSUPPORT ? lacking(error, what) : unavailable(error, what);
}

constexpr netlink::Subsystem nf_tables{
    NETLINK_NETFILTER,      "the nf_tables ruleset",         "cannot open a netlink socket to nf_tables",
    "cannot ask nf_tables", "cannot read nf_tables' answer", failure};

constexpr int type_of(int message) { return NFNL_SUBSYS_NFTABLES << 8 | message; }

// nfnetlink is there and knows no subsystem of this number. Another question may be refused so for its own faults; that
// for the generation, which has no attributes, has none.
bool means_absence(int error, const netlink::Request& question) {
  return question.type() == type_of(NFT_MSG_GETGEN) && (error == EINVAL || error == EOPNOTSUPP);
}

}  // namespace

Error unavailable(int error, const char* doing) {
  if (error != EPERM && error != EACCES) return system_error(error, doing);
  return system_error(error, doing, ExitCode::not_permitted,
                      "nf_tables needs CAP_NET_ADMIN in the user namespace that owns this network namespace "
                      "(securityContext.capabilities.add: [NET_ADMIN])");
}

netlink::Socket open_socket() { return netlink::Socket(nf_tables); }

netlink::Request request(int message, std::uint8_t family, int flags) {
  return {type_of(message), flags, nfgenmsg{family, NFNETLINK_V0, 0}};
}

void read(netlink::Socket& socket, netlink::Request& request,
          const std::function<void(const netlink::Message&)>& take) {
  const int error = netlink::read_whole(socket, request, take).end.error;
  if (error == 0) return;
  // It was there when it was asked for: the caller knows it from the kernel.
  if (error == ENOENT) {
    throw Error(ExitCode::busy, "cannot read the nf_tables ruleset: it was deleted while being read", "run it again");
  }
  if (means_absence(error, request)) throw lacking(error, "the kernel has no nf_tables");
  throw unavailable(error, "cannot read the nf_tables ruleset");
}

std::uint32_t generation(netlink::Socket& socket) {
  netlink::Request question = request(NFT_MSG_GETGEN, NFPROTO_UNSPEC, NLM_F_ACK);
  std::optional<std::uint32_t> generation;
  read(socket, question, [&](const netlink::Message& message) {
    const nlattr* id = message.attributes<nfgenmsg>().find(NFTA_GEN_ID);
    if (id != nullptr) generation = netlink::network_order<std::uint32_t>(id);
  });
  if (!generation) throw Error(ExitCode::kernel_lacks, "nf_tables does not report its generation");
  return *generation;
}

std::vector<netlink::Reply> transact(netlink::Socket& socket, std::span<const std::byte> batch) {
  socket.make_room_for(batch.size());
  const int error = socket.try_send(batch);
  if (error == EMSGSIZE || error == ENOBUFS) {
    throw system_error(error, fmt::format("the rules need a netlink message of {} bytes", batch.size()),
                       ExitCode::failed,
                       fmt::format("raise the limit of the socket's send buffer (SO_SNDBUF): sysctl -w "
                                   "net.core.wmem_max={}",
                                   batch.size() + 32));
  }
  if (error != 0) throw unavailable(error, "cannot send the rules to nf_tables");
  return netlink::pending_replies(socket);
}

}  // namespace sidetrack::nft
