// SPDX-License-Identifier: GPL-2.0-or-later
// cni install, uninstall and status in folders of their own: what is there before and after, at every fault, and while
// others write to them.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/cannot_run.h"
#include "support/kernel_test.h"
#include "support/namespace.h"
#include "support/traffic.h"
#include "support/words.h"
#include "unit/read_file.h"
#include "unit/temporary_folder.h"

namespace sidetrack::netns {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* conflist = R"({
  "cniVersion": "1.0.0",
  "name": "net",
  "plugins": [
    { "type": "bridge", "mtu": 1.50e3, "large": 123456789012345678901234567890 }
  ]
}
)";
constexpr const char* single = R"({"type": "bridge", "name": "net", "cniVersion": "0.4.0"})";
constexpr const char* multus = R"({"type": "multus", "name": "net", "cniVersion": "0.4.0"})";

void write_text(const fs::path& path, std::string_view text) { std::ofstream(path, std::ios::binary) << text; }

// As careful writers do.
void rename_over(const fs::path& path, std::string_view text) {
  const fs::path other = path.string() + ".new";
  write_text(other, text);
  fs::rename(other, path);
}

class CniInstall : public KernelTest {
 protected:
  // What is in a folder: by name the content, for programs whether it is ours.
  using State = std::map<std::string, std::string>;

  void SetUp() override {
    KernelTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    fs::create_directory(bin());
    fs::create_directory(net());
    put_plugins();
  }
  void put_plugins() const {
    for (const char* plugin : {"bridge", "multus"}) write_text(bin() / plugin, "");
  }
  [[nodiscard]] fs::path bin() const { return root / "bin"; }
  [[nodiscard]] fs::path net() const { return root / "net.d"; }
  [[nodiscard]] fs::path program() const { return bin() / "sidetrack-cni"; }

  // `conflist` with the entry of an installation without options.
  [[nodiscard]] std::string with_us() const {
    auto list = nlohmann::ordered_json::parse(conflist);
    list["plugins"].push_back({{"type", "sidetrack-cni"},
                               {"capabilities", {{"io.kubernetes.cri.pod-annotations", true}}},
                               {"confDir", net().string()}});
    return list.dump(2) + "\n";
  }

  // The program under test may be a dynamic one.
  [[nodiscard]] Words words(const std::string& action, const Words& more = {}) const {
    Words all{program_under_test(), "cni", action,      "--bin-dir",     bin(),
              "--net-dir",          net(), "--records", root / "records"};
    if (action == "install") all.emplace_back("--allow-dynamic");
    return all + more;
  }
  [[nodiscard]] Output run(const std::string& action, const Words& more = {}) const {
    return ns.program(words(action, more));
  }
  void must(const std::string& action, const Words& more = {}) const { ns.must(words(action, more)); }
  // By status, which says so.
  void must_fail_to_read(const Words& more, const std::string& said, int code = 6, Identity identity = {}) const {
    const Output output = ns.program(words("status", more), {}, {}, identity);
    EXPECT_EQ(output.exit_code, code) << output.err;
    EXPECT_THAT(output.err, HasSubstr(said));
    EXPECT_THAT(output.out, HasSubstr("configuration  none\n"));
  }

  [[nodiscard]] State state() const {
    State all;
    for (const fs::path& folder : {bin(), net()}) {
      for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename();
        // What a process that was killed leaves: no name that a runtime knows.
        if (name == "bridge" || name == "multus" || (name.starts_with('.') && name.ends_with(".sidetrack-new")) ||
            name.ends_with(".conflist.sidetrack-saved"))
          continue;
        const std::string text = read_file(entry.path());
        all[name] = name != "sidetrack-cni" ? text : text == own_program() ? "ours" : "another";
      }
    }
    return all;
  }
  // What a runtime loads: the first configuration by name.
  [[nodiscard]] std::string used() const {
    for (const auto& [name, text] : state()) {
      if (name.ends_with(".conf") || name.ends_with(".conflist")) return text;
    }
    return "";
  }
  static const std::string& own_program() {
    static const std::string text = read_file(program_under_test());
    return text;
  }

  const Namespace ns;
  // Each step is flushed to the disk, which a test need not wait for.
  const testing::TemporaryFolder temporary{fs::exists("/dev/shm") ? "/dev/shm/" : ::testing::TempDir()};
  const fs::path root = temporary.path();
};

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777;
}

ino_t inode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_ino;
}

// ---- What is there

