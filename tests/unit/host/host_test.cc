// SPDX-License-Identifier: GPL-2.0-or-later
// What the host says, from files and address lists of the tests' own.
#include "host/host.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>

#include "support/cannot_run.h"
#include "unit/apart.h"
#include "unit/options_text.h"
#include "unit/temporary_file.h"

namespace sidetrack {
namespace {

using testing::TemporaryFile;
using Texts = std::vector<std::string>;

Host pod(std::vector<std::string_view> addresses = {"127.0.0.1", "10.244.0.7", "::1", "fe80::1"}) {
  Host host;
  host.passwd = host.group = host.resolv_conf = "/nonexistent";
  host.addresses = [addresses] {
    std::vector<Address> parsed;
    for (const auto& address : addresses) parsed.push_back(Address::parse(address).value());
    return parsed;
  };
  return host;
}

// ---- Cgroups

TEST(GatherCgroups, ErrorsNameThemAsTheyAreWritten) {
  Host host = pod();
  host.cgroup = [](const std::string& path) { return FoundCgroup{path, 0, "no such cgroup below /mnt"}; };
  Config config = testing::parse_text("sidetrack --bypass-cgroup /nope/").config;
  try {
    static_cast<void>(gather(config, {}, host));
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(), "--bypass-cgroup: '/nope/': no such cgroup below /mnt");
  }
  host.may_lack_addresses = true;
  static_cast<void>(gather(config, {}, host));
  EXPECT_EQ(config.bypass_cgroups, std::vector<Cgroup>{{"nope"}});
}

TEST(GatherCgroups, AreFoundByEachPath) {
  Host host = pod();
  host.cgroup = [](const std::string& path) { return FoundCgroup{"found/" + path, path.size(), ""}; };
  Config config = testing::parse_text("sidetrack --bypass-cgroup a,bcd").config;
  static_cast<void>(gather(config, {}, host));
  EXPECT_EQ(config.bypass_cgroups, (std::vector<Cgroup>{{"found/a", 1}, {"found/bcd", 3}}));
}

// ---- Families

Families families_of(const std::vector<std::string_view>& addresses, bool dual_stack = false, bool dry_run = false) {
  Config config;
  config.dual_stack = dual_stack;
  Host host = pod(addresses);
  host.may_lack_addresses = dry_run;
  return gather(config, {}, host).families;
}

TEST(GatherFamilies, TheFirstAddressDecides) {
  EXPECT_EQ(families_of({"127.0.0.1", "10.0.0.1", "::1", "fd00::1"}), Family::ipv4);
  EXPECT_EQ(families_of({"127.0.0.1", "::1", "fd00::1", "10.0.0.1"}), Families::both());
  EXPECT_EQ(families_of({"127.0.0.1", "169.254.1.1", "::1", "fe80::1", "fd00::1"}), Families::both());
  EXPECT_EQ(families_of({"fe80::1", "10.0.0.1"}), Family::ipv4);
}

TEST(GatherFamilies, WithDualStackAnyIpv6Does) {
  EXPECT_EQ(families_of({"10.0.0.1", "fd00::1"}, true), Families::both());
  EXPECT_EQ(families_of({"10.0.0.1", "fe80::1", "::1"}, true), Family::ipv4);
  EXPECT_EQ(families_of({"fd00::1"}, true), Families::both());
}

TEST(GatherFamilies, WithoutAnAddressIsAnErrorUnlessNothingIsDone) {
  for (const bool dual_stack : {false, true}) {
    try {
      families_of({"127.0.0.1", "::1", "fe80::1", "169.254.7.7"}, dual_stack);
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::failed);
      EXPECT_STREQ(error.what(), "no interface has an address other than loopback and link-local");
    }
  }
  EXPECT_EQ(families_of({}, false, true), Family::ipv4);
  EXPECT_EQ(families_of({}, true, true), Families::both());
  EXPECT_EQ(families_of({"fd00::1"}, false, true), Families::both());
}

