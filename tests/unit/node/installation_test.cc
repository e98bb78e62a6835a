// SPDX-License-Identifier: GPL-2.0-or-later
// What is done and said, in folders of the tests' own. Runtimes, faults and other writers are the matter of
// tests/kernel/process/cni_install_test.cc.
#include "node/installation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sidetrack/version.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "model/error.h"
#include "unit/temporary_folder.h"

namespace sidetrack::cni {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* listed_entry =
    R"({"type": "sidetrack-cni", "capabilities": {"io.kubernetes.cri.pod-annotations": true}})";
const std::string program = "the program";

// The same for all texts of a JSON document.
std::string as_value(const std::string& text) {
  return nlohmann::json::accept(text) ? nlohmann::ordered_json::parse(text).dump() : text;
}
std::string list(const std::string& plugins, const char* network = "net") {
  return as_value(fmt::format(R"({{"cniVersion": "1.0.0", "name": "{}", "plugins": [{}]}})", network, plugins));
}
const std::string bridge = list(R"({"type": "bridge"})");
const std::string with_us = list(fmt::format(R"({{"type": "bridge"}},{})", listed_entry));
const std::string single = R"({"cniVersion": "0.4.0", "name": "one", "type": "bridge"})";

class CniInstallation : public ::testing::Test {
 protected:
  CniInstallation() {
    fs::create_directory(folders.programs);
    fs::create_directory(folders.configurations);
    for (const char* name : {"bridge", "ptp"}) put(fs::path(folders.programs) / name, "");
  }

  testing::TemporaryFolder root;
  Folders folders{root.path() / "bin", root.path() / "net.d", root.path() / "records", root.path() / "results"};
  const fs::path net = folders.configurations;
  const fs::path path = fs::path(folders.programs) / "sidetrack-cni";

  void put(const fs::path& file, const std::string& text, mode_t mode = 0600) const {
    std::ofstream(file) << text;
    chmod(file.c_str(), mode);
  }
  static bool is_of_others(const fs::path& name) { return name == "bridge" || name == "ptp"; }
  // Without the folders' names.
  [[nodiscard]] std::string shortened(std::string text) const {
    for (const std::string& name : {folders.programs, folders.configurations}) {
      for (auto at = text.find(name + "/"); at != std::string::npos; at = text.find(name + "/"))
        text.erase(at, name.size() + 1);
    }
    return text;
  }
  [[nodiscard]] std::string lines(const std::vector<std::string>& sentences) const {
    return shortened(fmt::format("{}", fmt::join(sentences, "\n")));
  }
  [[nodiscard]] std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> found;
    for (const fs::path& folder : {fs::path(folders.programs), net}) {
      for (const fs::directory_entry& each : fs::directory_iterator(folder)) {
        if (is_of_others(each.path().filename()) || each.path().string().ends_with(".conflist.sidetrack-saved"))
          continue;
        std::ifstream file(each.path());
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        found[each.path().filename()] = each.path().extension() == ".conflist" ? as_value(text) : text;
      }
    }
    return found;
  }
  template <typename Act>
  [[nodiscard]] std::string refusal(Act act) const {
    try {
      static_cast<void>(act());
    } catch (const Error& error) {
      return shortened(error.what() + ("; " + error.hint()));
    }
    return "";
  }
  [[nodiscard]] std::string said_by_status(const std::string& running = program) const {
    return lines(status(folders, running).problems);
  }
};