TEST_F(CniInstall, PutsTheProgramAndTheLastEntryAndTakesBothAwayAgain) {
  const fs::path list = net() / "10-net.conflist";
  write_text(list, conflist);
  const Output first = run("install");
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, "");
  EXPECT_THAT(first.err, AllOf(HasSubstr("installed '" + program().string() + "', version "),
                               HasSubstr("sidetrack-cni is the last plugin of network 'net'")));
  EXPECT_EQ(state(), (State{{"10-net.conflist", with_us()}, {"sidetrack-cni", "ours"}}));
  EXPECT_EQ(mode_of(list), 0600U);
  EXPECT_EQ(mode_of(program()), 0755U);
  EXPECT_EQ(run("status").exit_code, 0);

  const auto inodes = std::pair(inode_of(list), inode_of(program()));
  const Output again = run("install");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.err, HasSubstr("installed as requested already: nothing was changed"));
  EXPECT_EQ(std::pair(inode_of(list), inode_of(program())), inodes);

  const Output gone = run("uninstall");
  EXPECT_EQ(gone.exit_code, 0) << gone.err;
  EXPECT_EQ(state(), (State{{"10-net.conflist", conflist}}));
  EXPECT_EQ(run("status").exit_code, 6);
  const Output never = run("uninstall");
  EXPECT_EQ(never.exit_code, 0);
  EXPECT_THAT(never.err, HasSubstr("sidetrack-cni is not installed: nothing was changed"));
}

// With containerd, which calls DEL for the plugins that the configuration names by then.
TEST_F(CniInstall, TheProgramDoesNotStayForAPodThatHasEnded) {
  write_text(net() / "10-net.conflist", conflist);
  must("install");
  fs::create_directory(root / "records");
  fs::permissions(root / "records", fs::perms::owner_all);
  write_text(root / "records" / "ended",
             fmt::format(R"({{"container_id": "ended", "interface": "eth0", "netns": "{}", "namespace": "shop",)"
                         R"( "pod": "web", "network": "net", "network_namespace": "", "options": []}})",
                         (root / "netns").string()));
  const Output gone = run("uninstall");
  EXPECT_EQ(gone.exit_code, 0) << gone.err;
  EXPECT_THAT(gone.err, Not(HasSubstr("stays")));
  EXPECT_FALSE(fs::exists(program()));
}

TEST_F(CniInstall, TheOptionsAreThePlugins) {
  write_text(net() / "10-net.conflist", conflist);
  must("install");
  const Words options{"-u",
                      "1000",
                      "-g",
                      "1001",
                      "-p",
                      "16001",
                      "-z",
                      "16006",
                      "--redirect-dns",
                      "--dual-stack",
                      "--no-sandbox",
                      "--exclude-namespaces",
                      "kube-system,monitoring",
                      "--backend",
                      "nftables",
                      "--plugin-log",
                      "/var/log/cni.log"};
  must("install", options);
  const auto plugins = nlohmann::json::parse(read_file(net() / "10-net.conflist"))["plugins"];
  EXPECT_EQ(plugins.size(), 2U) << "the entry of other options is replaced";
  EXPECT_EQ(plugins[1], nlohmann::json::parse(R"({
      "type": "sidetrack-cni", "capabilities": {"io.kubernetes.cri.pod-annotations": true},
      "uid": 1000, "gid": 1001, "envoyPort": 16001, "inboundCapturePort": 16006, "dns": true, "dualStack": true,
      "excludeNamespaces": ["kube-system", "monitoring"], "backend": "nftables", "noSandbox": true,
      "logFile": "/var/log/cni.log",
      "confDir": ")" + net().string() + R"("})"));
}

// Then it looks again and again.
TEST_F(CniInstall, WhatCannotBeWatchedIsInstalledAllTheSame) {
  write_text(net() / "10-net.conflist", conflist);
  const Output output = ns.program({"unshare", "--user", "--map-root-user", "bash", "-c", R"(
        echo 2 >/proc/sys/user/max_inotify_watches || exit 77
        "$0" cni install --watch --allow-dynamic --net-dir "$1" --bin-dir "$2" &
        until grep -q sidetrack-cni "$1/10-net.conflist"; do :; done
        kill $!
        wait $!)",
                                    program_under_test(), net().string(), bin().string()});
  if (output.exit_code == 77) return cannot_run("the kernel does not limit watches");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, AllOf(HasSubstr("cannot watch the directory"), HasSubstr("is the last plugin"),
                                Not(HasSubstr("watching "))));
}

TEST_F(CniInstall, WhatCannotWatchAtAllIsInstalledOnce) {
  write_text(net() / "10-net.conflist", conflist);
  const Output output = ns.program({"unshare", "--user", "--map-root-user", "bash", "-c", R"(
        echo 0 >/proc/sys/user/max_inotify_instances || exit 77
        exec "$0" cni install --watch --allow-dynamic --net-dir "$1" --bin-dir "$2")",
                                    program_under_test(), net().string(), bin().string()});
  if (output.exit_code == 77) return cannot_run("the kernel does not limit instances of inotify");
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, AllOf(HasSubstr("is the last plugin"), HasSubstr("cannot watch directories")));
  EXPECT_EQ(used(), with_us());
}

// Nothing is there that a temporary file could be of.
TEST_F(CniInstall, WithoutItNothingIsRemovedWhereNothingCanBe) {
  write_text(net() / "10-net.conflist", conflist);
  const Output output = ns.program({"unshare", "--mount", "bash", "-c", R"(
        mount --bind "$1" "$1" && mount -o remount,bind,ro "$1"
        exec "$0" cni uninstall --net-dir "$1" --bin-dir "$1")",
                                    program_under_test(), net().string()});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.err, HasSubstr("nothing was changed"));
}

