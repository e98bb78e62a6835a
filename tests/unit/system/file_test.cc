// SPDX-License-Identifier: GPL-2.0-or-later
// What is read below a folder that stands for the root, and what is refused.
#include "system/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "unit/temporary_folder.h"

namespace sidetrack::host {
namespace {

namespace fs = std::filesystem;

class FileBelow : public ::testing::Test {
 protected:
  FileBelow() {
    fs::create_directories(folder / "etc");
    put("etc/file", "below");
    put("outside", "of the root");
    fs::create_directory(folder / "empty");
  }

  const testing::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
  const Descriptor root{open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};

  void put(const std::string& name, const std::string& text) const { std::ofstream(folder / name) << text; }
  // The text, or the problem in brackets.
  static std::string read(int below, const std::string& path) {
    const FileText found = read_file(below, path);
    EXPECT_EQ(found.text.has_value(), found.error == 0) << path;
    EXPECT_EQ(found.text.has_value(), found.problem.empty()) << path;
    return found.text ? *found.text : "[" + found.problem + "]";
  }
};

TEST_F(FileBelow, PathsAndLinksStayBelowTheRoot) {
  for (const char* path : {"/etc/file", "etc/file", "../etc/file", "/etc/../../etc/file"})
    EXPECT_EQ(read(root.get(), path), "below") << path;
  fs::create_symlink("/etc/file", folder / "absolute");
  fs::create_symlink("../../../etc/file", folder / "empty/relative");
  EXPECT_EQ(read(root.get(), "/absolute"), "below");
  EXPECT_EQ(read(root.get(), "/empty/relative"), "below");
  // Of another root, the same links lead nowhere; of none, they are the caller's.
  fs::create_symlink("/outside", folder / "etc/link");
  const Descriptor inner(open((folder / "etc").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(read(inner.get(), "/link"), "[No such file or directory (ENOENT)]");
  EXPECT_EQ(read(inner.get(), "/../outside"), "[No such file or directory (ENOENT)]");
  EXPECT_EQ(read(inner.get(), "/file"), "below");
  EXPECT_EQ(read(-1, folder / "etc/../outside"), "of the root");
  const Descriptor machine(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(read(machine.get(), "/proc/self/exe"), "[Too many levels of symbolic links (ELOOP)]")
      << "a link of /proc leads where no path does";
}

TEST_F(FileBelow, IsReadWholeOrNotAtAll) {
  for (const std::size_t size : {0U, 1U, 16383U, 16384U, 16385U, 65536U, 70000U, 1U << 20}) {
    std::string text(size, 'x');
    if (size > 0) text.back() = 'z';
    put("etc/file", text);
    EXPECT_TRUE(read(root.get(), "/etc/file") == text) << size;
    EXPECT_TRUE(read(-1, folder / "etc/file") == text) << size;
  }
  put("etc/file", std::string((1U << 20) + 1, 'x'));
  for (const FileText& refused : {read_file(root.get(), "/etc/file"), read_file(-1, folder / "etc/file")}) {
    EXPECT_EQ(refused.error, EFBIG);
    EXPECT_EQ(refused.problem, "larger than 1024 KiB");
    EXPECT_FALSE(refused.text);
  }
}

TEST_F(FileBelow, WhatIsNoFileIsNamed) {
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  const Descriptor listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{.sun_family = AF_UNIX, .sun_path = {}};
  const std::string path = folder / "socket";
  ASSERT_LT(path.size(), sizeof name.sun_path);
  path.copy(name.sun_path, path.size());
  ASSERT_EQ(bind(listening.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  struct Case {
    std::string path;
    int error;
    std::string problem;
    std::string type;
  };
  const std::string is_folder = "Is a directory (EISDIR)";
  for (const Case& each :
       {Case{"/fifo", EINVAL, "a FIFO, not a regular file", "a FIFO"},
        Case{"/socket", EINVAL, "a socket, not a regular file", "a socket"},
        Case{"/etc", EISDIR, is_folder, "a directory"}, Case{"/none", ENOENT, "No such file or directory (ENOENT)", ""},
        Case{"/outside/file", ENOTDIR, "Not a directory (ENOTDIR)", ""}}) {
    for (const bool below : {true, false}) {
      const int of = below ? root.get() : -1;
      const std::string there = below ? each.path : folder.string() + each.path;
      const OpenedFile opened = open_regular(of, there);
      EXPECT_FALSE(opened.file.valid()) << there;
      EXPECT_EQ(opened.error, each.error) << there;
      EXPECT_EQ(opened.problem, each.problem) << there;
      EXPECT_EQ(opened.type, each.type) << there;
      const FileText text = read_file(of, there);
      EXPECT_FALSE(text.text) << there;
      EXPECT_EQ(text.error, each.error) << there;
      EXPECT_EQ(text.problem, each.problem) << there;
    }
  }
  const OpenedFile good = open_regular(root.get(), "/etc/file");
  EXPECT_TRUE(good.file.valid());
  EXPECT_EQ(good.error, 0);
  EXPECT_EQ(good.problem, "");
  EXPECT_EQ(good.type, "");
  EXPECT_EQ(open_regular(-1, "/dev/null").type, "a device");
}

TEST(FileType, IsNamedByItsMode) {
  EXPECT_EQ(not_regular(S_IFREG | 0644U), "");
  EXPECT_EQ(not_regular(S_IFDIR | 0755U), "Is a directory (EISDIR)");
  EXPECT_EQ(not_regular(S_IFIFO), "a FIFO, not a regular file");
  EXPECT_EQ(not_regular(S_IFCHR), "a device, not a regular file");
  EXPECT_EQ(not_regular(S_IFBLK), "a device, not a regular file");
  EXPECT_EQ(not_regular(S_IFSOCK), "a socket, not a regular file");
  EXPECT_EQ(not_regular(S_IFLNK), "a special file, not a regular file");
}

}  // namespace
}  // namespace sidetrack::host