TEST_F(CniInstallation, SaysWhatItDoesAndDoesItOnce) {
  put(net / "10-net.conflist", bridge);
  const Outcome installed = install(folders, program, listed_entry);
  EXPECT_EQ(lines(installed.done), fmt::format("installed 'sidetrack-cni', version {}\n"
                                               "'10-net.conflist': sidetrack-cni is the last plugin of network 'net'",
                                               version));
  EXPECT_THAT(installed.problems, IsEmpty());
  EXPECT_THAT(installed.warnings, IsEmpty());
  const std::map<std::string, std::string> both{{"10-net.conflist", with_us}, {"sidetrack-cni", program}};
  EXPECT_EQ(files(), both);
  EXPECT_THAT(install(folders, program, listed_entry).done, IsEmpty());

  const Status found = status(folders, program);
  EXPECT_EQ(found.program.path, path);
  EXPECT_TRUE(found.program.present);
  EXPECT_TRUE(found.program.same);
  EXPECT_EQ(found.program.version, "") << "these few letters tell none";
  ASSERT_TRUE(found.configuration);
  EXPECT_EQ(found.configuration->path, net / "10-net.conflist");
  EXPECT_EQ(found.configuration->network, "net");
  EXPECT_EQ(found.configuration->cni_version, "1.0.0");
  EXPECT_THAT(found.configuration->plugins, ElementsAre("bridge", "sidetrack-cni"));
  EXPECT_EQ(found.configuration->entry, as_value(listed_entry));
  EXPECT_THAT(found.problems, IsEmpty());

  const Outcome removed = uninstall(folders);
  EXPECT_EQ(lines(removed.done),
            "'10-net.conflist': sidetrack-cni is removed from network 'net'\n"
            "removed 'sidetrack-cni'");
  EXPECT_EQ(files(), (std::map<std::string, std::string>{{"10-net.conflist", bridge}}));
  EXPECT_THAT(uninstall(folders).done, IsEmpty());
}

// With blanks that no document has, and a key of which the last counts.
TEST_F(CniInstallation, GivesBackTheTextOfAListThatHasNotBeenChangedSince) {
  const std::string text =
      "{ \"name\":\"net\",\n\"cniVersion\": \"1.0.0\",\t\"plugins\": [{\"mtu\": 1.50e1, \"mtu\": 2, \"type\": "
      "\"bridge\"}] }";
  const fs::path file = net / "10-net.conflist";
  const fs::path saved = net / "10-net.conflist.sidetrack-saved";
  const auto text_of = [](const fs::path& read) {
    std::ifstream opened(read);
    return std::string{std::istreambuf_iterator<char>(opened), {}};
  };
  put(file, text);
  static_cast<void>(install(folders, program, listed_entry));
  EXPECT_EQ(text_of(saved), text);
  static_cast<void>(install(folders, program, as_value(R"({"type": "sidetrack-cni", "uid": 7})")));
  EXPECT_EQ(text_of(saved), text) << "not one with an entry of ours";
  static_cast<void>(uninstall(folders));
  EXPECT_EQ(text_of(file), text);
  EXPECT_FALSE(fs::exists(saved));

  static_cast<void>(install(folders, program, listed_entry));
  auto changed = nlohmann::ordered_json::parse(text_of(file));
  changed["plugins"][0]["mtu"] = 3;
  put(file, changed.dump());
  static_cast<void>(uninstall(folders));
  changed["plugins"].erase(1);
  EXPECT_EQ(files(), (std::map<std::string, std::string>{{"10-net.conflist", changed.dump()}}));
  EXPECT_FALSE(fs::exists(saved));

  // Its owner has taken the entry out already.
  static_cast<void>(install(folders, program, listed_entry));
  put(file, bridge);
  static_cast<void>(uninstall(folders));
  EXPECT_EQ(text_of(file), bridge);
  EXPECT_FALSE(fs::exists(saved));
}