// As Istio's agent has them, which asks no addresses of the pod: where the kernel has IPv6, lo has an address of it.
TEST(GatherFamilies, OfAnAmbientPodAreThoseOfTheKernel) {
  const auto families_of_ambient = [](const std::vector<std::string_view>& addresses) {
    Config config;
    config.dataplane = Dataplane::ambient;
    return gather(config, {}, pod(addresses)).families;
  };
  EXPECT_EQ(families_of_ambient({"127.0.0.1", "10.0.0.1", "::1"}), Families::both());
  EXPECT_EQ(families_of_ambient({"10.0.0.1", "fe80::1"}), Families::both());
  EXPECT_EQ(families_of_ambient({"127.0.0.1", "10.0.0.1"}), Family::ipv4);
  EXPECT_THROW(families_of_ambient({}), Error);
}

TEST(GatherFamilies, AreNotAskedForIfGiven) {
  Host host = pod();
  host.addresses = []() -> std::vector<Address> { throw std::logic_error("asked"); };
  Config config;
  config.families = Families::both();
  EXPECT_EQ(gather(config, {}, host).families, Families::both());
  config.families = Family::ipv4;
  EXPECT_EQ(gather(config, {}, host).families, Family::ipv4);
  config.families = Family::ipv6;
  EXPECT_EQ(gather(config, {}, host).families, Families::both()) << "IPv4 is always taken";
  Config needs_none;
  needs_none.mode = Mode::none;
  EXPECT_EQ(gather(needs_none, {}, host).families, Family::ipv4);
}

// The address of a line of /proc/net/if_inet6: 32 hexadecimal digits without colons.
Address address_of_digits(std::string digits) {
  for (std::size_t place = 28; place > 0; place -= 4) digits.insert(place, ":");
  return Address::parse(digits).value();
}

TEST(InterfaceAddresses, AreThoseOfTheKernelIpv4First) {
  std::vector<Address> expected;
  std::ifstream listing("/proc/net/if_inet6");
  for (std::string line; std::getline(listing, line);) expected.push_back(address_of_digits(line.substr(0, 32)));

  const std::vector<Address> found = interface_addresses();
  const auto ipv6 = std::ranges::find(found, Family::ipv6, &Address::family);
  EXPECT_TRUE(std::all_of(ipv6, found.end(), [](const Address& address) { return address.family == Family::ipv6; }));
  EXPECT_TRUE(std::is_permutation(ipv6, found.end(), expected.begin(), expected.end()));
}

// ---- Name servers

struct Servers {
  Texts servers;
  Texts warnings;
};

Servers servers_of(const std::string& resolv_conf, Config config = {}) {
  const TemporaryFile file(resolv_conf);
  config.redirect_dns = true;
  Host host = pod();
  host.resolv_conf = file.path();
  const HostFacts facts = gather(config, {}, host);
  Servers result;
  for (const Address& server : facts.dns_servers) result.servers.push_back(server.text());
  for (std::string warning : facts.warnings) {
    const auto place = warning.find(file.path());
    if (place != std::string::npos) warning.replace(place, file.path().size(), "FILE");
    result.warnings.push_back(warning);
  }
  return result;
}

TEST(GatherNameServers, InTheOrderOfTheFile) {
  const auto found = servers_of(
      "# made by the kubelet\n"
      "search default.svc.cluster.local\n"
      "nameserver 10.96.0.10\n"
      "  nameserver\tfd00:10:96::a   # trailing\n"
      "; nameserver 1.1.1.1\n"
      "#nameserver 1.1.1.2\n"
      "nameserver fe80::1%eth0\n"
      "nameservers 9.9.9.9\n"
      "options ndots:5\n"
      "nameserver 8.8.8.8");
  EXPECT_EQ(found.servers, (Texts{"10.96.0.10", "fd00:10:96::a", "fe80::1", "8.8.8.8"}));
  EXPECT_EQ(found.warnings, Texts{});
}

TEST(GatherNameServers, WarnsOfWhatIsNoAddress) {
  const auto found = servers_of("nameserver dns.example\nnameserver 10.0.0.1\nnameserver\n");
  EXPECT_EQ(found.servers, Texts{"10.0.0.1"});
  EXPECT_EQ(found.warnings, (Texts{"FILE: 'dns.example' is not an address: name server ignored",
                                   "FILE: '' is not an address: name server ignored"}));
}

