// SPDX-License-Identifier: GPL-2.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sidetrack/render.h"
#include "unit/asking.h"

namespace sidetrack {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string usual_options = "-i * -b * -d 15090,15021,15020 --ip-families ipv4";

TEST(Mermaid, OfTheUsualOptions) {
  EXPECT_EQ("\n" + mermaid(planned(usual_options).ruleset, Family::ipv4), R"(
%%{init: {"flowchart": {"wrappingWidth": 600}}}%%
flowchart LR
  in(["comes in"])
  app(["the app, as it is"])
  port_15006(["port 15006: Envoy inbound"])
  out(["the app or the proxy sends"])
  destination(["its destination, as it is"])
  port_15001(["port 15001: Envoy outbound"])
  subgraph nat
    nat_PREROUTING["PREROUTING"]
    nat_ISTIO_INBOUND["ISTIO_INBOUND"]
    nat_ISTIO_IN_REDIRECT["ISTIO_IN_REDIRECT"]
    nat_OUTPUT["OUTPUT"]
    nat_ISTIO_OUTPUT["ISTIO_OUTPUT"]
    nat_ISTIO_REDIRECT["ISTIO_REDIRECT"]
    rules_2["• -p tcp --dport 15008<br/>• -p tcp<br/>-m multiport --dports 15020,15021,15090"]:::rules
    rules_8["• -o lo -s 127.0.0.6/32<br/>• -o lo -m owner ! --uid-owner 1337<br/>• -m owner --uid-owner 1337<br/>• -o lo -m owner ! --gid-owner 1337<br/>• -m owner --gid-owner 1337<br/>• -d 127.0.0.1/32"]:::rules
    rules_9["• -o lo ! -d 127.0.0.1/32<br/>-p tcp ! --dport 15008<br/>-m owner --uid-owner 1337<br/>• -o lo ! -d 127.0.0.1/32<br/>-p tcp ! --dport 15008<br/>-m owner --gid-owner 1337"]:::rules
  end
  in --> nat_PREROUTING
  nat_PREROUTING -->|"-p tcp"| nat_ISTIO_INBOUND
  nat_ISTIO_INBOUND --- rules_2 --> app
  nat_ISTIO_INBOUND -->|"-p tcp"| nat_ISTIO_IN_REDIRECT
  nat_ISTIO_IN_REDIRECT -->|"-p tcp"| port_15006
  nat_PREROUTING -->|"the rest"| app
  out --> nat_OUTPUT
  nat_OUTPUT -->|"everything"| nat_ISTIO_OUTPUT
  nat_ISTIO_OUTPUT --- rules_8 --> destination
  nat_ISTIO_OUTPUT --- rules_9 --> nat_ISTIO_IN_REDIRECT
  nat_ISTIO_OUTPUT -->|"everything else"| nat_ISTIO_REDIRECT
  nat_ISTIO_REDIRECT -->|"-p tcp"| port_15001
  nat_OUTPUT -->|"the rest"| destination
  classDef rules fill:none,stroke:none,text-align:left
)");
}

TEST(Mermaid, GoesFromTableToTableAsTheKernelDoes) {
  const std::string text =
      mermaid(planned("-m TPROXY -b * -i * -c eth1 --redirect-dns --capture-all-dns").ruleset, Families::both());
  EXPECT_THAT(text, HasSubstr("  in --> raw_PREROUTING\n"));
  EXPECT_THAT(text, HasSubstr(R"(  raw_PREROUTING -.->|"the rest"| mangle_PREROUTING)"));
  EXPECT_THAT(text, ContainsRegex("  mangle_PREROUTING --- rules_[0-9]+ -[.]-> nat_PREROUTING\n"));
  EXPECT_THAT(text,
              HasSubstr(R"x(["• ! -d 127.0.0.1/32 -p tcp (TPROXY)<br/>• ! -d ::1/128 -p tcp (TPROXY)"]:::rules)x"));
  EXPECT_THAT(text, HasSubstr(R"(["• -i eth1<br/>• the rest"]:::rules)"));
  EXPECT_THAT(text, Not(HasSubstr("nat_ISTIO_INBOUND")));  // nothing leads there
}

TEST(Mermaid, OfOneFamilySpeaksOfThatAlone) {
  const Ruleset ruleset = planned("-i 10.0.0.0/8,fd00::/8").ruleset;
  EXPECT_THAT(mermaid(ruleset, Family::ipv6), HasSubstr("fd00::/8"));
  EXPECT_THAT(mermaid(ruleset, Family::ipv6), Not(HasSubstr("10.0.0.0/8")));
}

TEST(Mermaid, OfLongListsHoldsTheFirstValues) {
  std::string ranges;
  for (int i = 0; i < 200; ++i) ranges += "10." + std::to_string(i) + ".0.0/24,";
  EXPECT_LT(mermaid(planned("-i * -x " + ranges).ruleset, Families::both()).size(), 4000U);
}

TEST(Dot, HoldsTheSameGraph) {
  const std::string text = dot(planned(usual_options).ruleset, Family::ipv4);
  EXPECT_THAT(text, HasSubstr("digraph sidetrack {\n"));
  EXPECT_THAT(text, HasSubstr(R"(    "nat_ISTIO_OUTPUT" [label="ISTIO_OUTPUT")"));
  EXPECT_THAT(text, HasSubstr(R"(  "nat_ISTIO_REDIRECT" -> "port_15001" [label="-p tcp\l"];)"));
  EXPECT_TRUE(text.ends_with("}\n"));
}

TEST(Pictures, OfNothingSaySo) {
  EXPECT_EQ(mermaid({}, Families::both()), "flowchart LR\n  nothing([\"nothing is captured\"])\n");
  EXPECT_THAT(dot({}, Families::both()), HasSubstr("nothing is captured"));
}

}  // namespace
}  // namespace sidetrack