// Another program, another mode, another entry: each is mended alone.
TEST_F(CniInstallation, MendsWhatIsNotAsItShouldBe) {
  put(net / "10-net.conflist", bridge);
  static_cast<void>(install(folders, program, listed_entry));
  const std::string installed = fmt::format("installed 'sidetrack-cni', version {}", version);
  const std::string is_last = "'10-net.conflist': sidetrack-cni is the last plugin of network 'net'";
  struct Case {
    fs::path file;
    std::string text;
    mode_t mode;
    std::string done;
  };
  const fs::path configuration = net / "10-net.conflist";
  for (const Case& each :
       {Case{path, "another", 0755, installed}, Case{path, program, 0700, installed},
        Case{configuration, with_us, 0644, is_last}, Case{configuration, bridge, 0600, is_last},
        Case{configuration, list(std::string(listed_entry) + R"(, {"type": "bridge"})"), 0600, is_last}}) {
    put(each.file, each.text, each.mode);
    EXPECT_EQ(lines(install(folders, program, listed_entry).done), each.done) << each.text;
    EXPECT_THAT(install(folders, program, listed_entry).done, IsEmpty());
    EXPECT_EQ(said_by_status(), "");
  }
}

TEST_F(CniInstallation, SaysWhichProgramIsThere) {
  put(net / "10-net.conflist", with_us);
  const std::string mark =
      "\x7f"
      "ELF @(#)sidetrack ";
  const auto found = [&](const std::string& text) {
    put(path, text, 0755);
    const Status now = status(folders, program);
    EXPECT_TRUE(now.program.present);
    EXPECT_FALSE(now.program.same);
    return now.program.version + "|" + lines(now.problems);
  };
  EXPECT_EQ(found(mark + "9.8.7" + std::string(1, '\0') + "more"),
            "9.8.7|'sidetrack-cni' is not this program, but version 9.8.7");
  EXPECT_EQ(found(mark + "9\n"), "9\\x0a|'sidetrack-cni' is not this program, but version 9\\x0a");
  EXPECT_EQ(found(mark + std::string(version) + std::string(1, '\0')),
            fmt::format("{0}|'sidetrack-cni' is not this program, but another build of version {0}", version));
  EXPECT_EQ(found(mark + std::string(40, '1')),
            std::string(32, '1') + "|'sidetrack-cni' is not this program, but version " + std::string(32, '1'));
  EXPECT_EQ(found("#!/bin/sh"), "|'sidetrack-cni' is not this program, but another one");
  put(path, program, 0744);
  EXPECT_EQ(said_by_status(), "'sidetrack-cni': expected a file of mode 0755");
  fs::remove(path);
  EXPECT_EQ(said_by_status(), "'sidetrack-cni' cannot be read: No such file or directory (ENOENT)");
  EXPECT_FALSE(status(folders, program).program.present);
}

TEST_F(CniInstallation, SaysWhyTheEntryDoesNotCount) {
  put(path, program, 0755);
  const auto found = [&](const std::string& plugins) {
    put(net / "10-net.conflist", list(plugins));
    EXPECT_EQ(status(folders, program).configuration->entry, "");
    return said_by_status();
  };
  EXPECT_EQ(found(R"({"type": "bridge"})"), "'10-net.conflist': sidetrack-cni is not among the plugins");
  const std::string not_last =
      "'10-net.conflist': sidetrack-cni is not the last plugin, or not the only one of its kind";
  EXPECT_EQ(found(std::string(listed_entry) + R"(, {"type": "bridge"})"), not_last);
  EXPECT_EQ(found(fmt::format("{0}, {0}", listed_entry)), not_last);

  put(net / "05-old.json", "{");
  put(net / "90-new.conf", "{");
  put(net / "10-net.conflist", with_us);
  EXPECT_EQ(
      said_by_status(),
      "05-old.json: invalid JSON in line 1, column 2; the runtime may still load it, or, like containerd, none of "
      "the files after it");
  fs::remove(net / "05-old.json");
  fs::create_directory(net / "net");
  put(net / "net" / "a.conf", "{}");
  put(net / "net" / "b.txt", "{}");
  EXPECT_EQ(said_by_status(),
            "'net/a.conf' comes after sidetrack-cni: say \"loadOnlyInlinedPlugins\": true in '10-net.conflist', or "
            "remove it");
  EXPECT_EQ(lines(install(folders, program, listed_entry).problems), said_by_status());
  fs::remove_all(net / "net");

  fs::remove(net / "10-net.conflist");
  EXPECT_FALSE(status(folders, program).configuration);
  EXPECT_EQ(said_by_status(), fmt::format("'{}' holds no network configuration that can be used: 90-new.conf: invalid "
                                          "JSON in line 1, column 2",
                                          net.string()));
  fs::remove(net / "90-new.conf");
  EXPECT_EQ(said_by_status(), fmt::format("'{}' holds no network configuration", net.string()));
}

