// SPDX-License-Identifier: GPL-2.0-or-later
#include "backend/nft/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <libnftnl/common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "backend/nft/attributes.h"
#include "sidetrack/error.h"

namespace sidetrack::nft {
namespace {

// The kernel fills at most 32 KiB per message of a dump when it is offered that much. Not cleared beforehand: most
// answers need a page of it, and to touch the others would cost each its page fault.
constexpr std::size_t receive_size = 64UL * 1024;

void set_option(int fd, int level, int option, int value) {
  // Options that old kernels do not have are done without: errors then name the rule, not its part.
  static_cast<void>(setsockopt(fd, level, option, &value, sizeof value));
}

// The part of NLMSG_ERROR that says how it went and where.
Answer answer_of(const nlmsghdr* message) {
  const auto* error = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(message));
  Answer answer{error->msg.nlmsg_seq, -error->error, {}};
  if ((message->nlmsg_flags & NLM_F_ACK_TLVS) == 0) return answer;
  const bool capped = (message->nlmsg_flags & NLM_F_CAPPED) != 0;
  const std::size_t quoted = capped ? 0 : mnl_nlmsg_get_payload_len(&error->msg);
  const nlattr* offset = Attributes(message, sizeof *error + MNL_ALIGN(quoted)).find(NLMSGERR_ATTR_OFFS);
  if (offset != nullptr) answer.offset = mnl_attr_get_u32(offset);
  return answer;
}

// NLMSG_DONE carries how the dump ended, as a negative errno; without a payload it ended well.
int error_of_end(const nlmsghdr* message) {
  if (mnl_nlmsg_get_payload_len(message) < sizeof(int)) return 0;
  return -*static_cast<const int*>(mnl_nlmsg_get_payload(message));
}

Error disturbed(const char* how) {
  return {ExitCode::busy, fmt::format("the rules of nf_tables could not be read as a whole: {}", how), "run it again"};
}

// nfnetlink is there and knows no subsystem of this number. Another question may be refused so for its own faults; that
// for the generation, which has no attributes, has none.
bool means_absence(int error, std::span<const std::byte> question) {
  constexpr int generation = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETGEN;
  const int type = reinterpret_cast<const nlmsghdr*>(question.data())->nlmsg_type;
  return type == generation && (error == EINVAL || error == EOPNOTSUPP);
}

// What is not there (ENOENT) was there when it was asked for: the caller knows it from the kernel.
[[noreturn]] void refused(int error, std::span<const std::byte> question) {
  if (error == ENOENT) throw disturbed("what was to be read is gone");
  if (error == EINTR || error == ENOBUFS || error == EAGAIN || error == EBUSY)
    throw disturbed("the kernel broke it off");
  if (means_absence(error, question)) throw_lacking(error, "the kernel has no nf_tables");
  throw_unavailable(error, "nf_tables refuses to be read");
}

}  // namespace

void throw_unavailable(int error, const char* doing) {
  if (error == EPERM || error == EACCES) {
    throw system_error(error, doing, ExitCode::not_permitted,
                       "nf_tables needs CAP_NET_ADMIN in the user namespace that owns this network namespace "
                       "(securityContext.capabilities.add: [NET_ADMIN])");
  }
  throw system_error(error, doing);
}

void throw_lacking(int error, const char* doing) {
  throw system_error(error, doing, ExitCode::kernel_lacks,
                     "load it on the node: modprobe nf_tables (CONFIG_NETFILTER_NETLINK, CONFIG_NF_TABLES)")
      .as_of_one_backend();
}

Socket::Socket()
    : socket_(mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC)),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(receive_size)) {
  constexpr auto opening = "cannot open a netlink socket to nf_tables";
  if (!socket_ && (errno == EPROTONOSUPPORT || errno == EAFNOSUPPORT)) throw_lacking(errno, opening);
  if (!socket_) throw_unavailable(errno, opening);
  if (mnl_socket_bind(socket_.get(), 0, MNL_SOCKET_AUTOPID) != 0) {
    throw_unavailable(errno, "cannot bind a netlink socket to nf_tables");
  }
  const int fd = mnl_socket_get_fd(socket_.get());
  set_option(fd, SOL_NETLINK, NETLINK_EXT_ACK, 1);
  set_option(fd, SOL_NETLINK, NETLINK_CAP_ACK, 1);
}

void Socket::reopen() {
  socket_.reset();
  *this = Socket();
}

void Socket::send(std::span<const std::byte> message) {
  while (mnl_socket_sendto(socket_.get(), message.data(), message.size()) < 0) {
    if (errno != EINTR) throw_unavailable(errno, "cannot ask nf_tables");
  }
}

