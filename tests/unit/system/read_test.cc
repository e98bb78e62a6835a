// SPDX-License-Identifier: GPL-2.0-or-later
// Files and folders, read whole or not at all.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

#include "system/descriptor.h"
#include "system/folder.h"
#include "system/read_write.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;

Descriptor file_of(const std::string& text) {
  Descriptor file(memfd_create("test", MFD_CLOEXEC));
  EXPECT_EQ(pwrite(file.get(), text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return file;
}

TEST(ReadAll, OfAnySize) {
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 4097U, 8191U, 8192U, 8193U, 100'000U}) {
    std::string expected(size, 'a');
    if (size > 0) expected.back() = 'z';
    std::string text = "from before, and longer than what is read";
    EXPECT_EQ(read_all(file_of(expected).get(), size, text), 0) << size;
    EXPECT_EQ(text, expected) << size;
  }
}

TEST(ReadAll, NotMoreThanIsAllowed) {
  std::string text;
  EXPECT_EQ(read_all(file_of("12345").get(), 4, text), EFBIG);
  EXPECT_EQ(read_all(file_of("12345").get(), 5, text), 0);
}

TEST(ReadAll, SaysWhyItCannot) {
  std::string text;
  const Descriptor folder(open("/", O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(read_all(folder.get(), 1, text), EISDIR);
  EXPECT_EQ(read_all(-1, 1, text), EBADF);
}

TEST(Folder, IsListedByName) {
  const std::filesystem::path folder = ::testing::TempDir() + "sidetrack-folder-" + std::to_string(getpid());
  std::filesystem::create_directories(folder / "b");
  for (const char* name : {"c", "a", ".hidden", "..two"}) std::ofstream(folder / name) << name;
  const auto entries = entries_of(folder);
  std::filesystem::remove_all(folder);
  ASSERT_TRUE(entries);
  std::vector<std::string> names;
  for (const FolderEntry& entry : *entries) {
    names.push_back(entry.name);
    EXPECT_EQ(entry.is_folder, entry.name == "b") << entry.name;
  }
  EXPECT_THAT(names, ElementsAre("..two", ".hidden", "a", "b", "c"));
}

TEST(Folder, ThatIsMissingOrNoneIsSaid) {
  EXPECT_FALSE(entries_of("/nonexistent"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(entries_of("/proc/self/cmdline"));
  EXPECT_EQ(errno, ENOTDIR);
}

}  // namespace
}  // namespace sidetrack
