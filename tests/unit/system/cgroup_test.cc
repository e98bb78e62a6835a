// SPDX-License-Identifier: GPL-2.0-or-later
// Which directory is which cgroup, by mounts and directories of the tests' own, in place of those of the kernel.
#include "system/cgroup.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <fstream>

#include "support/cannot_run.h"
#include "unit/apart.h"
#include "unit/temporary_folder.h"

namespace sidetrack {
namespace {

namespace fs = std::filesystem;
using testing::apart;

class Cgroups : public ::testing::Test {
 protected:
  Cgroups() {
    fs::create_directories(folder / "kubepods/pod 7/app");
    fs::create_directories(folder / "system");
    std::ofstream(folder / "system/cgroup.procs") << "1\n";
  }

  void SetUp() override {
    if (in_mounts("", [] { return std::string("entered"); }) != "entered")
      return cannot_run("it takes a mount namespace");
  }

  // What `act` says where /proc lists these mounts.
  [[nodiscard]] static std::string in_mounts(const std::string& mounts, const std::function<std::string()>& act) {
    return apart([&]() -> std::string {
      if (!testing::enter_new(CLONE_NEWNS) || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount("none", "/proc", "tmpfs", 0, nullptr) != 0)
        return "skip";
      fs::create_directory("/proc/self");
      std::ofstream("/proc/self/mountinfo") << mounts;
      return act();
    });
  }
  // "path", or "path: problem".
  [[nodiscard]] std::string found(const std::string& mounts, const std::string& path) const {
    return in_mounts(mounts, [&] {
      const FoundCgroup cgroup = find_cgroup(path);
      struct stat status {};
      if (!cgroup.problem.empty()) return fmt::format("{}: {}", cgroup.path, cgroup.problem);
      // Its number is that of its directory.
      const bool known = stat((folder / without_root(cgroup.path)).c_str(), &status) == 0 && status.st_ino == cgroup.id;
      return cgroup.path + (known ? "" : ": of another directory");
    });
  }
  // A part of the hierarchy is mounted, in some tests.
  static std::string without_root(const std::string& path) {
    return path.starts_with("part/") ? path.substr(5) : path == "part" ? "" : path;
  }
  [[nodiscard]] std::string mounted(const std::string& root = "/") const {
    return fmt::format(
        "22 1 0:21 / /proc rw - proc proc rw\n36 35 0:30 {} {} rw,nosuid shared:9 master:1 - cgroup2 cgroup2 rw\n",
        root, folder.string());
  }

