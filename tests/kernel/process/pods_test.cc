// SPDX-License-Identifier: GPL-2.0-or-later
// `sidetrack pods` on a node of its own: a process namespace with its own /proc, in which network namespaces are pods.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "model/printable.h"
#include "support/kernel_test.h"
#include "support/namespace.h"
#include "support/traffic.h"
#include "support/words.h"
#include "unit/temporary_folder.h"

namespace sidetrack::netns {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// Functions for the scripts of the tests. All ends with the script.
constexpr const char* functions = R"(
set -euo pipefail
rm -rf "$work/records"
mkdir -m 700 "$work/records"
pod() { # NAME: a network namespace with a loopback interface, at $work/NAME
  : >"$work/$1"
  unshare --net="$work/$1" ip link set lo up
}
live() { # NAME: a process is in it
  mkfifo "$work/ready" "$work/$1-waits"
  nsenter --net="$work/$1" bash -c 'printf app >/proc/$$/comm; echo >"$0"; read -r <>"$1"' "$work/ready" "$work/$1-waits" &
  read -r _ <"$work/ready"
  rm "$work/ready"
}
cookie() { # NAME: what Linux tells its network namespace by, SO_NETNS_COOKIE
  nsenter --net="$work/$1" python3 -c \
    'import socket; print("cookie:%d" % int.from_bytes(socket.socket(socket.AF_UNIX).getsockopt(1, 71, 8), "little"))' \
    2>/dev/null || echo none
}
record() { # NAME OPTION...
  local name=$1 cookie
  cookie=$(cookie "$name")
  shift
  jq -cn --arg name "$name" --arg netns "$work/$name" --arg cookie "$cookie" \
    '{container_id: $name, interface: "eth0", netns: $netns, namespace: "default", pod: ("pod-" + $name), network: "net",
      network_namespace: $cookie, options: $ARGS.positional}' --args -- "$@" >"$work/records/$name"
  chmod 600 "$work/records/$name"
}
apply() { # NAME OPTION...
  local name=$1
  shift
  "$sidetrack" apply --netns "$work/$name" "$@" 2>/dev/null
}
pods() { "$sidetrack" pods --records "$work/records" "$@"; }
options=(--proxy-uid=1337 --proxy-gid=1337 '--istio-inbound-ports=*' '--istio-service-cidr=*' --ip-families=ipv4,ipv6)
)";

class Pods : public KernelTest {
 protected:
  [[nodiscard]] Output run(const std::string& script) const {
    return ns.program(
        {"unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", functions + script}, {},
        {"work=" + work.string(), "sidetrack=" + program_under_test()});
  }
  // The states by the name of the pod or of the process.
  static std::map<std::string, std::string> states(const std::string& json) {
    std::map<std::string, std::string> all;
    const Json document = Json::parse(json);
    for (const Json& pod : document["pods"]) {
      const Json& named = pod["pod"].is_null() ? pod["process"] : pod["pod"];
      all[named.is_null() ? "" : named.get<std::string>()] = pod["state"].get<std::string>();
    }
    return all;
  }
  using States = std::map<std::string, std::string>;

  const Namespace ns;
  const testing::TemporaryFolder temporary;
  const fs::path work = temporary.path();
};

TEST_F(Pods, AreAllListedWithWhatTheyHold) {
  const Output output = run(R"(
    for name in a b c; do pod $name; record $name "${options[@]}"; done
    apply a "${options[@]}"
    apply b "${options[@]}" --istio-local-exclude-ports=9080
    live a
    pod d; apply d -b 80 --ip-families ipv4; live d
    record e "${options[@]}"
    pods --json)");
  EXPECT_EQ(output.exit_code, 6) << output.err;
  EXPECT_EQ(states(output.out), (States{{"pod-a", "as_recorded"},
                                        {"pod-b", "differs"},
                                        {"pod-c", "differs"},
                                        {"app", "not_recorded"},
                                        {"pod-e", "gone"}}))
      << output.out << output.err;
  const Json all = Json::parse(output.out)["pods"];
  EXPECT_EQ(all.size(), 5U) << "one line for a pod, found and recorded";
  const Json& a = all[0];
  EXPECT_EQ(a["namespace"], "default");
  EXPECT_EQ(a["container_id"], "a");
  EXPECT_EQ(all[4]["container_id"], nullptr) << "which has no record";
  EXPECT_EQ(a["process"], "app");
  EXPECT_GT(a["pid"], 1);
  EXPECT_EQ(a["backends"], Json::array({"iptables-nft"}));
  EXPECT_THAT(a["captured"].get<std::string>(), AllOf(HasSubstr("15006"), HasSubstr("15001")));
  EXPECT_THAT(all[1]["detail"].get<std::string>(), HasSubstr("9080"));
  EXPECT_EQ(all[2]["backends"], Json::array());
  EXPECT_EQ(a["detail"], nullptr);
  EXPECT_EQ(a["ambient"], false);
  EXPECT_EQ(a["addresses"], Json::array()) << "but of loopback";
  EXPECT_EQ(all[3]["detail"], "there is no network namespace at " + (work / "e").string());
  EXPECT_EQ(all[3]["pid"], nullptr);
  EXPECT_GT(all[4]["pid"], 1);
  EXPECT_THAT(all[4]["captured"].get<std::string>(), HasSubstr("port 80"));
  EXPECT_THAT(output.err, HasSubstr("2 of 5 pods are not as recorded"));
}

