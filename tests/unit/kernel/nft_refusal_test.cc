// SPDX-License-Identifier: GPL-2.0-or-later
// What is said of a message that nf_tables refuses: the rule, the expression at fault, the option, what to load.
#include <gtest/gtest.h>
#include <linux/netfilter/nfnetlink.h>

#include <cerrno>

#include "kernel/nft/refusal.h"
#include "rule/nft/fields.h"
#include "unit/kernel/round_trip.h"

namespace sidetrack::nft {
namespace {

const Rule of_owner{
    Family::ipv4, Table::nat, "ISTIO_OUTPUT", {OwnerMatch{OwnerKind::uid, {{7, 7}}, false}}, Redirect{15001}, {}, {}};

// The message that adds the rule, with these expressions.
std::vector<std::byte> message_of(const std::vector<std::byte>& expressions) {
  std::vector<std::byte> message(NLMSG_HDRLEN + 4096);
  nlmsghdr* header = mnl_nlmsg_put_header(message.data());
  mnl_nlmsg_put_extra_header(header, sizeof(nfgenmsg));
  mnl_attr_put(header, NFTA_RULE_EXPRESSIONS | NLA_F_NESTED, expressions.size(), expressions.data());
  message.resize(header->nlmsg_len);
  return message;
}
std::uint32_t offset_of_expression(const std::vector<std::byte>& message, std::size_t wanted) {
  std::uint32_t at = NLMSG_HDRLEN + sizeof(nfgenmsg) + sizeof(nlattr);
  for (; wanted > 0; --wanted) at += (reinterpret_cast<const nlattr*>(message.data() + at)->nla_len + 3U) / 4 * 4;
  return at;
}

std::string said(const Error& error) { return fmt::format("{} {}", static_cast<int>(error.code()), error.what()); }
std::string hint(const Error& error) { return error.hint(); }

std::string refused(BackendKind backend, int error, std::optional<std::size_t> at_fault, std::uint32_t further = 0,
                    std::string (&in)(const Error&) = said) {
  const Rule& rule = of_owner;
  std::vector<std::byte> expressions;
  std::vector<Expression> native{MetaLoad{NFT_META_SKUID}, Compare{NFT_CMP_EQ, Data::host(std::uint32_t{7})},
                                 Count{0, 0}, Load{Data::network(std::uint16_t{15001})}, RedirectTo{}};
  expressions = bytes_of(backend == BackendKind::nftables ? native : iptables_rule(rule, Family::ipv4).expressions);
  const std::vector<std::byte> message = message_of(expressions);
  std::optional<std::uint32_t> offset;
  if (at_fault) offset = offset_of_expression(message, *at_fault) + further;
  return in(
      nft_refusal({backend, error, "the rule", &rule, reinterpret_cast<const nlmsghdr*>(message.data()), offset}));
}

constexpr auto iptables = BackendKind::iptables_nft;
constexpr auto native = BackendKind::nftables;

TEST(NftRefusal, NamesTheExpressionAtFaultAndWhatToLoad) {
  EXPECT_EQ(refused(iptables, ENOENT, 0),
            "3 iptables-nft: the kernel does not support the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j "
            "REDIRECT --to-ports 15001' (IPv4): match 'owner': No such file or directory (ENOENT)");
  EXPECT_EQ(refused(iptables, ENOENT, 0, 3),
            "3 iptables-nft: the kernel does not support the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j "
            "REDIRECT --to-ports 15001' (IPv4): match 'owner': No such file or directory (ENOENT)");
  EXPECT_EQ(refused(iptables, EOPNOTSUPP, 2),
            "3 iptables-nft: the kernel does not support the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j "
            "REDIRECT --to-ports 15001' (IPv4): target 'REDIRECT': Operation not supported (EOPNOTSUPP)");
  EXPECT_EQ(refused(native, EPROTONOSUPPORT, 4),
            "3 nftables: the kernel does not support the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j "
            "REDIRECT --to-ports 15001' (IPv4): expression 'redir': Protocol not supported (EPROTONOSUPPORT)");
  EXPECT_EQ(
      refused(native, EAFNOSUPPORT, 0),
      "3 nftables: the kernel does not support the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j REDIRECT "
      "--to-ports 15001' (IPv4): expression 'meta': Address family not supported by protocol (EAFNOSUPPORT)");
  EXPECT_EQ(refused(native, ENOENT, 2),
            "3 nftables: the kernel does not support the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j "
            "REDIRECT --to-ports 15001' (IPv4): expression 'counter': No such file or directory (ENOENT)");
}

TEST(NftRefusal, WithoutAnOffsetNamesAllThatAKernelMayLack) {
  EXPECT_EQ(refused(iptables, ENOENT, {}),
            "3 iptables-nft: the kernel does not support the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j "
            "REDIRECT --to-ports 15001' (IPv4): match 'owner'; target 'REDIRECT': No such file or directory (ENOENT)");
  EXPECT_EQ(refused(native, ENOENT, {}),
            "3 nftables: the kernel does not support the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j "
            "REDIRECT --to-ports 15001' (IPv4): expression 'redir': No such file or directory (ENOENT)");
}

TEST(NftRefusal, SaysWhatToDo) {
  EXPECT_EQ(
      refused(iptables, ENOENT, 0, 0, hint),
      "load it on the node: modprobe -a nft_compat xt_owner (CONFIG_NFT_COMPAT, CONFIG_NETFILTER_XT_MATCH_OWNER)");
  EXPECT_EQ(
      refused(iptables, ENOENT, {}, 0, hint),
      "load it on the node: modprobe -a nft_compat xt_owner (CONFIG_NFT_COMPAT, CONFIG_NETFILTER_XT_MATCH_OWNER); "
      "modprobe -a nft_compat xt_REDIRECT (CONFIG_NFT_COMPAT, CONFIG_NETFILTER_XT_TARGET_REDIRECT)");
  EXPECT_EQ(refused(native, ENOENT, 4, 0, hint), "load it on the node: modprobe -a nft_redir (CONFIG_NFT_REDIR)");
  EXPECT_EQ(refused(native, ENOENT, 0, 0, hint), "a newer kernel is needed");
  EXPECT_EQ(refused(iptables, EINVAL, 0, 0, hint),
            "the id may not be mapped in this user namespace: see /proc/self/uid_map");
  EXPECT_EQ(refused(iptables, EINVAL, 2, 0, hint), "");
  EXPECT_EQ(refused(native, EPERM, 0, 0, hint),
            "'nft list ruleset' shows the table and its owner; it goes when that process ends");
}

TEST(NftRefusal, OtherErrors) {
  EXPECT_EQ(refused(iptables, EINVAL, 0),
            "1 iptables-nft: the kernel refuses the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j REDIRECT "
            "--to-ports 15001' (IPv4): match 'owner': Invalid argument (EINVAL)");
  EXPECT_EQ(refused(iptables, EINVAL, 2),
            "1 iptables-nft: the kernel refuses the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j REDIRECT "
            "--to-ports 15001' (IPv4): target 'REDIRECT': Invalid argument (EINVAL)");
  EXPECT_EQ(refused(native, EINVAL, {}),
            "1 nftables: the kernel refuses the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j REDIRECT "
            "--to-ports 15001' (IPv4): expression 'redir': Invalid argument (EINVAL)");
  EXPECT_EQ(refused(native, EPERM, 0),
            "1 nftables: the kernel refuses the rule: another process owns the table (flags owner)");
  EXPECT_EQ(refused(native, EBUSY, 0),
            "5 nftables: the kernel refuses the rule '-t nat -A ISTIO_OUTPUT -m owner --uid-owner 7 -j REDIRECT "
            "--to-ports 15001' (IPv4): expression 'meta': Device or resource busy (EBUSY)");
}

TEST(NftRefusal, OfWhatIsNoRule) {
  const auto step = [](BackendKind backend, int error) {
    return said(
        nft_refusal({backend, error, "the chain nat-OUTPUT of the table inet sidetrack", nullptr, nullptr, {}}));
  };
  EXPECT_EQ(step(native, EOPNOTSUPP),
            "3 nftables: the kernel refuses the chain nat-OUTPUT of the table inet sidetrack: Operation not supported "
            "(EOPNOTSUPP)");
  EXPECT_EQ(step(native, EPERM),
            "1 nftables: the kernel refuses the chain nat-OUTPUT of the table inet sidetrack: another process owns the "
            "table (flags owner)");
  EXPECT_EQ(
      step(iptables, EEXIST),
      "1 iptables-nft: the kernel refuses the chain nat-OUTPUT of the table inet sidetrack: File exists (EEXIST)");
}

// Another backend is tried only where this one lacks something.
TEST(NftRefusal, SaysWhetherAnotherBackendMayDo) {
  const auto of = [](int error) {
    return nft_refusal({native, error, "the table", nullptr, nullptr, {}}).of_one_backend();
  };
  EXPECT_TRUE(of(ENOENT));
  EXPECT_TRUE(of(EPERM));
  EXPECT_FALSE(of(EBUSY));
}

}  // namespace
}  // namespace sidetrack::nft
