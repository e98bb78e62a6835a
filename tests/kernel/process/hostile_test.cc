// SPDX-License-Identifier: GPL-2.0-or-later
// Pods that mean harm, or nothing by it: what they may name, put into their files and program, and where a command may
// be sent. Every command ends by itself (Namespace::program kills what is silent for a minute, and throws), with the
// exit code of the manual, and gives a terminal nothing to obey.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "model/printable.h"
#include "support/hostile_pod.h"
#include "support/kernel_test.h"
#include "support/listing.h"
#include "support/network.h"
#include "support/traffic.h"
#include "support/words.h"

namespace sidetrack::netns {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
Output sidetrack(const Namespace& where, const Words& words, const Words& environment = {}) {
  return where.program(Words{program_under_test()} + words, {}, environment);
}

// ---- Files of the pod

// What may stand where a file is expected: made at a path outside of the pod, and what is said about it.
struct Trap {
  const char* name;
  void (*make)(const std::string& path);
  const char* said;
};

void make_socket(const std::string& path) {
  const FileDescriptor made(check(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
  // The path of a socket is short: bound where it is, by a folder that is held.
  const auto slash = path.rfind('/');
  const FileDescriptor folder(check(open(path.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC), "open"));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("/proc/self/fd/{}/{}", folder.get(), path.substr(slash + 1));
  std::strncpy(address.sun_path, name.c_str(), sizeof address.sun_path - 1);
  check(bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
}

const Trap traps[] = {
    {"fifo", [](const std::string& path) { check(mkfifo(path.c_str(), 0644), "mkfifo"); },
     "a FIFO, not a regular file"},
    {"zero", [](const std::string& path) { check(mknod(path.c_str(), S_IFCHR | 0644, makedev(1, 5)), "mknod"); },
     "a device, not a regular file"},
    {"socket", make_socket, "a socket, not a regular file"},
    {"directory", [](const std::string& path) { check(mkdir(path.c_str(), 0755), "mkdir"); },
     "Is a directory (EISDIR)"},
    {"huge",
     [](const std::string& path) {
       std::ofstream(path) << "#";
       std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
     },
     "larger than 1024 KiB"},
    {"loop",
     [](const std::string& path) { check(symlink(path.substr(path.rfind('/') + 1).c_str(), path.c_str()), "symlink"); },
     "Too many levels of symbolic links (ELOOP)"},
    // Through the pod's own /proc to a root that is not its own.
    {"magic_link",
     [](const std::string& path) {
       check(symlink(fmt::format("/proc/{}/root/etc/passwd", getpid()).c_str(), path.c_str()), "symlink");
     },
     "Too many levels of symbolic links (ELOOP)"},
};

// Each file with the options under which it is read, and nothing else is.
struct File {
  const char* name;
  Words options;
  Words environment;
};
const File files[] = {
    {"/etc/resolv.conf", {"-u", "1337", "--redirect-dns"}, {}},
    {"/etc/passwd", {}, {}},
    {"/etc/group", {"-u", "1337"}, {"ISTIO_OUTBOUND_OWNER_GROUPS=java"}},
};

class PodFiles : public KernelTest, public ::testing::WithParamInterface<Trap> {};

TEST_P(PodFiles, NothingButARegularFileIsRead) {
  const Namespace network;
  const Namespace node;
  for (const File& file : files) {
    SCOPED_TRACE(file.name);
    const HostilePod pod(network);
    GetParam().make(pod.path(file.name));
    for (const char* command : {"render", "apply", "verify", "diff"}) {
      const Output output =
          sidetrack(node, Words{command, "--ip-families", "ipv4", "--pid", pod.pid()} + file.options, file.environment);
      EXPECT_EQ(output.exit_code, 1) << output.err;
      EXPECT_EQ(output.out, "");
      EXPECT_THAT(output.err, AllOf(HasSubstr("/proc/" + pod.pid() + "/root" + file.name), HasSubstr(GetParam().said)));
    }
  }
  EXPECT_EQ(listing(network), listing(Namespace()));
}

INSTANTIATE_TEST_SUITE_P(, PodFiles, ::testing::ValuesIn(traps),
                         [](const auto& trap) { return std::string(trap.param.name); });

struct PodRoot : KernelTest {
  Namespace network;
  Namespace node;

  [[nodiscard]] Output render(const HostilePod& pod, const Words& options, const Words& environment = {}) const {
    return sidetrack(node, Words{"render", "--ip-families", "ipv4", "--pid", pod.pid()} + options, environment);
  }
};

TEST_F(PodRoot, SymbolicLinksStayInside) {
  const HostilePod pod(network);
  std::ofstream(pod.path("/run/resolv.conf")) << "nameserver 10.99.99.99\n";
  std::ofstream(pod.path("/run/passwd")) << "istio-proxy:x:4242:4242::/:/bin/false\n";
  ASSERT_EQ(symlink("/run/resolv.conf", pod.path("/etc/resolv.conf").c_str()), 0);
  ASSERT_EQ(symlink("../../../../../../run/passwd", pod.path("/etc/passwd").c_str()), 0);
  const Output output = render(pod, {"--redirect-dns"});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out, AllOf(HasSubstr("-d 10.99.99.99/32"), HasSubstr("--uid-owner 4242")));
}

// An image of one program has none of these files.
TEST_F(PodRoot, FilesThatAreNotThereAreNoError) {
  const HostilePod pod(network);
  const Output output = render(pod, {});
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out, HasSubstr("--uid-owner 1337"));
  EXPECT_EQ(render(pod, {"--redirect-dns"}).exit_code, 1);
  EXPECT_EQ(render(pod, {}, {"ISTIO_OUTBOUND_OWNER_GROUPS=java"}).exit_code, 2);
}

TEST_F(PodRoot, WhatTheFilesSayIsPrintable) {
  const HostilePod pod(network);
  std::ofstream(pod.path("/etc/resolv.conf"))
      << "nameserver \x1b]0;title\a\x9b\xff\nnameserver 10.0.0.1\nnameserver " << std::string(100'000, 'x') << "\n";
  const Output output = render(pod, {"-u", "1", "--redirect-dns"});
  EXPECT_EQ(output.exit_code, 0);
  EXPECT_EQ(output.err, printable_lines(output.err));
  EXPECT_THAT(output.err, AllOf(HasSubstr(R"('\x1b]0;title\x07\x9b\xff')"), HasSubstr("(100000 bytes)")));
  EXPECT_LT(output.err.size(), 1000U);
}

TEST_F(PodRoot, AFileSystemThatDoesNotAnswerIsGivenUp) {
  if (access("/dev/fuse", R_OK | W_OK) != 0) GTEST_SKIP() << "no file systems in user space here (/dev/fuse)";
  const HostilePod pod(network, true);
  ASSERT_EQ(symlink("/hang/resolv.conf", pod.path("/etc/resolv.conf").c_str()), 0);
  const Output output = render(pod, {"-u", "1", "--redirect-dns"});
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("no answer within 5 s"));
}

// ---- Files of the caller

class Traps : public KernelTest {
 protected:
  Traps() : folder_(::testing::TempDir() + "sidetrack-traps-" + std::to_string(getpid())) {
    check(mkdir(folder_.c_str(), 0700), "mkdir");
    for (const char* name : {"fifo", "zero", "directory"}) {
      std::ranges::find(traps, std::string_view(name), &Trap::name)->make(path(name));
    }
  }
  ~Traps() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }

  Namespace ns;

 private:
  std::string folder_;
};

TEST_F(Traps, AsTheLockOfTheLegacyTables) {
  for (const auto& [name, said] : {std::pair{"fifo", "a FIFO"}, std::pair{"zero", "a device"}}) {
    const Words lock{"XTABLES_LOCKFILE=" + path(name)};
    const Output applied =
        sidetrack(ns, {"apply", "--backend", "iptables-legacy", "--ip-families", "ipv4", "-u", "1", "-b", "80"}, lock);
    EXPECT_EQ(applied.exit_code, 2) << applied.err;
    EXPECT_THAT(applied.err, AllOf(HasSubstr(path(name)), HasSubstr(said), HasSubstr("regular file")));
    const Output doctor = sidetrack(ns, {"doctor"}, lock);
    EXPECT_EQ(doctor.exit_code, 0) << doctor.err;
    EXPECT_THAT(doctor.out, AllOf(HasSubstr(path(name)), HasSubstr(said)));
  }
  EXPECT_EQ(listing(ns), listing(Namespace()));
}

TEST_F(Traps, AsANetworkNamespace) {
  for (const auto& [name, said] :
       {std::pair{"fifo", "is a FIFO"}, std::pair{"zero", "is a device"}, std::pair{"directory", "is a directory"}}) {
    for (const Words& command :
         {Words{"show", "--netns", path(name)}, Words{"apply", "-b", "80", "--netns", path(name)},
          Words{"clean", "--netns", path(name)},
          Words{"istio-iptables", "-b", "80", "--network-namespace", path(name)}}) {
      const Output output = sidetrack(ns, command);
      EXPECT_EQ(output.exit_code, 2);
      EXPECT_THAT(output.out + output.err,
                  AllOf(HasSubstr(std::string(said) + ", not a network namespace"), HasSubstr(path(name))));
    }
  }
}

// ---- The caller's own namespace

struct Own : KernelTest {
  Namespace node;
  const Words options{"-u", "1337", "-i", "*", "-b", "*", "--ip-families", "ipv4"};

