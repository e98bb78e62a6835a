// SPDX-License-Identifier: GPL-2.0-or-later
// What the command line leaves open and only the pod can say: ids of users and groups, name servers, addresses.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/address.h"
#include "model/config.h"
#include "model/error.h"
#include "system/cgroup.h"

namespace sidetrack {

// The addresses of the interfaces of this network namespace, in the order of the kernel's listing (RTM_GETADDR: all of
// IPv4, then all of IPv6). Throws Error (failed) if the kernel refuses the listing, busy if it keeps changing.
[[nodiscard]] std::vector<Address> interface_addresses();

// Where it is read; tests put their own. Users and groups come from the two files alone, not from the name service
// switch: nothing is asked over the network, and no NSS module is loaded.
struct Host {
  // A directory in which the three files are looked up, as a process does that has it for its root: see host/file.h.
  // -1: as this process sees them. It stays the caller's.
  int root = -1;
  std::string root_name = {};  // what messages put before their paths
  std::string passwd = "/etc/passwd";
  std::string group = "/etc/group";
  std::string resolv_conf = "/etc/resolv.conf";
  std::function<std::vector<Address>()> addresses = interface_addresses;
  std::function<FoundCgroup(const std::string&)> cgroup = find_cgroup;
  bool may_lack_addresses = false;  // that no interface has one, or that a cgroup is not there, is no error: a dry run
};

// Completes proxy_uids, proxy_gids, the owner groups and the cgroups of `config`, and returns the rest. What the
// options gave
// (-u, -g, --ip-families, --dns-server) is not looked up, nor are name servers without need. Throws
//   usage   a user, a group or a cgroup that was named is unknown
//   failed  no interface has an address (unless it may lack them); a file cannot be read, is no regular file, is
//           larger than a mebibyte or does not answer
[[nodiscard]] HostFacts gather(Config& config, const Names& names, const Host& host = {});

// What an option is refused with whose cgroup find_cgroup() does not find.
[[nodiscard]] Error unknown_cgroup(std::string_view option, std::string_view given, const std::string& problem);

// The name servers of the text of a resolv.conf(5), in its order; a scope ("fe80::1%eth0") is left out. A line whose
// address does not parse is ignored with a warning that begins with `name`, as the resolver of the C library ignores
// it.
[[nodiscard]] std::vector<Address> name_servers(std::string_view text, const std::string& name,
                                                std::vector<std::string>& warnings);

}  // namespace sidetrack