TEST_F(CniInstall, TheFirstValidFileByNameIsTheOneThatCounts) {
  fs::create_directory(net() / "00-folder.conflist");
  write_text(net() / "00-readme.txt", conflist);
  write_text(net() / "05-broken.conflist", "{");
  write_text(net() / "20-b.conflist", conflist);
  write_text(net() / "10-a.conflist", conflist);
  write_text(net() / "90-broken.conflist", "{");
  const Output output = run("install");
  EXPECT_EQ(output.exit_code, 6) << output.err;
  const auto names_it = AllOf(HasSubstr("05-broken.conflist: invalid JSON"), HasSubstr("the runtime may still load it"),
                              Not(HasSubstr("90-broken")));
  EXPECT_THAT(output.err, names_it);
  const Output status = run("status");
  EXPECT_EQ(status.exit_code, 6);
  EXPECT_THAT(status.err, names_it);
  EXPECT_EQ(read_file(net() / "10-a.conflist"), with_us());
  EXPECT_EQ(read_file(net() / "20-b.conflist"), conflist);
  // Whatever holds an entry loses it.
  rename_over(net() / "20-b.conflist", with_us());
  must("uninstall");
  EXPECT_EQ(read_file(net() / "10-a.conflist"), conflist);
  EXPECT_EQ(nlohmann::json::parse(read_file(net() / "20-b.conflist")), nlohmann::json::parse(conflist));
}

// libcni 1.3 adds them at the end.
TEST_F(CniInstall, PluginsOfAFolderComeAfterIt) {
  const std::string name = nlohmann::json::parse(conflist)["name"];
  write_text(net() / "10-a.conflist", conflist);
  must("install");
  fs::create_directory(net() / name);
  write_text(net() / name / "10-more.conf", R"({"type": "portmap"})");
  for (const char* action : {"install", "status"}) {
    const Output output = run(action);
    EXPECT_EQ(output.exit_code, 6);
    EXPECT_THAT(output.err, AllOf(HasSubstr(name + "/10-more.conf' comes after sidetrack-cni"),
                                  HasSubstr("loadOnlyInlinedPlugins")));
  }
  must("uninstall");
}

TEST_F(CniInstall, ASinglePluginStaysBehindAList) {
  for (const char* ending : {".conf", ".json"}) {
    SCOPED_TRACE(ending);
    const std::string name = std::string("10-net") + ending;
    write_text(net() / name, single);
    must("install");
    const State installed = state();
    EXPECT_EQ(installed.size(), 3U);
    EXPECT_EQ(installed.at(name), single);
    const auto list = nlohmann::json::parse(used());
    EXPECT_EQ(list["plugins"][0], nlohmann::json::parse(single));
    EXPECT_EQ(list["plugins"][1]["type"], "sidetrack-cni");
    EXPECT_EQ(list["cniVersion"], "0.4.0");
    EXPECT_EQ(run("status").exit_code, 0);
    // The primary plugin writes its file anew.
    write_text(net() / name, single);
    must("install");
    EXPECT_EQ(state(), installed);
    const Output gone = run("uninstall");
    EXPECT_EQ(gone.exit_code, 0);
    EXPECT_THAT(gone.err, HasSubstr("removed '" + (net() / "10-net-sidetrack.conflist").string()));
    EXPECT_EQ(state(), (State{{name, single}}));
    fs::remove(net() / name);
  }
}

TEST_F(CniInstall, MultusBecomesAListAndASinglePluginAgain) {
  write_text(net() / "00-multus.conf", multus);
  const Output output = run("install");
  EXPECT_THAT(output.err, HasSubstr("00-multus.conf.sidetrack-saved'"));
  const State installed = state();
  EXPECT_EQ(installed.size(), 3U);
  EXPECT_EQ(installed.at("00-multus.conf.sidetrack-saved"), multus);
  write_text(net() / "00-multus.conf", multus);
  must("install");
  EXPECT_EQ(state(), installed);
  must("uninstall");
  EXPECT_EQ(state(), (State{{"00-multus.conf", multus}}));
}

TEST_F(CniInstall, AListThatHasBeenChangedSinceStaysAList) {
  write_text(net() / "00-multus.conf", multus);
  must("install");
  std::string changed = read_file(net() / "00-multus.conflist");
  changed.replace(changed.find("\"net\""), 5, "\"other\"");
  write_text(net() / "00-multus.conflist", changed);
  must("uninstall");
  EXPECT_EQ(state().size(), 1U);
  EXPECT_THAT(state().at("00-multus.conflist"), AllOf(HasSubstr("\"other\""), Not(HasSubstr("sidetrack"))));
}

