// SPDX-License-Identifier: GPL-2.0-or-later
// Messages that no kernel sends: nothing beyond their bytes is looked at.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "kernel/netlink/attributes.h"
#include "kernel/netlink/reply.h"
#include "kernel/netlink/request.h"
#include "kernel/netlink/socket.h"
#include "kernel/nft/codec.h"
#include "kernel/nft/nfnetlink.h"
#include "model/error.h"
#include "system/descriptor.h"

namespace sidetrack::netlink {
namespace {

// A message of these bytes after its header, just as long as it is.
std::vector<std::byte> message(int type, int flags, std::span<const std::byte> payload) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + payload.size());
  header.nlmsg_type = static_cast<std::uint16_t>(type);
  header.nlmsg_flags = static_cast<std::uint16_t>(flags);
  std::vector<std::byte> bytes(header.nlmsg_len);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ranges::copy(payload, bytes.begin() + sizeof header);
  return bytes;
}

TEST(Netlink, AMessageLongerThanWhatWasReceivedIsNone) {
  for (const std::uint32_t length : {0U, 15U, 17U, 0x7fffffffU, 0x80000000U, 0xffffffffU}) {
    auto bytes = message(NLMSG_NOOP, 0, {});
    std::memcpy(bytes.data(), &length, sizeof length);
    Datagram datagram(bytes);
    EXPECT_EQ(datagram.next(), nullptr) << length;
    EXPECT_FALSE(datagram.empty()) << length;
  }
}

TEST(Netlink, AnAcknowledgementMayQuoteARequestOfAnyLength) {
  for (const std::uint32_t quoted : {0U, 16U, 20U, 0xfffffff0U, 0xffffffffU}) {
    nlmsgerr error{};
    error.error = -ENOENT;
    error.msg.nlmsg_len = quoted;
    const auto bytes = message(NLMSG_ERROR, NLM_F_ACK_TLVS, std::as_bytes(std::span(&error, 1)));
    const Reply reply = reply_of(reinterpret_cast<const nlmsghdr*>(bytes.data()));
    EXPECT_EQ(reply.error, ENOENT) << quoted;
    EXPECT_EQ(reply.words, "") << quoted;
  }
}

TEST(Netlink, AnAcknowledgementMayBeCutOff) {
  const int refused = -EPERM;
  const auto bytes = message(NLMSG_ERROR, NLM_F_ACK_TLVS, std::as_bytes(std::span(&refused, 1)));
  EXPECT_EQ(reply_of(reinterpret_cast<const nlmsghdr*>(bytes.data())).error, EPERM);
}

