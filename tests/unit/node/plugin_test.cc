// SPDX-License-Identifier: GPL-2.0-or-later
// The CNI plugin's answers that need no kernel.
#include "node/plugin.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "node/call.h"
#include "node/cni_error.h"
#include "node/network_configuration.h"
#include "unit/options_text.h"

namespace sidetrack::cni {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Variables;
using Json = nlohmann::ordered_json;

const Variables add{{"CNI_COMMAND", "ADD"},
                    {"CNI_CONTAINERID", "c1"},
                    {"CNI_NETNS", "/nonexistent/netns"},
                    {"CNI_IFNAME", "eth0"},
                    {"CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-1"}};

Variables variables_with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Json usual(const Json& annotations = {{"sidecar.istio.io/status", "{}"}}) {
  return {{"cniVersion", "1.1.0"},
          {"name", "pods"},
          {"type", "sidetrack-cni"},
          {"capabilities", {{annotations_capability, true}}},
          {"runtimeConfig", {{annotations_capability, annotations}}},
          {"prevResult", {{"cniVersion", "1.1.0"}, {"interfaces", Json::array({{{"name", "eth0"}}})}}}};
}

Json without(Json document, const char* key) {
  document.erase(key);
  return document;
}

Json with(Json document, const char* key, const Json& value) {
  document[key] = value;
  return document;
}

Environment environment_of(const Variables& variables) {
  return [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = variables.find(name);
    return found != variables.end() ? std::optional<std::string_view>(found->second) : std::nullopt;
  };
}

Answer answer(const std::string& input, const Variables& variables) {
  const Log silent{[](const LogOptions&) {}, [](LogOptions::Level, std::string_view) {}};
  return serve(input, environment_of(variables), silent);
}

struct Failure {
  unsigned code = 0;
  std::string text;  // message and details
};

Failure failure_of(const std::string& input, const Variables& variables) {
  const Answer made = answer(input, variables);
  if (made.exit_code == 0) return {};
  const Json error = Json::parse(made.output, nullptr, false);
  EXPECT_TRUE(error.is_object()) << made.output;
  return {error["code"].get<unsigned>(),
          error["msg"].get<std::string>() + "; " + error.value("details", std::string())};
}
Failure failure(const Json& input, const Variables& variables = add) { return failure_of(input.dump(), variables); }

// ---- the environment

TEST(CniCall, WhatIsMissingIsNamed) {
  EXPECT_THAT(failure_of("", {}).text, HasSubstr("CNI_COMMAND: no value: expected one of ADD, DEL"));
  for (const char* command : {"ADD", "CHECK"}) {
    const Failure missing = failure_of("", {{"CNI_COMMAND", command}});
    EXPECT_EQ(missing.code, 4U);
    EXPECT_THAT(missing.text,
                HasSubstr(std::string("CNI_CONTAINERID, CNI_NETNS, CNI_IFNAME: missing, but ") + command));
  }
  EXPECT_THAT(failure_of("", {{"CNI_COMMAND", "DEL"}, {"CNI_IFNAME", "eth0"}}).text,
              HasSubstr("CNI_CONTAINERID: missing, but DEL needs it"));
  EXPECT_THAT(failure_of("", {{"CNI_COMMAND", "GC"}}).text, HasSubstr("CNI_PATH: missing"));
}

TEST(CniCall, AWrongValueIsNamed) {
  struct Wrong {
    const char* variable;
    std::string value;
  };
  const Wrong all[] = {{"CNI_COMMAND", "add"},       {"CNI_CONTAINERID", "../c1"},
                       {"CNI_CONTAINERID", "c1\n"},  {"CNI_CONTAINERID", std::string(201, 'c')},
                       {"CNI_NETNS", "blue"},        {"CNI_IFNAME", "a/b"},
                       {"CNI_IFNAME", ".."},         {"CNI_IFNAME", "sixteen-letters-"},
                       {"CNI_ARGS", "K8S_POD_NAME"}, {"CNI_ARGS", "a=b;=c"}};
  for (const auto& [variable, value] : all) {
    const Failure wrong = failure_of(usual().dump(), variables_with(add, variable, value));
    EXPECT_EQ(wrong.code, 4U) << variable << " " << value;
    EXPECT_THAT(wrong.text, AllOf(HasSubstr(std::string(variable) + ": '"), HasSubstr("expected"))) << value;
  }
}

TEST(CniCall, EmptyPairsOfItsArgumentsAreLeftOut) {
  const Json excluded = with(usual(), "excludeNamespaces", Json::array({"default"}));
  for (const char* arguments :
       {"K8S_POD_NAMESPACE=default;", ";K8S_POD_NAMESPACE=default", "IgnoreUnknown=1;;K8S_POD_NAMESPACE=default;;"})
    EXPECT_EQ(failure(excluded, variables_with(add, "CNI_ARGS", arguments)).code, 0U) << arguments;
}

std::string text_of(const Variables& variables) {
  const Call call = read_call(environment_of(variables));
  return fmt::format("{} {} {} {} {}/{}", name(call.verb), call.container_id, call.netns, call.interface_name,
                     call.pod_namespace, call.pod_name);
}

TEST(CniCall, IsWhatTheEnvironmentSays) {
  EXPECT_EQ(text_of(add), "ADD c1 /nonexistent/netns eth0 default/web-1");
  EXPECT_EQ(text_of(variables_with(add, "CNI_COMMAND", "CHECK")), "CHECK c1 /nonexistent/netns eth0 default/web-1");
  EXPECT_EQ(text_of(variables_with(add, "CNI_ARGS", "K8S_POD_NAME=a=b;;X=;K8S_POD_NAMESPACE=")),
            "ADD c1 /nonexistent/netns eth0 /a=b");
  EXPECT_EQ(text_of(variables_with(add, "CNI_ARGS", "K8S_POD_NAMES=x")), "ADD c1 /nonexistent/netns eth0 /");
  for (const char* of_node : {"VERSION", "STATUS"})
    EXPECT_EQ(text_of(variables_with(add, "CNI_COMMAND", of_node)), std::string(of_node) + "    /");
  EXPECT_EQ(text_of({{"CNI_COMMAND", "GC"}, {"CNI_PATH", "/opt"}, {"CNI_IFNAME", "a/b"}}), "GC    /");
  // DEL needs no namespace and no arguments: they may be gone, or broken.
  Variables del = variables_with(add, "CNI_COMMAND", "DEL");
  del.erase("CNI_NETNS");
  EXPECT_EQ(text_of(del), "DEL c1  eth0 default/web-1");
  EXPECT_EQ(text_of(variables_with(del, "CNI_ARGS", "broken")), "DEL c1  eth0 /");
}

TEST(CniCall, AnInterfaceHasANameThatTheKernelTakes) {
  for (const char* good : {"e", "fifteen-letters", "a.b", "...", "-", "ä"})
    EXPECT_EQ(read_call(environment_of(variables_with(add, "CNI_IFNAME", good))).interface_name, good);
  for (const char* bad : {".", "..", "a b", "a\tb", "a/b", "a:1", "a\x7f", "sixteen-letters-"})
    EXPECT_THAT(failure_of("", variables_with(add, "CNI_IFNAME", bad)).text, HasSubstr("CNI_IFNAME: '")) << bad;
}

// ---- standard input

TEST(CniConfiguration, WhatIsNoJsonIsADecodingError) {
  for (const char* text : {"", "{", "[]", "null", "{\"name\": \"\xff\"}", "{} {}"}) {
    EXPECT_EQ(failure_of(text, add).code, 6U) << text;
  }
}

// The parser takes a zero byte for the end of the text.
TEST(CniConfiguration, NothingFollowsAZeroByte) {
  const std::string text = usual().dump();
  for (const std::string& more : {std::string("\0", 1), std::string("\0garbage", 8)})
    EXPECT_EQ(failure_of(text + more, add).code, 6U);
}

// What nests deeper is refused before it is copied or written, value within value.
TEST(CniConfiguration, NestsNoDeeperThanAThousandLevels) {
  const auto nested = [](std::size_t depth) {
    const std::string lists = std::string(depth, '[') + std::string(depth, ']');
    std::string text = usual().dump();
    return text.insert(1, R"("args":{"a":"[[\"[[","b":)" + lists + "},");
  };
  EXPECT_EQ(read_configuration(nested(998), Keys::all).name, "pods");
  for (const std::size_t depth : {999U, 100'000U}) {
    const Failure refused = failure_of(nested(depth), add);
    EXPECT_EQ(refused.code, 6U);
    EXPECT_THAT(refused.text, HasSubstr("lists and objects nested deeper than 1000 in line 1, column "));
  }
}

TEST(CniConfiguration, EachKeyIsThereOnce) {
  const auto repeated = [](const std::string& text) {
    try {
      static_cast<void>(read_configuration(text, Keys::all));
    } catch (const CniError& error) {
      EXPECT_EQ(error.code(), Code::configuration);
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string text = usual({{"a", "1"}}).dump();
  EXPECT_EQ(repeated(text), "");
  std::string twice = text;
  twice.insert(1, R"("backend":"bogus","backend":"auto",)");
  EXPECT_EQ(repeated(twice), "backend: duplicate key: expected each once");
  EXPECT_EQ(read_configuration(twice, Keys::protocol).name, "pods");
  twice = text;
  twice.insert(twice.find(R"("a":"1")"), R"("\u0061":"2",)");
  EXPECT_EQ(repeated(twice), "a: duplicate key: expected each once");
  twice = text;
  twice.insert(1, R"("prevResult":{"a":1,"a":2},"prevResult":{"a":{"b":1,"b":2}},)");
  EXPECT_EQ(repeated(twice), "");
  twice.insert(1, R"("backend":"auto","prevResult":{},"backend":"auto",)");
  EXPECT_EQ(repeated(twice), "backend: duplicate key: expected each once");
}

TEST(CniConfiguration, VersionsThatAreNotSupportedAreRefused) {
  for (const Json& version : {Json("0.1.0"), Json("0.2.0"), Json("1.2.0"), Json(""), Json(1), Json()}) {
    const Failure wrong = failure(with(usual(), "cniVersion", version));
    EXPECT_EQ(wrong.code, 1U) << version;
    EXPECT_THAT(wrong.text, HasSubstr("expected one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0"));
  }
  EXPECT_THAT(failure(without(usual(), "cniVersion")).text, HasSubstr("cniVersion: missing"));
}

TEST(CniConfiguration, ErrorsAnswerInTheVersionOfTheCall) {
  const auto version_of_error = [](const Json& input) {
    return Json::parse(answer(input.dump(), add).output)["cniVersion"].get<std::string>();
  };
  for (const char* served : {"0.3.0", "0.3.1"})
    EXPECT_EQ(version_of_error(with(with(usual(), "uid", "x"), "cniVersion", served)), served);
  EXPECT_EQ(version_of_error(with(usual(), "cniVersion", "9.9.9")), "1.1.0");
  EXPECT_EQ(Json::parse(answer("no JSON", add).output)["cniVersion"], "1.1.0");
}

TEST(CniConfiguration, CallsOfLaterVersionsAreRefused) {
  struct Row {
    const char* command;
    const char* version;
  };
  for (const auto& [command, version] :
       {Row{"CHECK", "0.3.0"}, Row{"CHECK", "0.3.1"}, Row{"GC", "1.0.0"}, Row{"STATUS", "1.0.0"}}) {
    const Variables variables = variables_with(variables_with(add, "CNI_PATH", "/opt/cni/bin"), "CNI_COMMAND", command);
    const Failure wrong = failure(with(usual(), "cniVersion", version), variables);
    EXPECT_EQ(wrong.code, 1U);
    EXPECT_THAT(wrong.text, HasSubstr(std::string(command) + " needs"));
  }
}

TEST(CniConfiguration, AnErrorNamesKeyValueAndExpectation) {
  struct Wrong {
    const char* key;
    Json value;
    const char* expected;
  };
  const Json declared{{annotations_capability, true}};
  const Wrong all[] = {
      {"name", 1, "the name of the network"},
      {"type", "", "the name of the plugin"},
      {"uid", "1337", "a whole number"},
      {"uid", -1, "a number from 0 to 4294967294"},
      {"uid", 1.5, "a whole number"},
      {"gid", 4294967295, "a number from 0 to 4294967294"},
      {"envoyPort", 0, "a port from 1 to 65535"},
      {"inboundCapturePort", 65536, "a port from 1 to 65535"},
      {"inboundTunnelPort", true, "a whole number"},
      {"tproxyMark", 0, "a mark"},
      {"tproxyRouteTable", 254, "a routing table"},
      {"dns", "true", "true or false"},
      {"dualStack", 1, "true or false"},
      {"dropInvalid", nullptr, "true or false"},
      {"backend", "iptables", "one of auto|nftables|iptables-nft|iptables-legacy"},
      {"backend", 1, "a string"},
      {"dataplane", "mesh", "one of sidecar|ambient"},
      {"probeAddress", "fd00::1", "an IPv4 address"},
      {"probeAddress6", 6, "a string"},
      {"excludeNamespaces", "kube-system", "a list of the names of namespaces"},
      {"excludeNamespaces", Json::array({"kube-system", ""}), "the name of a Kubernetes namespace"},
      {"logFile", "sidetrack.log", "the absolute path of a file"},
      {"logLevel", "loud", "debug, info, warn, error, fatal, none"},
      {"excludeNamespaces", Json::array({"Kube"}), "the name of a Kubernetes namespace"},
      {"confDir", 1, "the absolute path of a directory"},
      {"confDir", "net.d", "the absolute path of a directory"},
      {"args", 1, "an object"},
      {"capabilities", Json::object(), "io.kubernetes.cri.pod-annotations"},
      {"capabilities", {{annotations_capability, false}}, "io.kubernetes.cri.pod-annotations"},
      {"capabilities", {{annotations_capability, true}, {"portMappings", true}}, "io.kubernetes.cri.pod-annotations"},
      {"runtimeConfig", Json::array(), "an object"},
      {"prevResult", "", "the result of the plugin before"},
      {"dnss", true,
       "unknown key: expected one of args, backend, capabilities, cniVersion, confDir, dataplane, dns, dropInvalid, "
       "dualStack, envoyPort, excludeNamespaces, gid, inboundCapturePort, inboundTunnelPort, logFile, logLevel, name, "
       "noSandbox, prevResult, probeAddress, probeAddress6, runtimeConfig, standalone, tproxyMark, tproxyRouteTable, "
       "type, uid; did you mean dns?"},
      {"standalone", 1, "true or false"},
      {"ipam", Json::object(), "unknown key: expected one of"},
  };
  for (const auto& [key, value, expected] : all) {
    const Failure wrong = failure(with(usual(), key, value));
    EXPECT_EQ(wrong.code, 7U) << key << " " << value;
    EXPECT_THAT(wrong.text, AllOf(HasSubstr(std::string(key) + ": "), HasSubstr(expected))) << key << " " << value;
    if (value.is_string() && !value.empty()) {
      EXPECT_THAT(wrong.text, HasSubstr(value.get<std::string>()));
    }
  }
  EXPECT_THAT(failure(with(usual(), "dnss", true)).text, HasSubstr("did you mean dns?"));
  for (const char* key : {"name", "type", "prevResult"}) {
    const Failure missing = failure(without(usual(), key));
    EXPECT_EQ(missing.code, 7U);
    EXPECT_THAT(missing.text, HasSubstr(std::string(key) + ": missing: expected"));
  }
  EXPECT_EQ(failure(usual(Json{{"a", 1}})).code, 7U);
}

TEST(CniConfiguration, KeysAreListedInOrder) {
  const std::string said = failure(with(usual(), "dnss", true)).text;
  std::istringstream list(said.substr(said.find("one of ") + 7));
  std::vector<std::string> keys;
  for (std::string key; list >> key;) {
    keys.push_back(key.substr(0, key.find(',')));
    if (!key.ends_with(',')) break;
  }
  EXPECT_GT(keys.size(), 10U) << said;
  EXPECT_TRUE(std::ranges::is_sorted(keys)) << said;
  EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end()) << said;
}

TEST(CniConfiguration, TheKeysAreOptionsOfApply) {
  Json document = usual();
  EXPECT_THAT(read_configuration(document.dump(), Keys::all).options,
              ElementsAre("--proxy-uid=1337", "--proxy-gid=1337"));
  document.update(Json{{"uid", 2000},
                       {"gid", 0},
                       {"envoyPort", 16001},
                       {"dns", true},
                       {"dualStack", false},
                       {"backend", "nftables"},
                       {"cni.dev/later", 1},
                       {"args", {{"cni", Json::object()}}}});
  EXPECT_THAT(read_configuration(document.dump(), Keys::all).options,
              ElementsAre("--proxy-uid=2000", "--proxy-gid=0", "--envoy-port=16001", "--redirect-dns=true",
                          "--capture-all-dns=true", "--dual-stack=false", "--backend=nftables"));
}

TEST(CniConfiguration, SomeKeysAreOfOneDataplaneAlone) {
  Json document = usual();
  document.update(Json{{"uid", 7},
                       {"gid", 8},
                       {"envoyPort", 1},
                       {"inboundCapturePort", 2},
                       {"inboundTunnelPort", 3},
                       {"tproxyMark", 4},
                       {"tproxyRouteTable", 5},
                       {"dns", true},
                       {"dualStack", true},
                       {"dropInvalid", true},
                       {"dataplane", "sidecar"},
                       {"probeAddress", "169.254.7.127"},
                       {"probeAddress6", "fd16::1"},
                       {"backend", "iptables-nft"},
                       {"noSandbox", true}});
  const auto of_sidecar =
      ElementsAre("--proxy-uid=7", "--proxy-gid=8", "--envoy-port=1", "--inbound-capture-port=2",
                  "--inbound-tunnel-port=3", "--istio-inbound-tproxy-mark=4", "--istio-inbound-tproxy-route-table=5",
                  "--redirect-dns=true", "--capture-all-dns=true", "--dual-stack=true", "--drop-invalid=true",
                  "--backend=iptables-nft", "--no-sandbox=true");
  NetworkConfiguration read = read_configuration(document.dump(), Keys::all);
  EXPECT_EQ(read.dataplane, Dataplane::sidecar);
  EXPECT_THAT(read.options, of_sidecar);
  EXPECT_THAT(read.ambient_options, IsEmpty());
  document["dataplane"] = "ambient";
  read = read_configuration(document.dump(), Keys::all);
  EXPECT_EQ(read.dataplane, Dataplane::ambient);
  EXPECT_THAT(read.options, of_sidecar);
  EXPECT_THAT(read.ambient_options, ElementsAre("--envoy-port=1", "--inbound-capture-port=2", "--inbound-tunnel-port=3",
                                                "--redirect-dns=true", "--dual-stack=true", "--dataplane=ambient",
                                                "--probe-address=169.254.7.127", "--probe-address6=fd16::1",
                                                "--backend=iptables-nft", "--no-sandbox=true"));
}

TEST(CniConfiguration, HasTheKeysThatNoOptionTakes) {
  Json document = usual(Json{{"a", "1"}, {"b", ""}});
  NetworkConfiguration read = read_configuration(document.dump(), Keys::all);
  EXPECT_EQ(read.cni_version, "1.1.0");
  EXPECT_EQ(read.name, "pods");
  EXPECT_EQ(read.type, "sidetrack-cni");
  EXPECT_EQ(read.previous_result, document["prevResult"].dump());
  EXPECT_EQ(read.valid_attachments, std::nullopt);
  EXPECT_THAT(read.exclude_namespaces, IsEmpty());
  EXPECT_EQ(read.conf_dir, "/etc/cni/net.d");
  EXPECT_THAT(read.log.targets, IsEmpty());
  EXPECT_EQ(read.log.level, LogOptions::Level::info);
  EXPECT_EQ(read.annotations, (Annotations{{"a", "1"}, {"b", ""}}));
  document.update(Json{{"excludeNamespaces", {"kube-system", "default"}},
                       {"confDir", "/run/cni"},
                       {"logFile", "/var/log/sidetrack.log"},
                       {"logLevel", "debug"}});
  for (const Keys keys : {Keys::all, Keys::protocol}) {
    read = read_configuration(document.dump(), keys);
    EXPECT_THAT(read.log.targets, ElementsAre("/var/log/sidetrack.log"));
    EXPECT_EQ(read.log.level, LogOptions::Level::debug);
    EXPECT_EQ(read.conf_dir, keys == Keys::all ? "/run/cni" : "/etc/cni/net.d");
    EXPECT_EQ(read.exclude_namespaces.size(), keys == Keys::all ? 2U : 0U);
  }
  // The result is given on as it was written, and the last counts, as to the parser.
  const std::string text = usual().dump();
  const std::string twice = R"({"prevResult": {"a": 1}, "prevR\u0065sult":  { "a" : 1.0e0 } , )" + text.substr(1);
  EXPECT_EQ(read_configuration(twice, Keys::all).previous_result, usual()["prevResult"].dump());
  EXPECT_EQ(read_configuration(without(usual(), "prevResult").dump().insert(1, R"("prevResult":  { "a" : 1.0e0 } ,)"),
                               Keys::all)
                .previous_result,
            R"({ "a" : 1.0e0 })");
}

TEST(CniConfiguration, AnnotationsAreKnownOrNot) {
  const auto annotations = [](const Json& document) {
    return read_configuration(document.dump(), Keys::all).annotations;
  };
  EXPECT_EQ(annotations(usual(Json())), Annotations{}) << "a pod without any";
  EXPECT_EQ(annotations(usual(Json::object())), Annotations{});
  EXPECT_EQ(annotations(without(usual(), "runtimeConfig")), std::nullopt);
  EXPECT_EQ(annotations(with(usual(), "runtimeConfig", {{"portMappings", nullptr}})), std::nullopt);
  // A runtime that passes them may have taken out the key that asks for them.
  EXPECT_EQ(annotations(without(usual(), "capabilities")), (Annotations{{"sidecar.istio.io/status", "{}"}}));
  for (const Json& passed : {Json("a"), Json::array(), Json{{"a", 1}}, Json{{"a", "1"}, {"b", nullptr}}}) {
    EXPECT_THAT(failure(usual(passed)).text, HasSubstr("expected an object of strings, the pod's annotations"));
  }
  const char* expected = R"(expected {"io.kubernetes.cri.pod-annotations": true})";
  for (const Json& declared : {Json(1), Json::array(), Json{{annotations_capability, 1}}, Json{{"mac", true}}})
    EXPECT_THAT(failure(with(usual(), "capabilities", declared)).text, HasSubstr(expected));
  EXPECT_THAT(failure(without(without(usual(), "runtimeConfig"), "capabilities")).text,
              AllOf(HasSubstr("capabilities: missing: "), HasSubstr(expected)));
}

TEST(CniConfiguration, ToTakeDownOnlyTheProtocolIsRead) {
  Json document = with(with(usual(), "uid", "x"), "unknown", 1);
  document["logFile"] = "not a path";
  document["cni.dev/valid-attachments"] = Json::array({{{"containerID", "c1"}, {"ifname", "eth0"}}});
  const NetworkConfiguration read = read_configuration(document.dump(), Keys::protocol);
  EXPECT_EQ(read.name, "pods");
  EXPECT_EQ(read.valid_attachments, std::vector({Attachment{"c1", "eth0"}}));
  EXPECT_THAT(read.log.targets, IsEmpty());
}

TEST(CniConfiguration, AttachmentsAreContainersWithInterfaces) {
  const Variables gc{{"CNI_COMMAND", "GC"}, {"CNI_PATH", "/opt/cni/bin"}};
  for (const char* key : {"cni.dev/valid-attachments", "cni.dev/attachments"}) {
    for (const char* wrong :
         {R"("c1")", R"({"containerID": "c1", "ifname": "eth0"})", R"(["c1"])", R"([{"containerID": "c1"}])",
          R"([{"ifname": "eth0"}])", R"([{"containerID": 1, "ifname": "eth0"}])",
          R"([{"containerID": "c1", "ifname": 0}])", R"([{"containerID": "c1", "ifname": "eth0"}, null])"}) {
      const Failure refused = failure(with(usual(), key, Json::parse(wrong)), gc);
      EXPECT_EQ(refused.code, 7U) << wrong;
      EXPECT_THAT(refused.text, AllOf(HasSubstr(std::string(key) + ": "),
                                      HasSubstr(R"(expected a list of {"containerID": …, "ifname": …})")))
          << wrong;
    }
  }
}

TEST(CniConfiguration, AttachmentsMayBeNoneAndHaveALaterAndAnOlderKey) {
  const auto valid = [](const Json& document) {
    return read_configuration(document.dump(), Keys::protocol).valid_attachments;
  };
  const Json one =
      Json::array({{{"containerID", "c1"}, {"ifname", "eth0"}}, {{"containerID", "c2"}, {"ifname", "lo"}}});
  const std::vector<Attachment> both{{"c1", "eth0"}, {"c2", "lo"}};
  EXPECT_EQ(valid(usual()), std::nullopt);
  for (const char* key : {"cni.dev/valid-attachments", "cni.dev/attachments"}) {
    EXPECT_EQ(valid(with(usual(), key, one)), both);
    EXPECT_EQ(valid(with(usual(), key, Json())), std::vector<Attachment>());
    EXPECT_EQ(valid(with(usual(), key, Json::array())), std::vector<Attachment>());
  }
  EXPECT_EQ(valid(with(with(usual(), "cni.dev/valid-attachments", one), "cni.dev/attachments", Json::array())), both);
}

// ---- the log

struct Logged {
  std::vector<std::string> lines;    // "debug: ADD …"
  std::vector<std::string> started;  // with the targets
};

Logged logged(const Json& input, const Variables& variables, const std::function<void(const LogOptions&)>& start = {}) {
  Logged all;
  const Log log{[&](const LogOptions& options) {
                  all.started.push_back(fmt::format("{}", fmt::join(options.targets, " ")));
                  if (start) start(options);
                },
                [&](LogOptions::Level level, std::string_view text) {
                  constexpr const char* names[] = {"debug", "info", "warn", "error"};
                  all.lines.push_back(fmt::format("{}: {}", names[static_cast<std::size_t>(level)], text));
                }};
  static_cast<void>(serve(input.dump(), environment_of(variables), log));
  return all;
}

TEST(CniLog, SaysOfWhichPodAndWhy) {
  const Json excluded = with(usual(), "excludeNamespaces", Json::array({"default"}));
  EXPECT_THAT(logged(excluded, add).lines,
              ElementsAre("debug: ADD default/web-1 c1 eth0: left alone: its namespace is excluded"));
  EXPECT_THAT(logged(usual(Json::object()), variables_with(add, "CNI_ARGS", "")).lines,
              ElementsAre(HasSubstr("debug: ADD c1 eth0: left alone: ")));
  EXPECT_THAT(logged(with(usual(), "logFile", "/l"), add).started, ElementsAre("/l"));
  const std::string sidecar = R"({"initContainers": ["istio-validation"]})";
  EXPECT_THAT(logged(usual(Json{{"sidecar.istio.io/status", sidecar}}), add).lines,
              ElementsAre(HasSubstr("error: ADD default/web-1 c1 eth0: CNI_NETNS: ")));
  EXPECT_THAT(
      logged(usual(), add).lines,  // lists nothing: it may be a gateway
      ElementsAre(HasSubstr("warn: ADD default/web-1 c1 eth0: sidecar.istio.io/status lists neither istio-init"),
                  HasSubstr("error: ADD default/web-1 c1 eth0: CNI_NETNS: ")));
  EXPECT_THAT(
      logged(usual(Json{{"sidecar.istio.io/status", "{}"}, {"sidecar.istio.io/interceptionMode", "WHAT"}}), add).lines,
      ElementsAre(HasSubstr("error: ADD default/web-1 c1 eth0: sidecar.istio.io/interceptionMode: ")));
}

// To take down what there was, it need not be right; else it does.
TEST(CniLog, ThatCannotBeWrittenFailsAddAndNotGc) {
  const auto refuse_files = [](const LogOptions& options) {
    if (!options.targets.empty()) throw Error(ExitCode::usage, "logFile: cannot write", "make it writable");
  };
  const Json input = with(usual(), "logFile", "/l");
  const Variables gc{{"CNI_COMMAND", "GC"}, {"CNI_PATH", "/opt/cni/bin"}};
  const Logged of_add = logged(input, add, refuse_files);
  EXPECT_THAT(of_add.started, ElementsAre("/l"));
  EXPECT_THAT(of_add.lines, ElementsAre("error: ADD default/web-1 c1 eth0: logFile: cannot write"));
  const Logged of_gc = logged(input, gc, refuse_files);
  EXPECT_THAT(of_gc.started, ElementsAre("/l", ""));
  EXPECT_THAT(of_gc.lines,
              ElementsAre("error: GC cni.dev/valid-attachments: missing: expected the attachments that are "
                          "valid"));
}

// ---- ADD, of pods that are left alone

TEST(CniAdd, GivesThePreviousResultOn) {
  const Json previous = Json::parse(
      R"({"cniVersion":"1.1.0","ips":[{"address":"10.1.0.5/24"}],"dns":{},"interfaces":[{"name":"eth0","mtu":1500}]})");
  for (const Json& annotations :
       {Json::object(), Json(), Json{{"sidecar.istio.io/status", "{}"}, {"sidecar.istio.io/inject", "false"}}}) {
    const Answer made = answer(with(usual(annotations), "prevResult", previous).dump(), add);
    EXPECT_EQ(made.exit_code, 0) << made.output;
    EXPECT_EQ(made.output, previous.dump() + "\n");
  }
}

TEST(CniAdd, LeavesExcludedNamespacesAloneWhateverTheyAskFor) {
  const Json excluded = with(usual(Json{{"sidecar.istio.io/status", "broken"}}), "excludeNamespaces",
                             Json::array({"kube-system", "default"}));
  EXPECT_EQ(failure(excluded).code, 0U);
  EXPECT_EQ(failure(without(excluded, "runtimeConfig")).code, 0U);  // nobody need tell
  EXPECT_EQ(failure(excluded, variables_with(add, "CNI_ARGS", "K8S_POD_NAMESPACE=defaults")).code, 102U);
  EXPECT_EQ(failure(excluded, variables_with(add, "CNI_ARGS", "")).code, 102U);
}

TEST(CniAdd, FailsWithoutAnnotationsOfTheRuntime) {
  for (const Json& input : {without(usual(), "runtimeConfig"), with(usual(), "runtimeConfig", Json::object())}) {
    const Failure blind = failure(input);
    EXPECT_EQ(blind.code, 7U);
    EXPECT_THAT(blind.text, AllOf(HasSubstr("runtimeConfig: no io.kubernetes.cri.pod-annotations"),
                                  HasSubstr("update the container runtime")));
  }
}

TEST(CniAdd, AWrongAnnotationIsNamed) {
  const Failure wrong =
      failure(usual(Json{{"sidecar.istio.io/status", "{}"}, {"sidecar.istio.io/interceptionMode", "WHAT"}}));
  EXPECT_EQ(wrong.code, 102U);
  EXPECT_THAT(wrong.text, HasSubstr("sidecar.istio.io/interceptionMode: 'WHAT': expected one of"));
}

TEST(CniAdd, ANamespaceThatIsNotThereIsNamed) {
  const Failure wrong = failure(usual());
  EXPECT_EQ(wrong.code, 4U);
  EXPECT_THAT(wrong.text, HasSubstr("CNI_NETNS: network namespace '/nonexistent/netns'"));
}

// ---- VERSION

TEST(CniVersion, ListsWhatIsSupported) {
  const Variables version{{"CNI_COMMAND", "VERSION"}};
  EXPECT_EQ(answer(R"({"cniVersion":"0.4.0"})", version).output,
            R"({"cniVersion":"0.4.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]})"
            "\n");
  EXPECT_EQ(Json::parse(answer("", version).output)["cniVersion"], "1.1.0");
  for (const char* unknown : {"{}", R"({"cniVersion":1})"})
    EXPECT_EQ(Json::parse(answer(unknown, version).output)["cniVersion"], "1.1.0") << unknown;
  EXPECT_EQ(failure_of("no JSON", version).code, 6U);
}

TEST(CniErrors, TakeTheirCodesFromTheProgram) {
  const auto code_of = [](ExitCode code) { return static_cast<unsigned>(CniError(Error(code, "why")).code()); };
  EXPECT_EQ(code_of(ExitCode::busy), 11U);
  EXPECT_EQ(code_of(ExitCode::failed), 101U);
  EXPECT_EQ(code_of(ExitCode::kernel_lacks), 103U);
  EXPECT_EQ(code_of(ExitCode::not_permitted), 104U);
  EXPECT_EQ(code_of(ExitCode::differs), 106U);
  const auto text = [](ExitCode code, const char* hint) { return json(CniError(Error(code, "why", hint)), "0.4.0"); };
  EXPECT_EQ(Json::parse(text(ExitCode::failed, "do")),
            (Json{{"cniVersion", "0.4.0"}, {"code", 101}, {"msg", "why"}, {"details", "do"}}));
  EXPECT_EQ(Json::parse(text(ExitCode::failed, "")), (Json{{"cniVersion", "0.4.0"}, {"code", 101}, {"msg", "why"}}));
  EXPECT_EQ(Json::parse(text(ExitCode::not_permitted, "do"))["details"], missing_rights);
}

// What starts the log may throw anything.
Answer answer_if_thrown(const std::function<void()>& thrown) {
  const Log log{[&](const LogOptions&) { thrown(); }, [](LogOptions::Level, std::string_view) {}};
  return serve(with(usual(), "cniVersion", "0.4.0").dump(), environment_of(add), log);
}

TEST(CniErrors, OneThatNobodyExpectedIsAnAnswerThatSaysSo) {
  const Answer made = answer_if_thrown([] { throw std::logic_error("no such case"); });
  EXPECT_EQ(made.exit_code, 1);
  const Json error = Json::parse(made.output);
  EXPECT_EQ(error["cniVersion"], "0.4.0");
  EXPECT_EQ(error["code"], 101);
  EXPECT_EQ(error["msg"], "internal error: no such case");
  EXPECT_EQ(error["details"], "please report it with the network configuration");
}

// For which there may be no memory either: the caller has an answer that is made.
TEST(CniErrors, MemoryThatRunsOutIsLeftToTheCaller) {
  EXPECT_THROW(static_cast<void>(answer_if_thrown([] { throw std::bad_alloc(); })), std::bad_alloc);
}

TEST(CniOutOfMemory, IsAnAnswerToo) { EXPECT_EQ(Json::parse(out_of_memory)["code"], 101); }

}  // namespace
}  // namespace sidetrack::cni