TEST_F(CniInstall, WhatALinkLeadsToIsWritten) {
  fs::create_directory(root / "elsewhere");
  write_text(root / "elsewhere/list", conflist);
  fs::create_symlink(root / "elsewhere/list", net() / "10-net.conflist");
  must("install");
  EXPECT_TRUE(fs::is_symlink(net() / "10-net.conflist"));
  EXPECT_EQ(read_file(root / "elsewhere/list"), with_us());
}

// Without what was kept of it, or with something else by now, nothing tells that it was a single plugin.
TEST_F(CniInstall, AListWhoseSinglePluginIsLostStaysAList) {
  for (const char* saved : {"{", "[]", R"({"type": "other", "name": "net", "cniVersion": "0.4.0"})"}) {
    write_text(net() / "00-multus.conf", multus);
    must("install");
    write_text(net() / "00-multus.conf.sidetrack-saved", saved);
    must("uninstall");
    EXPECT_EQ(state().size(), 1U) << saved;
    EXPECT_THAT(state()["00-multus.conflist"], AllOf(HasSubstr("multus"), Not(HasSubstr("sidetrack")))) << saved;
    fs::remove(net() / "00-multus.conflist");
  }
}

// ---- status

TEST_F(CniInstall, StatusSaysWhatIsNotAsInstalled) {
  const fs::path list = net() / "10-net.conflist";
  write_text(list, conflist);
  must("install");
  EXPECT_THAT(run("status").out, AllOf(HasSubstr("this program"), HasSubstr("network net, CNI 1.0.0"),
                                       HasSubstr("plugins        bridge, sidetrack-cni\n")));
  const auto expect_differs = [&](const char* what) {
    const Output output = run("status");
    EXPECT_EQ(output.exit_code, 6);
    EXPECT_THAT(output.err, HasSubstr(what));
    const Output json = run("status", {"--json"});
    EXPECT_EQ(json.exit_code, 6);
    EXPECT_EQ(nlohmann::json::parse(json.out)["installed"], false);
  };
  auto moved = nlohmann::json::parse(with_us());
  std::swap(moved["plugins"][0], moved["plugins"][1]);
  write_text(list, moved.dump());
  expect_differs("sidetrack-cni is not the last plugin");
  write_text(list, conflist);
  expect_differs("sidetrack-cni is not among the plugins");
  fs::remove(list);
  expect_differs("holds no network configuration");
  write_text(list, with_us());
  EXPECT_EQ(run("status").exit_code, 0);

  fs::permissions(program(), fs::perms::owner_read);
  expect_differs("expected a file of mode 0755");
  std::string other = own_program();
  other.replace(other.find("@(#)sidetrack ") + 14, 5, "9.8.7");
  rename_over(program(), other);
  expect_differs("is not this program, but version 9.8.7");
  rename_over(program(), own_program() + "x");
  expect_differs("is not this program, but another build of version ");
  rename_over(program(), "#!/bin/sh\n");
  expect_differs("is not this program, but another one");
  fs::remove(program());
  fs::create_directory(program());
  expect_differs("cannot be read: Is a directory (EISDIR)");
  fs::remove(program());
  ASSERT_EQ(mkfifo(program().c_str(), 0755), 0);
  expect_differs("cannot be read: Exec format error (ENOEXEC)");
  fs::remove(program());
  expect_differs("cannot be read: No such file or directory");
  must("install");
  const auto good = nlohmann::json::parse(run("status", {"--json"}).out);
  EXPECT_EQ(good["installed"], true);
  EXPECT_EQ(good["program"]["same"], true);
  EXPECT_EQ(good["configuration"]["network"], "net");
  EXPECT_EQ(good["configuration"]["entry"]["type"], "sidetrack-cni");
  EXPECT_EQ(good["problems"], nlohmann::json::array());
}

TEST_F(CniInstall, StatusSaysWhatItCannotRead) {
  must_fail_to_read({"--net-dir", root / "no"},
                    "cannot read the directory '" + (root / "no").string() + "': No such file or directory (ENOENT)");
  write_text(root / "file", "");
  must_fail_to_read({"--net-dir", root / "file"},
                    "cannot read the directory '" + (root / "file").string() + "': Not a directory (ENOTDIR)");
  // What may be the one that counts is not left out.
  write_text(net() / "05-net.conflist", conflist);
  write_text(net() / "10-net.conflist", conflist);
  fs::permissions(net() / "05-net.conflist", fs::perms::none);
  fs::permissions(root, fs::perms::owner_all | fs::perms::others_exec | fs::perms::others_read);
  must_fail_to_read({}, "cannot read '" + (net() / "05-net.conflist").string() + "': Permission denied (EACCES)", 4,
                    {.uid = 1000, .gid = 1000});
}

// ---- Refusals

