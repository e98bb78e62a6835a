// SPDX-License-Identifier: GPL-2.0-or-later
// Arguments and environment in, the sentence of the error out.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>

#include "model/printable.h"
#include "options/flags.h"
#include "unit/options_text.h"

namespace sidetrack {
namespace {

using ::testing::HasSubstr;
using testing::parse_text;
using testing::Variables;

struct Refusal {
  std::string_view arguments;  // separated by blanks; '' is the empty one
  std::string message;
  std::string_view hint = "";
};

void expect_refused(const std::vector<Refusal>& cases, const Variables& variables = {}) {
  for (const auto& [arguments, message, hint] : cases) {
    SCOPED_TRACE(arguments);
    try {
      parse_text(arguments, variables);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), message);
      EXPECT_EQ(error.hint(), hint);
      EXPECT_EQ(error.code(), ExitCode::usage);
    }
  }
}

// Every value that is refused, of one option, with the same sentence.
void expect_refused(std::string_view option, std::string_view spelled, std::string_view expected,
                    const std::vector<std::string_view>& values, std::string_view command = "apply") {
  for (const std::string_view value : values) {
    SCOPED_TRACE(value);
    try {
      testing::parse_arguments({"sidetrack", command, std::string(option) + "=" + std::string(value)});
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      const std::string shown = value.empty() ? "no value" : "'" + printable(value) + "'";
      EXPECT_EQ(error.what(), std::string(spelled) + ": " + shown + ": expected " + std::string(expected));
      EXPECT_EQ(error.code(), ExitCode::usage);
    }
  }
}

TEST(ParseError, Ports) {
  const std::vector<std::string_view> values = {
      "0",     "65536", "-1",  "0x50", "80x", "80.0", "1e3", "+80", "99999999999999999999",
      "80:90", "http",  "080", "-0",   "00"};
  const std::string_view expected = "a port from 1 to 65535";
  expect_refused("-p", "-p, --envoy-port", expected, values);
  expect_refused("--envoy-port", "-p, --envoy-port", expected, values);
  expect_refused("-z", "-z, --inbound-capture-port", expected, values);
  expect_refused("-e", "-e, --inbound-tunnel-port", expected, values);
  expect_refused("--iptables-probe-port", "--iptables-probe-port", expected, values);
  expect_refused("-p", "-p, --envoy-port", expected, {"", "80-90"});
  const std::pair<std::string_view, std::string_view> lists[] = {{"-b", "-b, --istio-inbound-ports"},
                                                                 {"-d", "-d, --istio-local-exclude-ports"},
                                                                 {"-q", "-q, --istio-outbound-ports"},
                                                                 {"-o", "-o, --istio-local-outbound-ports-exclude"}};
  for (const auto& [flag, spelled] : lists) {
    const std::string_view or_range = "a port from 1 to 65535, or a range such as 9000-9100";
    expect_refused(flag, spelled, or_range, values);
    expect_refused(flag, spelled, or_range,
                   {"0-90", "80-", "-", "80--90", "80-90-100", "80-65536", "080-90", "80-090", "80 -90", "80-http",
                    "80-+90", "9000:9100", "80-0"});
    expect_refused(flag, spelled, "the lower port of a range first", {"90-80", "65535-1"});
  }
  const std::string what = "-d, --istio-local-exclude-ports: ";
  expect_refused({
      {"sidetrack -d 80,9000:9100", what + "'9000:9100': expected a port from 1 to 65535, or a range such as 9000-9100",
       "write the range with a dash: 9000-9100"},
      {"sidetrack -d 443:80", what + "'443:80': expected a port from 1 to 65535, or a range such as 9000-9100",
       "write two ports with a comma: 443,80"},
      {"sidetrack --exclude-uid-ports 101:443:80",
       "--exclude-uid-ports: '443:80': expected a port from 1 to 65535, or a range such as 9000-9100",
       "write two ports with a comma: 443,80"},
      {"sidetrack -d 9100-9000", what + "'9100-9000': expected the lower port of a range first", "write 9000-9100"},
      {"sidetrack -d 80:", what + "'80:': expected a port from 1 to 65535, or a range such as 9000-9100"},
  });
}

TEST(ParseError, AddressRanges) {
  const std::vector<std::string_view> values = {"10.0.0.0/-0", "10.0.0.0/08",  "10.0.0.0/+8", "10.0.0.0/33",
                                                "10.0.0/8",    "10.0.0.0/8/8", "010.0.0.0/8", "0x0a.0.0.0/8",
                                                "10.0.0.1%lo", "fe80::1%lo",   "10.0.0.0/",   "fd00::/129",
                                                "fd00::g/8",   "host",         "10.0.0.0/-1", "10.0.0.0-10.0.0.9"};
  const std::string_view expected = "an address range such as 10.0.0.0/8 or fd00::/8";
  expect_refused("-i", "-i, --istio-service-cidr", expected, values);
  expect_refused("-x", "-x, --istio-service-exclude-cidr", expected, values);
  expect_refused("-x", "-x, --istio-service-exclude-cidr", "address ranges, not everything", {"*"});
  expect_refused("--include-inbound-ranges", "--include-inbound-ranges", expected, values);
  expect_refused("--exclude-inbound-ranges", "--exclude-inbound-ranges", expected, values);
  expect_refused("--exclude-inbound-ranges", "--exclude-inbound-ranges", "address ranges, not everything", {"*"});
  expect_refused({
      {"sidetrack --exclude-inbound-ranges *", "--exclude-inbound-ranges: '*': expected address ranges, not everything",
       "to leave all inbound traffic alone, leave out -b, --istio-inbound-ports"},
      {"sidetrack --include-inbound-ranges 10.0.0.0/8,*",
       "--include-inbound-ranges: '*': expected either '*' alone, or a list without it"},
  });
}