// As libcni passes it on, and the plugin reads it.
TEST_F(CniInstallation, SaysWhatThePluginWouldRefuse) {
  put(path, program, 0755);
  const auto found = [&](const std::string& keys, const char* version = "1.0.0") {
    put(net / "10-net.conflist",
        fmt::format(
            R"({{"cniVersion": "{}", "name": "n\"t", "plugins": [{{"type": "bridge"}}, {{"type": "sidetrack-cni"{}}}]}})",
            version, keys));
    return said_by_status();
  };
  const std::string refused = "'10-net.conflist': the plugin refuses its entry for every pod: ";
  const std::string annotations = R"(, "capabilities": {"io.kubernetes.cri.pod-annotations": true})";
  EXPECT_EQ(found(annotations), "");
  EXPECT_EQ(found(annotations + R"(, "uid": 1000, "dns": true)"), "");
  EXPECT_EQ(found(R"(, "capabilities": {})"),
            refused + R"(capabilities: {}: expected {"io.kubernetes.cri.pod-annotations": true})");
  EXPECT_EQ(found(""), refused + R"(capabilities: missing: expected {"io.kubernetes.cri.pod-annotations": true})");
  EXPECT_EQ(found(annotations + R"(, "uid": "1337")"), refused + R"(uid: "1337": expected a whole number)");
  EXPECT_EQ(found(annotations + R"(, "uuid": 7)").substr(0, refused.size() + 18), refused + "uuid: unknown key:");
  EXPECT_EQ(found(annotations + R"(, "cniVersion": "0.2.0", "name": 5)"), "");
  EXPECT_EQ(found(annotations + fmt::format(R"(, "logFile": "{}")", (net / "log").string())), "");
  EXPECT_EQ(found(annotations + R"(, "logFile": "/nonexistent/log")"),
            refused + "logFile: cannot write to '/nonexistent/log': No such file or directory (ENOENT)");
  EXPECT_EQ(found(annotations + R"(, "logFile": "/proc")"),
            refused + "logFile: cannot write to '/proc': Is a directory (EISDIR)");
  EXPECT_EQ(found(annotations, "0.2.0").substr(0, refused.size() + 29), refused + "cniVersion: \"0.2.0\": expected");
}

TEST_F(CniInstallation, SaysThatTheFolderIsAnotherOrTheChainAnotherMeshs) {
  const auto both = [&](const std::string& plugins) {
    put(net / "10-net.conflist", list(plugins));
    const Outcome installed = install(folders, program, listed_entry);
    EXPECT_EQ(lines(installed.problems), said_by_status());
    return said_by_status();
  };
  EXPECT_EQ(both(R"({"type": "a-cni"}, {"type": "b-cni"})"),
            fmt::format("'{}' holds no other plugin of '10-net.conflist' (a-cni, b-cni): the runtime looks for them "
                        "elsewhere, give that directory with --bin-dir",
                        folders.programs));
  EXPECT_EQ(both(R"({"type": "a-cni"}, {"type": "bridge"})"), "") << "some runtimes have several folders";
  EXPECT_EQ(both(R"({"type": "bridge"}, {"type": "istio-cni"})"),
            "'10-net.conflist': istio-cni is in the chain, too: both intercept pods; uninstall one of them");
}