  // Every command that writes, sent to that place.
  [[nodiscard]] std::vector<Words> writing(const Words& place) const {
    return {Words{"apply"} + options + place, Words{"clean"} + place, Words{"apply", "--cleanup-only"} + place,
            Words{"istio-iptables"} + options + place, Words{"istio-iptables", "--cleanup-only"} + place};
  }
};

// A process of the node, in the same namespace: a sibling that was started inside.
std::string own_place(const Namespace& node) {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(node.fd());
}

TEST_F(Own, CommandsThatWriteAreRefused) {
  const HostilePod process(node);
  std::vector<Words> all = writing({"--pid", process.pid()});
  for (const Words& command : writing({"--netns", own_place(node)})) all.push_back(command);
  for (const Words& command : writing({"--netns", "/proc/self/ns/net"})) all.push_back(command);
  all.push_back(Words{"istio-iptables"} + options + Words{"--network-namespace", own_place(node)});
  all.push_back(Words{"istio-iptables", "--cleanup-only", "--network-namespace", own_place(node)});
  sidetrack(node, Words{"apply"} + options);
  const std::string before = listing(node);
  for (const Words& command : all) {
    SCOPED_TRACE(::testing::PrintToString(command));
    const Output output = sidetrack(node, command);
    EXPECT_EQ(output.exit_code, 2);
    EXPECT_THAT(output.out + output.err,
                AllOf(HasSubstr("the caller's own"), HasSubstr("leave out --"), HasSubstr("--host")));
    EXPECT_EQ(listing(node), before);
  }
}

TEST_F(Own, HostSaysThatItIsMeant) {
  const HostilePod process(node);
  for (const Words& place : {Words{"--pid", process.pid()}, Words{"--netns", own_place(node)}, Words{}}) {
    const Output applied = sidetrack(node, Words{"apply", "--host"} + options + place);
    EXPECT_EQ(applied.exit_code, 0) << applied.err;
    EXPECT_THAT(applied.err, Not(HasSubstr("caller")));
    EXPECT_THAT(sidetrack(node, {"show"}).out, HasSubstr("15001"));
    EXPECT_EQ(sidetrack(node, Words{"clean", "--host"} + place).exit_code, 0);
    EXPECT_THAT(sidetrack(node, {"show"}).out, Not(HasSubstr("15001")));
  }
  // Of another one it is not true.
  const Namespace elsewhere;
  for (const char* command : {"apply", "clean", "show"}) {
    const Output output = sidetrack(node, Words{command, "--host", "--netns", own_place(elsewhere)});
    EXPECT_EQ(output.exit_code, 2);
    EXPECT_THAT(output.err, HasSubstr("--host"));
  }
}

TEST_F(Own, CommandsThatReadSayWhichNamespaceItIs) {
  ip(node, "link set lo up\n");
  const HostilePod process(node);
  const std::string before = listing(node);
  for (const Words& place : {Words{"--pid", process.pid()}, Words{"--netns", own_place(node)}}) {
    for (const auto& [command, exit_code] :
         {std::pair{Words{"show"}, 0}, std::pair{Words{"doctor"}, 0}, std::pair{Words{"diff"} + options, 6},
          std::pair{Words{"verify"} + options, 6}, std::pair{Words{"render"} + options, 0},
          std::pair{Words{"apply", "--dry-run"} + options, 0}, std::pair{Words{"apply", "--check"} + options, 0},
          std::pair{Words{"explain", "lo", "tcp", ":80"}, 0}}) {
      SCOPED_TRACE(::testing::PrintToString(command + place));
      const Output output = sidetrack(node, command + place);
      EXPECT_EQ(output.exit_code, exit_code) << output.err;
      EXPECT_THAT(output.err, HasSubstr("the caller's own"));
    }
  }
  EXPECT_EQ(listing(node), before);
}

// A thread of the kernel, by the flag that the kernel shows; nothing in a container that sees none.
std::string kernel_thread() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string pid = entry.path().filename();
    std::ifstream file(entry.path() / "stat");
    std::string line;
    if (pid.find_first_not_of("0123456789") != std::string::npos || !std::getline(file, line)) continue;
    std::istringstream fields(line.substr(line.rfind(')') + 1));
    std::string word;
    unsigned long flags = 0;
    for (int i = 0; i < 6; ++i) fields >> word;
    if (fields >> flags && (flags & 0x00200000) != 0) return pid;
  }
  return "";
}

