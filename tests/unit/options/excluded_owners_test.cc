// SPDX-License-Identifier: GPL-2.0-or-later
// --exclude-uids, --exclude-gids, --exclude-uid-ports, --capture-udp: values and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "options/flags.h"
#include "options/istio_init.h"
#include "unit/options_text.h"
#include "unit/temporary_file.h"

namespace sidetrack {
namespace {

using ::testing::ElementsAre;
using testing::parse_text;
using testing::TemporaryFile;

std::string error_of(std::string_view arguments) {
  try {
    parse_text(arguments);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "was accepted";
}

// As they are shown: "101:443,8000-8100".
std::vector<std::string> uid_ports(std::string_view arguments) {
  const Flag& flag = flag_named("exclude-uid-ports");
  return std::get<std::vector<std::string>>(flag.value_of.get(flag, parse_text(arguments).config));
}

InitArguments init_of(const Annotations& annotations) {
  PodMetadata pod;
  pod.namespace_ = "shop";
  pod.annotations = annotations;
  return istio_init_arguments(pod, {});
}

TEST(ExcludedOwners, AreIdsAndRanges) {
  const Config config = parse_text("sidetrack --exclude-uids 101,1000-1999 --exclude-uids=0 --exclude-gids 5-5").config;
  EXPECT_THAT(config.exclude_uids, ElementsAre(IdRange{101}, IdRange{1000, 1999}, IdRange{0}));
  EXPECT_THAT(config.exclude_gids, ElementsAre(IdRange{5}));
  EXPECT_THAT(parse_text("sidetrack --exclude-uids 0-4294967294").config.exclude_uids,
              ElementsAre(IdRange{0, 4294967294}));
  EXPECT_TRUE(parse_text("sidetrack --exclude-uids ''").config.exclude_uids.empty());
}

TEST(ExcludedOwners, HavePortsBehindAColon) {
  EXPECT_THAT(uid_ports("sidetrack --exclude-uid-ports 101:443,8000-8100"), ElementsAre("101:443,8000-8100"));
  EXPECT_THAT(uid_ports("sidetrack --exclude-uid-ports 101:443,8000-8100,1000-1999:53,80"),
              ElementsAre("101:443,8000-8100", "1000-1999:53,80"));
  EXPECT_THAT(uid_ports("sidetrack --exclude-uid-ports 101:443 --exclude-uid-ports 101:80"),
              ElementsAre("101:443", "101:80"));
  EXPECT_THAT(uid_ports("sidetrack --exclude-uid-ports ''"), ElementsAre());
}

TEST(ExcludedOwners, HaveALineOfAFileEach) {
  const TemporaryFile file("101:443,8000-8100  # a comment\n\n102:80\n");
  EXPECT_THAT(uid_ports("sidetrack --exclude-uid-ports @" + file.path()), ElementsAre("101:443,8000-8100", "102:80"));
  const TemporaryFile torn("101:443\n80\n");
  EXPECT_THAT(error_of("sidetrack --exclude-uid-ports @" + torn.path()),
              ::testing::HasSubstr("line 2: '80': expected the uid before its ports, as in 101:443,8000-8100"));
}

TEST(ExcludedOwners, ErrorsNameTheValue) {
  const std::string id = "expected a number from 0 to 4294967294, or a range such as 1000-1999";
  for (const char* value : {"-1", "1-", "-", "0x5", "007", "4294967295", "1-4294967295", "1-2-3", "1:2", "+1"})
    EXPECT_EQ(error_of(std::string("sidetrack --exclude-uids=") + value),
              std::string("--exclude-uids: '") + value + "': " + id);
  EXPECT_EQ(error_of("sidetrack --exclude-gids nobody"), "--exclude-gids: 'nobody': " + id);
  EXPECT_EQ(error_of("sidetrack --exclude-uids 9-5"), "--exclude-uids: '9-5': expected the lower id of a range first");

  const std::string what = "--exclude-uid-ports: ";
  EXPECT_EQ(error_of("sidetrack --exclude-uid-ports 443"),
            what + "'443': expected the uid before its ports, as in 101:443,8000-8100");
  for (const std::string half : {"101:", ":443", ":"})
    EXPECT_EQ(error_of("sidetrack --exclude-uid-ports " + half),
              what + "'" + half + "': expected a uid and its ports, as in 101:443,8000-8100");
  EXPECT_EQ(error_of("sidetrack --exclude-uid-ports root:443"), what + "'root': " + id);
  const std::string port = "expected a port from 1 to 65535, or a range such as 9000-9100";
  EXPECT_EQ(error_of("sidetrack --exclude-uid-ports 101:80,0"), what + "'0': " + port);
  EXPECT_EQ(error_of("sidetrack --exclude-uid-ports 101:443:80"), what + "'443:80': " + port);
  EXPECT_EQ(error_of("sidetrack --exclude-uid-ports 101:90-80"),
            what + "'90-80': expected the lower port of a range first");
}

TEST(ExcludedOwners, AreAskedForByAnnotations) {
  const Annotations pod = {{"sidecar.istio.io/status", "{}"},
                           {"sidecar.istio.io/interceptionMode", "TPROXY"},
                           {"sidetrack/exclude-uids", "101, 1000-1999"},
                           {"sidetrack/exclude-gids", "5"},
                           {"sidetrack/exclude-uid-ports", "102:443,8000-8100"},
                           {"sidetrack/bypass-cgroup", "/kubepods/pod1"},
                           {"sidetrack/capture-udp", "443"}};
  const Config config = parse_apply(interception(pod).options).config;
  EXPECT_THAT(config.exclude_uids, ElementsAre(IdRange{101}, IdRange{1000, 1999}));
  EXPECT_THAT(config.exclude_gids, ElementsAre(IdRange{5}));
  EXPECT_THAT(config.exclude_uid_ports, ElementsAre(UidPorts{{102}, {{443}, {8000, 8100}}}));
  EXPECT_THAT(config.bypass_cgroups, ElementsAre(Cgroup{"kubepods/pod1"}));
  EXPECT_THAT(config.capture_udp, ElementsAre(PortRange{443}));

  const InitArguments init = init_of(pod);
  EXPECT_THAT(words(init), ::testing::IsSupersetOf({"--exclude-uids", "101, 1000-1999", "--exclude-gids",
                                                    "--exclude-uid-ports", "102:443,8000-8100", "--capture-udp"}));
  for (const auto& [name, value] : std::map<std::string, std::string>{{"sidetrack/exclude-uids", "root"},
                                                                      {"sidetrack/exclude-gids", "9-5"},
                                                                      {"sidetrack/exclude-uid-ports", "443"},
                                                                      {"sidetrack/bypass-cgroup", "a/../b"},
                                                                      {"sidetrack/capture-udp", "quic"}}) {
    Annotations wrong = pod;
    wrong[name] = value;
    for (const bool injects : {false, true}) {
      try {
        if (injects) {
          (void)init_of(wrong);
        } else {
          (void)interception(wrong);
        }
        ADD_FAILURE() << name << " was accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        EXPECT_THAT(error.what(), ::testing::StartsWith(name + ": '" + value + "'"));
      }
    }
  }
}

TEST(CapturedUdp, IsRefusedInAnotherModeBeforeThePodHasIt) {
  const Annotations pod = {{"sidecar.istio.io/status", "{}"}, {"sidetrack/capture-udp", "443"}};
  try {
    (void)init_of(pod);
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), ::testing::StartsWith("sidetrack/capture-udp: "));
  }
  EXPECT_THROW((void)parse_apply(interception(pod).options), Error);
}

TEST(BypassedCgroups, AreAsTheKernelNamesThem) {
  EXPECT_THAT(parse_text("sidetrack --bypass-cgroup /a/b/,c --bypass-cgroup d").config.bypass_cgroups,
              ElementsAre(Cgroup{"a/b"}, Cgroup{"c"}, Cgroup{"d"}));
  EXPECT_EQ(parse_text("sidetrack explain out tcp 10.0.0.1:80 --cgroup /a").packet.cgroup, "a");
  EXPECT_EQ(parse_text("sidetrack explain out tcp 10.0.0.1:80 --cgroup /a").packet.given_cgroup, "/a");
  EXPECT_EQ(parse_text("sidetrack explain out tcp 10.0.0.1:80 --cgroup /").packet.cgroup, "");
  for (const char* value : {"a//b", "./a", "a/..", "a b", "a\"b", "\xC3\xA9"}) {
    const std::vector<std::string_view> words{"sidetrack", "apply", "--bypass-cgroup", value};
    EXPECT_THROW((void)testing::parse_arguments(words), Error) << value;
  }
  EXPECT_EQ(error_of("sidetrack --bypass-cgroup /"),
            "--bypass-cgroup: '/': expected a cgroup other than the root, which every process is in");
}

TEST(CapturedUdp, GoesWithTproxyAlone) {
  const Config config = parse_text("sidetrack -m TPROXY --capture-udp 443,8000-8100").config;
  EXPECT_THAT(config.capture_udp, ElementsAre(PortRange{443}, PortRange{8000, 8100}));
  for (const char* mode : {"", " -m REDIRECT", " -m NONE"}) {
    EXPECT_EQ(error_of(std::string("sidetrack --capture-udp 443") + mode),
              "--capture-udp: only -m TPROXY captures UDP, as it alone keeps the original destination");
  }
  EXPECT_EQ(error_of("sidetrack -m TPROXY --capture-udp quic"),
            "--capture-udp: 'quic': expected a port from 1 to 65535, or a range such as 9000-9100");
}

}  // namespace
}  // namespace sidetrack