// OpenShift's folder: Multus calls each network by its own file.
TEST_F(CniInstallation, ANetworkOfItsOwnForMultus) {
  folders.standalone = true;
  const std::string of_multus = R"({"type": "sidetrack-cni", "standalone": true})";
  const std::string text =
      "{\"cniVersion\": \"0.3.1\", \"name\": \"sidetrack-cni\", \"type\": \"sidetrack-cni\", \"standalone\": true}\n";
  put(net / "10-other.conf", single);
  EXPECT_EQ(lines(install(folders, program, of_multus).done),
            fmt::format("installed 'sidetrack-cni', version {}\n"
                        "'sidetrack-cni.conf': the network sidetrack-cni of Multus",
                        version));
  EXPECT_THAT(install(folders, program, of_multus).done, IsEmpty());
  const std::map<std::string, std::string> all{
      {"10-other.conf", single}, {"sidetrack-cni", program}, {"sidetrack-cni.conf", text}};
  EXPECT_EQ(files(), all);
  EXPECT_EQ(said_by_status(), "");
  put(net / "sidetrack-cni.conf", list(of_multus));
  EXPECT_NE(said_by_status(), "");
  fs::remove(net / "sidetrack-cni.conf");
  EXPECT_NE(said_by_status(), "");
  static_cast<void>(install(folders, program, of_multus));
  EXPECT_EQ(lines(uninstall(folders).done), "removed 'sidetrack-cni.conf'\nremoved 'sidetrack-cni'");
  EXPECT_EQ(files(), (std::map<std::string, std::string>{{"10-other.conf", single}}));
}

TEST_F(CniInstallation, OneProcessWatches) {
  Descriptor first;
  Descriptor second;
  hold_watch(folders, first);
  hold_watch(folders, first);
  EXPECT_EQ(
      refusal([&] {
        hold_watch(folders, second);
        return 0;
      }),
      fmt::format("another process watches '{}' already; this one waits until that ends: each would undo what the "
                  "other does",
                  folders.programs));
  fs::rename(folders.programs, root.path() / "former");
  fs::create_directory(folders.programs);
  hold_watch(folders, first);
  EXPECT_NE(refusal([&] {
              hold_watch(folders, second);
              return 0;
            }),
            "")
      << "of the folder that is there now";
  first = Descriptor();
  hold_watch(folders, second);
  EXPECT_TRUE(second.valid());
}

// A directory of such a name is none, nor is a link that leads nowhere; of those that can be read the first counts.
TEST_F(CniInstallation, LooksAtWhatARuntimeLooksAt) {
  fs::create_directory(net / "00-folder.conflist");
  put(net / "01-read.me", bridge);
  fs::create_symlink("nowhere", net / "02-link.conflist");
  put(net / "20-b.conflist", list(R"({"type": "ptp"})", "b"));
  put(net / "10-a.json", single);
  EXPECT_EQ(status(folders, program).configuration->network, "one");
  EXPECT_EQ(lines(install(folders, program, listed_entry).problems),
            fmt::format("'{}': cannot be read: No such file or directory (ENOENT); the runtime may still load it, or, "
                        "like containerd, none of the files after it",
                        "02-link.conflist"));
  EXPECT_EQ(refusal([&] { return uninstall(folders); }),
            "'02-link.conflist': cannot be read: No such file or directory (ENOENT); it may name sidetrack-cni, so the "
            "program is not removed; correct the file or remove it, then run it again");
}

