// SPDX-License-Identifier: GPL-2.0-or-later
// Arguments and environment in, fields of the command line out.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "options/flags.h"
#include "options/options.h"
#include "unit/options_text.h"

namespace sidetrack {
namespace {

using namespace std::chrono_literals;
using testing::parse_text;
using testing::Variables;

std::vector<std::string> texts(const std::vector<AddressRange>& ranges) {
  std::vector<std::string> result;
  for (const AddressRange& range : ranges) result.push_back(range.text());
  return result;
}

// Every field of a command line that an option can change, as text.
std::string field(const CommandLine& line, std::string_view which) {
  const Config& config = line.config;
  const auto joined = [](const auto& values) {
    std::string text;
    for (const auto& value : values) {
      if (!text.empty()) text += ',';
      if constexpr (requires { value.text(); }) {
        text += value.text();
      } else if constexpr (requires { std::to_string(value); }) {
        text += std::to_string(value);
      } else if constexpr (requires { value.first; }) {
        text += sidetrack::text(value);
      } else {
        text += value;
      }
    }
    return text;
  };
  const auto selected = [&](const auto& selection) {
    return selection.all ? std::string("*") : joined(selection.list);
  };
  const auto backend = [](const std::optional<BackendKind>& kind) { return std::string(kind ? name(*kind) : "any"); };
  const auto number = [](auto value) { return std::to_string(static_cast<long long>(value)); };
  const auto optional = [&](const auto& value) { return value ? number(*value) : std::string("unset"); };
  const auto families = [&](Families value) {
    std::string text;
    for (const Family family : value.list()) text += (text.empty() ? "" : ",") + std::string(name(family));
    return text;
  };
  const auto truth = [](bool value) { return std::string(value ? "true" : "false"); };

  const std::map<std::string_view, std::function<std::string()>> fields = {
      {"command", [&] { return std::string(line.command ? name(*line.command) : "none"); }},
      {"drop_in", [&] { return truth(line.drop_in); }},
      {"help", [&] { return truth(line.help); }},
      {"version", [&] { return truth(line.version); }},
      {"proxy_port", [&] { return number(config.proxy_port); }},
      {"inbound_port", [&] { return number(config.inbound_port); }},
      {"tunnel_port", [&] { return number(config.tunnel_port); }},
      {"proxy_uids", [&] { return joined(config.proxy_uids); }},
      {"proxy_gids", [&] { return joined(config.proxy_gids); }},
      {"mode", [&] { return number(config.mode); }},
      {"inbound_ports", [&] { return selected(config.inbound_ports); }},
      {"inbound_exclude_ports", [&] { return joined(config.inbound_exclude_ports); }},
      {"inbound_ranges", [&] { return selected(config.inbound_ranges); }},
      {"inbound_exclude_ranges", [&] { return joined(config.inbound_exclude_ranges); }},
      {"exclude_interfaces", [&] { return joined(config.exclude_interfaces); }},
      {"outbound_ranges", [&] { return selected(config.outbound_ranges); }},
      {"outbound_exclude_ranges", [&] { return joined(config.outbound_exclude_ranges); }},
      {"outbound_ports", [&] { return joined(config.outbound_ports); }},
      {"outbound_exclude_ports", [&] { return joined(config.outbound_exclude_ports); }},
      {"virtual_interfaces", [&] { return joined(config.virtual_interfaces); }},
      {"tproxy_mark", [&] { return number(config.tproxy_mark); }},
      {"tproxy_route_table", [&] { return number(config.tproxy_route_table); }},
      {"loopback_ipv4", [&] { return config.loopback_ipv4.text(); }},
      {"redirect_dns", [&] { return truth(config.redirect_dns); }},
      {"capture_all_dns", [&] { return truth(config.capture_all_dns); }},
      {"drop_invalid", [&] { return truth(config.drop_invalid); }},
      {"dual_stack", [&] { return truth(config.dual_stack); }},
      {"dataplane", [&] { return number(config.dataplane); }},
      {"probe_address", [&] { return config.probe_address.text(); }},
      {"probe_address6", [&] { return config.probe_address6.text(); }},
      {"ingress", [&] { return truth(config.ingress); }},
      {"dns_servers", [&] { return config.dns_servers ? joined(*config.dns_servers) : "unset"; }},
      {"families", [&] { return config.families ? families(*config.families) : "unset"; }},
      {"dry_run", [&] { return truth(line.dry_run); }},
      {"skip_rule_apply", [&] { return truth(line.skip_rule_apply); }},
      {"run_validation", [&] { return truth(line.run_validation); }},
      {"reconcile", [&] { return truth(line.applying.reconcile); }},
      {"cleanup_only", [&] { return truth(line.cleanup_only); }},
      {"force_apply", [&] { return truth(line.applying.force_apply); }},
      {"native_nftables", [&] { return truth(line.applying.native_nftables); }},
      {"cni_mode", [&] { return truth(line.applying.cni_mode); }},
      {"network_namespace", [&] { return line.network_namespace; }},
      {"probe_port", [&] { return number(config.probe_port); }},
      {"probe_timeout", [&] { return number(config.probe_timeout.count()) + "ns"; }},
      {"force_iptables_binary", [&] { return backend(line.applying.force_iptables_binary); }},
      {"backend", [&] { return backend(line.applying.backend); }},
      {"lock_wait", [&] { return number(line.applying.lock_wait.count()) + "ms"; }},
      {"when_ready",
       [&] {
         return line.when_ready ? number(line.when_ready->port) + " " + number(line.when_ready->timeout.count()) + "ns"
                                : "unset";
       }},
      {"confirm", [&] { return line.confirm ? number(line.confirm->count()) + "ns" : "unset"; }},
      {"log.level", [&] { return number(line.log.level); }},
      {"log.json", [&] { return truth(line.log.json); }},
      {"log.caller", [&] { return truth(line.log.caller); }},
      {"log.targets", [&] { return joined(line.log.targets); }},
      {"envoy_user", [&] { return line.names.envoy_user; }},
      {"envoy_user_given", [&] { return truth(line.names.envoy_user_given); }},
      {"owner_groups", [&] { return selected(line.names.owner_groups); }},
      {"owner_groups_exclude", [&] { return joined(line.names.owner_groups_exclude); }},
      {"netns", [&] { return line.netns; }},
      {"pid", [&] { return optional(line.pid); }},
      {"format", [&] { return number(line.format); }},
      {"color", [&] { return number(line.color); }},
      {"printed", [&] { return families(line.printed); }},
      {"check", [&] { return truth(line.check); }},
      {"probe", [&] { return truth(line.probe); }},
      {"watch", [&] { return truth(line.watch); }},
      {"clean", [&] { return truth(line.clean); }},
      {"warnings", [&] { return joined(line.warnings); }},
      {"plan", [&] { return truth(line.plan); }},
      {"brief", [&] { return truth(line.brief); }},
      {"words", [&] { return joined(line.packet.words); }},
      {"uid", [&] { return optional(line.packet.uid); }},
      {"gid", [&] { return optional(line.packet.gid); }},
      {"from", [&] { return line.packet.from ? line.packet.from->text() : "unset"; }},
      {"in_interface", [&] { return line.packet.in_interface; }},
      {"out_interface", [&] { return line.packet.out_interface; }},
  };
  return fields.at(which)();
}

struct Taken {
  std::string arguments;  // separated by blanks; '' is the empty one
  std::string_view which;
  std::string_view expected;
};

void expect_taken(const std::vector<Taken>& cases, const Variables& variables = {}) {
  for (const auto& [arguments, which, expected] : cases) {
    SCOPED_TRACE(arguments);
    try {
      EXPECT_EQ(field(parse_text(arguments, variables), which), expected) << which;
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Parse, ChoosesTheCommand) {
  expect_taken({
      {"sidetrack", "help", "true"},
      {"sidetrack", "command", "none"},
      {"sidetrack", "drop_in", "false"},
      {"/usr/bin/istio-iptables", "help", "true"},
      {"sidetrack --help", "help", "true"},
      {"sidetrack --help", "command", "none"},
      {"sidetrack -h", "help", "true"},
      {"sidetrack help", "help", "true"},
      {"sidetrack help diff", "command", "diff"},
      {"sidetrack --help diff", "command", "diff"},
      {"sidetrack -h diff", "help", "true"},
      {"sidetrack help help", "command", "none"},
      {"sidetrack help version", "help", "true"},
      {"sidetrack help version", "command", "none"},
      {"sidetrack help istio-iptables", "command", "apply"},
      {"sidetrack --version", "version", "true"},
      {"sidetrack --version", "command", "none"},
      {"sidetrack apply", "command", "apply"},
      {"sidetrack apply", "drop_in", "false"},
      {"sidetrack render", "command", "render"},
      {"sidetrack diff", "command", "diff"},
      {"sidetrack verify", "command", "verify"},
      {"sidetrack show", "command", "show"},
      {"sidetrack explain out tcp :80", "command", "explain"},
      {"sidetrack clean", "command", "clean"},
      {"sidetrack doctor", "command", "doctor"},
      {"sidetrack diff --help", "help", "true"},
      {"sidetrack diff -h", "command", "diff"},
      {"sidetrack explain --help", "help", "true"},
  });
}

TEST(Parse, KnowsTheDropInForms) {
  expect_taken({
      {"sidetrack -p 15001", "drop_in", "true"},
      {"sidetrack -p 15001", "command", "apply"},
      {"sidetrack --envoy-port=15001", "drop_in", "true"},
      {"sidetrack istio-iptables", "drop_in", "true"},
      {"sidetrack istio-iptables", "help", "false"},
      {"sidetrack istio-iptables -p 1", "proxy_port", "1"},
      {"istio-iptables -p 2", "proxy_port", "2"},
      {"/usr/local/bin/istio-iptables -p 3", "proxy_port", "3"},
      {"/usr/local/bin/istio-iptables -p 3", "command", "apply"},
      {"istio-iptables istio-iptables -p 4", "proxy_port", "4"},
      {"istio-iptables --help", "command", "apply"},
      {"istio-iptables --help", "help", "true"},
      {"istio-iptables --help=false -p 1", "help", "false"},
      {"istio-iptables --help=false -p 1", "proxy_port", "1"},
  });
}

TEST(Parse, CleansAsIstioCleanIptables) {
  for (const std::string program : {"istio-clean-iptables", "/usr/local/bin/istio-clean-iptables",
                                    "sidetrack istio-clean-iptables", "istio-iptables istio-clean-iptables"}) {
    for (const std::string options : {"", " -u 1337 -g 1337 --redirect-dns", " -n"}) {
      expect_taken({
          {program + options, "drop_in", "true"},
          {program + options, "help", "false"},
          {program + options, "command", "apply"},
          {program + options, "cleanup_only", "true"},
      });
    }
    expect_taken({{program + " --help", "help", "true"}});
  }
}

// They are taken, and what became of them is said.
TEST(Parse, TakesOptionsOfOlderReleases) {
  for (const std::string option :
       {"--restore-format", "--restore-format=false", "-f", "--iptables-trace-logging", "--output-paths /tmp/x",
        "--output-paths=", "--host-nsenter-exec", "--iptables-version legacy", "--clean", "--log_rotate /tmp/x",
        "--log_rotate_max_age 30", "--log_rotate_max_backups 1000", "--log_rotate_max_size 100"}) {
    SCOPED_TRACE(option);
    const CommandLine line = parse_text("istio-iptables -p 1 " + option);
    ASSERT_EQ(line.warnings.size(), 1U);
    const std::string name = option == "-f" ? "restore-format" : option.substr(2, option.find_first_of(" =") - 2);
    EXPECT_NE(line.warnings[0].find("--" + name + ": of "), std::string::npos) << line.warnings[0];
    EXPECT_TRUE(parse_text("istio-iptables -p 1").warnings.empty());
  }
  expect_taken({{"sidetrack -p 1", "capture_all_dns", "true"}, {"sidetrack -p 1", "redirect_dns", "true"}},
               {{"ISTIO_META_DNS_CAPTURE", "ALL"}});
  expect_taken({{"sidetrack -p 1", "capture_all_dns", "false"}}, {{"ISTIO_META_DNS_CAPTURE", "true"}});
  EXPECT_THROW(static_cast<void>(parse_text("sidetrack --redirect-dns=ALL")), Error);
  EXPECT_THROW(static_cast<void>(parse_text("sidetrack --clean=perhaps")), Error);
  const Variables loopback{{"DISABLE_REDIRECTION_ON_LOCAL_LOOPBACK", "1"}};
  EXPECT_EQ(parse_text("sidetrack render", loopback).warnings.size(), 1U);
  EXPECT_TRUE(parse_text("sidetrack render", {{"DISABLE_REDIRECTION_ON_LOCAL_LOOPBACK", ""}}).warnings.empty());
}

TEST(Parse, HasUpstreamsDefaults) {
  for (const auto& [which, expected] : std::map<std::string_view, std::string_view>{
           {"proxy_port", "15001"},
           {"inbound_port", "15006"},
           {"tunnel_port", "15008"},
           {"proxy_uids", ""},
           {"proxy_gids", ""},
           {"mode", "0"},
           {"inbound_ports", ""},
           {"inbound_exclude_ports", ""},
           {"inbound_ranges", ""},
           {"inbound_exclude_ranges", ""},
           {"exclude_interfaces", ""},
           {"outbound_ranges", ""},
           {"outbound_exclude_ranges", ""},
           {"outbound_ports", ""},
           {"outbound_exclude_ports", ""},
           {"virtual_interfaces", ""},
           {"tproxy_mark", "1337"},
           {"tproxy_route_table", "133"},
           {"loopback_ipv4", "127.0.0.1/32"},
           {"redirect_dns", "false"},
           {"capture_all_dns", "false"},
           {"drop_invalid", "false"},
           {"dual_stack", "false"},
           {"dns_servers", "unset"},
           {"families", "unset"},
           {"dry_run", "false"},
           {"skip_rule_apply", "false"},
           {"run_validation", "false"},
           {"reconcile", "false"},
           {"cleanup_only", "false"},
           {"force_apply", "false"},
           {"native_nftables", "false"},
           {"cni_mode", "false"},
           {"network_namespace", ""},
           {"probe_port", "15002"},
           {"probe_timeout", "5000000000ns"},
           {"force_iptables_binary", "any"},
           {"backend", "any"},
           {"lock_wait", "30000ms"},
           {"when_ready", "unset"},
           {"confirm", "unset"},
           {"log.level", "1"},
           {"log.json", "false"},
           {"log.caller", "false"},
           {"log.targets", ""},
           {"envoy_user", "istio-proxy"},
           {"envoy_user_given", "false"},
           {"owner_groups", "*"},
           {"owner_groups_exclude", ""},
           {"dataplane", "0"},
           {"probe_address", "169.254.7.127"},
           {"probe_address6", "fd16:9254:7127:1337:ffff:ffff:ffff:ffff"},
           {"ingress", "false"},
           {"netns", ""},
           {"pid", "unset"},
           {"format", "0"},
           {"color", "0"},
           {"printed", "ipv4,ipv6"},
       }) {
    expect_taken({{"sidetrack apply", which, expected}});
  }
}

TEST(Parse, TakesEveryOptionOfIstio) {
  expect_taken({
      {"sidetrack -p 1", "proxy_port", "1"},
      {"sidetrack --envoy-port 65535", "proxy_port", "65535"},
      {"sidetrack -z 2", "inbound_port", "2"},
      {"sidetrack --inbound-capture-port 2", "inbound_port", "2"},
      {"sidetrack -e 3", "tunnel_port", "3"},
      {"sidetrack --inbound-tunnel-port 3", "tunnel_port", "3"},
      {"sidetrack -u 1337", "proxy_uids", "1337"},
      {"sidetrack --proxy-uid 1337,0,4294967294", "proxy_uids", "1337,0,4294967294"},
      {"sidetrack -g 5,6", "proxy_gids", "5,6"},
      {"sidetrack --proxy-gid 5", "proxy_gids", "5"},
      {"sidetrack -m REDIRECT", "mode", "0"},
      {"sidetrack -m TPROXY", "mode", "1"},
      {"sidetrack --istio-inbound-interception-mode=NONE", "mode", "2"},
      {"sidetrack -m ''", "mode", "0"},
      {"sidetrack -b *", "inbound_ports", "*"},
      {"sidetrack -b 80,443", "inbound_ports", "80,443"},
      {"sidetrack -b 80-80,443,1-65535", "inbound_ports", "80,443,1-65535"},
      {"sidetrack --istio-inbound-ports 80", "inbound_ports", "80"},
      {"sidetrack -d 15090,15021,15020", "inbound_exclude_ports", "15090,15021,15020"},
      {"sidetrack --istio-local-exclude-ports 1", "inbound_exclude_ports", "1"},
      {"sidetrack -d 15090,9000-9100", "inbound_exclude_ports", "15090,9000-9100"},
      {"sidetrack --include-inbound-ranges 10.1.2.3/8,fd00::/8", "inbound_ranges", "10.0.0.0/8,fd00::/8"},
      {"sidetrack --include-inbound-ranges *", "inbound_ranges", "*"},
      {"sidetrack --include-inbound-ranges= -b *", "inbound_ranges", ""},
      {"sidetrack --exclude-inbound-ranges 10.1.2.3,::/0", "inbound_exclude_ranges", "10.1.2.3/32,::/0"},
      {"sidetrack -c eth+,net.2", "exclude_interfaces", "eth+,net.2"},
      {"sidetrack -c eth1,net.2", "exclude_interfaces", "eth1,net.2"},
      {"sidetrack --istio-exclude-interfaces fifteen-letters", "exclude_interfaces", "fifteen-letters"},
      {"sidetrack -i *", "outbound_ranges", "*"},
      {"sidetrack -i 10.1.2.3/8,fd00::/8", "outbound_ranges", "10.0.0.0/8,fd00::/8"},
      {"sidetrack --istio-service-cidr 10.0.0.1", "outbound_ranges", "10.0.0.1/32"},
      {"sidetrack -x 10.0.0.0/8", "outbound_exclude_ranges", "10.0.0.0/8"},
      {"sidetrack --istio-service-exclude-cidr ::1", "outbound_exclude_ranges", "::1/128"},
      {"sidetrack -q 1,2", "outbound_ports", "1,2"},
      {"sidetrack -q 1-2", "outbound_ports", "1-2"},
      {"sidetrack --istio-outbound-ports 1", "outbound_ports", "1"},
      {"sidetrack -o 3", "outbound_exclude_ports", "3"},
      {"sidetrack -o 3-65535", "outbound_exclude_ports", "3-65535"},
      {"sidetrack --istio-local-outbound-ports-exclude 3,4", "outbound_exclude_ports", "3,4"},
      {"sidetrack -k virt0", "virtual_interfaces", "virt0"},
      {"sidetrack --kube-virt-interfaces a,b", "virtual_interfaces", "a,b"},
      {"sidetrack -t 1", "tproxy_mark", "1"},
      {"sidetrack -t 0xffffffff", "tproxy_mark", "4294967295"},
      {"sidetrack --istio-inbound-tproxy-mark 0X1f", "tproxy_mark", "31"},
      {"sidetrack -r 252", "tproxy_route_table", "252"},
      {"sidetrack --istio-inbound-tproxy-route-table 256", "tproxy_route_table", "256"},
      {"sidetrack -n", "dry_run", "true"},
      {"sidetrack --dry-run", "dry_run", "true"},
      {"sidetrack --iptables-probe-port 9", "probe_port", "9"},
      {"sidetrack --probe-timeout 500ms", "probe_timeout", "500000000ns"},
      {"sidetrack --skip-rule-apply", "skip_rule_apply", "true"},
      {"sidetrack --run-validation", "run_validation", "true"},
      {"sidetrack --redirect-dns", "redirect_dns", "true"},
      {"sidetrack --drop-invalid", "drop_invalid", "true"},
      {"sidetrack --dual-stack", "dual_stack", "true"},
      {"sidetrack --capture-all-dns", "capture_all_dns", "true"},
      {"sidetrack --network-namespace /proc/1/ns/net", "network_namespace", "/proc/1/ns/net"},
      {"sidetrack --network-namespace ''", "network_namespace", ""},
      {"sidetrack --cni-mode", "cni_mode", "true"},
      {"sidetrack --reconcile", "reconcile", "true"},
      {"sidetrack --cleanup-only", "cleanup_only", "true"},
      {"sidetrack --force-apply", "force_apply", "true"},
      {"sidetrack --native-nftables", "native_nftables", "true"},
      {"sidetrack --force-iptables-binary legacy", "force_iptables_binary", "iptables-legacy"},
      {"sidetrack --force-iptables-binary=nft", "force_iptables_binary", "iptables-nft"},
      {"sidetrack --force-iptables-binary=", "force_iptables_binary", "any"},
  });
}

TEST(Parse, TakesTheLoggingFlags) {
  expect_taken({
      {"sidetrack --log_output_level=default:info", "log.level", "1"},
      {"sidetrack --log_output_level debug", "log.level", "0"},
      {"sidetrack --log_output_level all:warn", "log.level", "2"},
      {"sidetrack --log_output_level default:error,xds:debug", "log.level", "3"},
      {"sidetrack --log_output_level xds:debug", "log.level", "1"},
      {"sidetrack --log_output_level fatal", "log.level", "4"},
      {"sidetrack --log_output_level default:none", "log.level", "5"},
      {"sidetrack --log_as_json", "log.json", "true"},
      {"sidetrack --log_as_json=false", "log.json", "false"},
      {"sidetrack --log_target stdout", "log.targets", "stdout"},
      {"sidetrack --log_target stderr --log_target=/var/log/a,b", "log.targets", "stderr,/var/log/a,b"},
      {"sidetrack --log_caller default", "log.caller", "true"},
      {"sidetrack --log_caller xds,all", "log.caller", "true"},
      {"sidetrack --log_caller xds", "log.caller", "false"},
      {"sidetrack --log_stacktrace_level default:none", "log.level", "1"},
      {"sidetrack --vklog 9", "command", "apply"},
      {"sidetrack show --log_output_level none", "log.level", "5"},
  });
}

TEST(Parse, TakesOurOwnOptions) {
  expect_taken({
      {"sidetrack apply --backend auto", "backend", "any"},
      {"sidetrack apply --backend nftables", "backend", "nftables"},
      {"sidetrack show --backend iptables-nft", "backend", "iptables-nft"},
      {"sidetrack -p 1 --backend iptables-legacy", "backend", "iptables-legacy"},
      {"sidetrack show --netns blue", "netns", "blue"},
      {"sidetrack apply --netns /run/netns/blue", "netns", "/run/netns/blue"},
      {"sidetrack doctor --pid 4711", "pid", "4711"},
      {"sidetrack apply --dataplane ambient", "dataplane", "1"},
      {"sidetrack clean --dataplane ambient", "dataplane", "1"},
      {"sidetrack lint --dataplane ambient", "plan", "true"},
      {"sidetrack apply --dataplane ambient --probe-address 10.0.0.1", "probe_address", "10.0.0.1"},
      {"sidetrack apply --dataplane ambient --probe-address6 fd00::1", "probe_address6", "fd00::1"},
      {"sidetrack apply --dataplane ambient --ingress", "ingress", "true"},
      {"sidetrack apply --dataplane ambient -u 1337 -g 1337 -m REDIRECT -t 1337", "dataplane", "1"},
      {"sidetrack render --format nft", "format", "1"},
      {"sidetrack render --format json", "format", "2"},
      {"sidetrack render --format svg", "format", "3"},
      {"sidetrack apply --dry-run --format nft", "format", "1"},
      {"sidetrack show --format json", "format", "2"},
      {"sidetrack show --format text", "format", "0"},
      {"sidetrack show --json", "format", "2"},
      {"sidetrack show --json=false", "format", "0"},
      {"sidetrack apply --dry-run --json", "format", "2"},
      {"sidetrack show --color always", "color", "1"},
      {"sidetrack show --color never", "color", "2"},
      {"sidetrack render --family ipv4", "printed", "ipv4"},
      {"sidetrack -n --family ipv6", "printed", "ipv6"},
      {"sidetrack render --dns-server 10.0.0.10,fd00::10", "dns_servers", "10.0.0.10,fd00::10"},
      {"sidetrack render --dns-server 10.0.0.10 --dns-server ::1", "dns_servers", "10.0.0.10,::1"},
      {"sidetrack render --dns-server ''", "dns_servers", ""},
      {"sidetrack render --ip-families ipv4", "families", "ipv4"},
      {"sidetrack render --ip-families ipv6,ipv4", "families", "ipv4,ipv6"},
      {"sidetrack render --ip-families ipv4,ipv6", "families", "ipv4,ipv6"},
      {"sidetrack render --ip-families ipv6 --ip-families ipv4", "families", "ipv4,ipv6"},
      {"sidetrack apply --wait 1m30s", "lock_wait", "90000ms"},
      {"sidetrack clean --wait 0", "lock_wait", "0ms"},
      {"sidetrack apply --wait 1us", "lock_wait", "1ms"},
      {"sidetrack apply --when-ready 15021", "when_ready", "15021 60000000000ns"},
      {"sidetrack apply --when-ready 1,1m30s", "when_ready", "1 90000000000ns"},
      {"sidetrack --when-ready 65535,1ns", "when_ready", "65535 1ns"},
      {"sidetrack apply --confirm 60s", "confirm", "60000000000ns"},
      {"sidetrack apply --check", "check", "true"},
      {"sidetrack verify --probe", "probe", "true"},
      {"sidetrack show --watch", "watch", "true"},
      {"sidetrack diff --clean", "clean", "true"},
      {"sidetrack explain out tcp 10.0.0.1:443", "words", "out,tcp,10.0.0.1:443"},
      {"sidetrack explain --uid 1000 out tcp :80", "words", "out,tcp,:80"},
      {"sidetrack explain out tcp :80 --uid 1000", "uid", "1000"},
      {"sidetrack explain out tcp :80 --gid 0", "gid", "0"},
      {"sidetrack explain in tcp :80 --from 10.1.2.3", "from", "10.1.2.3"},
      {"sidetrack explain in tcp :80 --in-interface eth0", "in_interface", "eth0"},
      {"sidetrack explain out tcp :80 --out-interface lo", "out_interface", "lo"},
      {"sidetrack explain out tcp :80 --brief", "brief", "true"},
      {"sidetrack explain out tcp :80 --plan -b 80", "plan", "true"},
      {"sidetrack explain out tcp :80 --plan -b 80", "inbound_ports", "80"},
  });
}

TEST(Parse, WhatTouchesNothingIsADryRun) {
  expect_taken({
      {"sidetrack render", "dry_run", "true"},
      {"sidetrack explain out tcp :80 --plan", "dry_run", "true"},
      {"sidetrack explain out tcp :80", "dry_run", "false"},
      {"sidetrack diff", "dry_run", "false"},
      {"sidetrack verify", "dry_run", "false"},
  });
}

TEST(Parse, ReadsTheFormsOfPflag) {
  expect_taken({
      {"sidetrack -p15001", "proxy_port", "15001"},
      {"sidetrack -p=15001", "proxy_port", "15001"},
      {"sidetrack -p 15001", "proxy_port", "15001"},
      {"sidetrack --envoy-port=15001", "proxy_port", "15001"},
      {"sidetrack -p 1 -p 2", "proxy_port", "2"},
      {"sidetrack -np9", "proxy_port", "9"},
      {"sidetrack -np9", "dry_run", "true"},
      {"sidetrack -n=true", "dry_run", "true"},
      {"sidetrack -n=0", "dry_run", "false"},
      {"sidetrack --dry-run=1", "dry_run", "true"},
      {"sidetrack --dry-run=t", "dry_run", "true"},
      {"sidetrack --dry-run=T", "dry_run", "true"},
      {"sidetrack --dry-run=True", "dry_run", "true"},
      {"sidetrack --dry-run=TRUE", "dry_run", "true"},
      {"sidetrack --dry-run=f", "dry_run", "false"},
      {"sidetrack --dry-run=F", "dry_run", "false"},
      {"sidetrack --dry-run=False", "dry_run", "false"},
      {"sidetrack --dry-run=FALSE", "dry_run", "false"},
      {"sidetrack --dry-run --dry-run=false", "dry_run", "false"},
      {"sidetrack explain --brief -- out tcp -odd", "words", "out,tcp,-odd"},
      {"sidetrack -i=*", "outbound_ranges", "*"},
      {"sidetrack -i*", "outbound_ranges", "*"},
      {"sidetrack -c[a]", "exclude_interfaces", "[a]"},
      {"sidetrack -c {}", "exclude_interfaces", "{}"},
      {"sidetrack --network-namespace=a=b", "network_namespace", "a=b"},
      {"sidetrack --network-namespace=-p", "network_namespace", "-p"},
  });
}

// No value is taken apart or understood as something else on its way: brackets, braces, quotes, '=' or '-'.
TEST(Parse, EveryValueArrivesAsItWasGiven) {
  std::mt19937 random(7);
  constexpr std::string_view characters = "[]{}()<>\"'`\\,;:.=-+*%@#~!?$&|/ \t\nabZ019";
  for (int round = 0; round < 5000; ++round) {
    std::string value;
    for (std::size_t size = 1 + random() % 8; value.size() < size;) value += characters[random() % characters.size()];
    const std::string joined = "--network-namespace=" + value;
    const std::string target = "--log_target=" + value;
    EXPECT_EQ(testing::parse_arguments({"sidetrack", joined, target}).network_namespace, value);
    EXPECT_EQ(testing::parse_arguments({"sidetrack", target}).log.targets, std::vector{value});
    if (value.starts_with('-')) continue;  // another option
    EXPECT_EQ(testing::parse_arguments({"sidetrack", "--network-namespace", value}).network_namespace, value);
  }
}

// Whatever the words are, they are taken or refused as wrong usage.
TEST(Parse, NoWordsLeadToAnythingButUsage) {
  std::mt19937 random(8);
  constexpr std::string_view characters = "-=+[]{}@,:'\" bdinpux0123456789";
  std::vector<std::string> known = {"apply", "render", "explain", "--", "-", "", "--=", "-=", "--help", "*", "++"};
  for (const Flag& flag : flags()) {
    if (flag.name.empty()) continue;
    for (const char* end : {"", "=", "=1", "=[1,2]", "=true", "={}"})
      known.push_back("--" + std::string(flag.name) + end);
    if (flag.letter != '\0') known.push_back(std::string("-") + flag.letter);
  }
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> words = {"sidetrack"};
    for (std::size_t count = random() % 6; words.size() <= count;) {
      std::string word = random() % 4 != 0 ? known[random() % known.size()] : "";
      for (std::size_t more = random() % 3; more > 0; --more) word += characters[random() % characters.size()];
      words.push_back(word);
    }
    try {
      testing::parse_arguments({words.begin(), words.end()});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
    } catch (const std::exception& other) {
      std::string line;
      for (const std::string& word : words) line += "'" + word + "' ";
      ADD_FAILURE() << line << other.what();
    }
  }
}

// Of istio-iptables' own lists manifests leave out the empty value.
TEST(Parse, AListBeforeAnotherOptionMayBeEmpty) {
  expect_taken({
      {"sidetrack -x -b *", "inbound_ports", "*"},
      {"sidetrack -x -b *", "outbound_exclude_ranges", ""},
      {"sidetrack -x '' -b *", "inbound_ports", "*"},
      {"sidetrack -x= -b *", "inbound_ports", "*"},
      {"sidetrack --istio-service-exclude-cidr= -b *", "inbound_ports", "*"},
      {"sidetrack -i * -o -x -d 1", "outbound_exclude_ports", ""},
      {"sidetrack -i * -x -d 1 -o ''", "outbound_ranges", "*"},
      {"sidetrack -i * -x --dry-run", "dry_run", "true"},
      {"sidetrack -c -k -b *", "inbound_ports", "*"},
      {"sidetrack -c --istio-inbound-ports *", "inbound_ports", "*"},
      {"sidetrack -c -k -b *", "exclude_interfaces", ""},
      {"sidetrack -m ''", "mode", "0"},
  });
}

// As pflag takes it. An injector passes what a pod's annotation says.
TEST(Parse, TheWordAfterAListOfInterfacesIsNoOption) {
  for (const auto& [option, field] : {std::pair{"-c", "exclude_interfaces"},
                                      {"--istio-exclude-interfaces", "exclude_interfaces"},
                                      {"-k", "virtual_interfaces"},
                                      {"--kube-virt-interfaces", "virtual_interfaces"}}) {
    for (const char* word : {"--cleanup-only", "-n", "--", "--proxy-uid=0", "-b1", "-net"}) {
      const std::string line = std::string("sidetrack ") + option + " " + word + " -d 1";
      expect_taken({{line, field, word},
                    {line, "cleanup_only", "false"},
                    {line, "dry_run", "false"},
                    {line, "inbound_exclude_ports", "1"}});
    }
  }
}

TEST(Parse, ListsAddUpAndDropEmptyItems) {
  expect_taken({
      {"sidetrack -d 6000,7000,", "inbound_exclude_ports", "6000,7000"},
      {"sidetrack -d ,,1,,2,", "inbound_exclude_ports", "1,2"},
      {"sidetrack -d 1 -d 2,3", "inbound_exclude_ports", "1,2,3"},
      {"sidetrack -d 1 -d ''", "inbound_exclude_ports", "1"},
      {"sidetrack -b 1 --istio-inbound-ports 2", "inbound_ports", "1,2"},
      {"sidetrack -b *,*", "inbound_ports", "*"},
  });
  EXPECT_EQ(field(testing::parse_arguments({"sidetrack", "-d", " 1 ,\t2 "}), "inbound_exclude_ports"), "1,2");
}

TEST(Parse, DurationsAreThoseOfGo) {
  expect_taken({
      {"sidetrack --probe-timeout 5s", "probe_timeout", "5000000000ns"},
      {"sidetrack --probe-timeout 1m30s", "probe_timeout", "90000000000ns"},
      {"sidetrack --probe-timeout 1.5h", "probe_timeout", "5400000000000ns"},
      {"sidetrack --probe-timeout .5s", "probe_timeout", "500000000ns"},
      {"sidetrack --probe-timeout 1.s", "probe_timeout", "1000000000ns"},
      {"sidetrack --probe-timeout +2us", "probe_timeout", "2000ns"},
      {"sidetrack --probe-timeout 2µs", "probe_timeout", "2000ns"},
      {"sidetrack --probe-timeout 1h1m1s1ms1us1ns", "probe_timeout", "3661001001001ns"},
      {"sidetrack --probe-timeout 0.000000001s", "probe_timeout", "1ns"},
      {"sidetrack --probe-timeout 8760h", "probe_timeout", "31536000000000000ns"},
  });
}

TEST(Parse, TakesTheEnvironment) {
  for (const auto& [variable, value, which, expected] :
       std::vector<std::tuple<std::string, std::string, std::string_view, std::string_view>>{
           {"ENVOY_PORT", "1", "proxy_port", "1"},
           {"INBOUND_CAPTURE_PORT", "2", "inbound_port", "2"},
           {"INBOUND_TUNNEL_PORT", "3", "tunnel_port", "3"},
           {"PROXY_UID", "1,2", "proxy_uids", "1,2"},
           {"PROXY_GID", "3", "proxy_gids", "3"},
           {"ISTIO_INBOUND_INTERCEPTION_MODE", "TPROXY", "mode", "1"},
           {"ISTIO_INBOUND_INTERCEPTION_MODE", "", "mode", "0"},
           {"ISTIO_INBOUND_PORTS", "*", "inbound_ports", "*"},
           {"ISTIO_LOCAL_EXCLUDE_PORTS", "1,2,", "inbound_exclude_ports", "1,2"},
           {"ISTIO_LOCAL_EXCLUDE_PORTS", "1,20-30", "inbound_exclude_ports", "1,20-30"},
           {"INCLUDE_INBOUND_RANGES", "10.0.0.0/8", "inbound_ranges", "10.0.0.0/8"},
           {"EXCLUDE_INBOUND_RANGES", "10.0.0.0/8,", "inbound_exclude_ranges", "10.0.0.0/8"},
           {"ISTIO_EXCLUDE_INTERFACES", "eth1", "exclude_interfaces", "eth1"},
           {"ISTIO_SERVICE_CIDR", "10.0.0.0/8", "outbound_ranges", "10.0.0.0/8"},
           {"ISTIO_SERVICE_EXCLUDE_CIDR", "10.0.0.0/8", "outbound_exclude_ranges", "10.0.0.0/8"},
           {"ISTIO_OUTBOUND_PORTS", "1", "outbound_ports", "1"},
           {"ISTIO_LOCAL_OUTBOUND_PORTS_EXCLUDE", "1", "outbound_exclude_ports", "1"},
           {"KUBE_VIRT_INTERFACES", "virt0", "virtual_interfaces", "virt0"},
           {"ISTIO_INBOUND_TPROXY_MARK", "0x10", "tproxy_mark", "16"},
           {"ISTIO_INBOUND_TPROXY_ROUTE_TABLE", "7", "tproxy_route_table", "7"},
           {"DRY_RUN", "true", "dry_run", "true"},
           {"IPTABLES_PROBE_PORT", "9", "probe_port", "9"},
           {"PROBE_TIMEOUT", "1s", "probe_timeout", "1000000000ns"},
           {"SKIP_RULE_APPLY", "1", "skip_rule_apply", "true"},
           {"RUN_VALIDATION", "T", "run_validation", "true"},
           {"REDIRECT_DNS", "true", "redirect_dns", "true"},
           {"ISTIO_META_DNS_CAPTURE", "true", "redirect_dns", "true"},
           {"DROP_INVALID", "true", "drop_invalid", "true"},
           {"INVALID_DROP", "true", "drop_invalid", "true"},
           {"DUAL_STACK", "true", "dual_stack", "true"},
           {"ISTIO_DUAL_STACK", "true", "dual_stack", "true"},
           {"CAPTURE_ALL_DNS", "true", "capture_all_dns", "true"},
           {"NETWORK_NAMESPACE", "/run/netns/a", "network_namespace", "/run/netns/a"},
           {"CNI_MODE", "true", "cni_mode", "true"},
           {"RECONCILE", "true", "reconcile", "true"},
           {"CLEANUP_ONLY", "true", "cleanup_only", "true"},
           {"FORCE_APPLY", "true", "force_apply", "true"},
           {"NATIVE_NFTABLES", "true", "native_nftables", "true"},
           {"FORCE_IPTABLES_BINARY", "nft", "force_iptables_binary", "iptables-nft"},
           {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", "127.0.0.0/8", "loopback_ipv4", "127.0.0.0/8"},
           {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", "127.0.0.1/32", "loopback_ipv4", "127.0.0.1/32"},
           {"ISTIO_OUTBOUND_OWNER_GROUPS", "java,202", "owner_groups", "java,202"},
           {"ISTIO_OUTBOUND_OWNER_GROUPS", "*", "owner_groups", "*"},
           {"ISTIO_OUTBOUND_OWNER_GROUPS", "", "owner_groups", ""},
           {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE", "root,0", "owner_groups_exclude", "root,0"},
           {"ENVOY_USER", "proxy", "envoy_user", "proxy"},
           {"ENVOY_USER", "proxy", "envoy_user_given", "true"},
           {"ENVOY_USER", "", "envoy_user", "istio-proxy"},
       }) {
    SCOPED_TRACE(variable);
    expect_taken({{"sidetrack istio-iptables", which, expected}}, {{variable, value}});
  }
}

TEST(Parse, TheCommandLineWinsOverTheEnvironment) {
  expect_taken({{"sidetrack -p 9", "proxy_port", "9"}}, {{"ENVOY_PORT", "1"}});
  expect_taken({{"sidetrack -d 9", "inbound_exclude_ports", "9"}}, {{"ISTIO_LOCAL_EXCLUDE_PORTS", "1"}});
  expect_taken({{"sidetrack -b ''", "inbound_ports", ""}}, {{"ISTIO_INBOUND_PORTS", "*"}});
  expect_taken({{"sidetrack -d -u 7", "inbound_exclude_ports", ""}}, {{"ISTIO_LOCAL_EXCLUDE_PORTS", "1"}});
  expect_taken({{"sidetrack --dual-stack=false", "dual_stack", "false"}}, {{"ISTIO_DUAL_STACK", "true"}});
  expect_taken({{"sidetrack -p 9", "proxy_port", "9"}}, {{"ENVOY_PORT", "not looked at"}});
}

TEST(Parse, OfTwoVariablesTheSecondWins) {
  expect_taken({{"sidetrack -p 1", "redirect_dns", "false"}},
               {{"REDIRECT_DNS", "true"}, {"ISTIO_META_DNS_CAPTURE", "false"}});
  expect_taken({{"sidetrack -p 1", "drop_invalid", "true"}}, {{"DROP_INVALID", "false"}, {"INVALID_DROP", "true"}});
  expect_taken({{"sidetrack -p 1", "dual_stack", "true"}}, {{"DUAL_STACK", "true"}, {"ISTIO_DUAL_STACK", ""}});
}

TEST(Parse, AnEmptyVariableSaysNothingWhereEmptyIsNoValue) {
  expect_taken({{"sidetrack apply", "proxy_port", "15001"}}, {{"ENVOY_PORT", ""}});
  expect_taken({{"sidetrack apply", "dual_stack", "false"}}, {{"DUAL_STACK", ""}});
  expect_taken({{"sidetrack apply", "probe_timeout", "5000000000ns"}}, {{"PROBE_TIMEOUT", ""}});
}

// What Kubernetes sets for a service named "envoy".
TEST(Parse, PassesOverServiceLinks) {
  expect_taken({{"sidetrack apply", "proxy_port", "15001"}}, {{"ENVOY_PORT", "tcp://10.96.3.4:9901"}});
}

TEST(Parse, OnlyCommandsThatMakeRulesReadTheEnvironment) {
  const Variables broken = {{"ENVOY_PORT", "x"}, {"DUAL_STACK", "maybe"}};
  for (const char* arguments : {"sidetrack show", "sidetrack clean", "sidetrack doctor", "sidetrack diff --clean",
                                "sidetrack explain out tcp :80", "sidetrack --help", "sidetrack apply --help"}) {
    EXPECT_NO_THROW(parse_text(arguments, broken)) << arguments;
  }
  for (const char* arguments : {"sidetrack apply", "sidetrack render", "sidetrack diff", "sidetrack verify",
                                "sidetrack explain out tcp :80 --plan", "sidetrack -p 1 --cleanup-only"}) {
    EXPECT_THROW(parse_text(arguments, broken), Error) << arguments;
  }
}

TEST(Parse, SaysWhichCommandsWorkByAPlan) {
  for (const char* arguments : {"sidetrack apply", "sidetrack render", "sidetrack diff", "sidetrack verify",
                                "sidetrack explain out tcp :80 --plan", "sidetrack -p 1"}) {
    EXPECT_TRUE(works_by_plan(parse_text(arguments))) << arguments;
  }
  for (const char* arguments :
       {"sidetrack", "sidetrack show", "sidetrack clean", "sidetrack doctor", "sidetrack diff --clean",
        "sidetrack explain out tcp :80", "sidetrack --cleanup-only"}) {
    EXPECT_FALSE(works_by_plan(parse_text(arguments))) << arguments;
  }
}

TEST(Parse, TheInjectorsOwnArguments) {
  const CommandLine line = parse_text(
      "sidetrack istio-iptables -p 15001 -z 15006 -u 1337 -m REDIRECT -i * -x '' -b * -d 15090,15021,15020 "
      "--log_output_level=default:info");
  EXPECT_TRUE(line.drop_in);
  EXPECT_EQ(line.config.proxy_uids, std::vector<std::uint32_t>{1337});
  EXPECT_TRUE(line.config.outbound_ranges.all);
  EXPECT_TRUE(line.config.inbound_ports.all);
  EXPECT_EQ(line.config.inbound_exclude_ports, (std::vector<PortRange>{15090, 15021, 15020}));
  EXPECT_EQ(texts(line.config.outbound_exclude_ranges), std::vector<std::string>{});
  EXPECT_EQ(line.config.probe_timeout, 5s);
}

}  // namespace
}  // namespace sidetrack
