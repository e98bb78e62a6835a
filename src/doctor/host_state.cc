// SPDX-License-Identifier: GPL-2.0-or-later
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include <cerrno>
#include <cstring>

#include "doctor/doctor.h"
#include "system/capabilities.h"
#include "system/descriptor.h"
#include "system/read_write.h"

namespace sidetrack {
namespace {

constexpr ino_t initial_user_namespace = 0xEFFFFFFD;  // PROC_USER_INIT_INO (Linux 3.8)

bool reads_1(const char* path) { return read_small(path).starts_with('1'); }

// NS_GET_USERNS (Linux 4.9) is refused with EPERM if the owner is none of ours.
bool owns_network_namespace(const struct stat& user_namespace) {
  const Descriptor net(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!net.valid()) return true;
  const Descriptor owner(ioctl(net.get(), NS_GET_USERNS));
  if (!owner.valid()) return errno != EPERM;
  struct stat status {};
  return fstat(owner.get(), &status) != 0 || status.st_ino == user_namespace.st_ino;
}

UserNamespace user_namespace() {
  UserNamespace found{true, true, mapped_uids(), mapped_gids()};
  struct stat status {};
  if (stat("/proc/self/ns/user", &status) != 0) return found;  // a kernel without user namespaces
  found.initial = status.st_ino == initial_user_namespace;
  found.owns_network_namespace = owns_network_namespace(status);
  return found;
}

bool is_up(const char* interface) {
  ifreq request{};
  std::strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  const Descriptor any(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return !any.valid() || ioctl(any.get(), SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_UP) != 0;
}

// Refused where it is not in the kernel, or switched off at boot.
bool has_ipv6() { return Descriptor(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)).valid() || errno != EAFNOSUPPORT; }

}  // namespace

std::vector<Capability> capabilities() {
  constexpr std::pair<const char*, unsigned> rows[] = {
      {"CAP_NET_ADMIN", CAP_NET_ADMIN}, {"CAP_NET_RAW", CAP_NET_RAW}, {"CAP_SYS_ADMIN", CAP_SYS_ADMIN}};
  std::vector<Capability> list;
  for (const auto& [name, number] : rows) {
    list.push_back({name, has_capability(number), may_get_capability(number)});
  }
  return list;
}

HostState inspect_host() {
  HostState state;
  utsname name{};
  if (uname(&name) == 0) {
    state.kernel = name.release;
    state.machine = name.machine;
  }
  state.capabilities = capabilities();
  state.user_namespace = user_namespace();
  state.ipv6 = {has_ipv6(), reads_1("/proc/sys/net/ipv6/conf/all/disable_ipv6"),
                reads_1("/proc/sys/net/ipv6/conf/lo/disable_ipv6")};
  state.loopback_up = is_up("lo");
  struct statvfs root {};
  state.read_only_root = statvfs("/", &root) == 0 && (root.f_flag & ST_RDONLY) != 0;
  return state;
}

}  // namespace sidetrack
