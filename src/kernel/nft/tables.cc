// SPDX-License-Identifier: GPL-2.0-or-later
#include <set>

#include "kernel/inspect.h"
#include "kernel/nft/dump.h"
#include "kernel/nft/nfnetlink.h"
#include "model/error.h"

namespace sidetrack {

TableNames nf_tables() {
  try {
    netlink::Socket socket = nft::open_socket();
    std::set<std::string> names;  // a set: a disturbed dump is begun anew
    static_cast<void>(nft::dump(socket, [&](const nft::TableKey& key) {
      names.insert(text(key));
      return false;
    }));
    return TableNames(std::in_place, names.begin(), names.end());
  } catch (const Error& error) {
    if (error.code() == ExitCode::kernel_lacks) return TableNames(std::in_place);
    return std::nullopt;
  }
}

}  // namespace sidetrack
