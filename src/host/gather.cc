// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "host/host.h"
#include "kernel/routes/rtnetlink.h"
#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "system/file.h"

namespace sidetrack {
namespace {

std::string name_of(const std::string& path, const Host& host) { return host.root_name + path; }

Error unreadable(const std::string& what, const host::FileText& read, const char* hint) {
  const bool refused = read.error == EACCES || read.error == EPERM;
  return {refused ? ExitCode::not_permitted : ExitCode::failed, what + ": " + read.problem, hint};
}

// The text of a list of users or groups; nothing if there is none, as in an image that is made of one program.
std::string database(const std::string& path, const Host& host, const char* hint) {
  host::FileText read = host::read_file(host.root, path);
  if (read.text) return *std::move(read.text);
  if (read.error == ENOENT || read.error == ENOTDIR) return {};
  throw unreadable("cannot read " + name_of(path, host), read, hint);
}

// Returns what stands for the id of that name in the text of a passwd(5) or group(5) file, NAME:PASSWORD:ID:…: it may
// be no number. fgetpwent(3) would take -1 and numbers beyond 32 bits for some uid; getpwnam(3) would ask the name
// service switch, that is load modules and perhaps ask a server.
std::optional<std::string_view> id_of(std::string_view name, std::string_view database) {
  for (const std::string_view line : split_lines(database)) {
    const auto fields = split_at_each(line, ':');
    if (fields[0] == name && fields.size() > 1) return fields.size() > 2 ? fields[2] : "";
  }
  return std::nullopt;
}

// Of a user or a group; nothing if there is none of that name.
std::optional<std::uint32_t> id(const std::string& name, const std::string& path, const Host& host, const char* hint) {
  const std::string text = database(path, host, hint);
  const auto found = id_of(name, text);
  if (!found) return std::nullopt;
  const auto number = to_number<std::uint32_t>(*found);
  if (number && *number != UINT32_MAX) return number;  // (uid_t)-1: none
  throw Error(ExitCode::usage,
              fmt::format("{}: '{}' has the id '{}': expected a number from 0 to 4294967294", name_of(path, host),
                          excerpt(name), excerpt(*found)),
              hint);
}

void complete_proxy_ids(Config& config, const Names& names, const Host& host) {
  if (config.proxy_uids.empty()) {
    const auto uid = id(names.envoy_user, host.passwd, host, "give the proxy's uid as a number with -u, --proxy-uid");
    if (!uid && names.envoy_user_given) {
      throw Error(ExitCode::usage,
                  fmt::format("ENVOY_USER: no user '{}' in {}", excerpt(names.envoy_user), name_of(host.passwd, host)),
                  "give the proxy's uid as a number with -u, --proxy-uid");
    }
    config.proxy_uids = {uid.value_or(istio_proxy_id)};
  }
  if (config.proxy_gids.empty()) config.proxy_gids = config.proxy_uids;
}

std::uint32_t gid(const std::string& group, const std::string& variable, const Host& host) {
  const auto number = to_number<std::uint32_t>(group);
  const bool other_base = group.size() > 1 && group.front() == '0';    // 010: eight to some, ten to others
  if (number && !other_base && *number != UINT32_MAX) return *number;  // (gid_t)-1: none
  constexpr const char* hint = "a gid can be given as its number";
  if (const auto found = id(group, host.group, host, hint)) return *found;
  throw Error(ExitCode::usage,
              fmt::format("{}: no group '{}' in {}", variable, excerpt(group), name_of(host.group, host)), hint);
}

void complete_owner_groups(Config& config, const Names& names, const Host& host) {
  const std::string include = "ISTIO_OUTBOUND_OWNER_GROUPS";
  const std::string exclude = "ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE";
  config.owner_groups = {names.owner_groups.all, {}};
  for (const auto& group : names.owner_groups.list) config.owner_groups.list.push_back(gid(group, include, host));
  config.owner_groups_exclude.clear();
  for (const auto& group : names.owner_groups_exclude) {
    config.owner_groups_exclude.push_back(gid(group, exclude, host));
  }
}

void find_cgroups(Config& config, const Host& host) {
  for (Cgroup& cgroup : config.bypass_cgroups) {
    FoundCgroup found = host.cgroup(cgroup.path);
    if (found.id == 0 && !host.may_lack_addresses)
      throw unknown_cgroup("--bypass-cgroup", cgroup.given.empty() ? cgroup.path : cgroup.given, found.problem);
    cgroup.path = std::move(found.path);
    cgroup.id = found.id;
  }
}

// IPv6 is on if the first address of the pod is IPv6, with --dual-stack if any is. In an ambient pod it is on where the
// kernel has it, as Istio's agent has it: then lo has an address of it.
Families families(const Config& config, const Host& host) {
  if (config.families) return *config.families | Family::ipv4;
  std::vector<Address> addresses = host.addresses();
  const auto is_ipv6 = [](const Address& address) { return address.family == Family::ipv6; };
  if (config.dataplane == Dataplane::ambient && !addresses.empty())
    return std::ranges::any_of(addresses, is_ipv6) ? Families::both() : Family::ipv4;
  std::erase_if(addresses, [](const Address& address) { return address.is_loopback() || address.is_link_local(); });

  if (addresses.empty()) {
    if (host.may_lack_addresses) return config.dual_stack ? Families::both() : Family::ipv4;
    throw Error(ExitCode::failed, "no interface has an address other than loopback and link-local",
                "set up the pod's network first; --ip-families decides without asking");
  }
  const bool ipv6 = config.dual_stack ? std::ranges::any_of(addresses, is_ipv6) : is_ipv6(addresses.front());
  return ipv6 ? Families::both() : Family::ipv4;
}

std::vector<Address> configured_servers(const Host& host, std::vector<std::string>& warnings) {
  const std::string name = name_of(host.resolv_conf, host);
  const host::FileText read = host::read_file(host.root, host.resolv_conf);
  if (read.text) return name_servers(*read.text, name, warnings);
  throw unreadable("cannot read the name servers of " + name, read,
                   "--dns-server names them, --capture-all-dns captures DNS to any server");
}

std::vector<Address> dns_servers(const Config& config, const Host& host, std::vector<std::string>& warnings) {
  // The rules of an ambient pod capture DNS to any server.
  if (!config.redirect_dns || config.capture_all_dns || config.dataplane == Dataplane::ambient) return {};
  if (config.dns_servers && !config.dns_servers->empty()) return *config.dns_servers;
  const std::string source = config.dns_servers ? "--dns-server" : name_of(host.resolv_conf, host);
  auto servers = config.dns_servers ? *config.dns_servers : configured_servers(host, warnings);
  if (servers.empty()) warnings.push_back(fmt::format("no name server in {}: DNS is not captured", source));
  return servers;
}

}  // namespace

Error unknown_cgroup(std::string_view option, std::string_view given, const std::string& problem) {
  return {ExitCode::usage, fmt::format("{}: '{}': {}", option, excerpt(given), problem),
          "give the path that /proc/PID/cgroup of a process in it shows behind 0::"};
}

std::vector<Address> interface_addresses() {
  netlink::Socket socket = routes::open_socket();
  std::vector<Address> addresses;
  for (const routes::ListedAddress& live : routes::list_addresses(socket)) addresses.push_back(live.own.address);
  return addresses;
}

HostFacts gather(Config& config, const Names& names, const Host& host) {
  HostFacts facts;
  complete_proxy_ids(config, names, host);
  complete_owner_groups(config, names, host);
  find_cgroups(config, host);
  if (config.mode == Mode::none) return facts;
  facts.families = families(config, host);
  facts.dns_servers = dns_servers(config, host, facts.warnings);
  return facts;
}

std::vector<Address> name_servers(std::string_view text, const std::string& name, std::vector<std::string>& warnings) {
  std::vector<Address> servers;
  for (const std::string_view line : split_lines(text)) {
    auto words = split(line, " \t\r");
    if (words.empty() || words[0] != "nameserver") continue;  // '#' and ';' at the start of a line make a comment
    words.emplace_back();  // what follows the address is ignored, as the C library does
    if (const auto server = Address::parse(words[1].substr(0, words[1].find('%')))) {
      servers.push_back(*server);
    } else {
      warnings.push_back(fmt::format("{}: '{}' is not an address: name server ignored", name, excerpt(words[1])));
    }
  }
  return servers;
}

}  // namespace sidetrack
