// SPDX-License-Identifier: GPL-2.0-or-later
// Expressions of libnftnl where memory ends: nothing is lost, and nothing half made is sent.
#include "kernel/nft/codec.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <fstream>
#include <new>

#include "unit/apart.h"

namespace sidetrack::nft {
namespace {

#if !defined(SIDETRACK_SANITIZED)
// Leaves so much address space beside what the process has.
void limit_memory(std::size_t more) {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * 4096 + more;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
}

TEST(Codec, LosesNothingWhereMemoryEnds) {
  EXPECT_EQ(testing::apart([]() -> std::string {
              constexpr std::size_t large = 64U << 20;
              const Expression match = XtMatch{{"owner", 1, std::vector<std::byte>(large)}};
              limit_memory(large / 2);
              int refused = 0;
              const std::size_t before = mallinfo2().uordblks;
              for (int i = 0; i < 1000; ++i) {
                try {
                  const NftnlExpression made = encode(match);
                } catch (const std::bad_alloc&) {
                  ++refused;
                }
              }
              const std::size_t after = mallinfo2().uordblks;
              return fmt::format("{} refused, {}", refused, after < before + 4096 ? "nothing lost" : "memory lost");
            }),
            "1000 refused, nothing lost");
}
#endif

}  // namespace
}  // namespace sidetrack::nft
