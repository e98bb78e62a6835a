// SPDX-License-Identifier: GPL-2.0-or-later
// Standard streams and log targets that are closed, full or gone; memory that runs out.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/namespace.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"
#include "unit/temporary_file.h"
#include "unit/temporary_folder.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Streams : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) ip(ns, "link set lo up\n");
  }

  // The program with these arguments after the words of a shell: ">&-", "trap '' PIPE; exec … ".
  [[nodiscard]] Output run(const std::string& before, const Words& arguments, const std::string& redirection) const {
    Words words{"bash", "-c", fmt::format("{} exec \"$0\" \"$@\" {}", before, redirection), program_under_test()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return ns.program(words);
  }

  const Namespace ns;
};

// Every command, in each of the ways in which it prints its result.
const std::vector<Words> results = {
    {"--version"},
    {"--help"},
    {"help", "apply"},
    {"completion", "zsh"},
    {"render", "--ip-families", "ipv4", "-b", "*"},
    {"render", "--ip-families", "ipv4", "-b", "*", "--format", "nft"},
    {"render", "--ip-families", "ipv4", "-b", "*", "--format", "json"},
    {"render", "--ip-families", "ipv4", "-b", "*", "--format", "svg"},
    {"render", "--ip-families", "ipv4", "-b", "*", "--format", "svg"},
    {"apply", "--ip-families", "ipv4", "-b", "*", "--dry-run"},
    {"-n", "--ip-families", "ipv4", "-b", "*"},
    {"diff", "--ip-families", "ipv4", "-b", "*"},
    {"verify", "--ip-families", "ipv4", "-b", "*"},
    {"verify", "--ip-families", "ipv4", "-b", "*", "--json"},
    {"show"},
    {"show", "--json"},
    {"show", "--watch"},
    {"explain", "out", "tcp", "10.0.0.1:80"},
    {"explain", "--plan", "--ip-families", "ipv4", "-i", "*", "out", "tcp", "10.0.0.1:80", "--json"},
    {"doctor"},
    {"doctor", "--json"},
};

TEST_F(Streams, AResultThatCannotBeWrittenFails) {
  // The reader of the pipe has ended before the program begins.
  const std::string gone = "exec 3> >(:); wait $!;";
  for (const Words& arguments : results) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(arguments, " ")));
    const std::string cannot = "cannot write to standard output: ";
    const Output closed = run("", arguments, ">&-");
    EXPECT_EQ(closed.exit_code, 1);
    EXPECT_THAT(closed.err, EndsWith(cannot + "Bad file descriptor (EBADF)\n"));
    const Output all_closed = run("", arguments, ">&- 2>&- <&-");
    EXPECT_EQ(all_closed.exit_code, 1);
    const Output full = run("", arguments, ">/dev/full");
    EXPECT_EQ(full.exit_code, 1);
    EXPECT_THAT(full.err, EndsWith(cannot + "No space left on device (ENOSPC)\n"));
    const testing::TemporaryFile file("");
    const Output too_large = run("ulimit -f 0;", arguments, ">" + file.path());
    EXPECT_EQ(too_large.exit_code, 1);
    EXPECT_THAT(too_large.err, EndsWith(cannot + "File too large (EFBIG)\n"));
    const Output ended = run(gone, arguments, ">&3 3>&-");
    EXPECT_EQ(ended.exit_code, 128 + SIGPIPE) << "as other programs end before head";
    const Output ignored = run("trap '' PIPE;" + gone, arguments, ">&3 3>&-");
    EXPECT_EQ(ignored.exit_code, 1);
    EXPECT_THAT(ignored.err, EndsWith(cannot + "Broken pipe (EPIPE)\n"));
  }
}

TEST_F(Streams, ErrorsKeepTheirExitCodeWithoutStandardError) {
  for (const char* redirection : {"2>&-", "2>/dev/full", "2>&- <&-", "2>&- >&- <&-"}) {
    const Output output = run("", {"render", "-p", "0"}, redirection);
    EXPECT_EQ(output.exit_code, 2) << redirection;
    EXPECT_EQ(output.out, "");
  }
}