TEST(ParseError, InterfaceNames) {
  const std::vector<std::string_view> values = {"sixteen-letters-",
                                                "a/b",
                                                "a b",
                                                "a:b",
                                                ".",
                                                "..",
                                                "a\tb",
                                                "a\x01",
                                                "a\"b",
                                                "\"",
                                                "\"a\"",
                                                "eth*",
                                                "*",
                                                "a*b",
                                                "a\x7f",
                                                "@list",
                                                "a\\",
                                                "\\+",
                                                "\xC3\xA9",
                                                "\xff",
                                                "@"};
  const std::string_view expected =
      "an interface name of 1 to 15 printable ASCII characters, no spaces and none of / : \" * \\";
  const auto not_a_file = [&](std::string_view value) { return !value.starts_with('@'); };
  std::vector<std::string_view> items;
  std::ranges::copy_if(values, std::back_inserter(items), not_a_file);
  expect_refused("-c", "-c, --istio-exclude-interfaces", expected, items);
  expect_refused("-k", "-k, --kube-virt-interfaces", expected, items);
  expect_refused("--in-interface", "--in-interface", expected, values, "explain");
  expect_refused("--out-interface", "--out-interface", expected, values, "explain");
  expect_refused("--out-interface", "--out-interface", expected, {""}, "explain");
  const std::string_view beginning = "the name of an interface, or a prefix followed by '+'";
  expect_refused("-c", "-c, --istio-exclude-interfaces", beginning, {"+"});
  expect_refused("-k", "-k, --kube-virt-interfaces", beginning, {"+"});
  const std::string what = "-c, --istio-exclude-interfaces: ";
  expect_refused({
      {"sidetrack -c eth*", what + "'eth*': expected " + std::string(expected),
       "eth+ stands for every interface with that prefix"},
      {"sidetrack -c e\xff*", what + "'e\\xff*': expected " + std::string(expected),
       "e\\xff+ stands for every interface with that prefix"},
      {"sidetrack -c eth0,@list", what + "'@list': expected " + std::string(expected),
       "@FILE stands alone: give the option once more for it"},
      {"sidetrack -c +", what + "'+': expected " + std::string(beginning), "'+' alone is every interface"},
  });
}

TEST(ParseError, MarksAndTables) {
  const std::vector<std::string_view> values = {"0",  "0x0",  "4294967296", "0x100000000", "-1",       "0x",
                                                "ff", "010",  "1.5",        "0x1g",        "",         "0x-1",
                                                "+1", "0x+1", "-0",         "1 ",          "1337/0xff"};
  expect_refused("-t", "-t, --istio-inbound-tproxy-mark", "a mark from 1 to 4294967295, decimal or 0x...", values);
  const std::string_view table =
      "a routing table from 1 to 4294967295, decimal or 0x..., other than 253 to 255 (default, main, local)";
  expect_refused("-r", "-r, --istio-inbound-tproxy-route-table", table, values);
  expect_refused("-r", "-r, --istio-inbound-tproxy-route-table", table, {"253", "254", "255", "0xff"});
}

TEST(ParseError, Ids) {
  const std::vector<std::string_view> values = {"istio-proxy", "-1",    "4294967295", "4294967296", "0x10",
                                                "1.0",         "01337", "+1",         "-0",         "0-1"};
  expect_refused("-u", "-u, --proxy-uid", "a number from 0 to 4294967294", values);
  expect_refused("-g", "-g, --proxy-gid", "a number from 0 to 4294967294", values);
  expect_refused("--uid", "--uid", "a number from 0 to 4294967294", values, "explain");
  expect_refused("--gid", "--gid", "a number from 0 to 4294967294", values, "explain");
  expect_refused("--uid", "--uid", "a number from 0 to 4294967294", {""}, "explain");
  expect_refused("--pid", "--pid", "a process id", {"0", "-1", "x", "", "2147483648", "self", "01", "+1", "1/task/2"});
}

