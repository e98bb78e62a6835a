// SPDX-License-Identifier: GPL-2.0-or-later
// "@FILE" in the place of a list.
#include <gtest/gtest.h>

#include <cerrno>

#include "unit/options_text.h"
#include "unit/temporary_file.h"

namespace sidetrack {
namespace {

using testing::parse_arguments;
using testing::TemporaryFile;

std::string error_of_list(const std::string& argument) {
  try {
    parse_arguments({"sidetrack", argument});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "accepted";
}

std::vector<PortRange> ports_of(std::string_view content) {
  const TemporaryFile file(content);
  const std::string value = "@" + file.path();
  return parse_arguments({"sidetrack", "-d", value}).config.inbound_exclude_ports;
}

TEST(ListFile, HoldsItemsByCommaOrLine) {
  const std::vector<PortRange> expected = {1, 2, 3};
  EXPECT_EQ(ports_of("1,2,3"), expected);
  EXPECT_EQ(ports_of("1\n2\n3\n"), expected);
  EXPECT_EQ(ports_of("1, 2,\n\n  3 \n"), expected);
  EXPECT_EQ(ports_of("1\r\n2\r\n3\r\n"), expected);
  EXPECT_EQ(ports_of("\xEF\xBB\xBF"
                     "1\n2\n3"),
            expected);
  EXPECT_EQ(ports_of("# the app's\n1 # one, two\n#4\n2,3#5\n"), expected);
  EXPECT_EQ(ports_of("80\n9000-9100 # metrics\n"), (std::vector<PortRange>{80, {9000, 9100}}));
  EXPECT_EQ(ports_of(""), std::vector<PortRange>{});
  EXPECT_EQ(ports_of("# nothing"), std::vector<PortRange>{});
}

TEST(ListFile, AddsToWhatElseIsGiven) {
  const TemporaryFile file("2\n3\n");
  const std::string value = "@" + file.path();
  EXPECT_EQ(parse_arguments({"sidetrack", "-d", "1", "-d", value, "-d4"}).config.inbound_exclude_ports,
            (std::vector<PortRange>{1, 2, 3, 4}));
}

TEST(ListFile, MayHoldTheAsteriskAndComeFromTheEnvironment) {
  const TemporaryFile file("*\n");
  EXPECT_TRUE(
      parse_arguments({"sidetrack", "-n"}, {{"ISTIO_INBOUND_PORTS", "@" + file.path()}}).config.inbound_ports.all);
}

TEST(ListFile, NamesFileLineAndValueOfAnError) {
  const TemporaryFile file("10.0.0.0/8\n# more\n192.168.0.0/16, 10.0.0.0/99\n");
  EXPECT_EQ(error_of_list("-x@" + file.path()), "-x, --istio-service-exclude-cidr: " + file.path() +
                                                    ", line 3: '10.0.0.0/99': expected an address range such as "
                                                    "10.0.0.0/8 or fd00::/8");
}

// What reads as text as far as a zero byte would hide the rest.
TEST(ListFile, WithZeroBytesIsRefused) {
  using namespace std::string_view_literals;
  for (const auto& [content, line] : std::vector<std::pair<std::string_view, std::string>>{
           {"10.0.0.1\0junk"sv, "1"},
           {"10.0.0.0/8\n10.0.0.1\0"sv, "2"},
           {"10.0.0.0/8\n\0"sv, "2"},
           {"# a comment\0\n10.0.0.1"sv, "1"},
           {"\xFF\xFE"
            "1\0"
            "0\0.\0\n\0"sv,
            "1"},
       }) {
    const TemporaryFile file(content);
    EXPECT_EQ(error_of_list("-x@" + file.path()), "-x, --istio-service-exclude-cidr: " + file.path() + ", line " +
                                                      line + ": a zero byte: expected a list as text");
  }
}

TEST(ListFile, ThatCannotBeRead) {
  EXPECT_EQ(
      error_of_list("-x@/nonexistent/list"),
      "-x, --istio-service-exclude-cidr: cannot read the list /nonexistent/list: No such file or directory (ENOENT)");
  EXPECT_EQ(error_of_list("-x@/"), "-x, --istio-service-exclude-cidr: cannot read the list /: Is a directory (EISDIR)");
  EXPECT_EQ(error_of_list("-x@/dev/zero"),
            "-x, --istio-service-exclude-cidr: cannot read the list /dev/zero: File too large (EFBIG)");
  EXPECT_EQ(error_of_list("-x@"), "-x, --istio-service-exclude-cidr: '@': expected the name of a file after the @");
}

TEST(ListFile, HoldsManyRanges) {
  std::string content;
  for (int i = 0; i < 100'000; ++i) {
    content +=
        "10." + std::to_string(i / 65536) + "." + std::to_string(i / 256 % 256) + "." + std::to_string(i % 256) + "\n";
  }
  const TemporaryFile file(content);
  const std::string value = "@" + file.path();
  const auto ranges = parse_arguments({"sidetrack", "-x", value}).config.outbound_exclude_ranges;
  ASSERT_EQ(ranges.size(), 100'000U);
  EXPECT_EQ(ranges.back().text(), "10.1.134.159/32");
}

}  // namespace
}  // namespace sidetrack
