// SPDX-License-Identifier: GPL-2.0-or-later
// What rules look like in nft's words.
#include <gmock/gmock.h>

#include "kernel/nft/script.h"
#include "kernel/survey.h"
#include "unit/asking.h"

namespace sidetrack {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string script(std::string_view options) {
  return nft_script(canonical(BackendKind::nftables, planned(options).ruleset));
}

// More values than are read at a glance are a set with a name, which says whose they are.
TEST(Native, LongListsHaveNames) {
  const std::string many = "1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33";
  EXPECT_THAT(script("-m TPROXY -u " + many), AllOf(HasSubstr("set proxy-uids "), HasSubstr("skuid @proxy-uids")));
  EXPECT_THAT(script("-m TPROXY -g " + many), AllOf(HasSubstr("skgid @proxy-gids"), Not(HasSubstr("proxy-uids"))));
  EXPECT_THAT(script("ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=" + many), HasSubstr("skgid @nat-ISTIO_OUTPUT "));
  EXPECT_THAT(script("-m TPROXY -u 1,3"), Not(HasSubstr("proxy-uids")));
}

TEST(Native, NetworksThatTouchAreOneRange) {
  EXPECT_THAT(script("-x 10.0.0.0/24,10.0.1.0/24,10.0.2.0/24"), HasSubstr("ip daddr 10.0.0.0-10.0.2.255 "));
}

}  // namespace
}  // namespace sidetrack
