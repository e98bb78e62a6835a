// SPDX-License-Identifier: GPL-2.0-or-later
// The public interface, as far as it needs no kernel: it says what the program says.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sidetrack/error.h>
#include <sidetrack/options.h>
#include <sidetrack/rules.h>

#include <fstream>
#include <thread>

#include "library/planning.h"
#include "library/values.h"
#include "model/printable.h"
#include "system/descriptor.h"
#include "system/namespaces.h"
#include "unit/options_text.h"
#include "unit/temporary_folder.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using Words = std::vector<std::string>;

const Words usual{"-u", "1337", "-i", "*", "-b", "*", "-d", "15090,15021", "--ip-families", "ipv4"};

template <typename Act>
Error error_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  return {ExitCode::done, "no error"};
}

TEST(LibraryOptions, AreRefusedInTheWordsOfTheProgram) {
  for (const Words& wrong : {Words{"-p", "70000"}, Words{"--inbound-port", "1"}, Words{"15001"}, Words{"-x", "*"}}) {
    const Error library = error_of([&] { (void)Options::parse(wrong); });
    const Error program = error_of([&] {
      std::vector<std::string_view> words{"sidetrack", "apply"};
      words.insert(words.end(), wrong.begin(), wrong.end());
      (void)testing::parse_arguments(words);
    });
    EXPECT_EQ(library.code(), ExitCode::usage);
    EXPECT_STREQ(library.what(), program.what());
    EXPECT_EQ(library.hint(), program.hint());
  }
}

TEST(LibraryOptions, RefuseWhatTheInterfaceHasFunctionsFor) {
  for (const Words& wrong : {Words{"--pid", "1"}, Words{"--netns", "blue"}, Words{"--network-namespace", "blue"},
                             Words{"--host"}, Words{"--json"}, Words{"--family", "ipv4", "--dry-run"}, Words{"--check"},
                             Words{"--cleanup-only"}, Words{"--run-validation"}, Words{"--help"},
                             Words{"--format", "text"}, Words{"--color", "auto"}, Words{"--version"}}) {
    const Error error = error_of([&] { (void)Options::parse(wrong); });
    EXPECT_EQ(error.code(), ExitCode::usage) << wrong.front();
    EXPECT_EQ(error.what(),
              (wrong.front() == "--family" ? "--dry-run" : wrong.front()) + ": not an option of the library");
    EXPECT_FALSE(error.hint().empty()) << wrong.front();
  }
  EXPECT_NO_THROW((void)Options::parse({"--dry-run=false", "--log_output_level", "debug"}));
}

// Those that have a variable are refused by it, too.
TEST(LibraryOptions, AreRefusedWhereverTheyAreGiven) {
  const std::vector<std::pair<std::string, Words>> given = {
      {"sidetrack::Pod names the place", {"--netns=x", "--network-namespace=x", "--pid=7"}},
      {"sidetrack::Pod::own() is the caller's own", {"--host"}},
      {"the functions of the result give each form", {"--format=json", "--json", "--family=ipv4", "--color=never"}},
      {"sidetrack::Rules makes the rules and touches nothing", {"--dry-run", "--skip-rule-apply"}},
      {"only the program does that", {"--check", "--when-ready=15001", "--confirm=60s", "--run-validation"}},
      {"Pod::clean does that", {"--cleanup-only"}},
  };
  for (const auto& [hint, options] : given) {
    for (const std::string& option : options) {
      const Error error = error_of([&] { (void)Options::parse({option}); });
      EXPECT_EQ(error.what(), option.substr(0, option.find('=')) + ": not an option of the library");
      EXPECT_EQ(error.hint(), hint) << option;
    }
  }
  for (const auto& [variable, option] :
       {std::pair{"DRY_RUN", "--dry-run"}, std::pair{"SKIP_RULE_APPLY", "--skip-rule-apply"},
        std::pair{"CLEANUP_ONLY", "--cleanup-only"}, std::pair{"RUN_VALIDATION", "--run-validation"},
        std::pair{"NETWORK_NAMESPACE", "--network-namespace"}}) {
    const auto asked = [&](const char* value) {
      const Environment environment = [&](std::string_view name) {
        return name == variable ? std::optional<std::string_view>(value) : std::nullopt;
      };
      return error_of([&] { (void)Options::parse(usual, environment); });
    };
    EXPECT_EQ(asked("true").what(), option + std::string(": not an option of the library")) << variable;
    if (option != std::string("--network-namespace")) {
      EXPECT_STREQ(asked("false").what(), "no error") << variable;
    }
  }
}