TEST(ParseError, Choices) {
  expect_refused("-m", "-m, --istio-inbound-interception-mode", "one of REDIRECT|TPROXY|NONE",
                 {"redirect", "TPROX", "*", "REDIRECT|TPROXY", "|"});
  expect_refused("--backend", "--backend", "one of auto|nftables|iptables-nft|iptables-legacy", {"nft", "", "legacy"});
  expect_refused("--force-iptables-binary", "--force-iptables-binary", "one of legacy|nft", {"auto", "NFT"});
  expect_refused("--format", "--format", "one of text|nft|json|svg", {"yaml", "mermaid", ""}, "render");
  expect_refused("--format", "--format", "one of text|json", {"nft", "svg", ""}, "show");
  expect_refused("--color", "--color", "one of auto|always|never", {"yes", ""}, "show");
  expect_refused("--family", "--family", "one of ipv4|ipv6", {"4", "ipv4,ipv6", ""}, "render");
  expect_refused("--ip-families", "--ip-families", "one of ipv4|ipv6", {"4", "inet"});
  expect_refused("--ip-families", "--ip-families", "ipv4, or ipv4,ipv6", {"", ",", "ipv6", "ipv6,ipv6"});
}

TEST(ParseError, Durations) {
  const std::vector<std::string_view> values = {"",   "5",   "s",    "5 s",   "-5s",  "5x", "1.2.3s",
                                                ".s", "1h5", "five", "1s-1s", "++1s", "1S", "1e3s"};
  expect_refused("--probe-timeout", "--probe-timeout", "a duration such as 5s, 500ms or 1m30s", values);
  expect_refused("--wait", "--wait", "a duration such as 5s, 500ms or 1m30s", values);
  expect_refused("--probe-timeout", "--probe-timeout", "a duration above 0", {"0", "0s"});
  const std::vector<std::string_view> too_long = {"8760h1ns", "9223372036854775807ns", "9223372036854775808ns",
                                                  "2562048h", "99999999999999999999s", "153722867m30s9223372036s"};
  expect_refused("--probe-timeout", "--probe-timeout", "a duration of at most 8760h", too_long);
  expect_refused("--wait", "--wait", "a duration of at most 8760h", too_long);
  expect_refused("--confirm", "--confirm", "a duration of at most 8760h", {"99999999h"});
}

TEST(ParseError, Booleans) {
  for (const char* flag : {"--redirect-dns", "--drop-invalid", "--dual-stack", "--capture-all-dns", "--cni-mode",
                           "--reconcile", "--cleanup-only", "--force-apply", "--native-nftables", "--skip-rule-apply",
                           "--run-validation", "--log_as_json", "--json", "--check"}) {
    expect_refused(flag, flag, "true or false", {"yes", "no", "2", "tRUE", "on", ""});
  }
  expect_refused("-n", "-n, --dry-run", "true or false", {"yes", ""});
  expect_refused("--help", "-h, --help", "true or false", {"yes", "", "{}"});
}

TEST(ParseError, Addresses) {
  expect_refused("--dns-server", "--dns-server", "an IPv4 or IPv6 address",
                 {"10.0.0.0/8", "dns.example", "10.0.0", "[::1]", "10.0.0.1:53"});
  expect_refused("--from", "--from", "an IPv4 or IPv6 address", {"10.0.0.0/8", ""}, "explain");
}

TEST(ParseError, Logging) {
  const std::string_view levels = "[scope:]level, the level one of debug, info, warn, error, fatal, none";
  expect_refused("--log_output_level", "--log_output_level", levels,
                 {"loud", "default:", ":info", "default:INFO", ":"});
  expect_refused("--log_stacktrace_level", "--log_stacktrace_level", levels, {"loud"});
  expect_refused("--log_target", "--log_target", "stdout, stderr or a path", {""});
  expect_refused("--vklog", "--vklog", "a number", {"x", "-1", "", "1.5"});
}

TEST(ParseError, NameTheItemOfAList) {
  expect_refused({
      {"sidetrack -d 15090,x,15020",
       "-d, --istio-local-exclude-ports: 'x': expected a port from 1 to 65535, or a range such as 9000-9100",
       "if the shell expanded a bare * to file names: this option takes no *; -d '' is the empty list"},
      {"sidetrack -d 1,0",
       "-d, --istio-local-exclude-ports: '0': expected a port from 1 to 65535, or a range such as 9000-9100"},
      {"sidetrack -i 10.0.0.0/8 -i 10.0.0.0/99",
       "-i, --istio-service-cidr: '10.0.0.0/99': expected an address range such as 10.0.0.0/8 or fd00::/8"},
  });
}

TEST(ParseError, EverythingAndAListExcludeEachOther) {
  expect_refused({
      {"sidetrack -b *,80", "-b, --istio-inbound-ports: '80': expected either '*' alone, or a list without it"},
      {"sidetrack -b 80 -b *", "-b, --istio-inbound-ports: '*': expected either '*' alone, or a list without it"},
      {"sidetrack -i *,::/0", "-i, --istio-service-cidr: '::/0': expected either '*' alone, or a list without it"},
  });
}