// Its owner's file stays; what is made of it follows it.
TEST_F(CniInstallation, AListIsMadeBesideASinglePlugin) {
  for (const char* ending : {".conf", ".json"}) {
    const std::string name = std::string("10-net") + ending;
    const std::string made = "10-net-sidetrack.conflist";
    const std::string is_last =
        "'10-net-sidetrack.conflist': sidetrack-cni is the last plugin of network '{}'; '{}', of "
        "which it is made, stays as it is";
    put(net / name, single);
    EXPECT_EQ(lines(install(folders, program, listed_entry).done),
              fmt::format("installed 'sidetrack-cni', version {}\n", version) +
                  fmt::format(fmt::runtime(is_last), "one", name));
    auto now = files();
    EXPECT_EQ(now.size(), 3U);
    EXPECT_EQ(now[name], single);
    EXPECT_LT(made, name) << "a runtime takes the first one";
    EXPECT_EQ(said_by_status(), "");
    EXPECT_EQ(status(folders, program).configuration->path, net / made);
    EXPECT_THAT(install(folders, program, listed_entry).done, IsEmpty());
    // Its owner writes it anew.
    const std::string newer = R"({"cniVersion": "0.4.0", "name": "two", "type": "bridge"})";
    put(net / name, newer);
    EXPECT_EQ(said_by_status(), "'10-net-sidetrack.conflist' is not made of its single plugin as that is now");
    EXPECT_EQ(lines(install(folders, program, listed_entry).done), fmt::format(fmt::runtime(is_last), "two", name));
    EXPECT_EQ(files()[name], newer);
    // Its owner takes it away, for good: it does not come back.
    put(net / "20-net.conflist", bridge);
    fs::remove(net / name);
    EXPECT_EQ(said_by_status(),
              "'10-net-sidetrack.conflist' was left when the file that it is made of was removed\n"
              "'20-net.conflist': sidetrack-cni is not among the plugins");
    EXPECT_EQ(lines(install(folders, program, listed_entry).done),
              "'20-net.conflist': sidetrack-cni is the last plugin of network 'net'\n"
              "removed '10-net-sidetrack.conflist'");
    put(net / name, single);
    static_cast<void>(install(folders, program, listed_entry));
    EXPECT_EQ(said_by_status(), "") << "it is back";
    static_cast<void>(uninstall(folders));
    EXPECT_EQ(files(), (std::map<std::string, std::string>{{name, single}, {"20-net.conflist", bridge}}));
    fs::remove(net / "20-net.conflist");
    static_cast<void>(install(folders, program, listed_entry));
    fs::remove(net / name);
    EXPECT_NE(refusal([&] { return install(folders, program, listed_entry); }), "")
        << "nothing is left to be the last of";
    EXPECT_EQ(files(), (std::map<std::string, std::string>{{"sidetrack-cni", program}}));
    fs::remove(path);
  }
}

TEST_F(CniInstallation, AnotherListOfSuchANameIsNone) {
  put(net / "10-net-sidetrack.conflist", bridge);
  EXPECT_EQ(status(folders, program).configuration->path, net / "10-net-sidetrack.conflist");
  static_cast<void>(uninstall(folders));
  EXPECT_EQ(files(), (std::map<std::string, std::string>{{"10-net-sidetrack.conflist", bridge}}));
}

// Multus would take another name for that of the network to hand on to.
TEST_F(CniInstallation, MultusIsMoved) {
  const std::string multus = R"({"cniVersion": "0.3.1", "name": "multus-cni-network", "type": "multus-shim"})";
  put(fs::path(folders.programs) / "bridge", "");
  put(net / "00-multus.conf", multus);
  put(net / "10-net.conflist", bridge);
  EXPECT_EQ(lines(install(folders, program, listed_entry).done),
            fmt::format("installed 'sidetrack-cni', version {}\n"
                        "'00-multus.conflist': sidetrack-cni is the last plugin of network 'multus-cni-network'; "
                        "'00-multus.conf' is moved to '00-multus.conf.sidetrack-saved'",
                        version));
  EXPECT_EQ(files()["00-multus.conf.sidetrack-saved"], multus);
  EXPECT_THAT(install(folders, program, listed_entry).done, IsEmpty());
  const std::string newer = R"({"cniVersion": "0.3.1", "name": "two", "type": "multus-shim"})";
  put(net / "00-multus.conf", newer);
  EXPECT_EQ(lines(install(folders, program, listed_entry).done).substr(0, 72),
            "'00-multus.conflist': sidetrack-cni is the last plugin of network 'two';");
  EXPECT_EQ(files()["00-multus.conf.sidetrack-saved"], newer);
  EXPECT_EQ(files().count("00-multus.conf"), 0U);
  // Put back by hand, it is not lost.
  fs::rename(net / "00-multus.conf.sidetrack-saved", net / "00-multus.conf");
  put(net / "00-multus.conf.sidetrack-saved", "older");
  static_cast<void>(uninstall(folders));
  EXPECT_EQ(files(), (std::map<std::string, std::string>{{"00-multus.conf", newer}, {"10-net.conflist", bridge}}));
}

