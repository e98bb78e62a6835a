// SPDX-License-Identifier: GPL-2.0-or-later
// A pod with `hostUsers: false`.
#include "support/user_namespace.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "support/traffic.h"
#include "unit/temporary_file.h"

namespace sidetrack::netns {
namespace {

class HostUsersFalse : public KernelTest, public ::testing::WithParamInterface<Setting> {
 protected:
  [[nodiscard]] Output sidetrack(const Pod& pod, const UserNamespace& users, std::vector<std::string> words) const {
    words.insert(words.begin(), program_under_test());
    return pod.ns().program(users.inside(std::move(words)));
  }
};

TEST_P(HostUsersFalse, AppliesAndSteers) {
  const auto [backend, family] = GetParam();
  const Addresses& at = addresses(family);
  const UserNamespace users;
  const Identity proxy = UserNamespace::outside(1337);
  Pod pod({.proxy = proxy}, users.network());
  const std::vector<std::string> options{"--backend", backend, "--dual-stack", "-u", "1337", "-b", "*", "-i", "*"};
  const auto with = [&](const char* command) {
    std::vector<std::string> words{command};
    words.insert(words.end(), options.begin(), options.end());
    return words;
  };
  const Output applied = sidetrack(pod, users, with("apply"));
  ASSERT_EQ(applied.exit_code, 0) << applied.err;
  const Output verified = sidetrack(pod, users, with("verify"));
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;

  const auto connect = [&](const Actor& actor, const Endpoint& to) {
    return pod.connect(actor, {.to = to, .protocol = Protocol::tcp, .from = {}});
  };
  const Actor app{Place::pod, UserNamespace::outside(1000)};
  const Endpoint service(at.service, 80);
  const Endpoint inbound(at.pod, 8080);
  EXPECT_EQ(connect(from_outside, inbound), landed(Role::proxy_inbound, original(inbound)));
  EXPECT_EQ(connect(app, service), landed(Role::proxy_outbound, original(service)));
  EXPECT_EQ(connect({Place::pod, proxy}, service), landed(Role::outside, local(service)));
}

INSTANTIATE_TEST_SUITE_P(, HostUsersFalse, settings(), setting_name);

using UserNamespaceTest = KernelTest;

// From the node the user namespace is entered, too: else -m owner would be refused.
TEST_F(UserNamespaceTest, IsSeenByDoctor) {
  const UserNamespace users;
  const Namespace network = users.network();
  const Output inside = network.program(users.inside({program_under_test(), "doctor"}));
  EXPECT_EQ(inside.exit_code, 0) << inside.err;
  EXPECT_THAT(inside.out, ::testing::HasSubstr("not the initial one; uid and gid 1337 are mapped"));
  const Output beside = network.program({program_under_test(), "doctor"});
  EXPECT_EQ(beside.exit_code, 0) << beside.err;
  EXPECT_THAT(beside.out, ::testing::HasSubstr("the network namespace belongs to another user namespace"));
}

// With all capabilities, of which none counts here.
TEST_F(UserNamespaceTest, WithoutTheNetworkNamespaceIsNotPermitted) {
  const Namespace network;
  const std::vector<std::string> alone{"unshare", "--user", "--map-root-user", program_under_test()};
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = alone;
    words.insert(words.end(), more.begin(), more.end());
    return network.program(words);
  };
  const Output doctor = run({"doctor"});
  EXPECT_EQ(doctor.exit_code, 0) << doctor.err;
  EXPECT_THAT(doctor.out, ::testing::HasSubstr("not the owner of the network namespace"));
  EXPECT_THAT(doctor.out, ::testing::HasSubstr("capabilities      CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN"));
  for (const char* backend : backends) {
    const Output applied = run({"apply", "--backend", backend, "--ip-families", "ipv4"});
    EXPECT_EQ(applied.exit_code, 4) << applied.err;
    EXPECT_THAT(applied.err, ::testing::HasSubstr("in the user namespace that owns this network namespace"));
  }
}

// Its network namespace was there before its ids were: the tables of legacy iptables are shown to root of the node.
TEST_F(UserNamespaceTest, WhoMayNotSeeLegacyTablesIsTold) {
  const Namespace network;
  const Output shown = network.program({"setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "unshare",
                                        "--user", "--net", "--map-root-user", program_under_test(), "show"});
  EXPECT_EQ(shown.exit_code, 4) << shown.err;
  EXPECT_EQ(shown.out, "");
  EXPECT_THAT(shown.err, ::testing::HasSubstr("cannot read /proc/thread-self/net/ip_tables_names: Permission denied"));
  EXPECT_THAT(shown.err, ::testing::HasSubstr("whose ids were mapped before the network namespace was made"));
}

// The node's limit holds there, twice 4 MiB at most if nobody raised it: the rules are one message.
TEST_F(UserNamespaceTest, SaysThatAMessageIsTooLarge) {
  const UserNamespace users;
  const Namespace network = users.network();
  std::string ranges;
  for (int i = 0; i < 40'000; ++i) ranges += "10." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ".1\n";
  const ::sidetrack::testing::TemporaryFile file(ranges);
  std::filesystem::permissions(file.path(), std::filesystem::perms{0644});  // root of inside is another user
  const Output output = network.program(users.inside({program_under_test(), "apply", "--backend", "iptables-nft",
                                                      "--ip-families", "ipv4", "-i", "*", "-x", "@" + file.path()}));
  EXPECT_EQ(output.exit_code, 1) << output.err;
  EXPECT_THAT(output.err, ::testing::ContainsRegex("the rules need a netlink message of [0-9]+ bytes"));
  EXPECT_THAT(output.err, ::testing::ContainsRegex("sysctl -w net.core.wmem_max=[0-9]+"));
  EXPECT_EQ(network.must({"nft", "list", "ruleset"}), "");
}

}  // namespace
}  // namespace sidetrack::netns