TEST(ParseError, RecogniseAnExpandedAsterisk) {
  expect_refused({
      {"sidetrack -b CMakeLists.txt src",
       "-b, --istio-inbound-ports: 'CMakeLists.txt': expected a port from 1 to 65535, or a range such as 9000-9100",
       "if the shell expanded a bare * to file names, quote it: -b '*'"},
      {"sidetrack -p 1 -i README.md",
       "-i, --istio-service-cidr: 'README.md': expected an address range such as 10.0.0.0/8 or fd00::/8",
       "if the shell expanded a bare * to file names, quote it: -i '*'"},
      {"sidetrack -x bin lib",
       "-x, --istio-service-exclude-cidr: 'bin': expected an address range such as 10.0.0.0/8 or fd00::/8",
       "if the shell expanded a bare * to file names: this option takes no *; -x '' is the empty list"},
      {"sidetrack -b 80 443", "'443': not expected after '80'",
       "quote '*' so that the shell does not expand it; separate the items of a list with commas only"},
      {"sidetrack apply -c CMakeLists.txt src", "'src': not expected after 'CMakeLists.txt'",
       "quote '*' so that the shell does not expand it; separate the items of a list with commas only"},
  });
}

TEST(ParseError, WordsThatDoNotBelong) {
  const std::string_view quote =
      "quote '*' so that the shell does not expand it; separate the items of a list with commas only";
  expect_refused({
      {"sidetrack apply now", "'now': not expected here", quote},
      {"sidetrack apply ++", "'++': not expected here", "sidetrack apply --help lists the options"},
      {"sidetrack apply -x -- -b", "'-b': not expected after '--'", quote},
      {"sidetrack apply -x 10.0.0.0/8 -- -b", "'-b': not expected after '--'", quote},
      {"sidetrack apply -x= -- -b", "'-b': not expected after '--'", quote},
      {"sidetrack apply -d=80 -- -n", "'-n': not expected after '--'", quote},
      {"sidetrack -n false", "'false': not expected after '-n'", "write it as -n=false"},
      {"sidetrack --dual-stack true -p 1", "'true': not expected after '--dual-stack'",
       "write it as --dual-stack=true"},
      {"sidetrack --netns blue show", "'show': not expected after 'blue'",
       "the command comes first: sidetrack show ..."},
      {"sidetrack --envoy-port= 15001", "-p, --envoy-port: no value: expected a port from 1 to 65535"},
      {"sidetrack -x= 10.0.0.0/8", "'10.0.0.0/8': not expected after '-x='", quote},
      {"sidetrack render -- --json", "'--json': not expected after '--'", quote},
      {"sidetrack show -- --json", "'--json': not expected after '--'", "sidetrack show --help lists the options"},
      {"sidetrack doctor now", "'now': not expected here", "sidetrack doctor --help lists the options"},
      {"istio-iptables help", "'help': not expected here", "sidetrack apply --help lists the options"},
      {"sidetrack help apply render", "'render': not expected after 'apply'", "help shows one command"},
      {"sidetrack version foo", "'foo': not expected after 'version'", "the version takes no options"},
      {"sidetrack --version --nonsense", "'--nonsense': not expected after '--version'",
       "the version takes no options"},
      {"sidetrack completion", "completion: no shell given: expected one of bash, zsh, fish",
       "for example: source <(sidetrack completion bash)"},
      {"sidetrack completion tcsh", "completion: 'tcsh': expected one of bash, zsh, fish",
       "for example: source <(sidetrack completion bash)"},
      {"sidetrack completion bash zsh", "completion: more than one shell given: expected one of bash, zsh, fish",
       "for example: source <(sidetrack completion bash)"},
      {"sidetrack cni", "cni: no action given: expected one of install, uninstall, status",
       "for example: sidetrack cni install --exclude-namespaces kube-system --watch"},
      {"sidetrack cni instal", "cni: 'instal': expected one of install, uninstall, status",
       "for example: sidetrack cni install --exclude-namespaces kube-system --watch"},
      {"sidetrack cni status --watch", "--watch: not for cni status, which looks once",
       "--watch goes with cni install and cni uninstall"},
      {"sidetrack cni uninstall -u 1", "-u, --proxy-uid: without effect on cni uninstall", "it is for cni install"},
      {"sidetrack cni install --bin-dir bin", "--bin-dir: 'bin': expected an absolute path"},
      {"sidetrack cni install --exclude-namespaces a/b",
       "--exclude-namespaces: 'a/b': expected the name of a Kubernetes namespace, of a-z, 0-9 and '-'"},
      {"sidetrack apply --when-ready ''", "--when-ready: no value: expected a port from 1 to 65535"},
      {"sidetrack apply --when-ready 0", "--when-ready: '0': expected a port from 1 to 65535"},
      {"sidetrack apply --when-ready 80,0",
       "--when-ready: '80,0': expected a port, or a port and a duration above 0, such as "
       "15021,5m"},
      {"sidetrack apply --when-ready 80,", "--when-ready: no value: expected a duration such as 5s, 500ms or 1m30s"},
      {"sidetrack apply --when-ready 80,5", "--when-ready: '5': expected a duration such as 5s, 500ms or 1m30s"},
      {"sidetrack apply --when-ready 80,8761h", "--when-ready: '8761h': expected a duration of at most 8760h"},
      {"sidetrack render --when-ready 80", "--when-ready: not an option of render", "it belongs to: apply"},
      {"sidetrack apply --confirm 0", "--confirm: '0': expected a duration above 0"},
      {"sidetrack apply --confirm soon", "--confirm: 'soon': expected a duration such as 5s, 500ms or 1m30s"},
      {"sidetrack pods --pod-timeout 0", "--pod-timeout: '0': expected a duration above 0"},
      {"sidetrack pods --metrics ''", "--metrics: no value: expected the path of a file"},
      {"sidetrack explain", "explain: no packet given",
       "for example: sidetrack explain out tcp 10.96.0.10:443 --uid 1000"},
  });
}

