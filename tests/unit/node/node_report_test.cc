// SPDX-License-Identifier: GPL-2.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "model/printable.h"
#include "node/node.h"

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
  found.meshes = {"Linkerd", "Kuma"};
  made.pods.push_back(found);
  return made;
}

TEST(NodeReport, HasALineForEachPod) {
  EXPECT_EQ(node_text(node()),
            "default/web-1            4711 pause     iptables-nft  inbound TCP; outbound TCP  [as recorded]\n"
            "default/a\"b\\\\x0a\\x1b[2J  4711 \\xff\\x0a  iptables-nft  inbound TCP; outbound TCP  [differs: say "
            "\\x1b[31m]\n"
            "-                        7 sleep        -             -  [not recorded; rules of Linkerd, Kuma]\n");
}

TEST(NodeReport, NamesWhatIsKnownOfAPod) {
  Node made;
  for (const auto& [name, id] : {std::pair("web", "abc"), std::pair("", "def"), std::pair("", "")}) {
    PodReport& pod = made.pods.emplace_back();
    pod.pod_namespace = "default";
    pod.pod_name = name;
    pod.container_id = id;
    pod.backends = {"iptables-legacy", "nftables"};
    pod.state = PodState::unknown;
  }
  EXPECT_EQ(node_text(made),
            "default/web  -  iptables-legacy+nftables  -  [unknown]\n"
            "def          -  iptables-legacy+nftables  -  [unknown]\n"
            "-            -  iptables-legacy+nftables  -  [unknown]\n");
}

TEST(NodeReport, AColumnIsAsWideAsItsWidestOfSixtyLetters) {
  Node made;
  for (const std::size_t size : {60U, 61U, 1U}) made.pods.emplace_back().container_id = std::string(size, 'c');
  for (PodReport& pod : made.pods) pod.state = PodState::gone;
  EXPECT_EQ(node_text(made), std::string(60, 'c') + "  -  -  -  [gone]\n" +      //
                                 std::string(61, 'c') + "  -  -  -  [gone]\n" +  //
                                 "c" + std::string(59, ' ') + "  -  -  -  [gone]\n");
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

  Node one;
  one.pods.push_back(node().pods.front());
  one.pods.front().addresses = {*Address::parse("10.0.0.7"), *Address::parse("fd00::7")};
  one.pods.front().ambient = true;
  one.pods.front().took = std::chrono::microseconds(4711);
  one.problems = {"a record cannot be read"};
  using Json = nlohmann::json;
  const Json expected = {{"namespace", "default"},
                         {"pod", "web-1"},
                         {"container_id", "abc"},
                         {"netns", "/run/netns/cni-1"},
                         {"pid", 4711},
                         {"process", "pause"},
                         {"backends", {"iptables-nft"}},
                         {"meshes", Json::array()},
                         {"captured", "inbound TCP; outbound TCP"},
                         {"addresses", {"10.0.0.7", "fd00::7"}},
                         {"ambient", true},
                         {"state", "as_recorded"},
                         {"detail", nullptr},
                         {"microseconds", 4711}};
  EXPECT_EQ(Json::parse(node_json(one)),
            (Json{{"as_recorded", false}, {"pods", Json::array({expected})}, {"problems", one.problems}}));
}

TEST(NodeReport, IsPrometheusText) {
  const std::string text = node_metrics(node());
  EXPECT_THAT(text, HasSubstr("\nsidetrack_pods{state=\"as_recorded\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nsidetrack_pods{state=\"gone\"} 0\n"));
  EXPECT_THAT(text,
              HasSubstr("\nsidetrack_pod_as_recorded{namespace=\"default\",pod=\"web-1\",container_id=\"abc\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(R"(pod="a\"b\\\\x0a\\x1b[2J",container_id="def"} 0)"));
  EXPECT_EQ(text, printable_lines(text));

  Node all;
  for (const PodState state : {PodState::as_recorded, PodState::repaired, PodState::differs, PodState::not_recorded,
                               PodState::gone, PodState::unknown, PodState::unknown}) {
    PodReport& pod = all.pods.emplace_back();
    pod.state = state;
    if (state != PodState::not_recorded) pod.container_id = name(state);
  }
  all.problems = {"one", "two"};
  std::istringstream lines(node_metrics(all));
  std::string values;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('#')) values += line + "\n";
  }
  EXPECT_EQ(values,
            "sidetrack_pods{state=\"as_recorded\"} 1\n"
            "sidetrack_pods{state=\"repaired\"} 1\n"
            "sidetrack_pods{state=\"differs\"} 1\n"
            "sidetrack_pods{state=\"not_recorded\"} 1\n"
            "sidetrack_pods{state=\"gone\"} 1\n"
            "sidetrack_pods{state=\"unknown\"} 2\n"
            "sidetrack_pod_as_recorded{namespace=\"\",pod=\"\",container_id=\"as_recorded\"} 1\n"
            "sidetrack_pod_as_recorded{namespace=\"\",pod=\"\",container_id=\"repaired\"} 1\n"
            "sidetrack_pod_as_recorded{namespace=\"\",pod=\"\",container_id=\"differs\"} 0\n"
            "sidetrack_pod_as_recorded{namespace=\"\",pod=\"\",container_id=\"gone\"} 0\n"
            "sidetrack_pod_as_recorded{namespace=\"\",pod=\"\",container_id=\"unknown\"} 0\n"
            "sidetrack_pod_as_recorded{namespace=\"\",pod=\"\",container_id=\"unknown\"} 0\n"
            "sidetrack_node_problems 2\n");
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