TEST_F(CniInstall, WhatIsInTheWayIsNamedAndLeft) {
  // A list beside the single plugin that is none.
  write_text(net() / "00-multus.conf", multus);
  write_text(net() / "00-multus.conflist", "{");
  const State before = state();
  const Output list = run("install");
  EXPECT_EQ(list.exit_code, 1);
  EXPECT_THAT(list.err, HasSubstr("00-multus.conflist' blocks the list that would replace the single plugin"));
  EXPECT_EQ(state(), before);
  fs::remove(net() / "00-multus.conflist");

  const fs::path saved = net() / "00-multus.conf.sidetrack-saved";
  fs::create_directory(saved);
  const Output kept = run("install");
  EXPECT_EQ(kept.exit_code, 1);
  EXPECT_THAT(kept.err, HasSubstr(fmt::format("cannot rename '{}' to '{}': Is a directory (EISDIR)",
                                              (net() / "00-multus.conf").string(), saved.string())));
  fs::remove(saved);
  must("install");
  EXPECT_EQ(run("status").exit_code, 0);
  must("uninstall");
  EXPECT_EQ(state(), (State{{"00-multus.conf", multus}}));
}

// It is another program's matter whether its file is to name the plugin: it may be loaded.
TEST_F(CniInstall, TheProgramStaysAsLongAsAFileThatIsNotUnderstoodMayNameIt) {
  write_text(net() / "10-net.conflist", conflist);
  must("install");
  write_text(net() / "20-broken.conflist", R"({"plugins": [{"type": "sidetrack-cni"})");
  const Output output = run("uninstall");
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, AllOf(HasSubstr("20-broken.conflist: "),
                                HasSubstr("; it may name sidetrack-cni, so the program is not removed"),
                                HasSubstr("correct the file or remove it, then run it again")));
  EXPECT_EQ(state()["sidetrack-cni"], "ours");
  EXPECT_EQ(read_file(net() / "10-net.conflist"), conflist);
  write_text(net() / "20-broken.conflist", "{");
  const Output again = run("uninstall");
  EXPECT_EQ(again.exit_code, 0);
  EXPECT_THAT(again.err, HasSubstr("not checked: "));
  EXPECT_FALSE(fs::exists(program()));
}

TEST_F(CniInstall, WhatCannotBeInstalledTouchesNothing) {
  struct Case {
    const char* name;
    const char* text;
    Words options;
    int exit_code;
    const char* said;
  };
  for (const Case& each :
       {Case{"10-net.conflist",
             R"({"cniVersion": "0.2.0", "name": "n", "plugins": [{"type": "a"}]})",
             {},
             1,
             "\"cniVersion\": 0.2.0: expected one of 0.3.0"},
        Case{"10-net.conflist", "", {}, 1, "holds no network configuration that can be used: "},
        Case{"readme", "", {}, 1, "holds no network configuration; install the primary network plugin first"},
        Case{"10-net.conflist", conflist, {"-u", "1,2"}, 2, "-u, --proxy-uid: expected one number"},
        Case{"10-net.conflist", conflist, {"--exclude-namespaces", "Kube"}, 2, "'Kube': expected the name of"},
        Case{"10-net.conflist", conflist, {"--net-dir", "net.d"}, 2, "'net.d': expected an absolute path"},
        Case{"10-net.conflist", conflist, {"--json"}, 2, "cni install prints no result"},
        Case{"10-net.conflist",
             conflist,
             {"--bin-dir", "/nonexistent/bin"},
             2,
             "there is no directory '/nonexistent/bin'"},
        Case{"10-net.conflist", conflist, {"--net-dir", "/nonexistent/net.d"}, 2, "cannot open the directory"},
        Case{"10-net.conflist", conflist, {"--bin-dir", "/proc/self"}, 4, "cannot write '/proc/self/sidetrack-cni'"}}) {
    SCOPED_TRACE(each.said);
    write_text(net() / each.name, each.text);
    const State before = state();
    const Output output = run("install", each.options);
    if (each.exit_code == 2) {
      EXPECT_EQ(output.exit_code, 2);
    } else {
      EXPECT_THAT(output.exit_code, AnyOf(1, 4));
    }
    EXPECT_THAT(output.err, HasSubstr(each.said));
    EXPECT_EQ(state(), before);
    fs::remove(net() / each.name);
  }
  write_text(net() / "00-multus.conf", multus);
  write_text(net() / "00-multus.conflist", conflist);
  const Output both = run("install");
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_THAT(both.err, HasSubstr("blocks the list that would replace the single plugin"));
  EXPECT_EQ(state(), (State{{"00-multus.conf", multus}, {"00-multus.conflist", conflist}}));
}

TEST_F(CniInstall, OptionsOfInstallAreRefusedElsewhere) {
  for (const Words& options : {Words{"-u", "1"}, Words{"--exclude-namespaces", "a"}, Words{"--backend", "nftables"}}) {
    for (const char* action : {"uninstall", "status"}) {
      const Output output = run(action, options);
      EXPECT_EQ(output.exit_code, 2);
      EXPECT_THAT(output.err, HasSubstr(std::string("without effect on cni ") + action));
    }
  }
}