TEST(ParseError, UnknownCommandsSuggestTheNearest) {
  expect_refused({
      {"sidetrack aply", "'aply' is not a command", "did you mean apply?"},
      {"sidetrack rendre", "'rendre' is not a command", "did you mean render?"},
      {"sidetrack istio-iptable -p 1", "'istio-iptable' is not a command", "did you mean istio-iptables?"},
      {"sidetrack frobnicate", "'frobnicate' is not a command", "sidetrack --help lists the commands"},
      {"sidetrack ''", "'' is not a command", "sidetrack --help lists the commands"},
      {"sidetrack help aply", "'aply' is not a command", "did you mean apply?"},
      {"sidetrack Show", "'Show' is not a command", "did you mean show?"},
  });
}

TEST(ParseError, UnknownOptionsSuggestTheNearest) {
  expect_refused({
      {"sidetrack --envoy-prot 15001", "--envoy-prot: not an option of apply", "did you mean --envoy-port?"},
      {"istio-clean-iptables --zzz", "--zzz: not an option of istio-clean-iptables",
       "sidetrack istio-clean-iptables --help lists the options"},
      {"istio-clean-iptables --mesh linkerd", "--mesh: not an option of istio-clean-iptables",
       "it belongs to: diff, clean"},
      {"sidetrack --istio-inbound-port=80", "--istio-inbound-port: not an option of apply",
       "did you mean --istio-inbound-ports?"},
      {"sidetrack --envoy 15001", "--envoy: not an option of apply", "did you mean --envoy-port?"},
      {"sidetrack show --wach", "--wach: not an option of show", "did you mean --watch?"},
      {"sidetrack -envoy-port 1", "-envoy-port: not an option of apply", "did you mean --envoy-port?"},
      {"sidetrack apply -check", "-check: not an option of apply", "did you mean --check?"},
      {"sidetrack -dry-run=true", "-dry-run: not an option of apply", "did you mean --dry-run?"},
      {"sidetrack --something-else", "--something-else: not an option of apply",
       "sidetrack apply --help lists the options"},
      {"sidetrack show -Q", "-Q: not an option of show", "sidetrack show --help lists the options"},
      {"sidetrack -7", "-7: not an option of apply", "sidetrack apply --help lists the options"},
      {"sidetrack -n7", "-7: not an option of apply", "sidetrack apply --help lists the options"},
      {"sidetrack -n-x", "--x: not an option of apply", "sidetrack apply --help lists the options"},
      {"sidetrack -nQ", "-Q: not an option of apply", "sidetrack apply --help lists the options"},
  });
}

std::string with_first_letters_swapped(std::string_view word) {
  std::string result(word);
  std::swap(result[0], result[1]);
  return result;
}

