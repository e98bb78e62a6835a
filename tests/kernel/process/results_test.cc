// SPDX-License-Identifier: GPL-2.0-or-later
// What the commands that change nothing print, form by form. What their answers are worth is tested in
// tests/kernel/answers.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "support/kernel_test.h"
#include "support/namespace.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"
#include "unit/temporary_file.h"

namespace sidetrack::netns {
namespace {

using sidetrack::testing::TemporaryFile;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::json;

constexpr const char* same = "every packet of tcp, udp and icmp is treated the same\n";

class Results : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ip(ns,
       "link set lo up\nlink add eth0 type veth peer name other\nlink set other up\n"
       "address add 10.244.0.2/24 dev eth0\nlink set eth0 up\nroute add default via 10.244.0.1\n");
  }

  // Expects that exit code.
  [[nodiscard]] Output run(int exit_code, const Words& words) const {
    const Output output = ns.program(Words{program_under_test()} + words);
    EXPECT_EQ(output.exit_code, exit_code) << ::testing::PrintToString(words) << output.out << output.err;
    return output;
  }
  [[nodiscard]] std::string out(int exit_code, const Words& words) const { return run(exit_code, words).out; }

  const Words options{"-b", "80", "-i", "*", "--ip-families", "ipv4"};
  const Namespace ns;
};

// What depends on them would be a guess that nobody knows of: a mount of /proc may leave them out (subset=pid).
TEST_F(Results, SayIfTheSettingsOfTheKernelCannotBeRead) {
  const std::string said =
      "sidetrack: warning: the network settings below /proc/sys/net cannot be read: No such file or directory (ENOENT)";
  const Words apply{"apply"}, verify{"verify"};
  ns.must(Words{program_under_test()} + apply + options);
  const auto errors = [&](const Words& words) {
    return ns
        .program(Words{"unshare", "--mount", "bash", "-c", "mount -t tmpfs none /proc/sys && exec \"$0\" \"$@\"",
                       program_under_test()} +
                 words)
        .err;
  };
  const std::vector<Words> commands{
      {"explain", "out", "tcp", "192.0.2.1:80"}, {"map"}, {"lint"}, {"show"}, Words{"diff", "--effect"} + options};
  for (const Words& words : commands) {
    EXPECT_THAT(errors(words), HasSubstr(said)) << words.front();
    EXPECT_THAT(run(0, words).err, Not(HasSubstr("settings"))) << words.front();
  }
  // Where nobody else has rules, nothing depends on them.
  for (const Words& words : {apply + options, verify + options}) EXPECT_THAT(errors(words), Not(HasSubstr(said)));
  ns.must({"nft",
           "add table ip others; add chain ip others c { type filter hook output priority 0; }; "
           "add rule ip others c udp dport 9 drop"});
  for (const Words& words : {apply + options, verify + options, Words{"diff", "--clean"}}) {
    const std::string all = errors(words);
    EXPECT_THAT(all, HasSubstr(said)) << words.front();
    EXPECT_EQ(all.find(said), all.rfind(said)) << words.front() << " says it twice";
  }
}

TEST_F(Results, OfDiffEffect) {
  const Words effect{"diff", "--effect"};
  EXPECT_THAT(out(6, effect + options),
              HasSubstr("\n  before   leaves untouched, by eth0\n  after    127.0.0.1:15001"));
  ns.must(Words{program_under_test(), "apply", "--backend", "nftables"} + options);
  EXPECT_EQ(out(0, effect + options), same);
  EXPECT_EQ(out(0, effect + Words{"--backend", "iptables-legacy"} + options), same);
  EXPECT_THAT(
      out(6, effect + Words{"-b", "81", "-i", "*", "--ip-families", "ipv4"}),
      HasSubstr(
          "inbound tcp, IPv4: to port 81; by eth0\n  before   reaches the pod untouched\n  after    10.244.0.2:15006"));
  EXPECT_THAT(out(6, effect + Words{"--clean"}),
              HasSubstr("\n  before   127.0.0.1:15001 (Envoy outbound)\n  after    leaves untouched, by eth0\n"));
}

