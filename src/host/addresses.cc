// SPDX-License-Identifier: GPL-2.0-or-later
#include "host/host.h"
#include "kernel/routes/rtnetlink.h"

namespace sidetrack {

std::vector<Address> interface_addresses() {
  netlink::Socket socket = routes::open_socket();
  std::vector<Address> addresses;
  for (const routes::ListedAddress& live : routes::list_addresses(socket)) addresses.push_back(live.address);
  return addresses;
}

}  // namespace sidetrack
