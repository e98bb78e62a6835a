// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/conflist.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/error.h"

namespace sidetrack::cni {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* conflist_entry = R"({"type": "sidetrack-cni", "uid": 1337})";
constexpr const char* other_entry = R"({"type": "sidetrack-cni", "uid": 7})";

Conflist list_of(const std::string& text) { return read_conflist("10-net.conflist", text, Form::list); }
Ordered value(std::string_view text) { return Ordered::parse(text); }
Ordered with(const std::string& text, const char* added = conflist_entry) {
  return with_entry("10-net.conflist", list_of(text), added);
}
Ordered without(const std::string& text) { return without_entry("10-net.conflist", list_of(text)); }

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
  "name": "containerd-net",
  "cniVersion": "1.0.0",
  "plugins": [
    {
      "type": "bridge",
      "mtu": 1.50e3,
      "a\u0062c": "\u00e4 \" ] } , { [ \\",
      "ipam": { "ranges": [[{"subnet": "10.88.0.0/16"}]] }
    },
    {
      "type": "portmap",
      "capabilities": {"portMappings": true}
    }
  ]
}
)";

TEST(Conflist, TheEntryIsAddedAsTheLastPluginAndNothingElseChanges) {
  const Ordered expected =
      value(std::string(containerd)
                .replace(std::string_view(containerd).find("\n  ]\n"), 0, std::string(",\n    ") + conflist_entry));
  EXPECT_EQ(with(containerd), expected);
  EXPECT_THAT(file_text(with(containerd)),
              StartsWith("{\n  \"name\": \"containerd-net\",\n  \"cniVersion\": \"1.0.0\",\n"));
  const Conflist again = list_of(file_text(expected));
  EXPECT_THAT(again.plugins, ElementsAre("bridge", "portmap", "sidetrack-cni"));
  EXPECT_EQ(again.entry_at_end(), value(conflist_entry));
  EXPECT_EQ(list_of(containerd).entry_at_end(), nullptr);
  EXPECT_EQ(without(file_text(expected)), value(containerd));
  EXPECT_EQ(without(containerd), value(containerd));
}

TEST(Conflist, EveryOtherEntryOfOursIsReplaced) {
  EXPECT_EQ(with(file_text(with(containerd))), with(containerd));
  EXPECT_EQ(with(file_text(with(containerd, other_entry))), with(containerd));
  const auto listed = [](const std::string& plugins) {
    return R"({"cniVersion": "1.1.0", "name": "n", "plugins": [)" + plugins + "]}";
  };
  const std::string ours = other_entry;
  const std::string a = R"({"type": "a"})";
  const std::string b = R"({"type": "b"})";
  EXPECT_EQ(without(listed(ours + ", " + a)), value(listed(a)));
  EXPECT_EQ(without(listed(a + ", " + ours + ", " + b)), value(listed(a + ", " + b)));
  EXPECT_EQ(without(listed(ours + "," + ours + ", " + a + ", " + ours + "," + ours)), value(listed(a)));
  EXPECT_EQ(with(listed(a + ", " + ours + ", " + b)), value(listed(a + ", " + b + ", " + conflist_entry)));
  EXPECT_EQ(list_of(listed(ours + ", " + a)).entry_at_end(), nullptr) << "it is not the last";
  EXPECT_EQ(list_of(listed(ours + ", " + a + ", " + ours)).entry_at_end(), nullptr) << "it is there twice";
}

TEST(Conflist, ASinglePluginBecomesAListOfIt) {
  const std::string single = R"( {"type": "bridge", "big": 12, "name": "n", "cniVersion": "0.3.1"})";
  const Conflist list = read_conflist("10-net.conf", single, Form::single);
  EXPECT_EQ(list.document, value(R"({"cniVersion": "0.3.1", "name": "n", "plugins": [)" + single + "]}"));
  EXPECT_EQ(list.text, single);
  EXPECT_EQ(list.network, "n");
  EXPECT_THAT(list.cni_versions, ElementsAre("0.3.1"));
  EXPECT_EQ(with_entry("10-net.conf", list, conflist_entry)["plugins"].back(), value(conflist_entry));
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
      return with("{" + version + R"("name": "n", "plugins": [{"type": "a"}]})").dump();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(added(R"("cniVersion": "0.2.0", )"),
            "10-net.conflist: \"cniVersion\": 0.2.0: expected one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0");
  EXPECT_THAT(added(""), HasSubstr("\"cniVersion\": none: expected one of"));
  EXPECT_THAT(added(R"("cniVersion": "0.2.0", "cniVersions": ["0.2.0", "1.1.0"], )"),
              HasSubstr(value(conflist_entry).dump()));
}

TEST(Conflist, AListOfNothingElseIsNotEmptied) {
  const std::string ours = std::string(R"({"cniVersion": "1.0.0", "name": "n", "plugins": [)") + conflist_entry + "]}";
  try {
    static_cast<void>(without(ours));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds no other plugin"));
  }
}

}  // namespace
}  // namespace sidetrack::cni
