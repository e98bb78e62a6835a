// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/quiet_pod.h"

#include <sstream>
#include <stdexcept>

#include "support/network.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

// The line of a listing that has `part`.
std::string line_with(const std::string& listing, const std::string& part) {
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);)
    if (line.find(part) != std::string::npos) return line;
  throw std::runtime_error("no '" + part + "' in:\n" + listing);
}

}  // namespace

QuietPod::QuietPod(Families families) {
  for (const auto* each : {&pod_, &node_}) {
    trust_addresses(*each);
    ip(*each, "link set lo up\n");
  }
  join(pod_, "eth0", node_, "pod0");
  set_sysctl(node_, "ipv4/ip_forward", "1");
  set_sysctl(node_, "ipv6/conf/all/forwarding", "1");
  if (families.contains(Family::ipv4)) {
    ip(pod_, "addr add 10.1.0.2/24 dev eth0\nroute add default via 10.1.0.1\n");
    ip(node_, "addr add 10.1.0.1/24 dev pod0\n");
  }
  if (families.contains(Family::ipv6)) {
    ip(pod_, "addr add fd00:1::2/64 dev eth0\nroute add default via fd00:1::1\n");
    ip(node_, "addr add fd00:1::1/64 dev pod0\n");
  }
  for (const auto* each : {&pod_, &node_}) wait_for_addresses(*each);
  node_.must({"nft", "-f", "-"}, R"(table inet watch {
      counter came_out {}
      counter could_go_on {}
      chain watched {
        type filter hook prerouting priority -300
        meta l4proto { tcp, udp } counter name came_out
        meta l4proto { tcp, udp } ip ttl > 1 counter name could_go_on
        meta l4proto { tcp, udp } ip6 hoplimit > 1 counter name could_go_on
      }
    })");
}

Output QuietPod::run(std::vector<std::string> arguments, Identity identity) const {
  return pod_.program(arguments, {}, {}, identity);
}

int QuietPod::counted(const std::string& counter) const {
  const std::string listing = node_.must({"nft", "list", "counter", "inet", "watch", counter});
  return std::stoi(listing.substr(listing.find("packets ") + 8));
}

std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> result;
  std::istringstream split(line);
  for (std::string word; split >> word;) result.push_back(word == "sidetrack" ? program_under_test() : word);
  return result;
}

std::vector<std::string> confined(std::vector<std::string> command, unsigned uid) {
  const std::string id = std::to_string(uid);
  // What "$@" is: the command, word for word.
  const std::string script =
      "mount -o remount,bind,ro / && { ! touch /sidetrack-test 2>/dev/null; } && exec setpriv --reuid " + id +
      " --regid " + id + " --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \"$@\"";
  std::vector<std::string> result{"unshare", "--mount", "sh", "-c", script, "sh"};
  result.insert(result.end(), command.begin(), command.end());
  return result;
}

void take_away(const Namespace& where, const std::string& backend, Family family, const std::string& chain,
               const std::string& part, const std::string& table) {
  if (backend == "nftables") {
    const std::string chain_name = table + "-" + chain;
    const std::string line =
        line_with(where.must({"nft", "-a", "list", "chain", "inet", "sidetrack", chain_name}), part);
    const std::string handle = line.substr(line.rfind(' ') + 1);
    where.must({"nft", "delete", "rule", "inet", "sidetrack", chain_name, "handle", handle});
    return;
  }
  const std::string tool =
      std::string(family == Family::ipv4 ? "iptables" : "ip6tables") + (backend == "iptables-nft" ? "-nft" : "-legacy");
  std::string line = line_with(where.must({tool, "-t", table, "-S", chain}), part);
  std::vector<std::string> command{tool, "-t", table};
  for (const std::string& word : words(line)) command.push_back(word == "-A" ? "-D" : word);
  where.must(command);
}

}  // namespace sidetrack::netns