// What the command line is refused with; nothing: it is accepted.
std::optional<Error> refusal_of(const std::vector<std::string_view>& arguments) {
  try {
    testing::parse_arguments(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error;
  }
  return std::nullopt;
}

std::string hint_of(const std::vector<std::string_view>& arguments) {
  const auto refusal = refusal_of(arguments);
  return refusal ? refusal->hint() : "accepted";
}

TEST(ParseError, EveryMistypedCommandAndOptionIsGuessed) {
  for (const CommandInfo& command : commands()) {
    const std::string mistyped = with_first_letters_swapped(command.name);
    EXPECT_EQ(hint_of({"sidetrack", mistyped}), "did you mean " + std::string(command.name) + "?");
    EXPECT_EQ(hint_of({"sidetrack", "help", mistyped}), "did you mean " + std::string(command.name) + "?");
    for (const Flag& flag : flags()) {
      if (flag.name.empty() || !flag.commands.contains(command.command)) continue;
      const std::string option = "--" + with_first_letters_swapped(flag.name);
      const std::string expected = "did you mean --" + std::string(flag.name) + "?";
      EXPECT_EQ(hint_of({"sidetrack", command.name, option}), expected) << command.name;
      if (command.command != Command::apply) continue;
      EXPECT_EQ(hint_of({"sidetrack", option}), expected);
      EXPECT_EQ(hint_of({"sidetrack", "istio-iptables", option}), expected);
      EXPECT_EQ(hint_of({"istio-iptables", option}), expected);
    }
  }
}

TEST(ParseError, TheVersionIsAskedOfTheProgram) {
  const std::string_view hint = "did you mean sidetrack --version?";
  expect_refused({
      {"sidetrack --vers", "--vers: not an option of apply", hint},
      {"sidetrack --verison", "--verison: not an option of apply", hint},
      {"sidetrack -V", "-V: not an option of apply", hint},
      {"sidetrack show --version", "--version: not an option of show", hint},
      {"sidetrack verison", "'verison' is not a command", "did you mean version?"},
  });
}

TEST(ParseError, OptionsOfOtherCommandsNameThem) {
  expect_refused({
      {"sidetrack apply --watch", "--watch: not an option of apply", "it belongs to: show, cni"},
      {"sidetrack show -p 15001", "-p: not an option of show",
       "it belongs to: apply, render, diff, verify, explain, map, lint, cni"},
      {"sidetrack show --envoy-port=15001", "--envoy-port: not an option of show",
       "it belongs to: apply, render, diff, verify, explain, map, lint, cni"},
      {"sidetrack clean --force-apply", "--force-apply: not an option of clean", "it belongs to: apply"},
      {"sidetrack render --wait 5s", "--wait: not an option of render", "it belongs to: apply, clean"},
      {"sidetrack diff --family ipv4", "--family: not an option of diff", "it belongs to: apply, render, map"},
      {"sidetrack render --dry-run", "--dry-run: not an option of render", "it belongs to: apply"},
  });
}

TEST(ParseError, CombinationsWithoutEffect) {
  expect_refused({
      {"sidetrack show --netns blue --pid 1",
       "--netns, --pid and --network-namespace exclude each other: give one of them"},
      {"sidetrack --network-namespace /a --pid 1",
       "--netns, --pid and --network-namespace exclude each other: give one of them"},
      {"sidetrack apply --prove --dry-run", "--prove checks the rules after the change, --dry-run changes no rules",
       "sidetrack lint checks only options"},
      {"sidetrack apply --prove --cleanup-only",
       "--prove checks the rules after the change, --cleanup-only changes no rules",
       "sidetrack lint checks only options"},
      {"sidetrack apply --when-ready 80 --dry-run",
       "--when-ready waits before rules are installed, --dry-run installs none", "leave one of them out"},
      {"sidetrack apply --when-ready 80 --cleanup-only",
       "--when-ready waits before rules are installed, --cleanup-only installs none", "leave one of them out"},
      {"sidetrack apply --when-ready 80 --skip-rule-apply",
       "--when-ready waits before rules are installed, --skip-rule-apply installs none", "leave one of them out"},
      {"sidetrack apply --confirm 60s --check", "--confirm rolls back what was installed, --check installs nothing",
       "leave one of them out"},
      {"sidetrack apply --confirm 60s --dry-run", "--confirm rolls back what was installed, --dry-run installs nothing",
       "leave one of them out"},
      {"sidetrack apply --check --dry-run", "--check and --dry-run exclude each other: give one of them"},
      {"sidetrack map --json --format svg", "--json and --format svg exclude each other: give one of them"},
      {"sidetrack show --format text --json", "--json and --format text exclude each other: give one of them"},
      {"sidetrack apply --check --cleanup-only",
       "--check asks about rules to be installed, and cleaning installs none: leave one of them out"},
      {"sidetrack apply --family ipv4", "--family: apply installs both families",
       "--family goes with render and --dry-run; to install only IPv4: --ip-families ipv4"},
      {"sidetrack apply --format svg", "--format: apply prints no rules",
       "--format and --json go with render and --dry-run"},
      {"sidetrack apply --json", "--format: apply prints no rules", "--format and --json go with render and --dry-run"},
      {"sidetrack clean --json", "--json: not an option of clean",
       "it belongs to: apply, render, diff, verify, show, explain, map, lint, doctor, pods, args, cni"},
      {"sidetrack explain out tcp :80 -b 80", "-b, --istio-inbound-ports: without effect on the live rules",
       "--plan asks about the rules of the given options"},
      {"sidetrack diff --clean -p 1", "-p, --envoy-port: without effect on the live rules",
       "diff --clean takes no options of the rules but --dataplane"},
      {"sidetrack show --netns ''", "--netns: no value: expected the path or the name of a network namespace"},
  });
  const std::string sides =
      "each is a file that `sidetrack render --format json` or `sidetrack show --json` has written, or a pod: pid:PID, "
      "netns:NAME; without them, the live rules are compared with those that the options ask for";
  expect_refused({
      {"sidetrack diff --effect a.json", "diff --effect: 1 file or pod given: expected two, or none", sides},
      {"sidetrack diff --effect a b c", "diff --effect: 3 files or pods given: expected two, or none", sides},
      {"sidetrack diff --effect - -", "diff --effect: standard input is given twice"},
  });
}

// What the rules of the other dataplane do not depend on.
TEST(ParseError, OptionsOfTheOtherDataplane) {
  const auto refused = [](std::string_view text, const Variables& variables = {}) -> std::string {
    try {
      parse_text(text, variables);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      const std::string what = error.what();
      EXPECT_TRUE(!error.hint().empty() || what.find(": expected ") != std::string::npos) << what;
      return what;
    }
    return "accepted";
  };
  for (const auto& [option, spelled] :
       std::map<std::string, std::string>{{"-u 7", "-u, --proxy-uid"},
                                          {"-g 7", "-g, --proxy-gid"},
                                          {"-m TPROXY", "-m, --istio-inbound-interception-mode"},
                                          {"-m NONE", "-m, --istio-inbound-interception-mode"},
                                          {"-b *", "-b, --istio-inbound-ports"},
                                          {"-d 80", "-d, --istio-local-exclude-ports"},
                                          {"-c net1", "-c, --istio-exclude-interfaces"},
                                          {"-i *", "-i, --istio-service-cidr"},
                                          {"-x 10.0.0.0/8", "-x, --istio-service-exclude-cidr"},
                                          {"-q 80", "-q, --istio-outbound-ports"},
                                          {"-o 80", "-o, --istio-local-outbound-ports-exclude"},
                                          {"-t 1", "-t, --istio-inbound-tproxy-mark"},
                                          {"-r 1", "-r, --istio-inbound-tproxy-route-table"},
                                          {"--capture-all-dns", "--capture-all-dns"},
                                          {"--drop-invalid", "--drop-invalid"},
                                          {"--dns-server 10.0.0.1", "--dns-server"}}) {
    EXPECT_EQ(refused("sidetrack render --dataplane ambient " + option),
              spelled + ": not with --dataplane ambient, whose rules do not depend on it");
  }
  for (const auto& [variable, value] : Variables{{"PROXY_UID", "7"},
                                                 {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", "127.0.0.0/8"},
                                                 {"ISTIO_OUTBOUND_OWNER_GROUPS", "7"},
                                                 {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE", "7"},
                                                 {"ENVOY_USER", "somebody"}}) {
    EXPECT_EQ(refused("sidetrack apply --dataplane ambient", {{variable, value}}),
              variable + ": not with --dataplane ambient, whose rules do not depend on it");
  }
  for (const std::string option : {"--probe-address 10.0.0.1", "--probe-address6 fd00::1", "--ingress"}) {
    EXPECT_EQ(refused("sidetrack apply " + option),
              option.substr(0, option.find(' ')) + ": without effect on the rules of a sidecar");
  }
  EXPECT_EQ(refused("sidetrack apply --ingress=false --probe-address 169.254.7.127"), "accepted");
  EXPECT_EQ(refused("sidetrack cni install --dataplane ambient -t 7"),
            "-t, --istio-inbound-tproxy-mark: not with --dataplane ambient, whose rules do not depend on it");
  EXPECT_EQ(refused("sidetrack --run-validation --dataplane ambient"),
            "--run-validation: not with --dataplane ambient: it connects as a sidecar does");
  EXPECT_EQ(refused("sidetrack apply --dataplane ambient --probe-address fd00::1"),
            "--probe-address: 'fd00::1': expected an IPv4 address, not loopback, multicast or unspecified");
  EXPECT_THAT(refused("sidetrack apply --dataplane ambient --probe-address 10.0.0.0/24"),
              HasSubstr("--probe-address: '10.0.0.0/24': expected an IPv4 address"));
  EXPECT_THAT(
      refused("sidetrack apply --dataplane ambient --probe-address6 fe80::1"),
      HasSubstr(
          "'fe80::1': expected an IPv6 address, not loopback, multicast, unspecified, link-local or of ::ffff:0:0/96"));
  EXPECT_EQ(refused("sidetrack apply --dataplane ambient --probe-address6 10.0.0.1"),
            "--probe-address6: '10.0.0.1': expected an IPv6 address, not loopback, multicast, unspecified, link-local "
            "or of ::ffff:0:0/96");
  for (const char* address : {"127.0.0.1", "0.0.0.0", "224.0.0.1"}) {
    EXPECT_THAT(refused("sidetrack apply --dataplane ambient --probe-address " + std::string(address)),
                HasSubstr("not loopback"));
  }
  EXPECT_EQ(refused("sidetrack apply --dataplane mesh"), "--dataplane: 'mesh': expected one of sidecar|ambient");
}

// An exclusion that is asked for must not silently be none, as by an empty variable of a shell.
TEST(ParseError, NoOptionLacksItsValue) {
  for (const CommandInfo& command : commands()) {
    for (const Flag& flag : flags()) {
      if (flag.name.empty() || flag.kind == Kind::boolean || !flag.commands.contains(command.command)) continue;
      const std::string option = "--" + std::string(flag.name);
      SCOPED_TRACE(std::string(command.name) + " " + option);
      const auto error_of = [&](const std::vector<std::string_view>& more) -> std::string {
        std::vector<std::string_view> arguments = {"sidetrack", command.name, option};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const auto refusal = refusal_of(arguments);
        return refusal ? refusal->what() : "accepted";
      };
      EXPECT_THAT(error_of({}), HasSubstr(spelled(flag) + ": no value: expected "));
      if (flag.kind == Kind::list && flag.letter != '\0') continue;  // -x -b '*'
      EXPECT_THAT(error_of({"--help"}), HasSubstr(spelled(flag) + ": no value: expected "));
    }
  }
  expect_refused({
      {"sidetrack apply -i * -x", "-x, --istio-service-exclude-cidr: no value: expected CIDRS",
       "-x '' is the empty list"},
      {"istio-iptables -i * -x", "-x, --istio-service-exclude-cidr: no value: expected CIDRS",
       "-x '' is the empty list"},
      {"sidetrack apply --exclude-uids", "--exclude-uids: no value: expected UIDS",
       "--exclude-uids '' is the empty list"},
      {"sidetrack apply --exclude-uids -b *", "--exclude-uids: no value: expected UIDS",
       "'-b' begins another option; --exclude-uids '' is the empty list"},
      {"sidetrack apply -m", "-m, --istio-inbound-interception-mode: no value: expected one of REDIRECT|TPROXY|NONE"},
      {"sidetrack apply -m -b *",
       "-m, --istio-inbound-interception-mode: no value: expected one of REDIRECT|TPROXY|NONE",
       "'-b' begins another option"},
      {"sidetrack show --netns", "--netns: no value: expected the path or the name of a network namespace"},
      {"sidetrack --network-namespace", "--network-namespace: no value: expected PATH"},
  });
}

TEST(ParseError, VariablesAreNamedWithTheirValue) {
  for (const auto& [variable, value, expected] : std::vector<std::array<std::string, 3>>{
           {"ENVOY_PORT", "x", "a port from 1 to 65535"},
           {"INBOUND_CAPTURE_PORT", "0", "a port from 1 to 65535"},
           {"INBOUND_TUNNEL_PORT", "-1", "a port from 1 to 65535"},
           {"PROXY_UID", "me", "a number from 0 to 4294967294"},
           {"PROXY_GID", "us", "a number from 0 to 4294967294"},
           {"ISTIO_INBOUND_INTERCEPTION_MODE", "tproxy", "one of REDIRECT|TPROXY|NONE"},
           {"ISTIO_INBOUND_PORTS", "http", "a port from 1 to 65535, or a range such as 9000-9100"},
           {"ISTIO_LOCAL_EXCLUDE_PORTS", "80 90", "a port from 1 to 65535, or a range such as 9000-9100"},
           {"ISTIO_EXCLUDE_INTERFACES", "a/b",
            "an interface name of 1 to 15 printable ASCII characters, no spaces and none of / : \" * \\"},
           {"ISTIO_SERVICE_CIDR", "10/8", "an address range such as 10.0.0.0/8 or fd00::/8"},
           {"ISTIO_SERVICE_EXCLUDE_CIDR", "*", "address ranges, not everything"},
           {"ISTIO_OUTBOUND_PORTS", "x", "a port from 1 to 65535, or a range such as 9000-9100"},
           {"ISTIO_LOCAL_OUTBOUND_PORTS_EXCLUDE", "x", "a port from 1 to 65535, or a range such as 9000-9100"},
           {"ISTIO_INBOUND_TPROXY_MARK", "0", "a mark from 1 to 4294967295, decimal or 0x..."},
           {"DRY_RUN", "yes", "true or false"},
           {"PROBE_TIMEOUT", "5", "a duration such as 5s, 500ms or 1m30s"},
           {"ISTIO_META_DNS_CAPTURE", "on", "true, false or ALL"},
           {"INVALID_DROP", "2", "true or false"},
           {"ISTIO_DUAL_STACK", "y", "true or false"},
           {"FORCE_IPTABLES_BINARY", "nftables", "one of legacy|nft"},
           {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", "10.0.0.0/8",
            "an IPv4 loopback prefix from 127.0.0.0/8 to 127.x.x.x/32"},
           {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", "127.0.0.0/7",
            "an IPv4 loopback prefix from 127.0.0.0/8 to 127.x.x.x/32"},
           {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", "::1/128", "an IPv4 loopback prefix from 127.0.0.0/8 to 127.x.x.x/32"},
           {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", "lo", "an IPv4 loopback prefix from 127.0.0.0/8 to 127.x.x.x/32"},
       }) {
    SCOPED_TRACE(variable);
    const std::string message = variable + ": '" + value + "': expected " + expected;
    const std::string hint = variable == "ISTIO_SERVICE_EXCLUDE_CIDR"
                                 ? "to leave all outbound traffic alone, leave out -i, --istio-service-cidr"
                             : variable.starts_with("PROXY_") ? "give the number: id NAME prints it"
                                                              : "";
    expect_refused({{"sidetrack apply", message, hint}}, {{variable, value}});
  }
}

TEST(ParseError, TooManyOwnerGroups) {
  std::string groups = "0";
  for (int gid = 1; gid < 64; ++gid) groups += "," + std::to_string(gid);
  EXPECT_NO_THROW(parse_text("sidetrack apply", {{"ISTIO_OUTBOUND_OWNER_GROUPS", groups}}));
  groups += ",64";
  expect_refused({{"sidetrack apply",
                   "ISTIO_OUTBOUND_OWNER_GROUPS: '" + excerpt(groups) + "': expected at most 64 groups, not 65"}},
                 {{"ISTIO_OUTBOUND_OWNER_GROUPS", groups}});
}

TEST(ParseError, OwnerGroupsAreEverythingOrAList) {
  expect_refused(
      {{"sidetrack apply", "ISTIO_OUTBOUND_OWNER_GROUPS: 'java': expected either '*' alone, or a list without it"}},
      {{"ISTIO_OUTBOUND_OWNER_GROUPS", "*,java"}});
}

}  // namespace
}  // namespace sidetrack