TEST_F(Results, OfDiffEffectOfFiles) {
  const Words render{"render", "--format", "json"};
  const Words few{"-b", "80", "--ip-families", "ipv4"};  // less to compare
  const Words tproxy{"-m", "TPROXY", "-t", "5", "-r", "77"};
  std::string text = out(0, render + few + tproxy);
  const TemporaryFile file(text);
  ns.must(Words{program_under_test(), "apply", "--backend", "iptables-legacy"} + few + tproxy);
  const TemporaryFile live_file(out(0, {"show", "--json"}));
  const auto compared = [&](int exit_code, const std::string& one, const std::string& other) {
    return run(exit_code, {"diff", "--effect", one, other});
  };
  EXPECT_EQ(compared(0, live_file.path(), file.path()).out, same);
  EXPECT_EQ(
      ns.program({"sh", "-c", "exec \"$0\" diff --effect - \"$1\" <\"$1\"", program_under_test(), live_file.path()})
          .out,
      same);
  // The table counts that is looked up.
  const std::string lookup = "\"lookup\": 77";
  ASSERT_NE(text.find(lookup), std::string::npos) << text;
  text.replace(text.find(lookup), lookup.size(), "\"lookup\": 78");
  EXPECT_THAT(compared(6, TemporaryFile(text).path(), file.path()).out, HasSubstr("before"));
  EXPECT_THAT(compared(2, file.path(), "/no/such/file").err,
              HasSubstr("/no/such/file: No such file or directory (ENOENT)"));
  for (const auto& [content, problem] :
       {std::pair{"[]", "document: []: expected an object"}, std::pair{"{}", "routing: missing: expected an object"},
        std::pair{"kind", "parse error at line 1"}}) {
    const TemporaryFile wrong(content);
    EXPECT_THAT(compared(2, wrong.path(), file.path()).err,
                AllOf(HasSubstr(wrong.path()), HasSubstr(problem), Not(HasSubstr("json.exception")),
                      HasSubstr("expected what `sidetrack render --format json` or `sidetrack show --json` writes")));
  }
}

TEST_F(Results, OfArgs) {
  const TemporaryFile pod(R"(kind: Pod
metadata: {name: web, annotations: {traffic.sidecar.istio.io/excludeOutboundPorts: "5432"}}
spec: {containers: [{name: app, image: app}]}
---
kind: Pod
metadata: {name: left, annotations: {sidecar.istio.io/inject: "false"}}
spec: {containers: [{name: app, image: app}]}
)");
  const Output plain = run(0, {"args", "-f", pod.path()});
  EXPECT_EQ(plain.out,
            "-p 15001 -z 15006 -u 1337 -m REDIRECT -i '*' -x '' -b '*' -d 15090,15021,15020 -o 5432 "
            "--log_output_level=default:info\n");
  EXPECT_THAT(plain.err, HasSubstr("Pod left: not injected: "));
  EXPECT_THAT(
      out(0, {"args", "-f", pod.path(), "--why"}),
      AllOf(StartsWith("Pod web\n  -p                  15001 "),
            HasSubstr(" traffic.sidecar.istio.io/excludeOutboundPorts\n"), HasSubstr("\n\nPod left: not injected: ")));
  const Json json = Json::parse(out(0, {"args", "-f", pod.path(), "--json"}));
  EXPECT_EQ(json["pods"][0]["args"].back(), "--log_output_level=default:info");
  EXPECT_EQ(json["pods"][1]["inject"], false);
}

TEST_F(Results, OfRender) {
  const std::map<std::string, std::string> begins{
      {"nft", "# One transaction: "}, {"svg", "<svg xmlns="}, {"json", "{\n  \"configuration\": {"}};
  const Words render{"render", "-b", "80", "--ip-families"};
  for (const auto& [format, begin] : begins)
    EXPECT_THAT(out(0, render + Words{"ipv4", "--format", format}), StartsWith(begin)) << format;
  const std::string ipv4 = out(0, render + Words{"ipv4"});
  EXPECT_THAT(ipv4, StartsWith("*nat\n"));
  EXPECT_EQ(out(0, render + Words{"ipv4", "--format", "text"}), ipv4);
  const std::string both = out(0, render + Words{"ipv4,ipv6"});
  EXPECT_THAT(both, StartsWith(ipv4));
  EXPECT_THAT(both.substr(ipv4.size()), HasSubstr("*nat\n"));
  // What apply prints that changes nothing is the same.
  EXPECT_EQ(out(0, {"apply", "-b", "80", "--ip-families", "ipv4", "--dry-run"}), ipv4);
}