// A netlink socket that became descriptor 1 or 2 would get the log as a message.
TEST_F(Streams, ApplyProgramsTheSameWhateverIsClosed) {
  for (const char* backend : backends) {
    for (const Words& form : {Words{"apply"}, Words{"istio-iptables"}}) {
      const auto programmed = [&](const std::string& before, const std::string& redirection) {
        const Namespace fresh;
        ip(fresh, "link set lo up\n");
        Words words{"bash", "-c", fmt::format("{} exec \"$0\" \"$@\" {}", before, redirection), program_under_test()};
        words.insert(words.end(), form.begin(), form.end());
        for (const char* word : {"-i", "*", "-b", "*", "-m", "TPROXY", "--ip-families", "ipv4,ipv6", "--backend"})
          words.emplace_back(word);
        words.emplace_back(backend);
        const Output output = fresh.program(words);
        EXPECT_EQ(output.exit_code, 0) << redirection << output.err;
        return std::pair(listing(fresh), output);
      };
      const std::string usual = programmed("", "").first;
      for (const char* closed :
           {">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&-", "<&- >&- 2>&-", ">/dev/full 2>/dev/full"}) {
        EXPECT_EQ(programmed("", closed).first, usual) << backend << " " << closed;
      }
      const auto [listed, output] = programmed("exec 3> >(:); wait $!;", ">&3 3>&-");
      EXPECT_EQ(listed, usual);
      if (form.front() == "istio-iptables") {
        EXPECT_THAT(output.err,
                    AllOf(StartsWith("sidetrack: warning: cannot write the log to stdout: Broken pipe (EPIPE); "
                                     "logging continues here\n"),
                          HasSubstr("\tinfo\tinstalled ")));
      }
    }
  }
}

// ---- --log_target

class LogTarget : public Streams {
 protected:
  [[nodiscard]] Output apply(const std::string& target) const {
    return run("", {"apply", "-b", "*", "--ip-families", "ipv4", "--log_target", target}, "");
  }

  void expect_refused(const std::string& target, const std::string& why) const {
    const std::string before = listing(ns);
    const Output output = apply(target);
    EXPECT_EQ(output.exit_code, 2);
    EXPECT_EQ(output.err, "sidetrack: error: --log_target: cannot write to '" + target + "': " + why +
                              "; give the path of a file that can be written\n");
    EXPECT_EQ(listing(ns), before);
  }

  const testing::TemporaryFolder temporary;
  const std::string folder = temporary.path();
};

TEST_F(LogTarget, ThatCannotBeOpenedIsRefusedBeforeAnythingIsTouched) {
  expect_refused(folder + "/missing/log", "No such file or directory (ENOENT)");
  expect_refused(folder, "Is a directory (EISDIR)");
  EXPECT_TRUE(std::filesystem::is_empty(folder)) << "nothing is made";
}

TEST_F(LogTarget, AFifoThatNobodyReadsDoesNotHang) {
  const std::string fifo = folder + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  expect_refused(fifo, "No such device or address (ENXIO)");
}

TEST_F(LogTarget, AFullOneIsToldAndTheLinesGoToStandardError) {
  const Output output = apply("/dev/full");
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_THAT(output.err, StartsWith("sidetrack: warning: cannot write the log to '/dev/full': No space left on device "
                                     "(ENOSPC); logging continues here\nsidetrack: installed "));
}

TEST_F(LogTarget, AFileIsAddedTo) {
  const std::string path = folder + "/log";
  std::ofstream(path) << "before\n";
  const Output output = apply(path);
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_EQ(output.err, "");
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, StartsWith("before\nsidetrack: installed "));
}