TEST_F(Own, AThreadOfTheKernelIsAlwaysRefused) {
  const std::string pid = kernel_thread();
  if (pid.empty()) GTEST_SKIP() << "no thread of the kernel is visible here";
  std::vector<Words> all = writing({"--pid", pid});
  for (const Words& command : writing({"--pid", pid, "--host"})) all.push_back(command);
  all.push_back({"show", "--pid", pid});
  for (const Words& command : all) {
    SCOPED_TRACE(::testing::PrintToString(command));
    const Output output = sidetrack(node, command);
    EXPECT_EQ(output.exit_code, 2);
    EXPECT_THAT(output.out + output.err, HasSubstr("is a thread of the kernel"));
  }
}

// ---- Names

void add_eth0(const Namespace& ns) {
  ip(ns,
     "link set lo up\nlink add eth0 type veth peer name peer0\naddr add 10.9.0.1/16 dev eth0\nlink set eth0 up\n"
     "link set peer0 up\n");
}

bool is_obeyed(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f'; });
}

class HostileNames : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // Every command that reads, in all its formats.
  void expect_printable(const Namespace& ns) const {
    const Words asked{"-u", "1337", "-b", "80", "--ip-families", "ipv4"};
    for (const Words& command :
         {Words{"show"}, Words{"diff"} + asked, Words{"diff", "--clean"}, Words{"verify"} + asked, Words{"doctor"},
          Words{"explain", "out", "tcp", "10.9.9.9:80"}, Words{"explain", "in", "tcp", ":80"},
          Words{"explain", "out", "tcp", "10.9.9.9:80", "--brief"}, Words{"apply", "--check"} + asked}) {
      for (const Words& format : {Words{}, Words{"--json"}, Words{"--log_as_json"}}) {
        if (command.front() == "apply" && format == Words{"--json"}) continue;  // which prints no rules
        SCOPED_TRACE(::testing::PrintToString(command + format));
        const Output output = sidetrack(ns, command + format);
        // apply refuses to remove what others have put into our own table.
        const bool refused = output.err.find("that Sidetrack did not make") != std::string::npos;
        EXPECT_THAT(output.exit_code, ::testing::AnyOf(0, 6, refused ? 1 : 0)) << output.err;
        EXPECT_EQ(output.out, printable_lines(output.out));
        EXPECT_EQ(output.err, printable_lines(output.err));
        EXPECT_FALSE(is_obeyed(output.out + output.err));
        EXPECT_THAT(output.err, Not(HasSubstr("internal error")));
        if (format == Words{"--json"} && command.front() != "apply") {
          EXPECT_TRUE(nlohmann::json::accept(output.out)) << output.out;
        }
        if (format == Words{"--log_as_json"}) {
          std::istringstream lines(output.err);
          for (std::string line; std::getline(lines, line);) EXPECT_TRUE(nlohmann::json::accept(line)) << line;
        }
      }
    }
  }
};