TEST_F(CniInstallation, LeavesNothingOfItsOwnBehind) {
  put(net / "10-net.conflist", with_us);
  put(net / "20-net.conf", single);
  put(path, program, 0755);
  put(net / ".10-net.conflist.sidetrack-new", "half a li");
  put(net / ".20-net-sidetrack.conflist.sidetrack-new", "half a li");
  put(fs::path(folders.programs) / ".sidetrack-cni.sidetrack-new", "half a pro");
  put(net / "30-net.conflist", "{");
  const Outcome done = uninstall(folders);
  EXPECT_EQ(lines(done.warnings), "not checked: 30-net.conflist: invalid JSON in line 1, column 2");
  EXPECT_EQ(files(), (std::map<std::string, std::string>{
                         {"10-net.conflist", bridge}, {"20-net.conf", single}, {"30-net.conflist", "{"}}));
  fs::remove_all(net);
  put(path, program, 0755);
  EXPECT_EQ(lines(uninstall(folders).done), "removed 'sidetrack-cni'");
}

// CRI-O calls DEL with the configuration of ADD.
TEST_F(CniInstallation, TheProgramStaysForPodsThatWereMadeWithIt) {
  put(net / "10-net.conflist", bridge);
  const std::string stays =
      "'sidetrack-cni' is kept: CRI-O needs it to remove the pods that were created with it; run it again when they "
      "are gone; --now removes it at once";
  const auto uninstalled = [&](bool at_once = false) {
    static_cast<void>(install(folders, program, listed_entry));
    const Outcome outcome = uninstall(folders, at_once);
    EXPECT_EQ(files()["10-net.conflist"], bridge);
    EXPECT_EQ(fs::exists(path), !outcome.warnings.empty());
    return lines(outcome.warnings);
  };
  Record web;
  web.container_id = "web";
  web.netns = root.path() / "web";
  put(web.netns, "");
  RecordFolder(folders.records).write(web);
  EXPECT_EQ(uninstalled(), stays);
  EXPECT_EQ(uninstalled(true), "");
  EXPECT_THAT(status(folders, program).attached, ElementsAre("web"));

  // Without a record: of a pod without a sidecar.
  fs::create_directory(folders.cache);
  const auto cache = [&](const char* name, const char* config) {
    put(fs::path(folders.cache) / name,
        fmt::format(R"({{"kind": "cniCacheV1", "containerId": "{}", "config": "{}"}})", name, config));
  };
  cache("plain", "eyJwbHVnaW5zIjogW3sidHlwZSI6ICJicmlkZ2UifSwgeyJ0eXBlIjogInNpZGV0cmFjay1jbmkifV19");
  cache("other", "eyJwbHVnaW5zIjogW3sidHlwZSI6ICJicmlkZ2UifV19");
  put(fs::path(folders.cache) / "broken", "{");
  EXPECT_THAT(status(folders, program).attached, ElementsAre("plain", "web"));
  remove("web", folders.records);
  EXPECT_EQ(uninstalled(), stays);
  EXPECT_EQ(lines(uninstall(folders).warnings), stays) << "again";
  fs::remove(fs::path(folders.cache) / "plain");
  EXPECT_EQ(lines(uninstall(folders).done), "removed 'sidetrack-cni'");
}