// Another program goes on, though the first one waits for the reader of its log.
TEST_F(Streams, ALogThatNobodyReadsHoldsNoLock) {
  const std::string script = R"(
    fifo=$(mktemp -u); mkfifo "$fifo"; exec 3<>"$fifo"; rm "$fifo"
    dd if=/dev/zero bs=4096 oflag=nonblock of=/proc/self/fd/3 2>/dev/null
    "$0" "$@" >&3 & first=$!
    until "$0" verify --ip-families ipv4 -b '*' --backend iptables-legacy 2>/dev/null; do kill -0 $first || exit 9; done
    "$0" clean --wait 10s; code=$?
    kill -0 $first || code=8 # it has not waited
    kill -9 $first; exit $code)";
  const Output output = ns.program({"bash", "-c", script, program_under_test(), "istio-iptables", "--ip-families",
                                    "ipv4", "-b", "*", "--backend", "iptables-legacy"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
}

// ---- --log_caller

TEST_F(Streams, TheLineThatSaysSoIsNamedInEachForm) {
  const Words options{"-b", "*", "--ip-families", "ipv4", "--skip-rule-apply", "--run-validation", "-m", "NONE"};
  const auto logged = [&](const Words& before, const Words& after) {
    Words words = before;
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), after.begin(), after.end());
    const Output output = run("", words, "");
    EXPECT_EQ(output.exit_code, 0) << output.err;
    return output.out + output.err;
  };
  const Words caller{"--log_caller", "default"};
  const std::string line = "validate\\.cc:[0-9]+";
  const std::string text = "nothing is intercepted with these options: nothing to validate";
  EXPECT_THAT(logged({"apply"}, caller), ContainsRegex("^sidetrack: " + line + ": " + text + "\n$"));
  EXPECT_EQ(logged({"apply"}, {}), "sidetrack: " + text + "\n");
  EXPECT_THAT(logged({"istio-iptables"}, caller), ContainsRegex("Z\tinfo\t" + line + "\t" + text + "\n$"));
  EXPECT_THAT(logged({"istio-iptables"}, {}), EndsWith("Z\tinfo\t" + text + "\n"));
  const auto json = nlohmann::json::parse(logged({"apply"}, caller + Words{"--log_as_json"}));
  EXPECT_THAT(json.value("caller", ""), ContainsRegex("^" + line + "$"));
  EXPECT_EQ(json["msg"], text);
  EXPECT_EQ(json["level"], "info");
  EXPECT_FALSE(nlohmann::json::parse(logged({"apply"}, {"--log_as_json"})).contains("caller"));
}

// ---- Memory. A sanitizer reserves more addresses than the limit leaves.

#ifndef SIDETRACK_SANITIZED
TEST_F(LogTarget, MemoryThatRunsOutIsSaidAndLeavesTheOldRulesOrTheNew) {
  const std::string list = folder + "/ranges";
  {
    std::ofstream file(list);
    for (int i = 0; i < 20'000; ++i) file << fmt::format("20.{}.{}.{}\n", i >> 14, i >> 6 & 255, i << 2 & 255);
  }
  const Words options{"-i", "*", "-x", "@" + list, "--ip-families", "ipv4", "--backend", "nftables"};
  const auto limited = [&](const std::string& command, int kilobytes) {
    Words words{command};
    words.insert(words.end(), options.begin(), options.end());
    return run(fmt::format("ulimit -v {};", kilobytes), words, "");
  };
  ASSERT_EQ(run("", {"apply", "-b", "80", "--ip-families", "ipv4", "--backend", "nftables"}, "").exit_code, 0);
  const auto old = atoms(ns);
  const auto wanted = [&] {
    const Namespace unlimited;
    ip(unlimited, "link set lo up\n");
    Words words{program_under_test(), "apply"};
    words.insert(words.end(), options.begin(), options.end());
    unlimited.must(words);
    return atoms(unlimited);
  }();
  int failed = 0;
  bool succeeded = false;
  for (int kilobytes = 16'000; !succeeded && kilobytes < 1'000'000; kilobytes += 4'000) {
    SCOPED_TRACE(kilobytes);
    const Output rendered = limited("render", kilobytes);
    if (rendered.exit_code != 0) {
      EXPECT_EQ(rendered.exit_code, 1) << rendered.err;
      EXPECT_EQ(rendered.err,
                "sidetrack: error: out of memory; nothing was changed; raise the memory limit of the "
                "container (resources.limits.memory) or of the shell (ulimit -v)\n");
      EXPECT_EQ(rendered.out, "");
    }
    const Output applied = limited("apply", kilobytes);
    succeeded = applied.exit_code == 0;
    if (succeeded) break;
    ++failed;
    EXPECT_EQ(applied.exit_code, 1) << applied.err;
    // So little that not even the command line is read: nothing was changed.
    const bool is_early = applied.err.find("; nothing was changed; ") != std::string::npos;
    EXPECT_THAT(applied.err, StartsWith(is_early ? "sidetrack: error: out of memory; nothing was changed; "
                                                 : "sidetrack: error: out of memory; 'sidetrack verify' "));
    EXPECT_THAT(atoms(ns), is_early ? ::testing::Matcher<decltype(old)>(old) : AnyOf(old, wanted));
  }
  EXPECT_GT(failed, 0);
  EXPECT_EQ(atoms(ns), wanted);
  EXPECT_TRUE(succeeded);
}
#endif

}  // namespace
}  // namespace sidetrack::netns