TEST_F(Pods, InAmbientModeAreToldWithTheirAddresses) {
  const Output output = run(R"(
    for name in a b; do
      pod $name
      live $name
      nsenter --net="$work/$name" ip link add eth0 type veth peer name other
      nsenter --net="$work/$name" ip link set eth0 up
      nsenter --net="$work/$name" ip link set other up
    done
    nsenter --net="$work/a" ip address add 10.244.0.7/24 dev eth0
    nsenter --net="$work/a" ip address add fd10:244::7/64 dev eth0 nodad
    nsenter --net="$work/b" ip address add 10.244.0.8/24 dev eth0
    nsenter --net="$work/a" iptables-nft -t nat -N ISTIO_PRERT
    pods --json >"$work/pods")");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  std::ifstream file(work / "pods");
  const Json all = Json::parse(file)["pods"];
  ASSERT_EQ(all.size(), 2U);
  for (const Json& pod : all) {
    const bool ambient = pod["ambient"];
    EXPECT_EQ(pod["addresses"], ambient ? Json({"10.244.0.7", "fd10:244::7"}) : Json::array({"10.244.0.8"}));
  }
}

TEST_F(Pods, AreRepaired) {
  const Output output = run(R"(
    for name in a b c; do pod $name; record $name "${options[@]}"; done
    apply a "${options[@]}"
    apply b "${options[@]}" -p 16001 --backend nftables
    strace -f -qq -e trace=seccomp -o "$work/calls" "$sidetrack" pods --records "$work/records" --repair --json >"$work/first" ||
      echo failed
    grep -c SECCOMP_SET_MODE_FILTER "$work/calls" | sed 's/^/sandboxes: /'
    pods --json >"$work/second" || echo failed
    pods)");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  std::string texts[2];
  for (const auto& [name, text] : {std::pair{"first", &texts[0]}, std::pair{"second", &texts[1]}}) {
    std::ifstream file(work / name);
    text->assign(std::istreambuf_iterator<char>(file), {});
  }
  EXPECT_EQ(states(texts[0]), (States{{"pod-a", "as_recorded"}, {"pod-b", "repaired"}, {"pod-c", "repaired"}}))
      << texts[0];
  EXPECT_EQ(states(texts[1]), (States{{"pod-a", "as_recorded"}, {"pod-b", "as_recorded"}, {"pod-c", "as_recorded"}}));
  EXPECT_THAT(output.out,
              AllOf(Not(HasSubstr("failed")), HasSubstr("default/pod-b  -  "), HasSubstr("[as recorded]\n")));
#ifndef SIDETRACK_SANITIZED
  EXPECT_THAT(output.out, HasSubstr("sandboxes: 5\n")) << "to look at three, and to repair two";
#endif
}

