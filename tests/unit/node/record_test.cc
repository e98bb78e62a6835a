// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/record.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "model/error.h"
#include "support/cannot_run.h"
#include "unit/apart.h"
#include "unit/temporary_folder.h"

namespace sidetrack::cni {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

void write(const Record& record, const std::string& folder) { RecordFolder(folder).write(record); }

class RecordTest : public ::testing::Test {
 protected:
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(folder + "/" + name) << text << std::flush;
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    return names;
  }

  // What it says; nothing if it is written.
  [[nodiscard]] std::string refusal() const {
    try {
      write(record, folder);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  const testing::TemporaryFolder temporary;
  const std::string above = temporary.path();
  const std::string folder = above + "/sidetrack/pods";
  const Record record{"0123abc",     "eth0",    "/var/run/netns/cni-1",
                      "default",     "web-1",   {"--istio-inbound-ports=*", "--proxy-uid=1337"},
                      "pod-network", "cookie:7"};
};

unsigned mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST_F(RecordTest, IsReadAsItWasWritten) {
  write(record, folder);
  const Records all = read_all(folder);
  EXPECT_THAT(all.records, ElementsAre(record));
  EXPECT_THAT(all.problems, IsEmpty());
  EXPECT_EQ(read("0123abc", folder), record);
  EXPECT_EQ(read("other", folder), std::nullopt);
  EXPECT_THAT(files(), ElementsAre("0123abc"));
}

TEST_F(RecordTest, IsForItsOwnerAlone) {
  write(record, folder);
  EXPECT_EQ(mode_of(folder), 0700U);
  EXPECT_EQ(mode_of(folder + "/0123abc"), 0600U);
}

TEST_F(RecordTest, AnotherTakesThePlace) {
  write(record, folder);
  Record other = record;
  other.options = {"--istio-inbound-ports=80"};
  write(other, folder);
  EXPECT_THAT(read_all(folder).records, ElementsAre(other));
}

TEST_F(RecordTest, IsRemovedAgainAndAgain) {
  remove("0123abc", folder);
  write(record, folder);
  put(".0123abc", "half a rec");
  remove("0123abc", folder);
  remove("0123abc", folder);
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(RecordTest, NoFolderHoldsNoRecords) {
  const Records all = read_all(folder);
  EXPECT_THAT(all.records, IsEmpty());
  EXPECT_THAT(all.problems, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(RecordTest, WhatIsNoRecordIsReportedByItsName) {
  write(record, folder);
  const std::string good =
      R"({"container_id":"c","interface":"eth0","netns":"/n","namespace":"","pod":"","network":"","network_namespace":"",)";
  put("a", "not JSON");
  put("b", R"({"container_id":"b"})");
  put("c", good + R"("options":["-b",1]})");
  put("d", good + R"("options":[]})");
  put(" x", "{}");
  std::filesystem::create_directory(folder + "/e");
  const Records all = read_all(folder);
  EXPECT_THAT(all.records, ElementsAre(record));
  EXPECT_THAT(
      all.problems,
      ElementsAre(HasSubstr("pods/ x: its name is no container id"), HasSubstr("pods/a: expected a JSON object"),
                  HasSubstr("pods/b: expected a string as \"interface\""),
                  HasSubstr("pods/c: expected a list of strings as \"options\""),
                  HasSubstr("pods/d: its \"container_id\" is 'c'"), HasSubstr("pods/e: Is a directory")));
  EXPECT_THROW((void)read("a", folder), Error);
}

TEST_F(RecordTest, OptionsAndNetworkNamespaceAreAsAddWritesThem) {
  write(record, folder);
  const auto problems = [&](const std::string& option, const std::string& netns = "/n") {
    put("c", R"({"container_id":"c","interface":"eth0","netns":")" + netns +
                 R"(","namespace":"","pod":"","network":"","network_namespace":"","options":[")" + option + "\"]}");
    return read_all(folder).problems;
  };
  for (const char* option : {"-b=80", "80", "", "--istio-inbound-ports", "--istio-inbound-ports=@/etc/shadow"})
    EXPECT_THAT(problems(option), ElementsAre(HasSubstr(std::string("unknown option '") + option + "': ADD does not")));
  for (const char* option : {"--istio-inbound-ports=80", "--istio-inbound-ports=", "--istio-inbound-ports=80@"})
    EXPECT_THAT(problems(option), IsEmpty()) << option;
  for (const char* netns : {"", "n", "./n"}) {
    EXPECT_THAT(problems("--istio-inbound-ports=80", netns),
                ElementsAre(HasSubstr(std::string("its \"netns\" is '") + netns + "': expected a path")));
  }
}

TEST_F(RecordTest, LeftoversOfKilledWritersAreNoRecords) {
  write(record, folder);
  put(".4567", "half a rec");
  EXPECT_THAT(read_all(folder).records, ElementsAre(record));
  EXPECT_THAT(read_all(folder).problems, IsEmpty());
  RecordFolder(folder).remove_leftovers();
  EXPECT_THAT(files(), ElementsAre("0123abc"));
}

TEST_F(RecordTest, AFolderOfOthersIsRefused) {
  write(record, folder);
  for (const auto& [mode, shown] : {std::pair{0720, "0720"}, std::pair{0702, "0702"}, std::pair{01777, "1777"}}) {
    ASSERT_EQ(chmod(folder.c_str(), static_cast<mode_t>(mode)), 0);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(folder + " belongs to user"), HasSubstr(shown)));
  }
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  write(record, folder);
}

TEST_F(RecordTest, ErrorsNameThePath) {
  std::filesystem::create_directories(above + "/sidetrack");
  std::ofstream(folder) << "a file";
  EXPECT_THAT(refusal(), AllOf(HasSubstr(folder), HasSubstr("ENOTDIR")));
}

// A folder stands where the file is to be.
TEST_F(RecordTest, WhatCannotBeWrittenOrRemovedIsNamed) {
  const auto said = [](const auto& act) -> std::string {
    try {
      act();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::failed);
      return error.what() + ("; " + error.hint());
    }
    return "no error";
  };
  const std::string what_to_do = "; the directory must be root's, on a file system that can be written";
  const std::string is_folder = ": Is a directory (EISDIR)" + what_to_do;
  RecordFolder(folder).require_writable();
  EXPECT_THAT(files(), IsEmpty());

  std::filesystem::create_directory(folder + "/.0123abc");
  EXPECT_EQ(refusal(), "cannot write the record " + folder + "/0123abc: Is a directory (EISDIR)");
  EXPECT_EQ(said([&] { remove("0123abc", folder); }), "cannot remove the record " + folder + "/.0123abc" + is_folder);
  EXPECT_EQ(said([&] { RecordFolder(folder).remove_leftovers(); }),
            "cannot remove " + folder + "/.0123abc" + is_folder);
  std::filesystem::remove(folder + "/.0123abc");

  std::filesystem::create_directory(folder + "/0123abc");
  EXPECT_EQ(refusal(), "cannot write the record " + folder + "/0123abc: Is a directory (EISDIR)");
  EXPECT_THAT(files(), ElementsAre("0123abc")) << "what was written first goes again";
  EXPECT_EQ(said([&] { remove("0123abc", folder); }), "cannot remove the record " + folder + "/0123abc" + is_folder);

  std::filesystem::create_directory(folder + "/.-trial");
  EXPECT_EQ(said([&] { RecordFolder(folder).require_writable(); }),
            "cannot write to the directory " + folder + is_folder);
}

// As on a full disk, no half a record is left.
TEST_F(RecordTest, OneThatIsCutOffIsNone) {
  write(record, folder);
  Record other = record;
  other.options = {"--istio-inbound-ports=" + std::string(2000, '1')};
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string said = "no error";
  std::string trial = "no error";
  try {
    write(other, folder);
  } catch (const Error& error) {
    said = error.what();
  }
  try {
    RecordFolder(folder).require_writable();
  } catch (const Error& error) {
    trial = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(said, "cannot write the record " + folder + "/0123abc: File too large (EFBIG)");
  EXPECT_EQ(trial, "cannot write to the directory " + folder + ": File too large (EFBIG)");
  EXPECT_THAT(files(), ElementsAre("0123abc"));
  EXPECT_EQ(read("0123abc", folder), record);
}

// ---- Faults, in a process of its own

template <typename Act>
std::string failure_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return fmt::format("{}: {}; {}", static_cast<int>(error.code()), error.what(), error.hint());
  }
  return "none";
}

TEST_F(RecordTest, OnAFullFileSystemThereIsNoRoom) {
  Record large = record;
  large.options = {"--istio-inbound-ports=" + std::string(20000, '1')};
  const std::string said = testing::apart([&]() -> std::string {
    std::filesystem::create_directories(folder);
    if (!testing::enter_new(CLONE_NEWNS) || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", folder.c_str(), "tmpfs", 0, "size=8k,mode=0700") != 0)
      return "skip";
    std::string all = failure_of([&] { write(large, folder); });
    for (const auto& entry : std::filesystem::directory_iterator(folder)) all += "; " + entry.path().string();
    return all;
  });
  if (said == "skip") return cannot_run("it takes a mount namespace");
  EXPECT_EQ(said, "1: cannot write the record " + folder +
                      "/0123abc: No space left on device (ENOSPC); make room on its file system");
}

TEST_F(RecordTest, WhatMayNotBeReadIsNotPermitted) {
  write(record, folder);
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  ASSERT_EQ(chmod(above.c_str(), 0755), 0);
  ASSERT_EQ(chmod((folder + "/0123abc").c_str(), 0), 0);
  const std::string said = testing::apart([&]() -> std::string {
    if (geteuid() == 0 && setresuid(65533, 65533, 65533) != 0) return "skip";
    return failure_of([&] { static_cast<void>(read("0123abc", folder)); });
  });
  if (said == "skip") return cannot_run("no other user may be taken");
  EXPECT_EQ(said, "4: cannot read the record " + folder + "/0123abc: Permission denied (EACCES); ");
}

TEST_F(RecordTest, OfAFolderThatIsNotThereNothingIsRemoved) {
  remove("0123abc", folder);
  EXPECT_FALSE(std::filesystem::exists(folder));
  std::ofstream(above + "/file") << "text";
  EXPECT_EQ(failure_of([&] { static_cast<void>(read_all(above + "/file")); }),
            "1: cannot read the directory " + above +
                "/file: Not a directory (ENOTDIR); the directory must be root's, on a file system that can be written");
}

TEST(ContainerId, IsNoPath) {
  for (const char* id : {"a", "0", "3f2a", "Pod_1.x-y", "a.."}) EXPECT_TRUE(is_container_id(id)) << id;
  for (const char* id : {"", ".", "..", "-a", "_a", "a/b", "../a", "a b", "a\n", "ä"})
    EXPECT_FALSE(is_container_id(id)) << id;
  constexpr std::string_view letters_and_digits = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    const bool plain = letters_and_digits.find(one) != std::string_view::npos;
    EXPECT_EQ(is_container_id(one), plain) << byte;
    EXPECT_EQ(is_container_id("a" + one), plain || one == "_" || one == "." || one == "-") << byte;
  }
  EXPECT_TRUE(is_container_id(std::string(200, 'a')));
  EXPECT_FALSE(is_container_id(std::string(201, 'a')));
}

}  // namespace
}  // namespace sidetrack::cni
