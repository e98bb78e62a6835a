// SPDX-License-Identifier: GPL-2.0-or-later
// Rules as the programs of other meshes write them: `clean --mesh` removes them as a whole, and nothing else.
// tests/meshes has them in the form of iptables-save, a file for each mesh.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "options/flags.h"
#include "options/options.h"
#include "support/kernel_test.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* with_address =
    "link set lo up\nlink add eth0 type veth peer name eth1\naddress add 10.1.2.3/24 dev eth0\nlink set eth0 up\n";
constexpr const char* families[] = {"iptables", "ip6tables"};

struct MeshFile {
  std::string file;
  std::string option{};                     // "kuma" of "kuma-older"
  std::map<std::string, std::string> text;  // by family

  [[nodiscard]] std::string text_of(const char* family) const {
    const auto found = text.find(family);
    return found != text.end() ? found->second + "COMMIT\n" : "";
  }
};

std::vector<MeshFile> mesh_files() {
  std::vector<MeshFile> all;
  for (const auto& entry : std::filesystem::directory_iterator(SIDETRACK_SOURCE_DIR "/tests/meshes")) {
    MeshFile& made = all.emplace_back();
    made.file = entry.path().filename();
    for (const std::string_view option : each_choice(mesh_names))
      if (made.file.starts_with(option)) made.option = option;
    std::string* text = nullptr;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("# ")) {
        text = &made.text[line.substr(2)];
      } else {
        if (line.starts_with('*') && !text->empty()) *text += "COMMIT\n";
        *text += line + "\n";
      }
    }
  }
  return all;
}

// Of chains and rules that are nearly a mesh's.
constexpr std::string_view of_another =
    "*raw\n-A PREROUTING -p udp --sport 53 -j CT --zone 7\n-A OUTPUT -p udp --dport 5353 -j CT --zone "
    "2\n-A OUTPUT -p tcp --dport 53 -j CT --zone 2\n"
    "-A OUTPUT -p udp --dport 53 -m owner --uid-owner 7 -j CT --zone 1\n"
    "-A OUTPUT -p udp --sport 15053 -m owner --uid-owner 7 -j CT --zone 2\nCOMMIT\n"
    "*mangle\n:MARKS - [0:0]\n-A PREROUTING -m conntrack --ctstate INVALID -j DROP\n-A PREROUTING -j MARKS\n"
    "-A MARKS -p udp -j MARK --set-mark 7\nCOMMIT\n"
    "*nat\n:PROXY - [0:0]\n:MESHES - [0:0]\n-A PREROUTING -p tcp --dport 7 -j PROXY\n"
    "-A OUTPUT -m owner --uid-owner 7778 -j RETURN\n"
    "-A OUTPUT -p udp --dport 53 -m owner --uid-owner 7 -j ACCEPT\n-A OUTPUT -p udp --dport 53 -j REDIRECT --to-ports "
    "5300\n-A OUTPUT -p udp --dport 53 -m owner --uid-owner 7 -j RETURN\n"
    "-A OUTPUT -p udp --dport 53 -m owner --uid-owner 7 -j PROXY\n-A PREROUTING -i docker1 -p udp --dport 53 "
    "-j REDIRECT --to-ports 5300\n"
    "-A OUTPUT -m comment --comment \"not proxy-init/\" -j PROXY\n-A PROXY -p tcp -j REDIRECT --to-ports "
    "15001\nCOMMIT\n"
    "*filter\n-A INPUT -p tcp --dport 9 -j REJECT\n-A FORWARD -j DROP\nCOMMIT\n";