TEST(LibraryOptions, BeginAfterTheCommand) {
  const Error error = error_of([] { (void)Options::parse({"apply", "-b", "80"}); });
  EXPECT_STREQ(error.what(), "'apply': not expected here");
  EXPECT_EQ(error.hint(), "give only the arguments after the command");
}

TEST(LibraryOptions, AskTheEnvironmentOnlyIfItIsGiven) {
  const Environment environment = [](std::string_view name) {
    return name == "ENVOY_PORT" ? std::optional<std::string_view>("15999") : std::nullopt;
  };
  EXPECT_THAT(Rules(Options::parse(usual, environment)).iptables_restore(), HasSubstr("--to-ports 15999"));
  EXPECT_THAT(Rules(Options::parse(usual)).iptables_restore(), HasSubstr("--to-ports 15001"));
  const Environment dry_run = [](std::string_view name) {
    return name == "DRY_RUN" ? std::optional<std::string_view>("true") : std::nullopt;
  };
  EXPECT_THAT(error_of([&] { (void)Options::parse(usual, dry_run); }).what(), StartsWith("--dry-run"));
}

TEST(LibraryRules, AreGivenInEachForm) {
  const Rules rules(Options::parse(usual));
  EXPECT_THAT(rules.iptables_restore(), HasSubstr("-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001\n"));
  EXPECT_THAT(rules.ip6tables_restore(), IsEmpty());
  EXPECT_THAT(rules.nft(), HasSubstr("table inet sidetrack"));
  EXPECT_THAT(rules.json(), StartsWith("{"));
  EXPECT_THAT(rules.svg(), StartsWith("<svg"));
  EXPECT_THAT(rules.warnings(), IsEmpty());
  EXPECT_THAT(Rules(Options::parse({"-b", "*", "--ip-families", "ipv4,ipv6"})).ip6tables_restore(),
              HasSubstr("-A ISTIO_IN_REDIRECT"));
}

TEST(LibraryRules, ExplainAPacket) {
  const Rules rules(Options::parse(usual));
  const Explanation captured = rules.explain({"out", "tcp", "10.96.0.10:443", "--uid", "1000"});
  EXPECT_EQ(captured.result, Explanation::Result::lands);
  EXPECT_EQ(captured.address, "127.0.0.1");
  EXPECT_EQ(captured.port, 15001);
  EXPECT_EQ(captured.sentence, "lands on 127.0.0.1:15001 (Envoy outbound); original destination 10.96.0.10:443");
  EXPECT_THAT(captured.text, HasSubstr("ISTIO_REDIRECT"));
  EXPECT_THAT(captured.json, StartsWith("{"));

  const Explanation left_out = rules.explain({"out", "tcp", "10.96.0.10:443", "--uid", "1337"});
  EXPECT_EQ(left_out.result, Explanation::Result::leaves);
  EXPECT_EQ(left_out.address, "10.96.0.10");
  EXPECT_EQ(left_out.port, 443);

  for (const Words& wrong : {Words{}, Words{"out", "tcp", "10.0.0.1:0x"}, Words{"out", "tcp", "10.0.0.1:1", "--brief"},
                             Words{"out", "tcp", "10.0.0.1:1", "--plan"}}) {
    EXPECT_EQ(error_of([&] { (void)rules.explain(wrong); }).code(), ExitCode::usage);
  }
}

// ---- What becomes of a packet, as the library says it

