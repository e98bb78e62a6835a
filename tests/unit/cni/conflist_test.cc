// SPDX-License-Identifier: GPL-2.0-or-later
#include "cni/conflist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "model/error.h"

namespace sidetrack::cni {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* entry = R"({"type": "sidetrack-cni", "uid": 1337})";
constexpr const char* other_entry = R"({"type": "sidetrack-cni", "uid": 7})";

Conflist list_of(const std::string& text) { return read_conflist("10-net.conflist", text, Form::list); }
std::string with(const std::string& text, const char* added = entry) {
  return with_entry("10-net.conflist", list_of(text), added);
}
std::string without(const std::string& text) { return without_entry("10-net.conflist", list_of(text)); }

// What a text that a runtime would not load is refused with.
std::string refusal(const std::string& text, Form form = Form::list) {
  try {
    static_cast<void>(read_conflist("10-net.conflist", text, form));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_NE(error.hint(), "");
    return error.what();
  }
  return "";
}

constexpr const char* containerd = R"({
  "cniVersion": "1.0.0",
  "name": "containerd-net",
  "plugins": [
    {
      "type": "bridge",
      "mtu": 1.50e3,
      "large": 123456789012345678901234567890,
      "a\u0062c": "\u00e4 \" ] } , { [ \\",
      "ipam": { "ranges": [[{"subnet": "10.88.0.0/16"}]], "twice": 1, "twice": 2 }
    },
    {
      "type": "portmap",
      "capabilities": {"portMappings": true}
    }
  ]
}
)";

TEST(Conflist, TheEntryIsAddedAsTheLastPluginAndNoOtherByteChanges) {
  const std::string expected =
      std::string(containerd).replace(std::string_view(containerd).find("\n  ]\n"), 0, std::string(",\n    ") + entry);
  EXPECT_EQ(with(containerd), expected);
  EXPECT_EQ(list_of(expected).plugins.size(), 3U);
  EXPECT_EQ(list_of(expected).entry_at_end(), entry);
  EXPECT_EQ(list_of(containerd).entry_at_end(), "");
}

TEST(Conflist, WithoutTheEntryTheTextIsAsItWas) {
  EXPECT_EQ(without(with(containerd)), containerd);
  EXPECT_EQ(without(containerd), containerd);
  const std::string compact = R"({"name":"n","cniVersion":"0.4.0","plugins":[{"type":"a"}]})";
  EXPECT_EQ(with(compact),
            R"({"name":"n","cniVersion":"0.4.0","plugins":[{"type":"a"},{"type": "sidetrack-cni", "uid": 1337}]})");
  EXPECT_EQ(without(with(compact)), compact);
}

TEST(Conflist, EveryOtherEntryOfOursIsReplaced) {
  EXPECT_EQ(with(with(containerd)), with(containerd));
  EXPECT_EQ(with(with(containerd, other_entry)), with(containerd));
  const auto listed = [](const std::string& plugins) {
    return R"({"cniVersion": "1.1.0", "name": "n", "plugins": [)" + plugins + "]}";
  };
  const std::string ours = other_entry;
  const std::string a = R"({"type": "a"})";
  const std::string b = R"({"type": "b"})";
  EXPECT_EQ(without(listed(ours + ", " + a)), listed(a));
  EXPECT_EQ(without(listed(a + " , " + ours + "  ")), listed(a + "  "));
  EXPECT_EQ(without(listed(a + ", " + ours + ", " + b)), listed(a + ", " + b));
  EXPECT_EQ(without(listed(ours + "," + ours + ", " + a + ", " + ours + "," + ours)), listed(a));
  EXPECT_EQ(with(listed(a + ", " + ours + ", " + b)), listed(a + ", " + b + ", " + entry));
  EXPECT_FALSE(list_of(listed(ours + ", " + a)).entry_at_end() == ours) << "it is not the last";
  EXPECT_EQ(list_of(listed(ours + ", " + a + ", " + ours)).entry_at_end(), "") << "it is there twice";
}

TEST(Conflist, ASinglePluginBecomesAListOfIt) {
  const std::string single = R"( {"type": "bridge", "big": 12345678901234567890123, "name": "n",
  "cniVersion": "0.3.1"}
)";
  const Conflist list = read_conflist("10-net.conf", single, Form::single);
  EXPECT_EQ(list.text, R"({
  "cniVersion": "0.3.1",
  "name": "n",
  "plugins": [
    {"type": "bridge", "big": 12345678901234567890123, "name": "n",
  "cniVersion": "0.3.1"}
  ]
}
)");
  EXPECT_EQ(list.network, "n");
  EXPECT_THAT(list.cni_versions, ElementsAre("0.3.1"));
  EXPECT_EQ(list_of(with_entry("10-net.conf", list, entry)).entry_at_end(), entry);
}

