// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/trace.h"

#include <unistd.h>

#include "support/backends.h"
#include "support/listing.h"

namespace sidetrack::netns {

std::string trace(const Namespace& where) {
  std::string all = listing(where);
  for (const char* family : {"", "6"}) {
    const std::string names = where.must({"cat", std::string("/proc/thread-self/net/ip") + family + "_tables_names"});
    all += names;
    if (names.empty()) continue;  // it would bring all of them to life
    all += without_time(where.must({std::string("ip") + family + "tables-legacy-save", "-c"}));
  }
  const auto generation = where.run([] { return open_nftables()->read().generation; });
  return all + "generation " + std::to_string(generation) + "\n";
}

std::string absent_lock_file() { return "/tmp/sidetrack-test-no-lock-" + std::to_string(getpid()); }

}  // namespace sidetrack::netns
