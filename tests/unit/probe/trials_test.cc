// SPDX-License-Identifier: GPL-2.0-or-later
// What is tried for which options, as whom, and where it is expected to end.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "probe/trial.h"
#include "rule/iptables.h"
#include "support/cannot_run.h"
#include "unit/asking.h"

namespace sidetrack::probe {
namespace {

std::string text(const Trial& trial) {
  if (!trial.unknown.empty()) return fmt::format("{}: {}\n", trial.name, trial.unknown);
  const Attempt& attempt = trial.attempt;
  std::string line = fmt::format("{}: {}:{}", trial.name, attempt.as.uid, attempt.as.gid);
  if (attempt.from) line += fmt::format(" from {}", attempt.from->text());
  line += fmt::format(" to {}:{}", attempt.to.address.text(), attempt.to.port.value_or(0));
  if (attempt.mark != 0) line += fmt::format(" mark {}", attempt.mark);
  line += fmt::format(" -> {}", captured_at(trial) ? fmt::format("{}", *captured_at(trial)) : "left alone");
  if (trial.or_port != 0) line += fmt::format(" or {}", trial.or_port);
  line += fmt::format(", port {} by", landing_port(trial));
  for (const Rule& rule : trial.rules) line += fmt::format(" {}", rule.chain);
  if (!trial.routing.policy_rules.empty()) line += fmt::format(", {} policy rules", trial.routing.policy_rules.size());
  return line + "\n";
}

std::string tried(const char* options, Family family = Family::ipv4) {
  CommandLine line;
  const HostFacts facts = asked(options, line);
  const Plan plan = sidetrack::plan(line.config, facts);
  std::string all = fmt::format("# {}\n", options);
  for (const Trial& trial : trials(line.config, {plan, assumed_pod(plan)}, family)) all += text(trial);
  return all;
}

TEST(Trials, AreOfWhatTheOptionsAskFor) {
  if (geteuid() != 0) return cannot_run("it takes root to act as the proxy");
  std::string all = "\n";
  for (const char* options : {"-b 80 -d 22",
                              "-i *",
                              "-i 10.96.0.0/16",
                              "-i * -x 10.9.0.0/16",
                              "-q 443",
                              "-i * -o 22,9000",
                              "-o 22",
                              "-i * -o 15008",
                              "-i * --redirect-dns --dns-server 10.96.0.53",
                              "-i * --redirect-dns --capture-all-dns -o 53",
                              "-m TPROXY -i * -o 22",
                              "-i * -u 2000,2001 -g 2002 -o 22",
                              "-i * -u 0 -g 0",
                              "-i * ISTIO_OUTBOUND_OWNER_GROUPS=1000,2000",
                              "-i * ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=3000",
                              "-i * --exclude-uids 0,101 --exclude-gids 102",
                              "-m TPROXY --capture-udp 443",
                              "-i * -e 80",
                              "-m NONE",
                              "-i 127.0.0.0/8,10.9.0.1/32",
                              "-q 9000-9010",
                              "-i * -o 8000-8010",
                              "-i * -o 9,15008",
                              "-i * --redirect-dns --dns-server fd00::53,10.96.0.53",
                              "--dataplane ambient",
                              "--dataplane ambient --redirect-dns"})
    all += tried(options);
  all += tried("-i fd00:9::/32 -b * -o 9 --redirect-dns --dns-server fd00::53", Family::ipv6);
  EXPECT_EQ(all, R"(
# -b 80 -d 22
inbound from outside tcp ipv4: -b and -d are decided in PREROUTING, which only a packet from outside passes: not tried
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i *
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i 10.96.0.0/16
outbound tcp ipv4: 0:0 to 10.96.255.254:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * -x 10.9.0.0/16
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -q 443
outbound tcp ipv4: 0:0 to 192.0.2.1:443 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * -o 22,9000
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
outbound excluded port tcp ipv4: 1337:1337 from 127.0.0.1 to 127.0.0.6:22 -> left alone, port 22 by OUTPUT ISTIO_OUTPUT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -o 22
outbound excluded port tcp ipv4: 1337:1337 from 127.0.0.1 to 127.0.0.6:22 -> left alone, port 22 by OUTPUT ISTIO_OUTPUT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * -o 15008
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
outbound excluded port tcp ipv4: -o 15008: with these options it would be left alone anyway: not tried
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * --redirect-dns --dns-server 10.96.0.53
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
dns tcp ipv4: 0:0 to 10.96.0.53:53 -> 15053, port 15053 by OUTPUT ISTIO_OUTPUT ISTIO_OUTPUT_DNS
dns udp ipv4: 0:0 to 10.96.0.53:53 -> 15053, port 15053 by OUTPUT ISTIO_OUTPUT ISTIO_OUTPUT_DNS
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * --redirect-dns --capture-all-dns -o 53
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
outbound excluded port tcp ipv4: -o 53: with these options it would be left alone anyway: not tried
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -m TPROXY -i * -o 22
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
outbound excluded port tcp ipv4: 1337:1337 from 127.0.0.1 to 127.0.0.6:22 mark 1337 -> left alone, port 22 by OUTPUT OUTPUT ISTIO_OUTPUT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * -u 2000,2001 -g 2002 -o 22
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
outbound excluded port tcp ipv4: 2000:2002 from 127.0.0.1 to 127.0.0.6:22 -> left alone, port 22 by OUTPUT ISTIO_OUTPUT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * -u 0 -g 0
outbound tcp ipv4: 65534:65534 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
app to itself tcp ipv4: 65534:65534 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * ISTIO_OUTBOUND_OWNER_GROUPS=1000,2000
outbound tcp ipv4: 65534:1000 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=3000
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * --exclude-uids 0,101 --exclude-gids 102
outbound tcp ipv4: 65534:65534 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -m TPROXY --capture-udp 443
inbound from outside udp ipv4: --capture-udp is decided in PREROUTING, which only a packet from outside passes: not tried
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
tproxy route tcp ipv4: 0:0 from 192.0.2.2 to 192.0.2.1:15002 mark 1337 -> left alone, port 15002 by, 1 policy rules
# -i * -e 80
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -m NONE
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by
# -i 127.0.0.0/8,10.9.0.1/32
outbound tcp ipv4: 0:0 to 10.9.0.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
# -q 9000-9010
outbound tcp ipv4: 0:0 to 192.0.2.1:9000 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * -o 8000-8010
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
outbound excluded port tcp ipv4: 1337:1337 from 127.0.0.1 to 127.0.0.6:8000 -> left alone, port 8000 by OUTPUT ISTIO_OUTPUT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * -o 9,15008
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
outbound excluded port tcp ipv4: 1337:1337 from 127.0.0.1 to 127.0.0.6:9 -> left alone, port 9 by OUTPUT ISTIO_OUTPUT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# -i * --redirect-dns --dns-server fd00::53,10.96.0.53
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
dns tcp ipv4: 0:0 to 10.96.0.53:53 -> 15053, port 15053 by OUTPUT ISTIO_OUTPUT ISTIO_OUTPUT_DNS
dns udp ipv4: 0:0 to 10.96.0.53:53 -> 15053, port 15053 by OUTPUT ISTIO_OUTPUT ISTIO_OUTPUT_DNS
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
# --dataplane ambient
inbound from outside tcp ipv4: it is decided in PREROUTING, which only a packet from outside passes: not tried
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
ztunnel to the app tcp ipv4: it has a client's address, which takes ztunnel's own sockets: not tried
# --dataplane ambient --redirect-dns
inbound from outside tcp ipv4: it is decided in PREROUTING, which only a packet from outside passes: not tried
outbound tcp ipv4: 0:0 to 192.0.2.1:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT
dns tcp ipv4: 0:0 to 192.0.2.1:53 -> 15053, port 15053 by OUTPUT ISTIO_OUTPUT
dns udp ipv4: 0:0 to 192.0.2.1:53 -> 15053, port 15053 by OUTPUT ISTIO_OUTPUT
app to itself tcp ipv4: 0:0 from 127.0.0.1 to 127.0.0.6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
ztunnel to the app tcp ipv4: it has a client's address, which takes ztunnel's own sockets: not tried
# -i fd00:9::/32 -b * -o 9 --redirect-dns --dns-server fd00::53
inbound from outside tcp ipv6: -b and -d are decided in PREROUTING, which only a packet from outside passes: not tried
outbound tcp ipv6: 0:0 to fd00:9:ffff:ffff:ffff:ffff:ffff:fffe:80 -> 15001, port 15001 by OUTPUT ISTIO_OUTPUT ISTIO_REDIRECT
dns tcp ipv6: 0:0 to fd00::53:53 -> 15053, port 15053 by OUTPUT ISTIO_OUTPUT ISTIO_OUTPUT_DNS
dns udp ipv6: 0:0 to fd00::53:53 -> 15053, port 15053 by OUTPUT ISTIO_OUTPUT ISTIO_OUTPUT_DNS
outbound excluded port tcp ipv6: 1337:1337 from ::1 to ::6:9 -> left alone, port 9 by OUTPUT ISTIO_OUTPUT
app to itself tcp ipv6: 0:0 from ::1 to ::6:15002 -> left alone, port 15002 by OUTPUT ISTIO_OUTPUT
)");
}

}  // namespace
}  // namespace sidetrack::probe