TEST(Conflist, WhatARuntimeWouldNotLoadIsRefused) {
  const std::string good = R"({"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "a"}]})";
  EXPECT_EQ(refusal(good), "");
  EXPECT_EQ(refusal(""), "10-net.conflist: invalid JSON in line 1, column 1");
  EXPECT_EQ(refusal("{\n \"name\": nul}"), "10-net.conflist: invalid JSON in line 2, column 13");
  EXPECT_THAT(refusal(good + "x"), HasSubstr("invalid JSON"));
  EXPECT_THAT(refusal(good + std::string("\0x", 2)), HasSubstr("invalid JSON"));
  EXPECT_THAT(refusal(good.substr(0, good.size() - 1)), HasSubstr("invalid JSON"));
  EXPECT_THAT(refusal("\xEF\xBB\xBF" + good), HasSubstr("expected a JSON object"));
  EXPECT_THAT(refusal("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(refusal(R"({"name": 1e999})"), HasSubstr("numbers that fit"));
  EXPECT_THAT(refusal("{\"name\": \"\xff\"}"), HasSubstr("invalid JSON"));
  EXPECT_THAT(refusal(R"({"plugins": [{"type": "a"}]})"), HasSubstr("expected the key \"name\""));
  EXPECT_THAT(refusal(R"({"name": "", "plugins": [{"type": "a"}]})"), HasSubstr("\"name\": \"\": expected a string"));
  EXPECT_THAT(refusal(R"({"name": "n"})"), HasSubstr("expected the key \"plugins\""));
  EXPECT_THAT(refusal(R"({"name": "n", "plugins": []})"), HasSubstr("at least one plugin"));
  EXPECT_THAT(refusal(R"({"name": "n", "plugins": {"type": "a"}})"), HasSubstr("expected the key \"plugins\""));
  EXPECT_THAT(refusal(R"({"name": "n", "plugins": [{"type": "a"}, 1]})"), HasSubstr("plugin 2: expected an object"));
  EXPECT_THAT(refusal(R"({"name": "n", "plugins": [{"type": 1}]})"), HasSubstr("\"type\": 1: expected a string"));
  EXPECT_THAT(refusal(R"({"name": "n", "cniVersion": 1, "plugins": [{"type": "a"}]})"), HasSubstr("\"cniVersion\": 1"));
  EXPECT_THAT(refusal(R"({"name": "n", "plugins": [{"type": "a"}], "plug\u0069ns": [{"type": "b"}]})"),
              HasSubstr("duplicate key \"plugins\""));
  EXPECT_THAT(refusal(good, Form::single), HasSubstr("a list of plugins"));
  EXPECT_THAT(refusal(R"({"name": "n"})", Form::single), HasSubstr("expected the key \"type\""));
}

TEST(Conflist, AVersionWithoutChainsIsRefused) {
  const auto added = [](const std::string& version) {
    try {
      return with("{" + version + R"("name": "n", "plugins": [{"type": "a"}]})");
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(added(R"("cniVersion": "0.2.0", )"),
            "10-net.conflist: \"cniVersion\": 0.2.0: expected one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0");
  EXPECT_THAT(added(""), HasSubstr("\"cniVersion\": none: expected one of"));
  EXPECT_THAT(added(R"("cniVersion": "0.2.0", "cniVersions": ["0.2.0", "1.1.0"], )"), HasSubstr(entry));
}

TEST(Conflist, AListOfNothingElseIsNotEmptied) {
  const std::string ours = std::string(R"({"cniVersion": "1.0.0", "name": "n", "plugins": [)") + entry + "]}";
  try {
    static_cast<void>(without(ours));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds no other plugin"));
  }
}

// Any document, any blanks: what is not ours is the same value afterwards, and the text comes back.
TEST(Conflist, OfRandomTextsNothingElseChanges) {
  std::mt19937 random(14);
  const auto below = [&](unsigned limit) { return static_cast<unsigned>(random() % limit); };
  const auto blank = [&] {
    std::string blanks;
    for (unsigned i = below(4); i > 0; --i) blanks += " \t\r\n"[below(4)];
    return blanks;
  };
  std::function<std::string(int)> value = [&](int depth) -> std::string {
    switch (below(depth > 0 ? 8 : 6)) {
      case 0:
        return "-" + std::to_string(below(1000)) + ".0";
      case 1:
        return "true";
      case 2:
        return "null";
      case 3:
        return R"("]}{[,:\\\" sidetrack-cni")";
      case 4:
        return R"("\ud83d\ude00\\")";
      case 5:
        return below(2) == 0 ? "{" + blank() + "}" : "[" + blank() + "]";
      case 6:
        return "[" + blank() + value(depth - 1) + blank() + "," + value(depth - 1) + blank() + "]";
      default:
        return "{" + blank() + R"("k")" + blank() + ":" + blank() + value(depth - 1) + blank() + R"(,"plugins":)" +
               value(depth - 1) + "}";
    }
  };
  for (int round = 0; round < 500; ++round) {
    std::string plugins;
    const unsigned count = 1 + below(4);
    for (unsigned i = 0; i < count; ++i) {
      plugins += (i > 0 ? "," : "") + blank() + R"({"x":)" + value(3) + blank() + R"(,"type":"p","y":)" + value(3) +
                 "}" + blank();
    }
    const std::string text = blank() + R"({"a":)" + value(3) + blank() + R"(,"cniVersion":"1.0.0","plugins":)" +
                             blank() + "[" + plugins + R"(],"name":"n","z":)" + value(3) + "}" + blank();
    SCOPED_TRACE(text);
    const std::string added = with(text);
    EXPECT_EQ(without(added), text);
    auto expected = nlohmann::ordered_json::parse(text);
    expected["plugins"].push_back(nlohmann::ordered_json::parse(entry));
    EXPECT_EQ(nlohmann::ordered_json::parse(added), expected);
    EXPECT_EQ(list_of(added).entry_at_end(), entry);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace sidetrack::cni