constexpr const char* escape = "\x1b[2J";
constexpr const char* no_utf8 = "\xff\xc3(";
constexpr const char* bidi = "\xe2\x80\xae";

TEST_P(HostileNames, OfIptables) {
  const Namespace ns;
  add_eth0(ns);
  const std::string iptables = std::string("iptables-") + GetParam();
  for (const char* bad : {escape, no_utf8, bidi,
                          "\xc2\x9b"
                          "31m",
                          "\x7f\x01"}) {
    SCOPED_TRACE(printable(bad));
    for (const std::string& chain : {std::string("ISTIO_") + bad, std::string("KUBE") + bad}) {
      ns.must({iptables, "-t", "nat", "-N", chain});
      ns.must({iptables, "-t", "nat", "-A", chain, "-o", std::string("e") + bad, "-m", "comment", "--comment",
               std::string("say ") + bad, "-j", "RETURN"});
      ns.must({iptables, "-t", "nat", "-A", "OUTPUT", "-j", chain});
      ns.must({iptables, "-t", "nat", "-A", "PREROUTING", "-i", std::string("e") + bad + "+", "-j", chain});
    }
    ns.must({iptables, "-t", "nat", "-A", "OUTPUT", "-m", "comment", "--comment", bad, "-j", "ACCEPT"});
  }
  ns.must({iptables, "-t", "nat", "-N", "ISTIO_REDIRECT"});
  expect_printable(ns);
  EXPECT_THAT(sidetrack(ns, {"show"}).out, AllOf(HasSubstr(R"(nat ISTIO_\x1b[2J)"), HasSubstr(R"(nat KUBE\xff\xc3()"),
                                                 HasSubstr(R"(say \u202e)"), HasSubstr(R"(-o e\u009b31m)")));
  // In JSON the name is whole, unless it is no UTF-8.
  const auto shown = nlohmann::json::parse(sidetrack(ns, {"show", "--json"}).out);
  std::set<std::string> chains;
  for (const auto& chain : shown["chains"]) chains.insert(chain["chain"].get<std::string>());
  EXPECT_TRUE(chains.contains(std::string("ISTIO_") + escape));
  EXPECT_TRUE(chains.contains(R"(ISTIO_\xff\xc3()"));

  // They do not keep ours from being removed.
  EXPECT_EQ(sidetrack(ns, {"clean"}).exit_code, 0);
  EXPECT_EQ(sidetrack(ns, {"diff", "--clean"}).exit_code, 0);
  EXPECT_THAT(ns.must({iptables + "-save", "-t", "nat"}),
              AllOf(HasSubstr("KUBE"), HasSubstr(std::string("ISTIO_") + escape), Not(HasSubstr("ISTIO_REDIRECT"))));
}
INSTANTIATE_TEST_SUITE_P(, HostileNames, ::testing::Values("legacy", "nft"), backend_name);