// Who repairs waits for another writer. The runtime may have made another pod of it meanwhile, or none.
TEST_F(Pods, WhoseRecordIsChangedMeanwhileAreNotRepaired) {
  const Output output = run(R"(
    meanwhile() { # COMMAND...: while the lock is waited for
      pod a; record a "${options[@]}"
      mkfifo "$work/calls"
      exec 4<"$work/a" 5<>"$work/calls"
      flock 4
      strace -f -qq -e trace=flock -o "$work/calls" "$sidetrack" pods --records "$work/records" --repair \
        --pod-timeout 60s 4<&- 5<&- &
      until read -r call <&5 && [[ $call == *flock* ]]; do :; done
      "$@"
      exec 4<&-
      wait $! || echo "ended with $?"
      nsenter --net="$work/a" nft list ruleset
      rm "$work/calls"
      umount "$work/a"
    }
    meanwhile record a "${options[@]}" --istio-local-exclude-ports=9080
    meanwhile rm "$work/records/a")");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out,
              ContainsRegex("^default/pod-a .*\\[unknown: its record was changed meanwhile: run it again\\]\n"
                            "ended with 6\ndefault/pod-a .*\\[gone: it has ended\\]\n$"));
}

// Its path leads to the network namespace of another pod by now.
TEST_F(Pods, AnotherOneInItsPlaceIsLeftAlone) {
  const Output output = run(R"(
    pod a; record a "${options[@]}"
    umount "$work/a"
    pod a
    pods --repair
    nsenter --net="$work/a" nft list ruleset)");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("[gone: "), HasSubstr("leads to another network namespace"), Not(HasSubstr("ISTIO"))));
}

TEST_F(Pods, WhatCannotBeReadIsSaid) {
  const Output output = run(R"(
    pod a; record a "${options[@]}"; apply a "${options[@]}"
    pod b; record b --no-such-option=1
    echo '{' >"$work/records/c"
    pods)");
  EXPECT_EQ(output.exit_code, 6) << output.err;
  EXPECT_THAT(output.out,
              AllOf(HasSubstr("[as recorded]"), HasSubstr("[unknown: --no-such-option: not an option of apply]")));
  EXPECT_THAT(output.err, AllOf(HasSubstr("records/c"), HasSubstr("1 of 2 pods")));
}

TEST_F(Pods, OfAnotherUserNamespaceAreReadAndRepaired) {
  const Output output = run(R"(
    : >"$work/a"
    mkfifo "$work/ready"
    unshare --user --map-root-user --net bash -c 'ip link set lo up; echo >"$0"; exec sleep infinity' "$work/ready" &
    read -r _ <"$work/ready"
    mount --bind /proc/$!/ns/net "$work/a"
    record a "${options[@]}"
    pods --repair
    pods)");
  EXPECT_EQ(output.exit_code, 0) << output.err << output.out;
  EXPECT_THAT(output.out, AllOf(HasSubstr("[repaired: "), HasSubstr("[as recorded]")));
}

TEST_F(Pods, MetricsAreWrittenAtomically) {
  const Output output = run(R"(
    pod a; record a "${options[@]}"; apply a "${options[@]}"
    echo old >"$work/metrics.prom"
    exec 5<"$work/metrics.prom"
    pods --metrics "$work/metrics.prom" >/dev/null
    cat <&5
    cat "$work/metrics.prom"
    stat -c %a "$work/metrics.prom"
    ls -A "$work" | grep sidetrack-new && exit 1
    pods --metrics "$work/nonexistent/metrics.prom" && exit 1 || echo "ended with $?")");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out,
              AllOf(::testing::StartsWith("old\n# HELP"), HasSubstr("sidetrack_pods{state=\"as_recorded\"} 1\n"),
                    HasSubstr("\n644\n"), HasSubstr("ended with 1")));
  EXPECT_THAT(output.err, HasSubstr("nonexistent"));
}

// A pod cannot hold up the others, nor pass for something else.
TEST_F(Pods, MetricsReplaceNothingButAFile) {
  const Output output = run(R"(
    mknod "$work/null" c 1 3
    ln -s "$work/metrics" "$work/link"
    for file in null link; do pods --metrics "$work/$file" && exit 1; done
    test -c "$work/null"
    test -L "$work/link")");
  EXPECT_EQ(output.exit_code, 0) << output.out << output.err;
  EXPECT_THAT(output.err,
              AllOf(HasSubstr("/null' is a device, not a regular file"), HasSubstr("/link' is a symbolic link")));
}