TEST(GatherNameServers, WithoutAnyDnsIsNotCaptured) {
  const auto found = servers_of("search example\n");
  EXPECT_EQ(found.servers, Texts{});
  EXPECT_EQ(found.warnings, Texts{"no name server in FILE: DNS is not captured"});

  Config config;
  config.dns_servers.emplace();
  EXPECT_EQ(servers_of("nameserver 10.0.0.1\n", config).warnings,
            Texts{"no name server in --dns-server: DNS is not captured"});
}

TEST(GatherNameServers, AreThoseOfTheCommandLineIfGiven) {
  Config config;
  config.dns_servers = {*Address::parse("10.0.0.53"), *Address::parse("fd00::53")};
  EXPECT_EQ(servers_of("nameserver 10.0.0.1\n", config).servers, (Texts{"10.0.0.53", "fd00::53"}));
}

TEST(GatherNameServers, AreOnlyReadIfNeeded) {
  Config config;
  EXPECT_NO_THROW(static_cast<void>(gather(config, {}, pod())));
  config.redirect_dns = config.capture_all_dns = true;
  EXPECT_TRUE(gather(config, {}, pod()).warnings.empty());
  config.capture_all_dns = false;
  EXPECT_THROW(static_cast<void>(gather(config, {}, pod())), Error);
  config.dataplane = Dataplane::ambient;
  EXPECT_TRUE(gather(config, {}, pod()).dns_servers.empty()) << "the rules of an ambient pod capture DNS to any server";
  config.dataplane = Dataplane::sidecar;
  config.mode = Mode::none;
  EXPECT_TRUE(gather(config, {}, pod()).dns_servers.empty());
}

// Messages name the file as the caller sees it.
TEST(GatherNameServers, OfAnotherRootAreNamedByIt) {
  Config config;
  config.redirect_dns = true;
  Host host = pod();
  host.root_name = "/proc/7/root";
  try {
    static_cast<void>(gather(config, {}, host));
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "cannot read the name servers of /proc/7/root/nonexistent: No such file or directory (ENOENT)");
    EXPECT_EQ(error.hint(), "--dns-server names them, --capture-all-dns captures DNS to any server");
  }
  const TemporaryFile empty("");
  host.resolv_conf = empty.path();
  EXPECT_EQ(gather(config, {}, host).warnings,
            Texts{"no name server in /proc/7/root" + empty.path() + ": DNS is not captured"});
  const TemporaryFile wrong("nameserver x\n");
  host.resolv_conf = wrong.path();
  EXPECT_EQ(gather(config, {}, host).warnings.front(),
            "/proc/7/root" + wrong.path() + ": 'x' is not an address: name server ignored");
}

TEST(GatherNameServers, UnreadableIsAnError) {
  Config config;
  config.redirect_dns = true;
  for (const auto& [path, words] : std::vector<std::pair<std::string, std::string>>{
           {"/nonexistent", "No such file or directory (ENOENT)"}, {"/", "Is a directory (EISDIR)"}}) {
    Host host = pod();
    host.resolv_conf = path;
    try {
      static_cast<void>(gather(config, {}, host));
      ADD_FAILURE() << "was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::failed);
      EXPECT_EQ(error.what(), "cannot read the name servers of " + path + ": " + words);
      EXPECT_FALSE(error.hint().empty());
    }
  }
}

// It takes a right to read it, where there is one.
TEST(GatherNameServers, ThatMayNotBeReadAreNotPermitted) {
  const TemporaryFile file("nameserver 10.0.0.1\n");
  ASSERT_EQ(chmod(file.path().c_str(), 0), 0);
  const std::string said = testing::apart([&]() -> std::string {
    if (geteuid() == 0 && setresuid(65533, 65533, 65533) != 0) return "skip";
    Config config;
    config.redirect_dns = true;
    Host host = pod();
    host.resolv_conf = file.path();
    try {
      static_cast<void>(gather(config, {}, host));
    } catch (const Error& error) {
      return fmt::format("{}: {}", static_cast<int>(error.code()), error.what());
    }
    return "was accepted";
  });
  if (said == "skip") return cannot_run("no other user may be taken");
  EXPECT_EQ(said, "4: cannot read the name servers of " + file.path() + ": Permission denied (EACCES)");
}

// ---- Files that are none