TEST_F(Results, OfHelpAndVersion) {
  EXPECT_THAT(out(0, {"--version"}), ContainsRegex("^sidetrack [0-9]+\\.[0-9]+\\.[0-9]+\n$"));
  const std::string help = out(0, {});
  EXPECT_THAT(help, StartsWith("Sidetrack steers a pod's traffic onto its sidecar"));
  EXPECT_EQ(out(0, {"--help"}), help);
  EXPECT_THAT(out(0, {"render", "--help"}), StartsWith("Usage: sidetrack render [options]: "));
  EXPECT_EQ(out(0, {"render", "-b", "80", "-h"}), out(0, {"render", "--help"}));
}

TEST_F(Results, OfMap) {
  for (const Words& plan : {Words{}, Words{"--plan"} + options}) {
    EXPECT_THAT(out(0, Words{"map"} + plan), HasSubstr("leaves untouched, by eth0"));
    EXPECT_FALSE(Json::parse(out(0, Words{"map", "--json"} + plan))["regions"].empty());
    EXPECT_THAT(out(0, Words{"map", "--format", "svg"} + plan), StartsWith("<svg "));
  }
  EXPECT_THAT(out(0, Words{"map", "--plan"} + options), HasSubstr("127.0.0.1:15001"));
  EXPECT_THAT(out(0, {"map"}), Not(HasSubstr("15001")));
  const std::string all = out(0, Words{"map", "--plan"} + options);
  for (const char* way : {"out", "in"}) {
    const std::string one = out(0, Words{"map", "--plan", "--way", way} + options);
    EXPECT_LT(one.size(), all.size()) << way;
    EXPECT_EQ(one.find("15001") != std::string::npos, way == std::string("out")) << one;
    EXPECT_EQ(one.find("15006") != std::string::npos, way == std::string("in")) << one;
  }
  EXPECT_THAT(out(0, Words{"map", "--color", "always"}), HasSubstr("\x1b["));
  for (const char* color : {"never", "auto"})
    EXPECT_THAT(out(0, Words{"map", "--color", color}), Not(HasSubstr("\x1b[")));
}

TEST_F(Results, OfLint) {
  const Output nothing = run(0, {"lint"});
  EXPECT_EQ(nothing.out, "no findings\n");
  EXPECT_THAT(nothing.err, HasSubstr("no rules of a sidecar are in this namespace: nothing is captured"));
  EXPECT_THAT(out(6, Words{"lint", "--plan", "-d", "90"} + options),
              AllOf(HasSubstr("ST001 option without effect: -d 90\n"), HasSubstr("\n  remedy   leave it out\n")));
  const TemporaryFile pod("kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: app, image: app}]}\n");
  EXPECT_EQ(out(0, {"lint", "--pod", pod.path()}), "no findings\n");
  ns.must(Words{program_under_test(), "apply"} + options);
  EXPECT_THAT(run(0, {"lint"}).err, IsEmpty());
}

TEST_F(Results, OfLintSayWhatIsNotCaptured) {
  const TemporaryFile empty("");
  const auto lint = [&](const Words& more) {
    return ns.program(Words{"unshare", "--mount", "sh", "-c", "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"",
                            empty.path(), program_under_test(), "lint", "--plan", "--redirect-dns"} +
                      options + more);
  };
  EXPECT_THAT(lint({}).err, HasSubstr("warning: no name server in /etc/resolv.conf: DNS is not captured"));
  EXPECT_THAT(lint({"--capture-all-dns"}).err, Not(HasSubstr("no name server")));
}

TEST_F(Results, OfCompletion) {
  for (const auto& [shell, begin] :
       {std::pair{"bash", "# "}, std::pair{"zsh", "#compdef sidetrack istio-iptables\n"}, std::pair{"fish", "# "}})
    EXPECT_THAT(out(0, {"completion", shell}), StartsWith(begin));
}

}  // namespace
}  // namespace sidetrack::netns
