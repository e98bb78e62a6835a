// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/replace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "model/error.h"
#include "unit/read_file.h"
#include "unit/temporary_folder.h"

namespace sidetrack {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReplaceFile : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name = "file") const { return folder / name; }
  void put(const std::string& name, const std::string& content) const { std::ofstream(path(name)) << content; }
  [[nodiscard]] std::string content(const std::string& name = "file") const { return read_file(path(name)); }
  [[nodiscard]] unsigned mode(const std::string& name = "file") const {
    struct stat status {};
    return lstat(path(name).c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder)) all.push_back(entry.path().filename());
    std::ranges::sort(all);
    return all;
  }
  // What it says, and its exit code.
  static std::pair<ExitCode, std::string> refusal(const std::string& path, const Replacement& how = {}) {
    try {
      replace_file(path, "new", how);
    } catch (const Error& error) {
      return {error.code(), error.what() + ("; " + error.hint())};
    }
    return {ExitCode::done, "no error"};
  }

  const testing::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
};

TEST_F(ReplaceFile, HasTheContentAndTheModeAndLeavesNothingBeside) {
  replace_file(path(), "one", {});
  EXPECT_EQ(content(), "one");
  EXPECT_EQ(mode(), 0600U);
  replace_file(path(), "another", {.mode = 0755});
  EXPECT_EQ(content(), "another");
  EXPECT_EQ(mode(), 0755U);
  replace_file(path(), "", {.mode = 0644});
  EXPECT_EQ(content(), "");
  EXPECT_EQ(mode(), 0644U);
  EXPECT_THAT(names(), ElementsAre("file"));
}

TEST_F(ReplaceFile, IsWrittenBesideThePathUnderAHiddenName) {
  EXPECT_EQ(temporary_name("/etc/cni/10-net.conflist"), "/etc/cni/.10-net.conflist.sidetrack-new");
  EXPECT_EQ(temporary_name("/file"), "/.file.sidetrack-new");
  EXPECT_EQ(temporary_name("file"), "./.file.sidetrack-new");
  EXPECT_EQ(temporary_name("a/file"), "a/.file.sidetrack-new");
}

// Of a process that was killed, or of one that means harm.
TEST_F(ReplaceFile, WhatStandsAtTheHiddenNameIsWrittenOverButNeverFollowed) {
  const std::string hidden = ".file.sidetrack-new";
  put(hidden, "half a file that is longer");
  replace_file(path(), "new", {});
  EXPECT_EQ(content(), "new");
  put("other", "of others");
  fs::create_symlink(path("other"), path(hidden));
  replace_file(path(), "newer", {});
  fs::create_hard_link(path("other"), path(hidden));
  replace_file(path(), "newest", {});
  ASSERT_EQ(mkfifo(path(hidden).c_str(), 0600), 0);
  replace_file(path(), "last", {});
  EXPECT_EQ(content(), "last");
  EXPECT_EQ(content("other"), "of others");
  EXPECT_THAT(names(), ElementsAre("file", "other"));
  fs::create_directory(path(hidden));
  EXPECT_THAT(refusal(path()).second, AllOf(HasSubstr("cannot write '" + path() + "'"), HasSubstr("EISDIR")));
  EXPECT_EQ(content(), "last");
}

TEST_F(ReplaceFile, WhatIsNoFileIsNotReplaced) {
  put("other", "of others");
  fs::create_symlink(path("other"), path());
  const auto [code, said] = refusal(path());
  EXPECT_EQ(code, ExitCode::usage);
  EXPECT_EQ(said,
            "'" + path() + "' is a symbolic link: expected a file, or none; it is not replaced: name another file");
  replace_file(path(), "new", {.links = true});
  EXPECT_EQ(content(), "new");
  EXPECT_FALSE(fs::is_symlink(path()));
  EXPECT_EQ(content("other"), "of others");
  ASSERT_EQ(mkdir(path("d").c_str(), 0700), 0);
  ASSERT_EQ(mkfifo(path("f").c_str(), 0600), 0);
  for (const bool links : {false, true}) {
    EXPECT_THAT(refusal(path("d"), {.links = links}).second, HasSubstr("/d' is a directory: expected a file, or none"));
    EXPECT_THAT(refusal(path("f"), {.links = links}).second, HasSubstr("/f' is a FIFO, not a regular file: expected"));
  }
  EXPECT_THAT(names(), ElementsAre("d", "f", "file", "other"));
}

TEST_F(ReplaceFile, OfAnotherVersionThanWasReadNothingIsWritten) {
  put("file", "one");
  const auto read = file_version(path());
  ASSERT_TRUE(read);
  replace_file(path(), "two", {.instead_of = read});
  EXPECT_EQ(content(), "two");
  const auto [code, said] = refusal(path(), {.instead_of = read});
  EXPECT_EQ(code, ExitCode::busy);
  EXPECT_EQ(said, "'" + path() + "' was changed by another program meanwhile; run it again");
  EXPECT_EQ(content(), "two");
  fs::remove(path());
  EXPECT_EQ(refusal(path(), {.instead_of = read}).first, ExitCode::busy);
  EXPECT_THAT(names(), ElementsAre());
  errno = 0;
  EXPECT_EQ(file_version(path()), std::nullopt);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(ReplaceFile, AFolderThatIsNotThereIsSaid) {
  const auto [code, said] = refusal(path("no/file"), {.hint = "name a folder"});
  EXPECT_EQ(code, ExitCode::failed);
  EXPECT_EQ(said, "cannot write '" + path("no/file") + "': No such file or directory (ENOENT); name a folder");
  EXPECT_THROW(flush_folder_of(path("no/file")), Error);
  flush_folder_of(path());
}

}  // namespace
}  // namespace sidetrack
