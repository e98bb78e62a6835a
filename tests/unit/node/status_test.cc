// SPDX-License-Identifier: GPL-2.0-or-later
// The place of the plugin in its chain. What a node has to have beside that is the matter of
// tests/kernel/cni/plugin_test.cc.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <fstream>

#include "node/cni_error.h"
#include "node/network_configuration.h"
#include "node/plugin.h"
#include "support/cannot_run.h"
#include "unit/apart.h"
#include "unit/temporary_folder.h"

namespace sidetrack::cni {
namespace {

namespace fs = std::filesystem;
using testing::apart;

class CniStatus : public ::testing::Test {
 protected:
  void SetUp() override {
    if (said() == "skip") return cannot_run("it takes a mount namespace");
  }

  // What is wrong with the chain; "good": then records are asked for, which can be written nowhere here.
  [[nodiscard]] std::string said(const std::string& conf_dir = "") const {
    return apart([&]() -> std::string {
      if (!testing::enter_new(CLONE_NEWNS) || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          mount("none", "/run", "tmpfs", MS_RDONLY, nullptr) != 0)
        return "skip";
      NetworkConfiguration configuration;
      configuration.name = "pods";
      configuration.type = "sidetrack-cni";
      configuration.conf_dir = conf_dir.empty() ? net.string() : conf_dir;
      try {
        require_available(configuration, [](Sandbox) {});
      } catch (const CniError& error) {
        if (error.code() != Code::not_available) return fmt::format("code {}", static_cast<unsigned>(error.code()));
        const std::string words = error.what();
        return words.starts_with("cannot make the directory /run/") ? "good" : words + "; " + error.details();
      }
      return "available";
    });
  }
  void put(const std::string& name, const std::string& text) const { std::ofstream(net / name) << text; }
  [[nodiscard]] static std::string list(const std::string& plugins, const std::string& more = "") {
    return R"({"cniVersion": "1.0.0", "name": "pods", )" + more + R"("plugins": [)" + plugins + "]}";
  }

  const testing::TemporaryFolder temporary;
  const fs::path net = temporary.path();
  const std::string bridge = R"({"type": "bridge"})";
  const std::string ours = R"({"type": "sidetrack-cni"})";
};

TEST_F(CniStatus, ThePluginIsTheLastOfItsChain) {
  put("10-pods.conflist", list(bridge + "," + ours));
  EXPECT_EQ(said(), "good");
  const std::string path = (net / "10-pods.conflist").string();
  put("10-pods.conflist", list(bridge + "," + ours + R"(, {"type": "portmap"})"));
  EXPECT_EQ(said(),
            path +
                ": sidetrack-cni is not the last plugin of its chain: portmap comes after it; make it the last entry "
                "of \"plugins\": others could undo what it does");
  put("10-pods.conflist", list(ours + "," + bridge));
  const std::string first = path +
                            ": sidetrack-cni is the first plugin of its chain; make it the last entry of \"plugins\": "
                            "those before it give a pod its network";
  EXPECT_EQ(said(), first);
  put("10-pods.conflist", list(ours));
  EXPECT_EQ(said(), first);
}

TEST_F(CniStatus, PluginsOfAFolderComeAfterIt) {
  put("10-pods.conflist", list(bridge + "," + ours));
  fs::create_directory(net / "pods");
  EXPECT_EQ(said(), "good");
  put("pods/more.conf", "{}");
  EXPECT_EQ(said(), fmt::format("{}: sidetrack-cni is not the last plugin of its chain: {} comes after it; say "
                                "\"loadOnlyInlinedPlugins\": true there: others could undo what it does",
                                (net / "10-pods.conflist").string(), (net / "pods/more.conf").string()));
  put("10-pods.conflist", list(bridge + "," + ours, R"("loadOnlyInlinedPlugins": true, )"));
  EXPECT_EQ(said(), "good");
}

// What is not there, no list, of another network, or without the plugin says nothing.
TEST_F(CniStatus, OtherFilesSayNothing) {
  EXPECT_EQ(said(net / "none"), "good");
  const std::string wrong = list(ours + "," + bridge);
  put("10-pods.conf", wrong);
  put("10-pods.conflist.saved", wrong);
  put("15-broken.conflist", wrong + "}");
  put("20-other.conflist", R"({"cniVersion": "1.0.0", "name": "other", "plugins": [)" + ours + "," + bridge + "]}");
  put("30-pods.conflist", list(bridge));
  fs::create_directory(net / "40-folder.conflist");
  EXPECT_EQ(said(), "good");
  put("50-pods.conflist", wrong);
  EXPECT_NE(said(), "good") << "each list of that name is looked at";
}

}  // namespace
}  // namespace sidetrack::cni