TEST_F(CniInstall, ADynamicProgramIsRefused) {
  write_text(net() / "10-net.conflist", conflist);
  Words without = words("install");
  without.pop_back();
  const Output output = ns.program(without);
  if (output.exit_code == 0) GTEST_SKIP() << "the program under test is static";
  EXPECT_EQ(output.exit_code, 2);
  EXPECT_THAT(output.err, AllOf(HasSubstr("needs shared libraries"), HasSubstr("--allow-dynamic")));
  EXPECT_EQ(state(), (State{{"10-net.conflist", conflist}}));
}

// ---- Faults

// At all other calls the state is that of one of these.
constexpr const char* file_calls[] = {"openat", "write",  "fsync", "fchmod",    "ftruncate",
                                      "rename", "unlink", "flock", "exit_group"};

class CniInstallFaults : public CniInstall, public ::testing::WithParamInterface<const char*> {
 protected:
  void begin(const std::string& action) {
    for (const fs::path& folder : {bin(), net()}) {
      for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry.path());
    }
    put_plugins();
    const std::string_view name = GetParam();
    write_text(net() / name, name.starts_with("00-multus") ? multus : name.ends_with(".conf") ? single : conflist);
    if (action == "uninstall") must("install");
  }

  [[nodiscard]] std::map<std::string, int> calls(const std::string& action) const {
    std::istringstream lines(ns.must(Words{"strace", "-qq", "-o", "/dev/fd/1"} + words(action)));
    std::map<std::string, int> counts;
    for (std::string line; std::getline(lines, line);) {
      const std::size_t end = line.find('(');
      if (end != std::string::npos && !line.starts_with("execve(")) ++counts[line.substr(0, end)];
    }
    return counts;
  }
  [[nodiscard]] Output disturbed(const std::string& action, const std::string& call, int nth,
                                 const std::string& fate) const {
    count_fault();
    return ns.program(Words{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e",
                            fmt::format("inject={}:{}:when={}", call, fate, nth)} +
                      words(action));
  }
};