TEST(LibraryExplanation, HasAnAddressWhereThePacketArrives) {
  Trace trace;
  trace.outcome.at = {*Address::parse("10.0.0.7"), 80};
  trace.outcome.why = "-A\x1b";
  trace.doubts = {"a doubt\x1b"};
  const auto text = [&](Outcome::Kind kind) {
    trace.outcome.kind = kind;
    const Explanation made = explanation(trace);
    EXPECT_EQ(made.sentence, printable(sentence(trace.outcome)));
    EXPECT_THAT(made.doubts, ::testing::ElementsAre("a doubt\\x1b"));
    EXPECT_THAT(made.text, ::testing::Not(HasSubstr("\x1b")));
    EXPECT_THAT(made.json, StartsWith("{"));
    constexpr const char* names[] = {"lands", "leaves", "forwarded", "dropped", "unroutable", "unknown"};
    return fmt::format("{} {}:{}", names[static_cast<std::size_t>(made.result)], made.address, made.port);
  };
  EXPECT_EQ(text(Outcome::Kind::lands), "lands 10.0.0.7:80");
  EXPECT_EQ(text(Outcome::Kind::leaves), "leaves 10.0.0.7:80");
  EXPECT_EQ(text(Outcome::Kind::forwarded), "forwarded 10.0.0.7:80");
  EXPECT_EQ(text(Outcome::Kind::dropped), "dropped :0");
  EXPECT_EQ(text(Outcome::Kind::unroutable), "unroutable :0");
  EXPECT_EQ(text(Outcome::Kind::unknown), "unknown :0");
  // By TPROXY the socket has another port than the packet.
  trace.outcome.transparent = true;
  trace.outcome.transparent_port = 15006;
  EXPECT_EQ(text(Outcome::Kind::lands), "lands 10.0.0.7:15006");
}

// ---- The files of a pod are below its root.

TEST(PlanningFor, APodReadsItsOwnFiles) {
  const testing::TemporaryFolder root;
  std::filesystem::create_directory(root.path() / "etc");
  std::ofstream(root.path() / "etc/passwd") << "istio-proxy:x:4711:4711::/:/x\n";
  Place place;
  place.root = std::make_shared<const Descriptor>(open(root.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  place.root_name = "/proc/7/root";
  const auto facts = [&](Config& config, const Place* of) {
    config.redirect_dns = true;
    return facts_for(config, {}, of, true);
  };
  Config config;
  EXPECT_EQ(std::string(error_of([&] { (void)facts(config, &place); }).what()),
            "cannot read the name servers of /proc/7/root/etc/resolv.conf: No such file or directory (ENOENT)");
  EXPECT_EQ(config.proxy_uids, std::vector<std::uint32_t>{4711});
  std::ofstream(root.path() / "etc/resolv.conf") << "nameserver 10.0.0.53\n";
  EXPECT_EQ(facts(config, &place).dns_servers, std::vector<Address>{*Address::parse("10.0.0.53")});
  EXPECT_EQ(plan_for(config, {}, &place, true).dns_servers, std::vector<Address>{*Address::parse("10.0.0.53")});
}

// ThreadSanitizer is not run on it: that one value gives the same everywhere is what can be seen.
TEST(LibraryRules, APacketHasNoOptionsOfTheRules) {
  const Rules rules(Options::parse(usual));
  const auto refused = [&](const Words& more) {
    Words packet{"out", "tcp", "10.96.0.10:443"};
    packet.insert(packet.end(), more.begin(), more.end());
    return error_of([&] { (void)rules.explain(packet); });
  };
  EXPECT_STREQ(refused({"-i", "10.0.0.0/8"}).what(), "-i, --istio-service-cidr: not an option of a packet");
  EXPECT_STREQ(refused({"--backend", "nftables"}).what(), "--backend: not an option of a packet");
  EXPECT_EQ(refused({"--backend", "nftables"}).hint(), "give it to sidetrack::Options::parse");
  EXPECT_STREQ(refused({"--plan"}).what(), "--plan: not an option of the library");
  EXPECT_EQ(refused({"--uid", "1000", "--mark", "1"}).code(), ExitCode::done);
}

TEST(LibraryRules, MayBeUsedByManyThreads) {
  const Rules rules(Options::parse(usual));
  const std::string expected = rules.explain({"in", "tcp", ":8080"}).text;
  std::vector<std::string> said(4);
  std::vector<std::thread> threads;
  for (std::string& text : said) {
    threads.emplace_back([&rules, &text] {
      for (int i = 0; i < 50; ++i) text = rules.explain({"in", "tcp", ":8080"}).text;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(said, ::testing::Each(expected));
}

}  // namespace
}  // namespace sidetrack
