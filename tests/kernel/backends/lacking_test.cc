// SPDX-License-Identifier: GPL-2.0-or-later
// A kernel without netfilter's netlink, or a filter of system calls that refuses it.
#include <gmock/gmock.h>
#include <linux/netlink.h>
#include <sys/syscall.h>

#include "kernel/inspect.h"
#include "kernel/ipset/ipset.h"
#include "support/backend_test.h"
#include "support/refused_call.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct LackingTest : KernelTest {
  Namespace space;

  template <typename Act>
  [[nodiscard]] Error error_without_netlink(int error, Act act) const {
    return error_in(space, [&] {
      refuse_call(SYS_socket, 2, NETLINK_NETFILTER, error);
      act();
    });
  }
  [[nodiscard]] TableNames tables_without_netlink(int error) const {
    return space.run([&] {
      refuse_call(SYS_socket, 2, NETLINK_NETFILTER, error);
      return nf_tables();
    });
  }
};

TEST_F(LackingTest, NfTables) {
  const auto read = [] { static_cast<void>(open_nftables()->read()); };
  for (const int missing : {EPROTONOSUPPORT, EAFNOSUPPORT}) {
    const Error error = error_without_netlink(missing, read);
    EXPECT_EQ(error.code(), ExitCode::kernel_lacks);
    EXPECT_THAT(error.what(), StartsWith("cannot open a netlink socket to nf_tables: "));
    EXPECT_EQ(error.hint(), "load it on the node: modprobe nf_tables (CONFIG_NETFILTER_NETLINK, CONFIG_NF_TABLES)");
    EXPECT_TRUE(error.of_one_backend()) << "another one may do";
  }
  const Error refused = error_without_netlink(EPERM, read);
  EXPECT_EQ(refused.code(), ExitCode::not_permitted);
  EXPECT_THAT(refused.hint(), HasSubstr("[NET_ADMIN]"));
  EXPECT_FALSE(refused.of_one_backend());
  const Error other = error_without_netlink(EMFILE, read);
  EXPECT_EQ(other.code(), ExitCode::failed);
  EXPECT_FALSE(other.of_one_backend());
}

// Where they cannot be, there are none; where they may not be seen, that is not known.
TEST_F(LackingTest, NfTablesHaveNoNames) {
  space.must({"nft", "add", "table", "inet", "others"});
  EXPECT_EQ(space.run([] { return nf_tables(); }), TableNames({"inet others"}));
  EXPECT_EQ(tables_without_netlink(EPROTONOSUPPORT), TableNames(std::in_place));
  EXPECT_EQ(tables_without_netlink(EPERM), std::nullopt);
}

TEST_F(LackingTest, IpSet) {
  const auto list = [] { static_cast<void>(ipset::Sets().list()); };
  const Error missing = error_without_netlink(EPROTONOSUPPORT, list);
  EXPECT_EQ(missing.code(), ExitCode::kernel_lacks);
  EXPECT_THAT(missing.what(), StartsWith("cannot open a netlink socket to ip_set: "));
  EXPECT_THAT(missing.hint(), HasSubstr("modprobe ip_set_hash_ip (CONFIG_IP_SET, CONFIG_IP_SET_HASH_IP)"));
  const Error refused = error_without_netlink(EACCES, list);
  EXPECT_EQ(refused.code(), ExitCode::not_permitted);
  EXPECT_THAT(refused.hint(), HasSubstr("CAP_NET_ADMIN"));
  EXPECT_EQ(error_without_netlink(EMFILE, list).code(), ExitCode::failed);
}

}  // namespace
}  // namespace sidetrack::netns