TEST_P(CniInstallFaults, KilledAtAnySystemCallARuntimeSeesTheOldOrTheNew) {
  for (const char* action : {"install", "uninstall"}) {
    begin(action);
    const State old_state = state();
    const std::string old_used = used();
    const auto counts = calls(action);
    const State new_state = state();
    const std::string new_used = used();
    ASSERT_NE(old_used, new_used);
    int kills = 0;
    for (const auto& [call, count] : counts) {
      if (std::ranges::find(file_calls, call) == std::end(file_calls)) continue;
      for (int nth = 1; nth <= count; ++nth) {
        const std::string what = fmt::format("{} killed at {} {}", action, call, nth);
        begin(action);
        if (disturbed(action, call, nth, "signal=SIGKILL").exit_code == 128 + SIGKILL) ++kills;
        const std::string now = used();
        EXPECT_TRUE(now == old_used || now == new_used) << what << "\n" << now;
        // No runtime is told to call what is not there.
        if (now.find("sidetrack-cni") != std::string::npos) {
          EXPECT_EQ(state()["sidetrack-cni"], "ours") << what;
        }
        must(action);
        EXPECT_EQ(state(), new_state) << what;
        must("uninstall");
        for (const fs::path& folder : {bin(), net()}) {
          for (const auto& entry : fs::directory_iterator(folder))
            EXPECT_FALSE(entry.path().filename().string().starts_with('.')) << what << entry.path();
        }
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(kills, 20);
  }
}

TEST_P(CniInstallFaults, EveryCallFailingIsSaid) {
  for (const char* action : {"install", "uninstall"}) {
    begin(action);
    const State old_state = state();
    const auto counts = calls(action);
    const State new_state = state();
    int failures = 0;
    for (const char* call : {"openat", "open", "write", "fsync", "fchmod", "rename", "unlink", "flock", "ftruncate",
                             "fstat", "newfstatat", "read", "getdents64"}) {
      const auto found = counts.find(call);
      for (int nth = 1; found != counts.end() && nth <= found->second; ++nth) {
        const std::string what = fmt::format("{}: {} {} fails", action, call, nth);
        begin(action);
        const Output output = disturbed(action, call, nth, "error=EIO");
        if (output.exit_code == 0) {
          EXPECT_EQ(state(), new_state) << what << output.err;
        } else {
          ++failures;
          EXPECT_THAT(output.err, HasSubstr("error")) << what;
          EXPECT_THAT(output.exit_code, AnyOf(1, 2, 4, 127)) << what << output.err;  // 127: the loader's
        }
        must(action);
        EXPECT_EQ(state(), new_state) << what;
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(failures, 5);
  }
}
INSTANTIATE_TEST_SUITE_P(, CniInstallFaults, ::testing::Values("10-net.conflist", "10-net.conf", "00-multus.conf"),
                         [](const auto& tested) {
                           const std::string name = tested.param;
                           return name.starts_with("00") ? "multus" : name.substr(7);
                         });

TEST_F(CniInstall, SeveralAtATimeEndAsOne) {
  write_text(net() / "10-net.conf", single);
  std::string line;
  for (const std::string& word : words("install")) line += "'" + word + "' ";
  const Output output = ns.program(
      {"bash", "-c",
       "for i in 1 2 3 4 5 6 7 8; do " + line + "& all+=($!); done; for one in ${all[@]}; do wait $one || exit; done"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(run("status").exit_code, 0);
  must("uninstall");
  EXPECT_EQ(state(), (State{{"10-net.conf", single}}));
}

// ---- --watch

// The program, from its start to SIGTERM.
class Running {
 public:
  explicit Running(const Words& words) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));  // NOLINT
    pointers.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDERR_FILENO);
      execv(pointers[0], pointers.data());
      _exit(127);
    }
    close(ends[1]);
    read_ = ends[0];
  }
  ~Running() {
    if (pid_ > 0) static_cast<void>(end(SIGKILL));
    close(read_);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  // Waits until it has said so.
  void expect(const std::string& what) {
    constexpr int guard_ms = 60'000;
    while (true) {
      const auto found = said_.find(what);
      if (found != std::string::npos) {
        said_.erase(0, said_.find('\n', found) + 1);
        return;
      }
      pollfd ready{read_, POLLIN, 0};
      char buffer[4096];
      const ssize_t size = poll(&ready, 1, guard_ms) == 1 ? read(read_, buffer, sizeof buffer) : 0;
      ASSERT_GT(size, 0) << "it never says '" << what << "', but: " << said_;
      said_.append(buffer, static_cast<std::size_t>(size));
    }
  }
  // What it has said since, once it has ended.
  [[nodiscard]] std::string rest() {
    char buffer[4096];
    for (ssize_t size = 0; (size = read(read_, buffer, sizeof buffer)) > 0;)
      said_.append(buffer, static_cast<std::size_t>(size));
    return said_;
  }
  void send(int signal) const { kill(pid_, signal); }
  [[nodiscard]] int end(int signal) {
    kill(pid_, signal);
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int read_ = -1;
  std::string said_;
};

class CniWatch : public CniInstall {
 protected:
  static constexpr const char* mended = "sidetrack-cni is the last plugin of network 'net'";
};

TEST_F(CniWatch, MendsWhatOthersWriteAndEndsWhenAsked) {
  const fs::path list = net() / "10-net.conflist";
  write_text(list, conflist);
  Running watch(words("install", {"--watch"}));
  watch.expect("watching " + net().string());
  EXPECT_EQ(read_file(list), with_us());

  rename_over(list, conflist);
  watch.expect(mended);
  EXPECT_EQ(read_file(list), with_us());
  write_text(list, conflist);  // in place
  watch.expect(mended);
  EXPECT_EQ(read_file(list), with_us());
  fs::remove(program());
  watch.expect("installed '" + program().string());
  fs::permissions(program(), fs::perms::owner_read);
  watch.expect("installed '" + program().string());
  EXPECT_EQ(run("status").exit_code, 0);

  // Another configuration comes first, this one goes.
  write_text(net() / "05-net.conf", single);
  watch.expect(mended);
  EXPECT_TRUE(fs::exists(net() / "05-net-sidetrack.conflist"));
  // Its owner takes it away.
  rename_over(list, conflist);
  fs::remove(net() / "05-net.conf");
  watch.expect("removed '" + (net() / "05-net-sidetrack.conflist").string());
  EXPECT_EQ(read_file(list), with_us());
  EXPECT_FALSE(fs::exists(net() / "05-net.conf"));
  fs::remove(list);
  watch.expect("holds no network configuration");
  write_text(list, conflist);
  watch.expect(mended);

  EXPECT_EQ(watch.end(SIGTERM), 0);
  EXPECT_EQ(run("status").exit_code, 0) << "it stays installed";
}

TEST_F(CniWatch, WaitsForFoldersAndFollowsThem) {
  fs::remove_all(net());
  fs::remove_all(bin());
  Running watch(words("install", {"--watch", "--net-dir", root / "a/b/net.d", "--bin-dir", root / "c/bin"}));
  watch.expect("cannot open the directory");
  fs::create_directories(root / "a/b/net.d");
  watch.expect("holds no network configuration");
  write_text(root / "a/b/net.d/10-net.conflist", conflist);
  watch.expect("there is no directory");
  fs::create_directories(root / "c/bin");
  watch.expect("watching");
  const auto expect_installed = [&] {
    EXPECT_THAT(read_file(root / "a/b/net.d/10-net.conflist"), HasSubstr("sidetrack-cni"));
    EXPECT_TRUE(fs::exists(root / "c/bin/sidetrack-cni"));
  };
  expect_installed();

  // Above them everything is renamed, and made anew.
  fs::rename(root / "a", root / "former");
  watch.expect("cannot open the directory");
  fs::create_directories(root / "new/b/net.d");
  write_text(root / "new/b/net.d/10-net.conflist", conflist);
  fs::rename(root / "new", root / "a");
  watch.expect(mended);
  fs::rename(root / "c", root / "c-former");  // not removed: it would be filled again meanwhile
  watch.expect("there is no directory");
  fs::create_directories(root / "c/bin");
  watch.expect("installed");
  expect_installed();
  EXPECT_EQ(watch.end(SIGINT), 0);
}

// Each user namespace has limits of its own.
TEST_F(CniWatch, SaysWhichLimitIsReached) {
  write_text(net() / "10-net.conflist", conflist);
  const auto limited = [&](const char* limit, int most) {
    return Words{"unshare", "--user", "--map-root-user",
                 "sh",      "-c",     fmt::format("echo {} >/proc/sys/user/{} && exec \"$@\"", most, limit),
                 "sh"} +
           words("install", {"--watch"});
  };
  const Output none = ns.program(limited("max_inotify_instances", 0));
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_THAT(none.err,
              HasSubstr("cannot watch directories: Too many open files (EMFILE); a user may have so many watches: "
                        "sysctl fs.inotify.max_user_instances"));
  Running few(Words{"/usr/bin/env"} + limited("max_inotify_watches", 1));
  few.expect(
      "cannot watch the directory '/dev': No space left on device (ENOSPC); a user may have so many watches: sysctl "
      "fs.inotify.max_user_watches");
  EXPECT_EQ(few.end(SIGTERM), 0);
}

TEST_F(CniWatch, SeesWhatALinkLeadsTo) {
  fs::create_directory(root / "elsewhere");
  write_text(root / "elsewhere/list", conflist);
  fs::create_symlink(root / "elsewhere/list", net() / "10-net.conflist");
  Running watch(words("install", {"--watch"}));
  watch.expect("watching");
  rename_over(root / "elsewhere/list", conflist);
  watch.expect(mended);
  EXPECT_EQ(read_file(root / "elsewhere/list"), with_us());
}

// More events than the kernel keeps.
TEST_F(CniWatch, AnOverflowOfEventsIsNoticed) {
  const fs::path list = net() / "10-net.conflist";
  write_text(list, conflist);
  Running watch(words("install", {"--watch"}));
  watch.expect("watching");
  watch.send(SIGSTOP);
  int most = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> most;
  ASSERT_GT(most, 0);
  for (int i = 0; i <= most; ++i) {  // equal events in a row are one
    write_text(net() / (i % 2 == 0 ? "a" : "b"), "");
  }
  rename_over(list, conflist);
  watch.send(SIGCONT);
  watch.expect(mended);
  EXPECT_EQ(read_file(list), with_us());
  EXPECT_EQ(watch.end(SIGTERM), 0);
}

TEST_F(CniWatch, SaysOnceWhatCiliumDoes) {
  const fs::path list = net() / "05-cilium.conflist";
  const std::string cilium = R"({"cniVersion": "0.3.1", "name": "net", "plugins": [{"type": "cilium-cni"}]})";
  write_text(bin() / "cilium-cni", "");
  write_text(list, cilium);
  Running watch(words("install", {"--watch"}));
  watch.expect("watching");
  rename_over(list, cilium);
  watch.expect(mended);
  rename_over(list, cilium);
  watch.expect("cni.exclusive=false");
  rename_over(list, cilium);
  watch.expect(mended);
  EXPECT_EQ(watch.end(SIGTERM), 0);
  EXPECT_THAT(watch.rest(), Not(HasSubstr("cni.exclusive")));
}

TEST_F(CniWatch, TwoTakeTurns) {
  write_text(net() / "10-net.conflist", conflist);
  Running first(words("install", {"--watch"}));
  first.expect("watching " + net().string());
  Running second(words("uninstall", {"--watch"}));
  second.expect(fmt::format("another process watches '{}' already", bin().string()));
  EXPECT_EQ(run("status").exit_code, 0);
  EXPECT_EQ(first.end(SIGTERM), 0);
  second.expect("sidetrack-cni is removed from network 'net'");
  EXPECT_EQ(second.end(SIGTERM), 0);
}

TEST_F(CniWatch, UninstallSaysThatAnotherPutsItBack) {
  const fs::path list = net() / "10-net.conflist";
  write_text(list, conflist);
  Running watch(words("install", {"--watch"}));
  watch.expect("watching");
  const Output output = run("uninstall");
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_THAT(output.err, HasSubstr(fmt::format("another process watches '{}'", bin().string())));
  watch.expect(mended);
  EXPECT_EQ(read_file(list), with_us());
  EXPECT_EQ(watch.end(SIGTERM), 0);
  EXPECT_THAT(run("uninstall").err, Not(HasSubstr("another process")));
}

TEST_F(CniWatch, UninstallKeepsItAway) {
  const fs::path list = net() / "10-net.conflist";
  write_text(list, conflist);
  must("install");
  Running watch(words("uninstall", {"--watch"}));
  watch.expect("watching");
  EXPECT_EQ(state(), (State{{"10-net.conflist", conflist}}));
  rename_over(list, with_us());
  watch.expect("sidetrack-cni is removed from network 'net'");
  EXPECT_EQ(nlohmann::json::parse(read_file(list)), nlohmann::json::parse(conflist));
  EXPECT_EQ(watch.end(SIGTERM), 0);
}

}  // namespace
}  // namespace sidetrack::netns
