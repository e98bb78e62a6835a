// SPDX-License-Identifier: GPL-2.0-or-later
// What a process that has read a hostile pod may say: whole, or nothing.
#include "node/findings.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace sidetrack::cni {
namespace {

Findings usual_findings() {
  Findings made;
  made.state = PodState::differs;
  made.backends = {"iptables-nft", "nftables"};
  made.meshes = {"Linkerd", "Open Service Mesh"};
  made.captured = "inbound TCP; outbound TCP";
  made.addresses = {*Address::parse("10.0.0.1"), *Address::parse("fd00::1")};
  made.ambient = true;
  made.detail = "a \"detail\"\n\x1b[2J";
  return made;
}

const std::string written =
    R"({"state":"differs","backends":["iptables-nft","nftables"],"meshes":["Linkerd","Open Service Mesh"],)"
    R"("captured":"inbound TCP; outbound TCP",)"
    R"("addresses":["10.0.0.1","fd00::1"],"ambient":true,"detail":"a \"detail\"\n\u001b[2J"})";

TEST(Findings, AreToldWhole) {
  EXPECT_EQ(text_of(usual_findings()), written);
  EXPECT_EQ(findings_of(written), usual_findings());
  EXPECT_EQ(findings_of(text_of({})), Findings{});
  for (const PodState state : {PodState::as_recorded, PodState::repaired, PodState::differs, PodState::not_recorded,
                               PodState::gone, PodState::unknown}) {
    Findings made = usual_findings();
    made.state = state;
    EXPECT_EQ(findings_of(text_of(made)), made) << name(state);
  }
  Findings hostile = usual_findings();
  hostile.detail = "\xff";
  EXPECT_EQ(findings_of(text_of(hostile))->detail, "\xef\xbf\xbd");
}

std::string written_with(const std::string& before, const std::string& after) {
  std::string text = written;
  const std::size_t at = text.find(before);
  EXPECT_NE(at, std::string::npos) << before;
  return text.replace(at, before.size(), after);
}

TEST(Findings, OfAnythingElseAreNone) {
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("{}"), std::string("\"a\""),
        std::string("{\"state\":"), std::string(1, '\0'), std::string(100'000, '['),
        "{\"detail\":" + std::string(100'000, '['), written.substr(0, written.size() - 1), written + "x",
        // A key is missing, or one too many.
        written_with("\"state\":\"differs\",", ""), written_with("\"ambient\":true,", ""),
        written_with(",\"ambient\"", ",\"more\":1,\"ambient\""), written_with("\"state\"", "\"State\""),
        // Another type.
        written_with("\"differs\"", "2"), written_with("\"differs\"", "null"),
        written_with("\"differs\"", "[\"differs\"]"), written_with("true", "1"), written_with("true", "\"true\""),
        written_with("[\"iptables-nft\",\"nftables\"]", "\"nftables\""),
        written_with("[\"iptables-nft\",\"nftables\"]", "{\"0\":\"nftables\"}"), written_with("\"nftables\"]", "7]"),
        written_with("\"10.0.0.1\"", "10"), written_with("\"10.0.0.1\"", "[[[[]]]]"),
        written_with("\"inbound TCP; outbound TCP\"", "{}"),
        // No enumerator, no address.
        written_with("\"differs\"", "\"Differs\""), written_with("\"differs\"", "\"\""),
        written_with("\"nftables\"", "\"ipfw\""), written_with("\"Linkerd\"", "\"linkerd\""),
        written_with("\"Linkerd\"", "7"), written_with("\"10.0.0.1\"", "\"10.0.0.256\""),
        written_with("\"10.0.0.1\"", "\"10.0.0.0/8\""), written_with("\"10.0.0.1\"", "\"\"")}) {
    EXPECT_EQ(findings_of(text), std::nullopt) << text.substr(0, 300);
  }
}

// Whatever byte of it is another one: what is understood is what is told again.
TEST(Findings, OfEachDamagedTextAreNoneOrWhole) {
  for (std::size_t at = 0; at < written.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = written;
      text[at] = static_cast<char>(byte);
      const auto found = findings_of(text);
      if (!found) continue;
      EXPECT_EQ(findings_of(text_of(*found)), found) << text;
    }
  }
}

}  // namespace
}  // namespace sidetrack::cni
