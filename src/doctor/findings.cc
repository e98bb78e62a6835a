// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "doctor/doctor.h"
#include "model/config.h"

namespace sidetrack {
namespace {

void add_capabilities(const Diagnosis& diagnosis, std::vector<Finding>& found) {
  const HostState& host = diagnosis.host;
  const std::pair<std::string_view, const char*> rows[] = {
      {"CAP_NET_ADMIN", "no rule can be installed, and none of nf_tables read"},
      {"CAP_NET_RAW", may_hide_rules(diagnosis)
                          ? "the rules of legacy iptables cannot be read: apply refuses, whichever backend is requested"
                          : "iptables-legacy cannot be used; the nf_tables backends do not need it"}};
  for (const auto& [name, cost] : rows) {
    const auto capability = std::ranges::find(host.capabilities, name, &Capability::name);
    if (capability == host.capabilities.end() || capability->effective) continue;
    found.push_back({fmt::format("{} is missing", name), cost,
                     capability->bounding
                         ? "the container allows it: run as root, or give the program the file capability"
                         : fmt::format("securityContext.capabilities.add: [{}]", name.substr(4))});
  }
}

void add_ids(const UserNamespace& space, std::vector<Finding>& found) {
  for (const auto& [what, ids] : {std::pair{"user", &space.uids}, std::pair{"group", &space.gids}}) {
    if (is_mapped(*ids, istio_proxy_id)) continue;
    found.push_back({fmt::format("{} {} does not exist in this user namespace", what, istio_proxy_id),
                     "the kernel refuses rules for the proxy under its usual id",
                     "map the id (/proc/self/uid_map, gid_map), or run the proxy under one that exists and give it "
                     "with -u and -g"});
  }
}

void add_backend(const BackendState& backend, Families asked, std::vector<Finding>& found) {
  if (!backend.problem.empty()) {
    found.push_back({fmt::format("{} cannot be used: {}", name(backend.kind), backend.problem), "", backend.remedy});
    return;
  }
  for (const Feature& feature : backend.features) {
    if (feature.available == asked) continue;
    const bool not_ipv6 = feature.available.contains(Family::ipv4);
    const bool not_ipv4 = feature.available.contains(Family::ipv6);
    found.push_back({fmt::format("{}: no {}{} ({})", name(backend.kind), feature.name,
                                 not_ipv6   ? " for IPv6"
                                 : not_ipv4 ? " for IPv4"
                                            : "",
                                 feature.refusal),
                     feature.cost, feature.remedy});
  }
}

void add_ipv6(const Ipv6State& ipv6, std::vector<Finding>& found) {
  if (!ipv6.in_kernel || ipv6.off || !ipv6.off_on_lo) return;  // without any IPv6 there is nothing to lose
  found.push_back({"IPv6 is off only on lo (net.ipv6.conf.lo.disable_ipv6 = 1)",
                   "::6, from which the proxy calls the app, cannot be added: apply for IPv6 fails",
                   "sysctl -w net.ipv6.conf.lo.disable_ipv6=0, or --ip-families ipv4"});
}

void add_lock(const LockFile& lock, std::vector<Finding>& found) {
  if (!lock.problem.empty()) {
    found.push_back(
        {fmt::format("no lock at {}: {}", lock.path, lock.problem),
         "iptables-legacy continues without it: another program may overwrite its changes at the same moment",
         "mount a writable /run, or use an nf_tables backend, which needs no lock"});
  }
  if (!lock.holder.empty()) {
    found.push_back({fmt::format("{} is {}", lock.path, lock.holder), "iptables-legacy waits for it (--wait)", ""});
  }
}

}  // namespace

std::vector<Finding> findings(const Diagnosis& diagnosis) {
  std::vector<Finding> found;
  add_capabilities(diagnosis, found);
  if (!diagnosis.host.user_namespace.owns_network_namespace) {
    found.push_back({"the network namespace belongs to another user namespace",
                     "the kernel refuses -m owner, and denies everything to processes without capabilities there",
                     "--pid enters both namespaces of a process; --netns one of them"});
  }
  const bool rights_are_missing = !found.empty();
  add_ids(diagnosis.host.user_namespace, found);
  for (const BackendState& backend : diagnosis.backends) {
    if (backend.permitted || !rights_are_missing) add_backend(backend, diagnosis.families, found);
  }
  add_ipv6(diagnosis.host.ipv6, found);
  if (!diagnosis.host.loopback_up) {
    found.push_back({"interface lo is down", "-m TPROXY fails, and no connection to 127.0.0.1 is possible",
                     "ip link set lo up, as every container runtime does"});
  }
  const bool legacy = std::ranges::any_of(diagnosis.backends, [](const BackendState& backend) {
    return backend.kind == BackendKind::iptables_legacy && usable(backend);
  });
  if (legacy) add_lock(diagnosis.lock, found);
  return found;
}

}  // namespace sidetrack
