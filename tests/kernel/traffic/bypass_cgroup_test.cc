// SPDX-License-Identifier: GPL-2.0-or-later
// --bypass-cgroup: what the processes of a cgroup send goes past the proxy. The client's sockets are opened in it;
// those who listen are outside.
#include <gmock/gmock.h>

#include "support/cgroup.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::HasSubstr;

class BypassCgroup : public Traffic {
 protected:
  [[nodiscard]] Endpoint server() const { return {at().dns, 53}; }
  [[nodiscard]] Landing connect_in(const TestCgroup& cgroup, const Actor& actor, const Endpoint& to) const {
    const InCgroup in(cgroup);
    return connect(actor, to);
  }
  [[nodiscard]] Landing send_in(const TestCgroup& cgroup, const Actor& actor, const Endpoint& to) const {
    const InCgroup in(cgroup);
    return send(actor, to);
  }
  [[nodiscard]] Output sidetrack(std::vector<std::string> words) const {
    words.insert(words.begin(), program_under_test());
    return pod_->ns().program(words, {}, {});
  }
  [[nodiscard]] std::vector<std::string> words_of(const std::string& command, const std::string& path) const {
    return {command,         "--backend", std::get<0>(GetParam()), "-i", "*", "-b", "*",
            "--ip-families", "ipv4,ipv6", "--bypass-cgroup",       path};
  }

  const TestCgroup bypassing_{"bypassing"};
  const TestCgroup below_{"below", &bypassing_};
  const TestCgroup other_{"bypassing-not"};  // its name begins as that of the other
};
INSTANTIATE_TEST_SUITE_P(, BypassCgroup, settings(), setting_name);

