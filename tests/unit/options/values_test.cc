// SPDX-License-Identifier: GPL-2.0-or-later
// Values at their bounds, and every character where characters count.
#include "options/values.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/error.h"
#include "rule/iptables.h"

namespace sidetrack::options {
namespace {

const Given given{flags().front(), "", ""};

// What becomes of a value, as text; "refused".
template <typename Parse>
std::string parsed(Parse parse, std::string_view text) {
  try {
    return fmt::format("{}", parse(Item{given, text}));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage) << text;
    return "refused";
  }
}

std::string with(int byte) { return std::string("a") + static_cast<char>(byte) + "b"; }

TEST(Values, CharactersOfAnInterface) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool bad =
        byte <= ' ' || byte >= 0x7f || std::string_view("/:\"*\\").find(static_cast<char>(byte)) != std::string::npos;
    EXPECT_EQ(parsed(interface, with(byte)), bad ? "refused" : with(byte)) << byte;
  }
  EXPECT_EQ(parsed(interface, std::string(15, 'a')), std::string(15, 'a'));
  for (const std::string& text :
       {std::string(16, 'a'), std::string(), std::string("."), std::string(".."), std::string("+")})
    EXPECT_EQ(parsed(interface, text), "refused") << text;
  EXPECT_EQ(parsed(interface, "..."), "...");
  EXPECT_EQ(parsed(interface, "a@"), "a@");
  EXPECT_EQ(parsed(interface, "@a"), "refused");
}

TEST(Values, CharactersOfANamespaceOfKubernetes) {
  constexpr std::string_view good = "abcdefghijklmnopqrstuvwxyz0123456789-";
  for (int byte = 0; byte < 256; ++byte) {
    const bool known = good.find(static_cast<char>(byte)) != std::string_view::npos;
    EXPECT_EQ(parsed(namespace_name, with(byte)), known ? with(byte) : "refused") << byte;
  }
  EXPECT_EQ(parsed(namespace_name, std::string(63, 'a')), std::string(63, 'a'));
  for (const std::string& text : {std::string(64, 'a'), std::string(), std::string("-a"), std::string("a-")})
    EXPECT_EQ(parsed(namespace_name, text), "refused") << text;
}

TEST(Values, CharactersOfACommentThatNeedNoQuotes) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  for (int byte = ' '; byte < 0x7f; ++byte) {
    const std::string text = with(byte);
    const bool quoted = plain.find(static_cast<char>(byte)) == std::string_view::npos;
    const bool escaped = byte == '"' || byte == '\'' || byte == '\\';
    const Rule rule{{}, Table::nat, "C", {CommentMatch{text}}, NonTerminating{}, {}, {}};
    EXPECT_EQ(iptables_words(rule), "-A C -m comment --comment " + (!quoted   ? text
                                                                    : escaped ? "\"a\\" + text.substr(1) + "\""
                                                                              : "\"" + text + "\""));
  }
  EXPECT_EQ(iptables_words(Rule{{}, Table::nat, "C", {CommentMatch{""}}, NonTerminating{}, {}, {}}),
            "-A C -m comment --comment \"\"");
}

TEST(Values, NumbersAtTheirBounds) {
  struct Row {
    std::string_view text, port, mark, route_table, id, process_id;
  };
  constexpr std::string_view no = "refused";
  for (const Row& row : std::initializer_list<Row>{
           {"0", no, no, no, "0", no},
           {"1", "1", "1", "1", "1", "1"},
           {"00", no, no, no, no, no},
           {"01", no, no, no, no, no},
           {"0x1F", no, "31", "31", no, no},
           {"0X10", no, "16", "16", no, no},
           {"0x0", no, no, no, no, no},
           {"0x", no, no, no, no, no},
           {"252", "252", "252", "252", "252", "252"},
           {"253", "253", "253", no, "253", "253"},
           {"254", "254", "254", no, "254", "254"},
           {"255", "255", "255", no, "255", "255"},
           {"256", "256", "256", "256", "256", "256"},
           {"0xff", no, "255", no, no, no},
           {"65535", "65535", "65535", "65535", "65535", "65535"},
           {"65536", no, "65536", "65536", "65536", "65536"},
           {"2147483647", no, "2147483647", "2147483647", "2147483647", "2147483647"},
           {"2147483648", no, "2147483648", "2147483648", "2147483648", no},
           {"4294967294", no, "4294967294", "4294967294", "4294967294", no},
           {"4294967295", no, "4294967295", "4294967295", no, no},
           {"0xffffffff", no, "4294967295", "4294967295", no, no},
           {"4294967296", no, no, no, no, no},
           {"-1", no, no, no, no, no},
           {"+1", no, no, no, no, no},
           {" 1", no, no, no, no, no},
           {"1 ", no, no, no, no, no},
           {"", no, no, no, no, no},
       }) {
    EXPECT_EQ(parsed(port, row.text), row.port) << row.text;
    EXPECT_EQ(parsed(mark, row.text), row.mark) << row.text;
    EXPECT_EQ(parsed(route_table, row.text), row.route_table) << row.text;
    EXPECT_EQ(parsed(id, row.text), row.id) << row.text;
    EXPECT_EQ(parsed(process_id, row.text), row.process_id) << row.text;
  }
}

TEST(Values, LoopbackPrefixes) {
  const auto prefix = [](const Item& item) { return loopback_prefix(item).text(); };
  for (const char* text : {"127.0.0.0/8", "127.0.0.1/32", "127.255.255.255/32", "127.128.0.0/9"})
    EXPECT_EQ(parsed(prefix, text), text);
  for (const char* text :
       {"126.0.0.0/8", "128.0.0.0/8", "126.0.0.0/7", "127.0.0.0/7", "0.0.0.0/0", "::1/128", "127.0.0.1/33"})
    EXPECT_EQ(parsed(prefix, text), "refused") << text;
}

TEST(Values, Durations) {
  const auto nanoseconds = [](const Item& item) { return duration(item).count(); };
  for (const auto& [text, expected] : std::initializer_list<std::pair<std::string_view, std::string_view>>{
           {"0", "0"},
           {"+0", "0"},
           {"1ns", "1"},
           {"1us", "1000"},
           {"1µs", "1000"},
           {"1μs", "1000"},
           {"1ms", "1000000"},
           {"1s", "1000000000"},
           {"1m", "60000000000"},
           {"1h", "3600000000000"},
           {"+1s", "1000000000"},
           {"1m30s", "90000000000"},
           {"1.5h", "5400000000000"},
           {".5s", "500000000"},
           {"1.s", "1000000000"},
           {"0.000000001s", "1"},
           {"0.0000000019s", "1"},
           {"1h1h", "7200000000000"},
           {"9223372036854775807ns", "9223372036854775807"},
           {"9223372036854775808ns", "9223372036854775807"},
           {"9223372036s", "9223372036000000000"},
           {"9223372037s", "9223372036854775807"},
           {"9223372036854775806ns1ns", "9223372036854775807"},
           {"9223372036854775806ns2ns", "9223372036854775807"},
           {"99999999h", "9223372036854775807"},
           {"99999999999999999999.5h1s", "9223372036854775807"},
           {"99999999999999999999x", "refused"},
           {"99999999h1", "refused"},
           {"", "refused"},
           {"+", "refused"},
           {"1", "refused"},
           {"s", "refused"},
           {".s", "refused"},
           {"1x", "refused"},
           {"1s2", "refused"},
           {"-1s", "refused"},
           {"1 s", "refused"},
           {"00", "refused"},
       })
    EXPECT_EQ(parsed(nanoseconds, text), expected) << text;
}

}  // namespace
}  // namespace sidetrack::options
