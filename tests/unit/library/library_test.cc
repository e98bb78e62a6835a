// SPDX-License-Identifier: GPL-2.0-or-later
// The public interface, as far as it needs no kernel: it says what the program says.
#include <gmock/gmock.h>
#include <sidetrack/error.h>
#include <sidetrack/options.h>
#include <sidetrack/rules.h>

#include <thread>

#include "unit/options_text.h"

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
  EXPECT_THAT(rules.mermaid(), HasSubstr("flowchart"));
  EXPECT_THAT(rules.dot(), StartsWith("digraph"));
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