// containerd calls DEL for the plugins that the configuration names by then: of a pod that ends later the record stays.
TEST_F(CniInstallation, TheProgramDoesNotStayForPodsThatHaveEnded) {
  put(net / "10-net.conflist", bridge);
  static_cast<void>(install(folders, program, listed_entry));
  Record ended;
  ended.container_id = "ended";
  ended.netns = root.path() / "ended";
  RecordFolder(folders.records).write(ended);
  Record elsewhere = ended;  // from within a container, say: whether it is there cannot be seen
  elsewhere.container_id = "elsewhere";
  elsewhere.netns = root.path() / "no-such-folder" / "netns";
  RecordFolder(folders.records).write(elsewhere);
  EXPECT_THAT(status(folders, program).attached, ElementsAre("elsewhere"));
  EXPECT_EQ(uninstall(folders).warnings.size(), 1U);
  remove("elsewhere", folders.records);
  EXPECT_EQ(lines(uninstall(folders).done), "removed 'sidetrack-cni'");
}

TEST_F(CniInstallation, RefusesWhatItCannotDoBeforeItDoesAnything) {
  const auto refused = [&] { return refusal([&] { return install(folders, program, listed_entry); }); };
  EXPECT_EQ(refused(), fmt::format("'{}' holds no network configuration; install the primary network plugin first; "
                                   "--watch waits for it",
                                   net.string()));
  const std::string multus = R"({"cniVersion": "0.3.1", "name": "one", "type": "multus"})";
  put(net / "00-multus.conf", multus);
  put(net / "00-multus.conflist", "{");
  EXPECT_EQ(refused(),
            "'00-multus.conflist' blocks the list that would replace the single plugin beside it; remove one "
            "of the two");
  put(net / "00-multus.conflist", bridge);
  EXPECT_EQ(refused().substr(0, 36), "'00-multus.conflist' blocks the list");
  EXPECT_EQ(files().size(), 2U);
  fs::remove(net / "00-multus.conf");
  fs::remove_all(folders.programs);
  EXPECT_EQ(refused(),
            fmt::format("there is no directory '{}'; --bin-dir names the directory in which the runtime looks for "
                        "plugins",
                        folders.programs));
  EXPECT_EQ(fs::file_size(net / "00-multus.conflist"), bridge.size());
  fs::remove_all(net);
  EXPECT_EQ(refused(),
            fmt::format("cannot open the directory '{}': No such file or directory (ENOENT); --net-dir names the "
                        "directory from which the runtime reads its configuration",
                        net.string()));
  EXPECT_EQ(said_by_status(), fmt::format("'sidetrack-cni' cannot be read: No such file or directory (ENOENT)\n"
                                          "cannot read the directory '{}': No such file or directory (ENOENT)",
                                          net.string()));
}

TEST_F(CniInstallation, WatchesWhereLinksLead) {
  const fs::path elsewhere = root.path() / "elsewhere";
  fs::create_directory(elsewhere);
  put(elsewhere / "list", bridge);
  put(net / "10-net.conflist", bridge);
  EXPECT_THAT(folders_to_watch(folders), ElementsAre(folders.programs, folders.configurations));
  fs::create_symlink(elsewhere / "list", net / "20-net.conflist");
  fs::create_symlink(elsewhere / "list", net / "30-net.conflist");
  fs::create_symlink("/sidetrack-nowhere", net / "40-net.conflist");
  EXPECT_THAT(folders_to_watch(folders), ElementsAre(folders.programs, folders.configurations, elsewhere));
  fs::create_symlink("/proc/version", net / "50-net.conf");
  EXPECT_EQ(folders_to_watch(folders).back(), "/proc");
  fs::remove_all(net);
  EXPECT_THAT(folders_to_watch(folders), ElementsAre(folders.programs, folders.configurations));
}

}  // namespace
}  // namespace sidetrack::cni