struct HostileObjects : HostileNames {};

// nf_tables takes any name: nft does in JSON alone.
TEST_P(HostileObjects, OfNfTables) {
  const Namespace ns;
  add_eth0(ns);
  const std::string bad = "\x1b[31m\nnat OUTPUT\x7f" + std::string(bidi);
  using nlohmann::json;
  json commands = json::array();
  for (const auto& [family, table] :
       {std::pair{"inet", "sidetrack"}, std::pair{"ip", "nat"}, std::pair{"inet", bad.c_str()}}) {
    const json place = {{"family", family}, {"table", table}};
    const auto add = [&](const char* what, json object) {
      object.update(place);
      commands.push_back({{"add", {{what, std::move(object)}}}});
    };
    commands.push_back({{"add", {{"table", {{"family", family}, {"name", table}}}}}});
    add("chain", {{"name", bad}});
    add("chain", {{"name", "nat-" + bad}, {"type", "nat"}, {"hook", "output"}, {"prio", -100}});
    add("set", {{"name", bad}, {"type", "inet_service"}, {"elem", {80, 443}}});
    const json lookup = {
        {"match",
         {{"op", "=="}, {"left", {{"payload", {{"protocol", "tcp"}, {"field", "dport"}}}}}, {"right", "@" + bad}}}};
    add("rule", {{"chain", bad}, {"expr", {lookup, {{"accept", nullptr}}}}, {"comment", "say " + bad}});
    add("rule", {{"chain", "nat-" + bad}, {"expr", {{{"jump", {{"target", bad}}}}}}, {"comment", bad}});
  }
  ns.must({"nft", "-j", "-f", "-"}, json{{"nftables", commands}}.dump());
  expect_printable(ns);
}
INSTANTIATE_TEST_SUITE_P(, HostileObjects, ::testing::Values("nftables"), backend_name);

