// SPDX-License-Identifier: GPL-2.0-or-later
// What `cni install` writes for its options is what the plugin reads.
#include "node/entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/error.h"
#include "node/network_configuration.h"
#include "unit/options_text.h"

namespace sidetrack::cni {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string entry_for(std::string_view options) {
  return entry(testing::parse_text("sidetrack cni install " + std::string(options)));
}

NetworkConfiguration read_entry(const std::string& made) {
  auto document = nlohmann::json::parse(made);
  document["cniVersion"] = "1.0.0";
  document["name"] = "net";
  return read_configuration(document.dump(), Keys::all);
}

TEST(CniEntry, WithoutOptionsHasNoKeyOfThePlugin) {
  EXPECT_EQ(entry_for(""), R"({"type":"sidetrack-cni","capabilities":{"io.kubernetes.cri.pod-annotations":true}})");
}

TEST(CniEntry, EveryOptionIsAKeyThatThePluginTakes) {
  const NetworkConfiguration made = read_entry(
      entry_for("-u 1000 -g 1001 -p 16001 -z 16006 -e 16008 -t 7 -r 8 --redirect-dns --dual-stack --drop-invalid "
                "--backend nftables "
                "--exclude-namespaces kube-system,monitoring --plugin-log /var/log/cni.log --net-dir /run/net.d/"));
  for (const char* option :
       {"--proxy-uid=1000", "--proxy-gid=1001", "--envoy-port=16001", "--inbound-capture-port=16006",
        "--inbound-tunnel-port=16008", "--istio-inbound-tproxy-mark=7", "--istio-inbound-tproxy-route-table=8",
        "--redirect-dns=true", "--dual-stack=true", "--drop-invalid=true", "--backend=nftables"}) {
    EXPECT_THAT(made.options, Contains(option));
  }
  EXPECT_THAT(made.exclude_namespaces, ElementsAre("kube-system", "monitoring"));
  EXPECT_THAT(made.log.targets, ElementsAre("/var/log/cni.log"));
  EXPECT_EQ(made.conf_dir, "/run/net.d");
}

TEST(CniEntry, OfAmbientPods) {
  const NetworkConfiguration made =
      read_entry(entry_for("--dataplane ambient --redirect-dns --dual-stack -p 16001 --probe-address 10.9.9.9 "
                           "--probe-address6 fd00::9"));
  EXPECT_EQ(made.dataplane, Dataplane::ambient);
  EXPECT_THAT(made.ambient_options,
              ElementsAre("--envoy-port=16001", "--redirect-dns=true", "--dual-stack=true", "--dataplane=ambient",
                          "--probe-address=10.9.9.9", "--probe-address6=fd00::9"));
  // A pod with a sidecar has a sidecar's.
  EXPECT_THAT(made.options, ElementsAre("--proxy-uid=1337", "--proxy-gid=1337", "--envoy-port=16001",
                                        "--redirect-dns=true", "--capture-all-dns=true", "--dual-stack=true"));
  EXPECT_EQ(read_entry(entry_for("")).dataplane, Dataplane::sidecar);
  EXPECT_THAT(read_entry(entry_for("")).ambient_options, ::testing::IsEmpty());
}

TEST(CniEntry, OfEachBackendIsItsName) {
  for (const std::string backend : {"nftables", "iptables-nft", "iptables-legacy"}) {
    EXPECT_THAT(read_entry(entry_for("--backend " + backend)).options, Contains("--backend=" + backend));
  }
}

// It would be a sidecar's all the same: those who name the network are no ambient pods.
TEST(CniEntry, OfMultusIsNotAmbient) {
  EXPECT_THROW(static_cast<void>(entry_for("--platform openshift --dataplane ambient")), Error);
  EXPECT_THAT(entry_for("--platform openshift"), HasSubstr("standalone"));
}

TEST(CniEntry, KnowsTheProxyByOneNumber) {
  try {
    static_cast<void>(entry_for("-u 1,2"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("-u, --proxy-uid: expected one number, not 2"));
  }
}

}  // namespace
}  // namespace sidetrack::cni
