// SPDX-License-Identifier: GPL-2.0-or-later
// Sets of ip_set, made by ipset(8) and read.
#include "kernel/ipset/ipset.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "support/backend_test.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;

struct IpsetTest : KernelTest {
  Namespace space;

  void ipset(const std::string& lines) const { space.must({"ipset", "restore"}, lines); }
  [[nodiscard]] std::string saved() const { return space.must({"ipset", "save", "-sorted"}); }
  // Returns what it holds, "10.0.0.1/32 10.1.0.0/16", or "?" if that is not known.
  [[nodiscard]] std::string read(const std::string& name) const {
    for (const auto& [number, set] : space.run([] { return ipset::Sets().list(); })) {
      if (set.name != name) continue;
      if (!set.members) return "?";
      std::string text;
      for (const AddressRange& each : *set.members) text += (text.empty() ? "" : " ") + each.text();
      return text;
    }
    return "none";
  }
};

TEST_F(IpsetTest, EveryTypeThatHoldsAddressesIsRead) {
  const std::tuple<const char*, std::vector<const char*>, const char*> all[] = {
      // how it is created, what is added, and what is read
      {"hash:ip", {}, ""},
      {"hash:ip", {"10.0.0.2", "10.0.0.1"}, "10.0.0.1/32 10.0.0.2/32"},
      {"hash:ip comment counters", {"10.0.0.1 comment x packets 5"}, "10.0.0.1/32"},
      {"hash:ip family inet6", {"fd00::1"}, "fd00::1/128"},
      {"hash:ip netmask 24", {"10.0.0.1"}, "?"},
      {"hash:ip timeout 600", {"10.0.0.1"}, "?"},
      {"hash:net", {"10.1.0.0/16", "10.0.0.1"}, "10.0.0.1/32 10.1.0.0/16"},
      {"hash:net family inet6", {"fd00::/8"}, "fd00::/8"},
      {"hash:net", {"10.0.0.0/8", "10.1.0.0/16 nomatch"}, "?"},
      {"bitmap:ip range 10.0.0.0/24", {"10.0.0.7"}, "10.0.0.7/32"},
      {"bitmap:ip range 10.0.0.0/16 netmask 24", {"10.0.7.0"}, "?"},
      {"bitmap:port range 0-99", {"80"}, "?"},
      {"hash:ip,port", {"10.0.0.1,tcp:80"}, "?"},
      {"list:set", {"s0"}, "?"},
  };
  std::size_t number = 0;
  for (const auto& [how, members, expected] : all) {
    const std::string name = fmt::format("s{}", number++);
    ipset(fmt::format("create {} {}\n", name, how));
    for (const char* member : members) ipset(fmt::format("add {} {}\n", name, member));
    EXPECT_EQ(read(name), expected) << how;
  }
}

// The kernel sends it in parts, of which the first alone says what it is.
TEST_F(IpsetTest, ALargeSetIsReadWhole) {
  std::string lines = "create many hash:ip maxelem 70000\ncreate after hash:ip\nadd after 10.9.9.9\n";
  for (int i = 0; i < 20'000; ++i) lines += fmt::format("add many 10.1.{}.{}\n", i / 256, i % 256);
  ipset(lines);
  const KnownSets sets = space.run([] { return ipset::Sets().list(); });
  ASSERT_EQ(sets.size(), 2U);
  ASSERT_TRUE(sets.at(0).members);
  EXPECT_EQ(sets.at(0).members->size(), 20'000U);
  EXPECT_TRUE(std::ranges::is_sorted(*sets.at(0).members));
  EXPECT_EQ(read("after"), "10.9.9.9/32");
}

TEST_F(IpsetTest, NeedsTheCapability) {
  const auto unprivileged = [&](auto act) { return error_in(space, act, {1337, 1337}); };
  const Error read = unprivileged([] { static_cast<void>(ipset::Sets().list()); });
  EXPECT_EQ(read.code(), ExitCode::not_permitted);
  EXPECT_THAT(read.what(), HasSubstr("cannot list the sets of ip_set: "));
  EXPECT_THAT(read.hint(), HasSubstr("CAP_NET_ADMIN"));
}

}  // namespace
}  // namespace sidetrack::netns