  const testing::TemporaryFolder temporary;
  const fs::path folder = temporary.path();
};

TEST_F(Cgroups, AreFoundByTheirPathOrTheirDirectory) {
  for (const char* path : {"system", "/system", "//system//"}) EXPECT_EQ(found(mounted(), path), "system") << path;
  EXPECT_EQ(found(mounted(), folder / "system"), "system");
  EXPECT_EQ(found(mounted(), (folder / "system").string() + "/"), "system");
  EXPECT_EQ(found(mounted(), "kubepods/pod 7/app"), "kubepods/pod 7/app");
  EXPECT_EQ(found(mounted(), folder / "kubepods/pod 7"), "kubepods/pod 7");
  // Of a mount of a part, the path is that within the whole hierarchy.
  EXPECT_EQ(found(mounted("/part"), "part/system"), "part/system");
  EXPECT_EQ(found(mounted("/part"), folder / "system"), "part/system");
  EXPECT_EQ(found(mounted("/part"), folder), "part");
  // The whole of it counts, wherever it stands among the mounts.
  const std::string part = "40 35 0:30 /x /sidetrack-none rw - cgroup2 none rw\n";
  EXPECT_EQ(found(part + mounted(), "system"), "system");
  EXPECT_EQ(found(mounted() + part, "system"), "system");
  EXPECT_EQ(found("41 35 0:31 / /sidetrack-none rw - tmpfs none rw\n" + mounted(), "system"), "system");
}

TEST_F(Cgroups, ThatAreNoneAreSaidToBe) {
  const std::string none = ": no such cgroup below " + folder.string();
  EXPECT_EQ(found(mounted(), "none"), "none" + none);
  EXPECT_EQ(found(mounted(), "system/none/below"), "system/none/below" + none);
  EXPECT_EQ(found(mounted(), "system2"), "system2" + none);
  EXPECT_EQ(found(mounted("/part"), "system"), "system" + none) << "it is not within the part";
  EXPECT_EQ(found(mounted("/part"), "party/system"), "party/system" + none);
  const std::string file = ": a file, not a cgroup's directory";
  EXPECT_EQ(found(mounted(), "system/cgroup.procs"), "system/cgroup.procs" + file);
  EXPECT_EQ(found(mounted(), "system/cgroup.procs/x"), "system/cgroup.procs/x" + none);
  const std::string root = ": the root of the hierarchy, which every process is in";
  EXPECT_EQ(found(mounted(), "/"), root);
  EXPECT_EQ(found(mounted(), folder), root);
  fs::create_symlink("loop", folder / "loop");
  EXPECT_EQ(found(mounted(), "loop"), "loop: Too many levels of symbolic links (ELOOP)");
  const std::string missing =
      ": no cgroup v2 hierarchy is mounted here ('ip netns exec' leaves none in /sys: use --netns)";
  EXPECT_EQ(found("", "system"), "system" + missing);
  const std::string memory =
      fmt::format("36 35 0:30 / {} rw - cgroup cgroup rw,memory\n", (folder / "memory").string());
  EXPECT_EQ(found(memory, "system"), "system" + missing);
  const std::string of_v1 = ": a directory of cgroup v1 (rw,memory), whose processes netfilter does not know by a path";
  const std::string path = (folder / "memory").string().substr(1);
  EXPECT_EQ(found(memory + mounted(), "/" + path), path + of_v1);
  EXPECT_EQ(found(memory + mounted(), "/" + path + "/app"), path + "/app" + of_v1);
  EXPECT_EQ(found(memory + mounted(), "/" + path + "2"), "memory2" + none);
}

TEST_F(Cgroups, HaveAPathByTheirNumber) {
  const auto number = [&](const char* name) {
    struct stat status {};
    EXPECT_EQ(stat((folder / name).c_str(), &status), 0);
    return status.st_ino;
  };
  const auto system = number("system"), app = number("kubepods/pod 7/app"), file = number("system/cgroup.procs");
  for (const bool held : {false, true}) {
    EXPECT_EQ(in_mounts(mounted("/part"),
                        [&] {
                          if (held) hold_cgroups();
                          const CgroupPaths all;
                          return fmt::format("{}|{}|{}|{}|{}|{}", all.path(system, 2), all.path(app, 4),
                                             all.path(app, 3), all.path(system, 1), all.path(file, 3), all.path(1, 1));
                        }),
              "part/system|part/kubepods/pod 7/app||||");
  }
  EXPECT_EQ(in_mounts(mounted(),
                      [&] {
                        const CgroupPaths all;
                        return all.path(system, 1) + "|" + all.path(app, 3);
                      }),
            "system|kubepods/pod 7/app");
  // What was made after all were read is known if it was asked for.
  EXPECT_EQ(in_mounts(mounted(),
                      [&] {
                        hold_cgroups();
                        fs::create_directory(folder / "new");
                        const auto made = number("new");
                        std::string all = CgroupPaths().path(made, 1) + "|";
                        static_cast<void>(find_cgroup("new"));
                        return all + CgroupPaths().path(made, 1);
                      }),
            "|new");
}

// A program that lives on sees those that were made after it has asked for the first time, and none that has gone.
TEST_F(Cgroups, AreThoseOfTheMoment) {
  EXPECT_EQ(in_mounts(mounted(),
                      [&] {
                        struct stat status {};
                        const CgroupPaths before;
                        std::string all = before.path(1, 1);
                        static_cast<void>(find_cgroup("system"));
                        const bool known = stat((folder / "system").c_str(), &status) == 0;
                        const auto system = status.st_ino;
                        fs::rename(folder / "system", folder / "other");
                        fs::create_directory(folder / "new");
                        if (!known || stat((folder / "new").c_str(), &status) != 0) return std::string("none");
                        const CgroupPaths after;
                        return fmt::format("{}|{}|{}", before.path(status.st_ino, 1), after.path(status.st_ino, 1),
                                           after.path(system, 1));
                      }),
            "|new|other");
}

TEST_F(Cgroups, OfAProcessIsThatOfTheSecondVersion) {
  EXPECT_EQ(cgroup_in("0::/kubepods/app\n"), "kubepods/app");
  EXPECT_EQ(cgroup_in("12:memory:/of/v1\n1:name=systemd:/x\n0::/user.slice/\n"), "user.slice");
  EXPECT_EQ(cgroup_in("0::/\n"), "");
  EXPECT_EQ(cgroup_in("1:name=systemd:/x\n"), std::nullopt);
  EXPECT_EQ(cgroup_in(""), std::nullopt);
}

}  // namespace
}  // namespace sidetrack
