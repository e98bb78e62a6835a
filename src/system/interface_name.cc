// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/interface_name.h"

#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "system/descriptor.h"

namespace sidetrack {

std::optional<std::string> interface_name(std::uint32_t number) {
  const Descriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  request.ifr_ifindex = static_cast<int>(number);
  if (!any.valid() || ioctl(any.get(), SIOCGIFNAME, &request) != 0) return std::nullopt;
  return request.ifr_name;
}

}  // namespace sidetrack