TEST(GatherFiles, NothingButARegularFileOfBoundedSizeIsRead) {
  const std::string folder = ::testing::TempDir() + "sidetrack-files-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const std::string fifo = folder + "/fifo";
  const std::string large = folder + "/large";
  const std::string loop = folder + "/loop";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  std::ofstream(large) << std::string((1 << 20) + 1, '#');
  ASSERT_EQ(symlink("loop", loop.c_str()), 0);
  for (const auto& [path, words] :
       std::vector<std::pair<std::string, std::string>>{{fifo, "a FIFO, not a regular file"},
                                                        {"/dev/zero", "a device, not a regular file"},
                                                        {folder, "Is a directory (EISDIR)"},
                                                        {large, "larger than 1024 KiB"},
                                                        {loop, "Too many levels of symbolic links (ELOOP)"}}) {
    Host host = pod();
    host.resolv_conf = host.passwd = host.group = path;
    const auto expect_refusal = [&](Config config, const Names& names, const std::string& what) {
      try {
        static_cast<void>(gather(config, names, host));
        ADD_FAILURE() << path << " was accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::failed);
        EXPECT_EQ(error.what(), what + path + ": " + words);
        EXPECT_FALSE(error.hint().empty());
      }
    };
    Config resolver;
    resolver.proxy_uids = {7};
    resolver.redirect_dns = true;
    expect_refusal(resolver, {}, "cannot read the name servers of ");
    expect_refusal({}, {}, "cannot read ");
    Config groups;
    groups.proxy_uids = {7};
    Names names;
    names.owner_groups = {false, {"java"}};
    expect_refusal(groups, names, "cannot read ");
  }
  for (const std::string& path : {fifo, large, loop}) std::remove(path.c_str());
  rmdir(folder.c_str());
}

// ---- Users and groups

class GatherIds : public ::testing::Test {
 protected:
  GatherIds() {
    host.passwd = passwd.path();
    host.group = group.path();
  }
  TemporaryFile passwd{"root:x:0:0:root:/root:/bin/sh\nproxy:x:99:98::/:\nistio-proxy:x:1400:1401::/home:/bin/false\n"};
  TemporaryFile group{"root:x:0:\njava:x:202:a,b\n"};
  Host host = pod();
  Config config;
  Names names;
};

using Ids = std::vector<std::uint32_t>;

TEST_F(GatherIds, TheUidIsThatOfTheProxysUser) {
  EXPECT_TRUE(gather(config, names, host).warnings.empty());
  EXPECT_EQ(config.proxy_uids, Ids{1400});
  EXPECT_EQ(config.proxy_gids, Ids{1400});  // upstream takes the uid, not the user's group
}

// As adduser and systemd write it, and by hand: the password may be empty.
TEST_F(GatherIds, TheIdStandsBehindThePassword) {
  for (const char* line : {"istio-proxy:x:1400:1401::/:/x", "istio-proxy::1400:1401::/:/x", "istio-proxy:!:1400",
                           "istio-proxy2:x:1:1::/:/x\nistio:x:2:2::/:/x\nistio-proxy:*:1400:::"}) {
    const TemporaryFile users(line);
    host.passwd = users.path();
    config = {};
    static_cast<void>(gather(config, names, host));
    EXPECT_EQ(config.proxy_uids, Ids{1400}) << line;
  }
}

TEST_F(GatherIds, EnvoyUserNamesAnother) {
  names = {"proxy", true, {true, {}}, {}};
  EXPECT_TRUE(gather(config, names, host).warnings.empty());
  EXPECT_EQ(config.proxy_uids, Ids{99});
}

TEST_F(GatherIds, WithoutThatUserItIs1337) {
  host.passwd = "/nonexistent";
  EXPECT_TRUE(gather(config, names, host).warnings.empty());
  EXPECT_EQ(config.proxy_uids, Ids{1337});
}

// There is no list of users below what is no folder either.
TEST_F(GatherIds, AListThatCannotBeIsNone) {
  host.passwd = passwd.path() + "/passwd";
  static_cast<void>(gather(config, names, host));
  EXPECT_EQ(config.proxy_uids, Ids{1337});
}