class CleanMesh : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  static void load(const Namespace& pod, const char* family, const std::string& text) {
    if (!text.empty()) pod.must({fmt::format("{}-{}-restore", family, GetParam()), "--noflush"}, text);
  }
  static void load(const Namespace& pod, const MeshFile& mesh) {
    for (const char* family : families) load(pod, family, mesh.text_of(family));
  }
  static void load_another(const Namespace& pod) {
    for (const char* family : families) load(pod, family, std::string(of_another));
  }
  static std::string saved(const Namespace& pod) {
    std::string all;
    for (const char* family : families)
      all += pod.must({"bash", "-c", fmt::format("{}-{}-save | sed '/^#/d'", family, GetParam())});
    return all;
  }
  static Output sidetrack(const Namespace& pod, const Words& words) {
    return pod.program(Words{program_under_test()} + words);
  }
  static const MeshFile& file_named(std::string_view name) {
    static const std::vector<MeshFile> all = mesh_files();
    return *std::ranges::find(all, name, &MeshFile::file);
  }
};
INSTANTIATE_TEST_SUITE_P(, CleanMesh, ::testing::Values("nft", "legacy"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_P(CleanMesh, RemovesItAndNothingElse) {
  std::size_t count = 0;
  for (const MeshFile& mesh : mesh_files()) {
    SCOPED_TRACE(mesh.file);
    ++count;
    const Namespace pod;
    load_another(pod);
    const std::string expected = saved(pod);
    load(pod, mesh);
    const std::string both = saved(pod);
    ASSERT_NE(both, expected);

    EXPECT_THAT(sidetrack(pod, {"clean"}).err, HasSubstr("nothing to remove"));
    const std::string other = mesh.option == "osm" ? "consul" : "osm";
    const Output no_other = sidetrack(pod, {"clean", "--mesh", other});
    EXPECT_EQ(no_other.exit_code, 0);
    EXPECT_THAT(no_other.err, HasSubstr("nothing to remove: no rules of"));
    const Output shown = sidetrack(pod, {"diff", "--clean", "--mesh", mesh.option});
    EXPECT_EQ(shown.exit_code, 6) << shown.err;
    for (const char* kept : {"\n--A MARKS", "\n--A PREROUTING -j MARKS", "\n--A PROXY ", "\n--A INPUT"})
      EXPECT_THAT(shown.out, Not(HasSubstr(kept)));
    EXPECT_EQ(saved(pod), both);

    const Output cleaned = sidetrack(pod, {"clean", "--mesh", mesh.option});
    EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
    EXPECT_THAT(cleaned.err, AllOf(HasSubstr("removed all rules of "), HasSubstr(GetParam())));
    EXPECT_EQ(saved(pod), expected);
    const Output again = sidetrack(pod, {"clean", "--mesh", mesh.option});
    EXPECT_EQ(again.exit_code, 0);
    EXPECT_THAT(again.err, HasSubstr("nothing to remove: no rules of "));
    EXPECT_EQ(sidetrack(pod, {"diff", "--clean", "--mesh", mesh.option}).exit_code, 0);
  }
  EXPECT_EQ(count, 15U);  // each word of --mesh, and several releases of Kuma and Telepresence
}

// Two meshes at once, and Istio's sidecar beside them.
TEST_P(CleanMesh, LeavesOtherMeshes) {
  const Namespace pod;
  ip(pod, with_address);
  load(pod, "ip6tables", "*nat\nCOMMIT\n");  // a table of legacy iptables stays once it is there
  load(pod, file_named("osm"));
  pod.must({program_under_test(), "apply", "-i", "*", "-b", "*", "-m", "TPROXY", "--backend",
            fmt::format("iptables-{}", GetParam())});
  const std::string expected = saved(pod);
  const std::string routing = pod.must({"ip", "rule"});
  load(pod, file_named("linkerd"));
  const Output cleaned = sidetrack(pod, {"clean", "--mesh", "linkerd"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  EXPECT_EQ(saved(pod), expected);
  EXPECT_EQ(pod.must({"ip", "rule"}), routing);
  EXPECT_THAT(routing, HasSubstr("lookup 133"));
}

// Istio's rules for DNS, of before 1.25, have the same shape as those of Kuma before it gave them comments.
TEST_P(CleanMesh, LeavesWhatMayBeIstios) {
  const Namespace pod;
  load(pod, "iptables",
       "*nat\n:ISTIO_OUTPUT - [0:0]\n-A OUTPUT -p tcp -j ISTIO_OUTPUT\n"
       "-A OUTPUT -p udp -m udp --dport 53 -j REDIRECT --to-ports 15053\n-A ISTIO_OUTPUT -d 127.0.0.1/32 -j "
       "RETURN\nCOMMIT\n");
  load(pod, file_named("kuma-older"));
  const Output cleaned = sidetrack(pod, {"clean", "--mesh", "kuma"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  EXPECT_THAT(cleaned.err, HasSubstr("this rule stays, as it may be another program's"));
  EXPECT_THAT(saved(pod),
              AllOf(HasSubstr("-j REDIRECT --to-ports 15053"), HasSubstr("ISTIO_OUTPUT"), Not(HasSubstr("MESH_"))));
}

// Kuma that captures no DNS has no rules about it: those that are there are another program's.
TEST_P(CleanMesh, LeavesDnsThatTheMeshDoesNotCapture) {
  const Namespace pod;
  constexpr const char* dns =
      "*raw\n-A OUTPUT -p udp -m udp --dport 53 -m owner --uid-owner 5000 -j CT --zone 1\nCOMMIT\n"
      "*nat\n-A OUTPUT -p udp -m udp --dport 53 -m owner --uid-owner 5000 -j RETURN\n"
      "-A OUTPUT -p udp -m udp --dport 53 -j REDIRECT --to-ports 5353\nCOMMIT\n";
  load(pod, "iptables", dns);
  const std::string expected = saved(pod);
  load(pod, "iptables",
       "*nat\n:KUMA_MESH_INBOUND - [0:0]\n:KUMA_MESH_OUTBOUND - [0:0]\n-A PREROUTING -p tcp -j KUMA_MESH_INBOUND\n-A "
       "OUTPUT -p tcp -j KUMA_MESH_OUTBOUND\n-A KUMA_MESH_OUTBOUND -p tcp -j REDIRECT --to-ports 15001\nCOMMIT\n");
  const Output cleaned = sidetrack(pod, {"clean", "--mesh", "kuma"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  EXPECT_THAT(cleaned.err, HasSubstr("-A OUTPUT -p udp --dport 53 -m owner --uid-owner 5000 -j RETURN"));
  EXPECT_EQ(saved(pod), expected);
}

// Kuma before 2.9 has these options, and no comments.
TEST_P(CleanMesh, NamesRulesOfOptionsOfKuma) {
  const Namespace pod;
  constexpr const char* rules[] = {
      "-A PREROUTING -m conntrack --ctstate INVALID -j DROP",
      "-A PREROUTING -i docker2 -p udp --dport 53 -j REDIRECT --to-ports 15053",
      "-A PREROUTING ! -d 172.17.0.0/16 -i docker2 -p tcp -j REDIRECT --to-ports 15009",
      "-A OUTPUT -p tcp -m multiport --dports 80,443 -m owner --uid-owner 4 -j RETURN",
  };
  load(pod, "iptables",
       fmt::format("*mangle\n{}\nCOMMIT\n*nat\n:PROXY - [0:0]\n{}\n{}\n{}\nCOMMIT\n", rules[0], rules[1], rules[2],
                   rules[3]));
  const std::string expected = saved(pod);
  load(pod, file_named("kuma-with-networks"));
  const Output cleaned = sidetrack(pod, {"clean", "--mesh", "kuma"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  for (const char* rule : rules) EXPECT_THAT(cleaned.err, HasSubstr(rule));
  EXPECT_EQ(saved(pod), expected);
}

TEST_P(CleanMesh, SaysWhatMayBeItsOwnAndStays) {
  const Namespace pod;
  load(pod, file_named("telepresence"));
  load(pod, "iptables",
       "*nat\n:APISIX_CUSTOM - [0:0]\n-A OUTPUT -m owner --uid-owner 7778 -j RETURN\n-A APISIX_CUSTOM -j "
       "ACCEPT\nCOMMIT\n");
  const Output cleaned = sidetrack(pod, {"clean", "--mesh", "telepresence"});
  EXPECT_THAT(cleaned.err,
              AllOf(HasSubstr("-A OUTPUT -m owner --uid-owner 7778 -j RETURN"), Not(HasSubstr("uid-owner 7777"))));
  load(pod, file_named("apisix"));
  EXPECT_THAT(sidetrack(pod, {"clean", "--mesh", "apisix"}).err, HasSubstr("the chain APISIX_CUSTOM stays"));
  EXPECT_THAT(saved(pod), AllOf(HasSubstr("uid-owner 7778"), Not(HasSubstr("7777")), HasSubstr("APISIX_CUSTOM"),
                                Not(HasSubstr("TEL_"))));
}

TEST_P(CleanMesh, RefusesWhereAnotherProgramLeadsToIt) {
  const Namespace pod;
  load(pod, file_named("linkerd"));
  load(pod, "iptables",
       "*nat\n:ANOTHER - [0:0]\n-A ANOTHER -p tcp -j PROXY_INIT_REDIRECT\n-A PREROUTING -p tcp --dport 7 -j "
       "ANOTHER\nCOMMIT\n");
  const std::string before = saved(pod);
  const Output refused = sidetrack(pod, {"clean", "--mesh", "linkerd"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("-A ANOTHER -p tcp -j PROXY_INIT_REDIRECT"), HasSubstr("nothing was changed")));
  EXPECT_EQ(saved(pod), before);
}

// What leads one address there, and not an agent's uid, is another program's.
TEST_P(CleanMesh, RefusesAnotherJumpForAnAddress) {
  for (const char* rule : {"-d 10.1.2.3 -p tcp", "-d 10.1.2.3 -p tcp -m owner --uid-owner 7",
                           "-d 10.1.2.3 -p tcp --dport 80 -m owner --uid-owner 1000"}) {
    const Namespace pod;
    load(pod, file_named("telepresence-newest"));
    load(pod, "iptables", fmt::format("*nat\n-A OUTPUT {} -j TEL_OUTPUT_TCP\nCOMMIT\n", rule));
    const std::string before = saved(pod);
    const Output refused = sidetrack(pod, {"clean", "--mesh", "telepresence"});
    EXPECT_EQ(refused.exit_code, 1) << rule;
    EXPECT_THAT(refused.err, HasSubstr("nothing was changed"));
    EXPECT_EQ(saved(pod), before);
  }
}

TEST_P(CleanMesh, LeavesIstioBesideTelepresence) {
  const Namespace pod;
  ip(pod, with_address);
  load(pod, "ip6tables", "*nat\nCOMMIT\n");
  pod.must({program_under_test(), "apply", "-i", "*", "-b", "*", "--backend", fmt::format("iptables-{}", GetParam())});
  const std::string expected = saved(pod);
  load(pod, file_named("telepresence-newest"));
  const Output shown = sidetrack(pod, {"show"});
  EXPECT_THAT(shown.out, HasSubstr("[Telepresence]")) << shown.out;
  const Output cleaned = sidetrack(pod, {"clean", "--mesh", "telepresence"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  EXPECT_EQ(saved(pod), expected);
}

TEST_P(CleanMesh, RemovesThePolicyRuleOfAppMesh) {
  const Namespace pod;
  ip(pod,
     "link set lo up\nrule add fwmark 7 lookup 101\nroute add local default dev lo table 101\nrule add fwmark "
     "0x1e7700ce lookup 100\nroute add local default dev lo table 100\n");
  load(pod, file_named("app-mesh"));
  const Output cleaned = sidetrack(pod, {"clean", "--mesh", "app-mesh"});
  EXPECT_EQ(cleaned.exit_code, 0);
  EXPECT_THAT(pod.must({"ip", "rule"}), AllOf(Not(HasSubstr("0x1e7700ce")), HasSubstr("fwmark 0x7")));
  EXPECT_EQ(pod.program({"ip", "route", "show", "table", "100"}).out, "");
  EXPECT_NE(pod.must({"ip", "route", "show", "table", "101"}), "");
}

// Newer Consul has its chains in a table of nftables of its own.
TEST_F(KernelTest, CleanOfConsulRemovesItsTable) {
  const Namespace pod;
  ip(pod, with_address);
  constexpr const char* another =
      "table inet mine {\n chain CONSUL_OTHER { type nat hook output priority -100; tcp dport 7 redirect to :7000; "
      "}\n}\n";
  pod.must({"nft", "-f", "-"}, another);
  const std::string expected = pod.must({"nft", "list", "ruleset"});
  pod.must(
      {"nft", "-f", "-"},
      "table inet consul_tproxy {\n"
      " chain CONSUL_PROXY_REDIRECT { meta l4proto tcp redirect to :15001; }\n"
      " chain CONSUL_PROXY_OUTPUT { meta skuid 5995 return; ip daddr 127.0.0.1 return; jump CONSUL_PROXY_REDIRECT; }\n"
      " chain CONSUL_NAT_OUTPUT { type nat hook output priority -100; meta nfproto ipv6 return; meta l4proto tcp "
      "jump CONSUL_PROXY_OUTPUT; }\n"
      " chain CONSUL_PROXY_IN_REDIRECT { meta l4proto tcp redirect to :20000; }\n"
      " chain CONSUL_PROXY_INBOUND { meta l4proto tcp jump CONSUL_PROXY_IN_REDIRECT; }\n"
      " chain CONSUL_NAT_PREROUTING { type nat hook prerouting priority -100; meta l4proto tcp jump "
      "CONSUL_PROXY_INBOUND; }\n}\n");
  pod.must({program_under_test(), "apply", "-i", "*", "--backend", "nftables"});
  const auto run = [&](const Words& words) { return pod.program(Words{program_under_test()} + words); };
  EXPECT_EQ(run({"diff", "--clean", "--mesh", "consul"}).exit_code, 6);
  const Output cleaned = run({"clean", "--mesh", "consul"});
  EXPECT_EQ(cleaned.exit_code, 0) << cleaned.err;
  const std::string left = pod.must({"nft", "list", "ruleset"});
  EXPECT_THAT(left,
              AllOf(HasSubstr("table inet sidetrack"), Not(HasSubstr("consul_tproxy")), HasSubstr("CONSUL_OTHER")));
  EXPECT_EQ(run({"clean"}).exit_code, 0);
  EXPECT_EQ(pod.must({"nft", "list", "ruleset"}), expected);
}

}  // namespace
}  // namespace sidetrack::netns