TEST_F(Pods, AHostileOneIsSaidToBe) {
  const Output output = run(R"(
    pod a; record a "${options[@]}"; apply a "${options[@]}"
    pod b; record b "${options[@]}"
    { echo '*nat'
      for ((chain = 0; chain < 100; chain++)); do
        echo ":C$chain - [0:0]"
      done
      for ((chain = 0; chain < 100; chain++)); do
        echo "-A OUTPUT -j C$chain"
        for ((rule = 0; rule < 100; rule++)); do echo "-A C$chain -d 10.0.$chain.$rule/32 -j RETURN"; done
      done
      echo COMMIT; } | nsenter --net="$work/b" iptables-nft-restore
    pod c; record c "${options[@]}"
    nsenter --net="$work/c" iptables-nft -t nat -N $'ISTIO_\e[2J'
    nsenter --net="$work/c" iptables-nft -t nat -A OUTPUT -m comment --comment $'\e[31m' -j $'ISTIO_\e[2J'
    mkfifo "$work/wait"
    nsenter --net="$work/c" bash -c 'printf "\e[5m" >/proc/$$/comm; read -r <>"$0"' "$work/wait" &
    pods --pod-timeout 60s || echo "ended with $?"
    pods --pod-timeout 1ms | grep pod-b || true)");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(output.out, printable_lines(output.out));
  EXPECT_EQ(output.err, printable_lines(output.err));
  EXPECT_THAT(output.out, AllOf(HasSubstr("[as recorded]"), HasSubstr("ended with 6"), HasSubstr("[differs: "),
                                HasSubstr("[unknown: not read within 1 ms]")));
}

// A process of its own reads each: what becomes of that is said, and the others are read.
TEST_F(Pods, OneWhoseReaderEndsIsUnknown) {
  const Output output = run(R"(
    pod a; record a "${options[@]}"; apply a "${options[@]}"
    echo '{' >"$work/records/b"
    disturbed() { strace -f -qq -o /dev/null -e "inject=$1" "$sidetrack" pods --records "$work/records" || true; }
    disturbed setns:signal=SIGKILL
    disturbed recvfrom:error=EPERM:syscall=getpgrp:when=10+
    disturbed write:error=EIO:when=1)");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_THAT(output.out,
              ContainsRegex("^default/pod-a .*\\[unknown: the process that read it was ended by signal 9\\]\n"
                            "default/pod-a .*\\[unknown: .*the sandbox refused system call .*\\]\n"
                            "default/pod-a .*\\[unknown: the worker returned no result\\]\n$"));
}

// Who is not root sees some of the processes alone.
TEST_F(Pods, ThatMayNotBeLookedAtAreSaid) {
  const Output output = run(R"(
    pod a; live a
    setpriv --reuid=1000 --regid=1000 --clear-groups "$sidetrack" pods --records /nonexistent || echo "ended with $?")");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(output.out, "ended with 6\n");
  EXPECT_THAT(output.err, ContainsRegex("the network namespaces of these processes cannot be looked at: 1 \\(bash\\), "
                                        "[0-9]+ \\(app\\): Permission denied \\(EACCES\\); it takes CAP_SYS_PTRACE"));
}

TEST_F(Pods, AreNotKnownWhereProcIsNotThereOrHidesProcesses) {
  const char* said = "/proc does not list process 1: which pods there are is not known";
  const Output missing = run(R"(
    pod a; live a
    mount -t tmpfs none /proc
    pods --json || echo "ended with $?")");
  EXPECT_EQ(missing.out, "ended with 1\n");
  EXPECT_THAT(missing.err, HasSubstr(said));
  const Output hidden = run(R"(
    pod b; live b
    mount -o remount,hidepid=2 /proc
    setpriv --reuid=1000 --regid=1000 --clear-groups "$sidetrack" pods --records /nonexistent || echo "ended with $?")");
  EXPECT_EQ(hidden.out, "ended with 1\n");
  EXPECT_THAT(hidden.err, HasSubstr(said));
}

// The machine's own namespace, and its processes, are no pod.
TEST_F(Pods, TheCallersOwnIsNone) {
  const Output output = run("sleep infinity & pods");
  EXPECT_EQ(output.exit_code, 0) << output.err;
  EXPECT_EQ(output.out, "");
  // Of a record that names it nothing is installed.
  const Output recorded = run(R"(
    : >"$work/own"; mount --bind /proc/self/ns/net "$work/own"
    record own "${options[@]}"
    pods --repair)");
  EXPECT_EQ(recorded.exit_code, 6);
  EXPECT_THAT(recorded.out, HasSubstr("the node's own network namespace"));
  EXPECT_EQ(ns.must({"nft", "list", "ruleset"}), "");
}

}  // namespace
}  // namespace sidetrack::netns