struct HostileLinks : HostileNames {};

TEST_P(HostileLinks, OfInterfaces) {
  const Namespace ns;
  ip(ns, "link set lo up\n");
  for (const char* bad : {escape, no_utf8, bidi}) {
    ns.must({"ip", "link", "add", std::string("e") + bad, "type", "veth", "peer", "name", std::string("p") + bad});
    ns.must({"ip", "link", "set", std::string("e") + bad, "up"});
  }
  ns.must({"ip", "addr", "add", "10.9.0.1/16", "dev", std::string("e") + no_utf8});
  expect_printable(ns);
  const Output sent = sidetrack(ns, {"explain", "out", "tcp", "10.9.9.9:80"});
  EXPECT_THAT(sent.out, HasSubstr(R"(e\xff\xc3()"));
  const Output refused = sidetrack(ns, {"explain", "out", "tcp", "10.9.9.9:80", "--out-interface", "none"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr(R"(e\x1b[2J)"));
  EXPECT_EQ(refused.err, printable_lines(refused.err));
  // Rules for such a name could not be printed as they are.
  EXPECT_EQ(sidetrack(ns, {"render", "--ip-families", "ipv4", "-c", std::string("e") + no_utf8}).exit_code, 2);
}
INSTANTIATE_TEST_SUITE_P(, HostileLinks, ::testing::Values("names"), backend_name);

// ---- Values of the command line

struct HostileValues : KernelTest {};

TEST_F(HostileValues, AreCutAndPrintable) {
  const Namespace ns;
  const std::string bad = "\x1b]0;title\a\xff";
  const std::string large(100'000, 'x');
  for (const std::string& value : {bad, large}) {
    for (const Words& command : {Words{value},
                                 Words{"help", value},
                                 Words{"help", "show", value},
                                 Words{"show", value},
                                 Words{"apply", "--" + value},
                                 Words{"apply", "-p", value},
                                 Words{"apply", "-x", value},
                                 Words{"apply", "-x", "@/nonexistent/" + value},
                                 Words{"apply", "-c", value},
                                 Words{"apply", "--ip-families", value},
                                 Words{"apply", "--wait", value},
                                 Words{"apply", "--log_output_level", value},
                                 Words{"show", "--netns", value},
                                 Words{"show", "--pid", value},
                                 Words{"explain", value},
                                 Words{"explain", "out", "tcp", value},
                                 Words{"explain", "out", value, "10.0.0.1:80"},
                                 Words{"explain", "out", "tcp", "10.0.0.1:80", "--out-interface", value},
                                 Words{"completion", value},
                                 Words{"istio-iptables", "-b", "80", "--network-namespace", value}}) {
      SCOPED_TRACE(printable(command.front()).substr(0, 40) + " " + excerpt(command.back()));
      const Output output = sidetrack(ns, command);
      EXPECT_EQ(output.exit_code, 2) << output.err.substr(0, 1000);
      EXPECT_EQ(output.out + output.err, printable_lines(output.out + output.err));
      EXPECT_LT((output.out + output.err).size(), 1000U);
    }
  }
  const std::string list = ::testing::TempDir() + "sidetrack-list-" + std::to_string(getpid());
  std::ofstream(list) << std::string(2'000'000, 'x');
  const Output output = sidetrack(ns, {"apply", "-x", "@" + list});
  EXPECT_EQ(output.exit_code, 2);
  EXPECT_THAT(output.err, HasSubstr("(2000000 bytes)"));
  EXPECT_LT(output.err.size(), 1000U);
  std::remove(list.c_str());
}

// ---- Rules that are many, or lead many ways

class HostileRules : public KernelTest, public ::testing::WithParamInterface<const char*> {
 protected:
  // Every command that reads them ends, as documented.
  void expect_all_end(const Namespace& ns) const {
    const Words asked{"-u", "1337", "-b", "80", "--ip-families", "ipv4"};
    for (const auto& [command, exit_code] :
         {std::pair{Words{"show"}, 0}, std::pair{Words{"show", "--json"}, 0}, std::pair{Words{"verify"} + asked, 6},
          std::pair{Words{"diff"} + asked, 6}, std::pair{Words{"diff", "--clean"}, 0}, std::pair{Words{"doctor"}, 0},
          std::pair{Words{"explain", "out", "tcp", "10.9.9.9:80"}, 0},
          std::pair{Words{"explain", "out", "tcp", "10.9.9.9:80", "--json"}, 0}}) {
      SCOPED_TRACE(::testing::PrintToString(command));
      const Output output = sidetrack(ns, command);
      EXPECT_EQ(output.exit_code, exit_code) << output.err;
    }
  }
  [[nodiscard]] std::string restore() const { return std::string("iptables-") + GetParam() + "-restore"; }

  static std::size_t count(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  }
};

// Fourteen layers of four chains, each of which jumps to all of the next: 4^14 ways.
std::string layers(const char* condition) {
  std::string text = "*nat\n";
  std::string rules = "-A OUTPUT -j L0-0\n";
  for (int layer = 0; layer < 14; ++layer) {
    for (int chain = 0; chain < 4; ++chain) {
      text += fmt::format(":L{}-{} - [0:0]\n", layer, chain);
      for (int next = 0; next < 4 && layer < 13; ++next)
        rules += fmt::format("-A L{}-{} {} -j L{}-{}\n", layer, chain,
                             fmt::format(fmt::runtime(condition), next + 1, chain), layer + 1, next);
      rules += fmt::format("-A L{}-{} -p udp -j RETURN\n", layer, chain);
    }
  }
  return text + rules + "COMMIT\n";
}

TEST_P(HostileRules, ChainsThatJumpToEachOther) {
  for (const char* condition : {"", "-p tcp", "-p tcp -m multiport --dports 80,{}{}", "-m mark ! --mark {}{}"}) {
    SCOPED_TRACE(condition);
    const Namespace ns;
    add_eth0(ns);
    ns.must({restore()}, layers(condition));
    expect_all_end(ns);
    const std::string shown = sidetrack(ns, {"show"}).out;
    for (const char* chain : {"nat L1-0 [other]", "nat L13-3 [other]"}) EXPECT_EQ(count(shown, chain), 1U) << chain;
  }
}

// Chains of a hundred rules, each of which OUTPUT leads to.
std::string chains_of_a_hundred(int chains) {
  std::string text = "*nat\n";
  std::string rules;
  for (int chain = 0; chain < chains; ++chain) {
    text += fmt::format(":C{} - [0:0]\n", chain);
    rules += fmt::format("-A OUTPUT -d 10.9.{}.0/24 -j C{}\n", chain % 256, chain);
    for (int rule = 0; rule < 100; ++rule)
      rules += fmt::format("-A C{} -d 10.{}.{}.{}/32 -p tcp -m tcp --dport {} -j RETURN\n", chain, chain / 100,
                           chain % 100, rule, 1000 + rule);
  }
  return text + rules + "COMMIT\n";
}

TEST_P(HostileRules, AHundredChainsOfAHundredRules) {
  const Namespace ns;
  add_eth0(ns);
  ns.must({restore()}, chains_of_a_hundred(100));
  expect_all_end(ns);
}

// In a build that is optimised, each takes less than a second.
TEST_P(HostileRules, AThousandChainsOfAHundredRules) {
  const Namespace ns;
  add_eth0(ns);
  ns.must({restore()}, chains_of_a_hundred(1000));
  EXPECT_EQ(sidetrack(ns, {"verify", "-u", "1337", "-b", "80", "--ip-families", "ipv4"}).exit_code, 6);
  const Output shown = sidetrack(ns, {"show"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  for (const char* chain : {"nat C0 [other]", "nat C999 [other]"}) EXPECT_EQ(count(shown.out, chain), 1U) << chain;
}
INSTANTIATE_TEST_SUITE_P(, HostileRules, ::testing::Values("legacy", "nft"), backend_name);

}  // namespace
}  // namespace sidetrack::netns