TEST_F(GatherIds, AnUnknownUserThatWasNamedIsRefused) {
  names = {"nobody-here", true, {true, {}}, {}};
  try {
    EXPECT_TRUE(gather(config, names, host).warnings.empty());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.what(), "ENVOY_USER: no user 'nobody-here' in " + passwd.path());
  }
  config.proxy_uids = {7};  // -u: then it is not looked up
  EXPECT_TRUE(gather(config, names, host).warnings.empty());
}

// (uid_t)-1 is no user; whatever else is no uid must not become the usual one, nor what strtoul(3) makes of it.
TEST_F(GatherIds, AnIdThatIsNoneIsRefused) {
  for (const char* id : {"4294967295", "4294967296", "99999999999", "-1", "5x", "+5", " 5", ""}) {
    for (const bool given : {false, true}) {
      const TemporaryFile users{fmt::format("root:x:0:0::/:\nistio-proxy:x:{}:0::/:/x\n", id)};
      host.passwd = users.path();
      names = {"istio-proxy", given, {true, {}}, {}};
      config = {};
      try {
        static_cast<void>(gather(config, names, host));
        ADD_FAILURE() << id;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        EXPECT_EQ(error.what(), fmt::format("{}: 'istio-proxy' has the id '{}': expected a number from 0 to 4294967294",
                                            users.path(), id));
      }
    }
    const TemporaryFile groups{fmt::format("g1:x:{}:\n", id)};
    host.passwd = passwd.path();
    host.group = groups.path();
    names = {"istio-proxy", false, {false, {"g1"}}, {}};
    config = {};
    EXPECT_THROW(static_cast<void>(gather(config, names, host)), Error) << id;
  }
  const TemporaryFile cut{"istio-proxy\nistio-proxy:x\n"};
  host.passwd = cut.path();
  config = {};
  EXPECT_THROW(static_cast<void>(gather(config, names, host)), Error);
}

TEST_F(GatherIds, WhatIsGivenIsKept) {
  config.proxy_uids = {1, 2};
  static_cast<void>(gather(config, names, host));
  EXPECT_EQ(config.proxy_uids, (Ids{1, 2}));
  EXPECT_EQ(config.proxy_gids, (Ids{1, 2}));
  config.proxy_gids = {3};
  static_cast<void>(gather(config, names, host));
  EXPECT_EQ(config.proxy_gids, Ids{3});
}

TEST_F(GatherIds, GroupsAreNamesOrNumbers) {
  names.owner_groups = {false, {"java", "7", "root"}};
  static_cast<void>(gather(config, names, host));
  EXPECT_FALSE(config.owner_groups.all);
  EXPECT_EQ(config.owner_groups.list, (Ids{202, 7, 0}));

  // 010 is eight to some and ten to others: it is the name of a group, or nothing.
  const TemporaryFile octal("010:x:77:\nnine:x:9:\n");
  host.group = octal.path();
  names.owner_groups = {false, {"010", "0", "9"}};
  static_cast<void>(gather(config, names, host));
  EXPECT_EQ(config.owner_groups.list, (Ids{77, 0, 9}));
  host.group = group.path();

  names.owner_groups = {true, {}};
  names.owner_groups_exclude = {"java", "4294967294"};
  EXPECT_TRUE(gather(config, names, host).warnings.empty());
  EXPECT_TRUE(config.owner_groups.all);
  EXPECT_EQ(config.owner_groups.list, Ids{});
  EXPECT_EQ(config.owner_groups_exclude, (Ids{202, 4294967294}));
}

TEST_F(GatherIds, AnUnknownGroupIsAnError) {
  for (const char* unknown : {"jav", "javaa", "4294967295", "4294967296", "-1"}) {
    names.owner_groups = {false, {unknown}};
    try {
      static_cast<void>(gather(config, names, host));
      ADD_FAILURE() << unknown << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_EQ(error.what(),
                "ISTIO_OUTBOUND_OWNER_GROUPS: no group '" + std::string(unknown) + "' in " + group.path());
      EXPECT_EQ(error.hint(), "a gid can be given as its number");
    }
    names.owner_groups = {true, {}};
    names.owner_groups_exclude = {unknown};
    try {
      static_cast<void>(gather(config, names, host));
      ADD_FAILURE() << unknown << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(),
                "ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE: no group '" + std::string(unknown) + "' in " + group.path());
    }
    names.owner_groups_exclude.clear();
  }
}

}  // namespace
}  // namespace sidetrack