// What the kernel says beside the errno stands after the request that it quotes, whole or its header alone, and after
// the number at the end of a dump.
TEST(Netlink, WordsAndAnOffsetFollowTheErrno) {
  const auto bytes_of = [](const auto& value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const auto joined = [](const std::vector<std::vector<std::byte>>& parts) {
    std::vector<std::byte> all;
    for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  };
  struct {
    nlattr header{sizeof(nlattr) + 4, NLMSGERR_ATTR_MSG};
    char text[4] = "why";
  } const words;
  struct {
    nlattr header{sizeof(nlattr) + 4, NLMSGERR_ATTR_OFFS};
    std::uint32_t value = 36;
  } const offset;
  nlmsgerr error{};
  error.error = -EINVAL;
  error.msg.nlmsg_len = sizeof(nlmsghdr) + 8;
  const std::uint64_t quoted = 0;
  const int end = -EINVAL;
  const auto said = [&](int type, int flags, const std::vector<std::byte>& head) {
    const auto bytes = message(type, NLM_F_ACK_TLVS | flags, joined({head, bytes_of(words), bytes_of(offset)}));
    const Reply reply = reply_of(reinterpret_cast<const nlmsghdr*>(bytes.data()));
    EXPECT_EQ(reply.error, EINVAL);
    return fmt::format("{} {}", reply.words, reply.offset.value_or(0));
  };
  EXPECT_EQ(said(NLMSG_ERROR, 0, joined({bytes_of(error), bytes_of(quoted)})), "why 36");
  EXPECT_EQ(said(NLMSG_ERROR, NLM_F_CAPPED, bytes_of(error)), "why 36");
  EXPECT_EQ(said(NLMSG_DONE, NLM_F_MULTI, bytes_of(end)), "why 36");
}

TEST(Netlink, AnErrorIsNoErrno) {
  const int lowest = std::numeric_limits<int>::min();
  const auto bytes = message(NLMSG_ERROR, 0, std::as_bytes(std::span(&lowest, 1)));
  EXPECT_GT(reply_of(reinterpret_cast<const nlmsghdr*>(bytes.data())).error, 0);
}

TEST(Netlink, AMessageMayBeTooShortForItsHeader) {
  const nfgenmsg header{NFPROTO_IPV4, NFNETLINK_V0, 0};
  const auto whole = message(NLMSG_MIN_TYPE, 0, std::as_bytes(std::span(&header, 1)));
  EXPECT_EQ(Message(reinterpret_cast<const nlmsghdr*>(whole.data())).header<nfgenmsg>().nfgen_family, NFPROTO_IPV4);
  const auto cut = message(NLMSG_MIN_TYPE, 0, std::as_bytes(std::span(&header, 1)).first(3));
  EXPECT_THROW(static_cast<void>(Message(reinterpret_cast<const nlmsghdr*>(cut.data())).header<nfgenmsg>()), Error);
}

// Names have at most 256 bytes; what is longer is no request.
TEST(Netlink, ARequestDoesNotGrowWithoutEnd) {
  Request request(1, 0, nfgenmsg{});
  request.put(1, std::string(255, 'x'));
  request.nest(2, [&] { request.put(1, std::string(255, 'x')); });
  const std::size_t before = request.bytes().size();
  EXPECT_THROW(request.put(1, std::string(2000, 'x')), std::length_error);
  EXPECT_EQ(request.bytes().size(), before);
  const auto fill = [&] {
    for (;;) request.put(1, std::uint32_t{1});
  };
  EXPECT_THROW(fill(), std::length_error);
  EXPECT_THROW(request.nest(2, [] { FAIL() << "there is no place for it"; }), std::length_error);
  EXPECT_LE(request.bytes().size(), 1024U);
}

// The limit of the system is the administrator's to raise.
TEST(Netlink, WhatNoMessageHoldsIsSaid) {
  Socket socket = nft::open_socket();
  // Of UDP no datagram is that long.
  const Descriptor short_ones(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in nobody{};
  nobody.sin_family = AF_INET;
  nobody.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  nobody.sin_port = htons(9);
  ASSERT_EQ(connect(short_ones.get(), reinterpret_cast<const sockaddr*>(&nobody), sizeof nobody), 0);
  ASSERT_EQ(dup2(short_ones.get(), socket.fd()), socket.fd());
  const std::vector<std::byte> batch(100'000);
  try {
    static_cast<void>(nft::transact(socket, batch));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_STREQ(error.what(), "the rules need a netlink message of 100000 bytes: Message too long (EMSGSIZE)");
    EXPECT_EQ(error.hint(),
              "raise the limit of the socket's send buffer (SO_SNDBUF): sysctl -w net.core.wmem_max=100032");
  }
}

// The kernel keeps what any program has put beside a rule.
TEST(Netlink, TheCommentOfARuleEndsWithItsBytes) {
  const auto comment = [](std::string_view bytes, std::size_t size) {
    return nft::comment_of(std::as_bytes(std::span(bytes)).first(size));
  };
  constexpr std::string_view of_three("\0\3abcdef", 8);
  EXPECT_EQ(comment(of_three, 5), "abc");
  EXPECT_EQ(comment(of_three, 8), "abc");
  EXPECT_EQ(comment(of_three, 4), "");  // its length leads out of it
  EXPECT_EQ(comment(of_three, 1), "");
  EXPECT_EQ(comment(of_three, 0), "");
  EXPECT_EQ(comment(std::string_view("\1\1x\0\2yz", 7), 7), "yz");
}

}  // namespace
}  // namespace sidetrack::netlink