std::optional<std::size_t> Socket::receive(int flags) {
  const int fd = mnl_socket_get_fd(socket_.get());
  for (;;) {
    const ssize_t size = recv(fd, buffer_.get(), receive_size, flags | MSG_TRUNC);  // the whole length, even if cut off
    if (size >= 0 && static_cast<std::size_t>(size) <= receive_size) return static_cast<std::size_t>(size);
    if (size >= 0 || errno == ENOBUFS) return std::nullopt;
    if (errno == EAGAIN) return 0;
    if (errno != EINTR) throw system_error(errno, "cannot read nf_tables' answer");
  }
}

void Socket::request(std::span<const std::byte> message, const std::function<void(const nlmsghdr*)>& take) {
  send(message);
  const std::uint32_t sequence = reinterpret_cast<const nlmsghdr*>(message.data())->nlmsg_seq;
  bool interrupted = false;
  for (;;) {
    const std::optional<std::size_t> received = receive(0);
    if (!received) throw disturbed("the kernel had more to say than the socket holds");
    int size = static_cast<int>(*received);
    const auto* reply = reinterpret_cast<const nlmsghdr*>(buffer_.get());
    for (; mnl_nlmsg_ok(reply, size); reply = mnl_nlmsg_next(reply, &size)) {
      if (reply->nlmsg_seq != sequence) throw disturbed("an answer to another question");
      interrupted = interrupted || (reply->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      const bool last = reply->nlmsg_type == NLMSG_ERROR || reply->nlmsg_type == NLMSG_DONE;
      if (last) {
        const int error = reply->nlmsg_type == NLMSG_ERROR ? answer_of(reply).error : error_of_end(reply);
        if (error != 0) refused(error, message);
        if (interrupted) throw disturbed("they changed meanwhile");
        return;
      }
      if (reply->nlmsg_type < NLMSG_MIN_TYPE) throw disturbed("some of it is lost");  // NLMSG_OVERRUN
      take(reply);
    }
    if (size != 0) throw disturbed("a message was cut off");
  }
}

std::uint32_t Socket::generation() {
  std::array<std::byte, 64> buffer{};
  const std::uint32_t sequence = next_sequence();
  const nlmsghdr* message =
      nftnl_nlmsg_build_hdr(reinterpret_cast<char*>(buffer.data()), NFT_MSG_GETGEN, AF_UNSPEC, NLM_F_ACK, sequence);
  std::optional<std::uint32_t> generation;
  request(std::span(buffer).first(message->nlmsg_len), [&](const nlmsghdr* reply) {
    const nlattr* id = Attributes(reply, sizeof(nfgenmsg)).find(NFTA_GEN_ID);
    if (id != nullptr) generation = ntohl(mnl_attr_get_u32(id));
  });
  if (!generation) throw Error(ExitCode::kernel_lacks, "nf_tables does not tell its generation");
  return *generation;
}

void Socket::make_room_for(std::size_t size) {
  const int fd = mnl_socket_get_fd(socket_.get());
  int room = 0;
  socklen_t length = sizeof room;
  // The kernel takes a message of at most the buffer's size less 32 bytes (netlink_sendmsg), and doubles what is set.
  const std::size_t needed = size + 32;
  const auto enough = [&] {
    return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, &length) == 0 && static_cast<std::size_t>(room) >= needed;
  };
  if (enough()) return;
  set_option(fd, SOL_SOCKET, SO_SNDBUF, static_cast<int>(needed));
  if (enough()) return;
  set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, static_cast<int>(needed));  // EPERM in a user namespace
}

std::vector<Answer> Socket::transact(std::span<const std::byte> batch) {
  make_room_for(batch.size());
  while (mnl_socket_sendto(socket_.get(), batch.data(), batch.size()) < 0) {
    if (errno == EINTR) continue;
    if (errno != EMSGSIZE && errno != ENOBUFS) throw_unavailable(errno, "cannot send the rules to nf_tables");
    throw system_error(errno, fmt::format("the rules need a netlink message of {} bytes", batch.size()),
                       ExitCode::failed,
                       fmt::format("raise the limit of the socket's send buffer (SO_SNDBUF): sysctl -w "
                                   "net.core.wmem_max={}",
                                   batch.size() + 32));
  }
  // The kernel has worked through the batch within sendto: all answers are there.
  std::vector<Answer> answers;
  for (;;) {
    const std::optional<std::size_t> received = receive(MSG_DONTWAIT);
    if (!received) continue;  // more errors than the socket holds: the first ones are what is asked for
    if (*received == 0) break;
    int size = static_cast<int>(*received);
    const auto* reply = reinterpret_cast<const nlmsghdr*>(buffer_.get());
    for (; mnl_nlmsg_ok(reply, size); reply = mnl_nlmsg_next(reply, &size)) {
      if (reply->nlmsg_type == NLMSG_ERROR) answers.push_back(answer_of(reply));
    }
  }
  return answers;
}

}  // namespace sidetrack::nft