TEST_P(BypassCgroup, OfItAndThoseBelow) {
  apply("-i * -b * --bypass-cgroup " + bypassing_.path());
  for (const TestCgroup* cgroup : {&bypassing_, &below_})
    EXPECT_EQ(connect_in(*cgroup, as_app, service(80)), landed(Role::outside, local(service(80))));
  EXPECT_EQ(connect_in(other_, as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(connect(as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
}

TEST_P(BypassCgroup, MayBeBelowOthersAndSeveral) {
  apply("-i * -b * --bypass-cgroup " + below_.path() + "," + other_.folder());
  EXPECT_EQ(connect_in(bypassing_, as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  for (const TestCgroup* cgroup : {&below_, &other_})
    EXPECT_EQ(connect_in(*cgroup, as_app, service(80)), landed(Role::outside, local(service(80))));
}

TEST_P(BypassCgroup, ReachesThisPodItself) {
  apply("-i * -b * --redirect-dns --capture-all-dns --bypass-cgroup " + bypassing_.path());
  EXPECT_EQ(connect_in(bypassing_, as_app, pod(8080)), landed(Role::app, local(pod(8080))));
  EXPECT_EQ(connect_in(bypassing_, as_app, loopback(8080)), landed(Role::app, local(loopback(8080))));
  EXPECT_EQ(connect_in(bypassing_, as_proxy, pod(8080)), landed(Role::proxy_inbound, original(pod(8080))));
}

TEST_P(BypassCgroup, AsksTheNameServersThemselves) {
  pod_->ns().must({"nft", "add table inet firewall"});
  pod_->ns().must({"nft", "add chain inet firewall input { type filter hook input priority 0; }"});
  pod_->ns().must({"nft", "add rule inet firewall input udp sport 53 ct state new drop"});
  for (const std::string all : {"", " --capture-all-dns"}) {
    apply("-i * -b * --redirect-dns --dns-server " + both(&Addresses::dns) + all + " --bypass-cgroup " +
          bypassing_.path());
    EXPECT_EQ(send_in(bypassing_, as_app, server()), landed(Role::outside, local(server())));
    EXPECT_EQ(connect_in(bypassing_, as_app, server()), landed(Role::outside, local(server())));
    EXPECT_EQ(send(as_app, server()), landed(Role::dns, local(loopback(15053))));
  }
}

TEST_P(BypassCgroup, IsReadBackAsItsPath) {
  EXPECT_EQ(sidetrack(words_of("apply", bypassing_.path())).exit_code, 0);
  const Output verified = sidetrack(words_of("verify", bypassing_.path()));
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_EQ(sidetrack(words_of("verify", other_.path())).exit_code, 6);
  const std::string path = bypassing_.path().substr(1);
  EXPECT_THAT(sidetrack({"show"}).out, HasSubstr(path));
  EXPECT_THAT(
      sidetrack({"explain", "out", "tcp", service(80).text(), "--uid", "1000", "--cgroup", below_.path(), "--brief"})
          .out,
      HasSubstr(", untouched"));
  const Output not_given = sidetrack({"explain", "out", "tcp", service(80).text(), "--uid", "1000"});
  EXPECT_THAT(not_given.out, HasSubstr("whether `-m cgroup --path " + path + "` holds"));
  EXPECT_THAT(sidetrack({"map"}).out, HasSubstr("sent from cgroup " + path));
  EXPECT_EQ(sidetrack({"clean"}).exit_code, 0);
  EXPECT_EQ(pod_->ns().must({"nft", "list ruleset"}).find("cgroup"), std::string::npos);
}

// explain reads a path as the option does, and answers for no cgroup that is not there.
TEST_P(BypassCgroup, IsAskedAboutByEachOfItsPaths) {
  EXPECT_EQ(sidetrack(words_of("apply", bypassing_.path())).exit_code, 0);
  const auto explained = [&](const std::string& path, std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"explain", "out", "tcp", service(80).text(), "--uid", "1000", "--brief", "--cgroup", path});
    return sidetrack(more);
  };
  for (const std::string& path : {bypassing_.path(), bypassing_.path().substr(1), bypassing_.path() + "/",
                                  bypassing_.folder(), bypassing_.folder() + "/", below_.folder()})
    EXPECT_THAT(explained(path).out, HasSubstr(", untouched")) << path;
  EXPECT_THAT(explained(other_.folder()).out, HasSubstr("15001"));
  EXPECT_THAT(explained("/").out, HasSubstr("15001"));
  const Output missing = explained("/sidetrack/none/");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_EQ(missing.out, "");
  EXPECT_THAT(missing.err, HasSubstr("--cgroup: '/sidetrack/none/': no such cgroup below"));
  // Of a pod that is not there yet, its cgroup need not be.
  EXPECT_THAT(explained("none/x", {"--plan", "-i", "*", "--bypass-cgroup", "/none/"}).out, HasSubstr(", untouched"));
}

// nf_tables knows the cgroup by its number: of one that is gone, a successor of the same path is another.
TEST_P(BypassCgroup, IsAnotherOfTheSamePath) {
  if (std::string(std::get<0>(GetParam())) != "nftables") return;  // iptables' rules hold the path alone
  EXPECT_EQ(sidetrack(words_of("apply", other_.path())).exit_code, 0);
  other_.make_anew();
  EXPECT_EQ(connect_in(other_, as_app, service(80)), landed(Role::proxy_outbound, original(service(80))));
  EXPECT_EQ(sidetrack(words_of("verify", other_.path())).exit_code, 6);
  EXPECT_THAT(sidetrack({"show"}).out, HasSubstr("whose path is not known"));
  EXPECT_EQ(sidetrack(words_of("apply", other_.path())).exit_code, 0);
  EXPECT_EQ(connect_in(other_, as_app, service(80)), landed(Role::outside, local(service(80))));
}

// The mounts are those of the file that the kernel lists them in.
TEST_P(BypassCgroup, IsRefusedWhereNetfilterKnowsNone) {
  const auto refused = [&](const std::string& mount, const std::string& path) {
    std::vector<std::string> words{"unshare",
                                   "--mount",
                                   "sh",
                                   "-c",
                                   "mount -t tmpfs none /proc && mkdir /proc/self && echo '36 35 0:30 / " + mount +
                                       "' >/proc/self/mountinfo && exec \"$0\" \"$@\"",
                                   program_under_test()};
    const std::vector<std::string> more = words_of("apply", path);
    words.insert(words.end(), more.begin(), more.end());
    const Output output = pod_->ns().program(words);
    EXPECT_EQ(output.exit_code, 2) << output.err;
    return output.err;
  };
  const std::string memory = "/sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory";
  for (const char* path : {"/sys/fs/cgroup/memory/app", "/sys/fs/cgroup/memory"}) {
    EXPECT_THAT(refused(memory, path), HasSubstr("': a directory of cgroup v1 (rw,memory), whose processes netfilter "
                                                 "does not know by a path"));
  }
  for (const char* mount : {memory.c_str(), "/proc rw - proc proc rw"}) {
    EXPECT_THAT(refused(mount, "app"), HasSubstr("--bypass-cgroup: 'app': no cgroup v2 hierarchy is mounted here"));
  }
}

TEST_P(BypassCgroup, IsRefusedIfItIsNone) {
  const auto refused = [&](const std::string& path) {
    const Output output = sidetrack(words_of("apply", path));
    EXPECT_EQ(output.exit_code, 2) << path << output.err;
    return output.err;
  };
  EXPECT_THAT(refused("sidetrack/none"), HasSubstr("--bypass-cgroup: 'sidetrack/none': no such cgroup below"));
  EXPECT_THAT(refused("/tmp/"), HasSubstr("--bypass-cgroup: '/tmp/': no such cgroup below"));
  EXPECT_THAT(refused(bypassing_.path() + "/cgroup.procs"), HasSubstr("a file, not a cgroup's directory"));
  EXPECT_THAT(refused("/"), HasSubstr("a cgroup other than the root"));
  EXPECT_THAT(refused(bypassing_.path() + "/../x"), HasSubstr("expected the path of a cgroup"));
  EXPECT_EQ(sidetrack({"show"}).out.find("cgroup"), std::string::npos);
}

}  // namespace
}  // namespace sidetrack::netns
