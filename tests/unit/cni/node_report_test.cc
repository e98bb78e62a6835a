// SPDX-License-Identifier: GPL-2.0-or-later
#include "cni/node_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/printable.h"

namespace sidetrack::cni {
namespace {

using ::testing::HasSubstr;

Node node() {
  Node made;
  PodReport good;
  good.pod_namespace = "default";
  good.pod_name = "web-1";
  good.container_id = "abc";
  good.netns = "/run/netns/cni-1";
  good.pid = 4711;
  good.process = "pause";
  good.backends = {"iptables-nft"};
  good.captured = "inbound TCP; outbound TCP";
  good.state = PodState::as_recorded;
  made.pods.push_back(good);
  PodReport hostile = good;
  hostile.pod_name = "a\"b\\\n\x1b[2J";
  hostile.container_id = "def";
  hostile.process = "\xff\n";
  hostile.state = PodState::differs;
  hostile.detail = "say \x1b[31m";
  made.pods.push_back(hostile);
  PodReport found;
  found.pid = 7;
  found.process = "sleep";
  found.state = PodState::not_recorded;
  made.pods.push_back(found);
  return made;
}

TEST(NodeReport, HasALineForEachPod) {
  EXPECT_EQ(node_text(node()),
            "default/web-1            4711 pause     iptables-nft  inbound TCP; outbound TCP  [as recorded]\n"
            "default/a\"b\\\\x0a\\x1b[2J  4711 \\xff\\x0a  iptables-nft  inbound TCP; outbound TCP  [differs: say "
            "\\x1b[31m]\n"
            "-                        7 sleep        -             -  [not recorded]\n");
}

TEST(NodeReport, IsValidJson) {
  const std::string text = node_json(node());
  EXPECT_EQ(text, printable_lines(text));
  const auto document = nlohmann::json::parse(text);
  EXPECT_EQ(document["as_recorded"], false);
  EXPECT_EQ(document["pods"][0]["state"], "as_recorded");
  EXPECT_EQ(document["pods"][0]["pid"], 4711);
  EXPECT_EQ(document["pods"][1]["pod"], "a\"b\\\n\x1b[2J");
  EXPECT_EQ(document["pods"][2]["pod"], nullptr);
  EXPECT_EQ(document["problems"], nlohmann::json::array());
}

TEST(NodeReport, IsPrometheusText) {
  const std::string text = node_metrics(node());
  EXPECT_THAT(text, HasSubstr("\nsidetrack_pods{state=\"as_recorded\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nsidetrack_pods{state=\"gone\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("\nsidetrack_pod_as_recorded{namespace=\"default\",pod=\"web-1\",container_id=\"abc\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(R"(pod="a\"b\\\\x0a\\x1b[2J",container_id="def"} 0)"));
  EXPECT_EQ(text, printable_lines(text));
}

TEST(Node, IsAsRecordedWhileNothingDiffersOrIsUnknown) {
  Node made = node();
  EXPECT_FALSE(made.as_recorded());
  for (const PodState good : {PodState::as_recorded, PodState::repaired, PodState::not_recorded, PodState::gone}) {
    made.pods[1].state = good;
    EXPECT_TRUE(made.as_recorded()) << name(good);
  }
  made.pods[1].state = PodState::unknown;
  EXPECT_FALSE(made.as_recorded());
  made.pods.clear();
  made.problems = {"a record cannot be read"};
  EXPECT_FALSE(made.as_recorded());
}

}  // namespace
}  // namespace sidetrack::cni
