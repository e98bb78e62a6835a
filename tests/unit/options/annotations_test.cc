// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/annotations.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>

#include "model/error.h"
#include "unit/options_text.h"

namespace sidetrack {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::parse_arguments;
using ::testing::StartsWith;

constexpr const char* status = R"({"initContainers":["istio-validation"],"containers":["istio-proxy"]})";

Annotations injected(const Annotations& more = {}) {
  Annotations all{{"sidecar.istio.io/status", status}};
  for (const auto& [name, value] : more) all.insert_or_assign(name, value);
  return all;
}

// The configuration that apply makes of the options.
Config config_of(const Annotations& annotations) {
  const Interception asked = interception(annotations);
  EXPECT_EQ(asked.left_alone, "");
  std::vector<std::string_view> words{"sidetrack", "apply"};
  words.insert(words.end(), asked.options.begin(), asked.options.end());
  return parse_arguments(words).config;
}

std::string error_of(const Annotations& annotations) {
  try {
    (void)interception(annotations);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "no error";
}

TEST(Annotations, TheDefaultsAreThoseOfACapturedPod) {
  EXPECT_THAT(interception(injected()).options,
              ElementsAre("--istio-inbound-interception-mode=REDIRECT", "--istio-service-cidr=*",
                          "--istio-inbound-ports=*", "--istio-local-exclude-ports=15020,15021,15090"));
}

TEST(Annotations, OfAnAmbientPod) {
  EXPECT_EQ(ambient_interception({}).left_alone, "");
  EXPECT_THAT(ambient_interception({}).options, IsEmpty());
  EXPECT_EQ(ambient_interception({{"istio.io/dataplane-mode", "ambient"}}).left_alone, "");
  EXPECT_EQ(ambient_interception({{"istio.io/dataplane-mode", "none"}}).left_alone, "istio.io/dataplane-mode is none");
  EXPECT_THAT(ambient_interception({{"ambient.istio.io/bypass-inbound-capture", "true"},
                                    {"ambient.istio.io/dns-capture", "false"},
                                    {"istio.io/reroute-virtual-interfaces", "net1,net2"},
                                    {"traffic.sidecar.istio.io/includeInboundPorts", "80"}})
                  .options,
              ElementsAre("--ingress=true", "--redirect-dns=false", "--kube-virt-interfaces=net1,net2"));
  const std::vector<std::pair<std::string, std::string>> wrong{{"istio.io/dataplane-mode", "sidecar"},
                                                               {"ambient.istio.io/bypass-inbound-capture", "maybe"},
                                                               {"ambient.istio.io/dns-capture", "on"},
                                                               {"istio.io/reroute-virtual-interfaces", "a/b"}};
  for (const auto& [name, value] : wrong) {
    try {
      static_cast<void>(ambient_interception({{name, value}}));
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), StartsWith(name + ": '" + value + "': expected "));
    }
  }
}

// What is asked for under sidetrack/ and not given would be an exclusion that is none.
TEST(Annotations, OfAnAmbientPodThatHasNoneOfOurs) {
  const auto refused = [](const std::string& name, const std::string& value) -> std::string {
    try {
      static_cast<void>(ambient_interception({{name, value}}));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_EQ(error.hint(),
                "of an ambient pod these are read: istio.io/dataplane-mode, ambient.istio.io/bypass-inbound-capture, "
                "ambient.istio.io/dns-capture, istio.io/reroute-virtual-interfaces");
      return error.what();
    }
    return "accepted";
  };
  std::size_t ours = 0;
  for (const AnnotationInfo& row : annotation_table()) {
    const std::string name(row.name);
    if (!name.starts_with("sidetrack/")) continue;
    ++ours;
    const std::string value = name.ends_with("ranges")  ? "10.0.0.0/8"
                              : name.ends_with("ports") ? "101:443"
                              : name.ends_with("group") ? "pod1/x"
                                                        : "101";
    EXPECT_EQ(refused(name, value),
              name + ": '" + value + "': not for an ambient pod, whose rules do not depend on it");
    EXPECT_EQ(refused(name, ""), "accepted");
  }
  EXPECT_EQ(ours, 9U);
  for (const char* name : {"sidetrack/excude-uidz", "sidetrack/ingress", "sidetrack/exclude-uid"})
    EXPECT_EQ(refused(name, "true"), std::string("annotation ") + name + ": unknown");
  EXPECT_EQ(ambient_interception({{"istio.io/dataplane-mode", "none"}, {"sidetrack/exclude-uids", "101"}}).left_alone,
            "istio.io/dataplane-mode is none");
  EXPECT_THAT(
      [] {
        static_cast<void>(ambient_interception({{"sidetrack/exclude-uids", "@/etc/passwd"}}));
      },
      ::testing::ThrowsMessage<Error>(HasSubstr("not the name of a file")));
}

TEST(Annotations, WrittenAlmostAsOneThatIsReadAreWarnedOf) {
  const std::pair<std::string, std::string> all[] = {
      {"inject.istio.io/template", "inject.istio.io/templates"},
      {"proxy.istio.io/confg", "proxy.istio.io/config"},
      {"proxy.istio.io/override", "proxy.istio.io/overrides"},
      {"status.sidecar.istio.io/prt", "status.sidecar.istio.io/port"},
      {"sidecar.istio.io/injct", "sidecar.istio.io/inject"},
  };
  for (const auto& [name, meant] : all)
    EXPECT_THAT(unknown_annotations({{name, "x"}}),
                ElementsAre(fmt::format("annotation {}: unknown; did you mean {}?", name, meant)));
  for (const std::string name : {"inject.istio.io/other", "proxy.istio.io/config", "proxy.istio.io/overrides"})
    EXPECT_THAT(unknown_annotations({{name, "x"}}), ::testing::IsEmpty()) << name;
}

TEST(Annotations, OfAnAmbientPodThatAreNotReadAreWarnedOf) {
  const auto warnings = [](const Annotations& annotations) { return ambient_interception(annotations).warnings; };
  EXPECT_THAT(warnings({{"ambient.istio.io/bypass-inbound-captrue", "true"}}),
              ElementsAre("annotation ambient.istio.io/bypass-inbound-captrue: unknown; did you mean "
                          "ambient.istio.io/bypass-inbound-capture?"));
  EXPECT_THAT(warnings({{"istio.io/dataplane-mod", "none"}}),
              ElementsAre("annotation istio.io/dataplane-mod: unknown; did you mean istio.io/dataplane-mode?"));
  EXPECT_THAT(
      warnings({{"traffic.sidecar.istio.io/excludeOutboundPorts", "5432"}}),
      ElementsAre("annotation traffic.sidecar.istio.io/excludeOutboundPorts: without effect on an ambient pod"));
  EXPECT_THAT(warnings({{"ambient.istio.io/redirection", "enabled"},
                        {"ambient.istio.io/dns-capture", "true"},
                        {"istio.io/rev", "default"},
                        {"sidecar.istio.io/inject", "false"},
                        {"prometheus.io/scrape", "true"}}),
              IsEmpty());
}

TEST(Annotations, EachSetsItsOption) {
  const Config config = config_of(injected({
      {"sidecar.istio.io/interceptionMode", "TPROXY"},
      {"traffic.sidecar.istio.io/includeOutboundIPRanges", "10.0.0.0/8, fd00::/8"},
      {"traffic.sidecar.istio.io/excludeOutboundIPRanges", "10.1.0.0/16"},
      {"traffic.sidecar.istio.io/includeInboundPorts", "80,443"},
      {"traffic.sidecar.istio.io/excludeInboundPorts", "9000,15090,9000"},
      {"traffic.sidecar.istio.io/includeOutboundPorts", "3306"},
      {"traffic.sidecar.istio.io/excludeOutboundPorts", "5432,5433"},
      {"traffic.sidecar.istio.io/excludeInterfaces", "net1,-b"},
      {"istio.io/reroute-virtual-interfaces", "tap0"},
      {"traffic.sidecar.istio.io/kubevirtInterfaces", "not asked"},
      {"status.sidecar.istio.io/port", "15999"},
  }));
  EXPECT_EQ(config.mode, Mode::tproxy);
  EXPECT_THAT(config.outbound_ranges.list,
              ElementsAre(*AddressRange::parse("10.0.0.0/8"), *AddressRange::parse("fd00::/8")));
  EXPECT_FALSE(config.outbound_ranges.all);
  EXPECT_THAT(config.outbound_exclude_ranges, ElementsAre(*AddressRange::parse("10.1.0.0/16")));
  EXPECT_THAT(config.inbound_ports.list, ElementsAre(80, 443));
  EXPECT_FALSE(config.inbound_ports.all);
  EXPECT_THAT(config.inbound_exclude_ports, ElementsAre(9000, 15090, 15999, 15021));
  EXPECT_THAT(config.outbound_ports, ElementsAre(3306));
  EXPECT_THAT(config.outbound_exclude_ports, ElementsAre(5432, 5433));
  EXPECT_THAT(config.exclude_interfaces, ElementsAre("net1", "-b"));
  EXPECT_THAT(config.virtual_interfaces, ElementsAre("tap0"));
}

TEST(Annotations, TheOlderNameOfVirtualInterfacesCountsIfTheOtherIsNotThere) {
  EXPECT_THAT(config_of(injected({{"traffic.sidecar.istio.io/kubevirtInterfaces", "tap1"}})).virtual_interfaces,
              ElementsAre("tap1"));
  EXPECT_THAT(config_of(injected({{"istio.io/reroute-virtual-interfaces", ""},
                                  {"traffic.sidecar.istio.io/kubevirtInterfaces", "tap1"}}))
                  .virtual_interfaces,
              IsEmpty());
}

TEST(Annotations, AnEmptyOneIsTheEmptyList) {
  const Config config = config_of(injected({{"traffic.sidecar.istio.io/includeOutboundIPRanges", ""},
                                            {"traffic.sidecar.istio.io/includeInboundPorts", ""},
                                            {"sidecar.istio.io/interceptionMode", ""}}));
  EXPECT_TRUE(config.outbound_ranges.empty());
  EXPECT_TRUE(config.inbound_ports.empty());
  EXPECT_EQ(config.mode, Mode::redirect);
}

TEST(Annotations, StatusPortZeroIsNone) {
  EXPECT_THAT(config_of(injected({{"status.sidecar.istio.io/port", "0"}})).inbound_exclude_ports,
              ElementsAre(15021, 15090));
  EXPECT_THAT(config_of(injected({{"status.sidecar.istio.io/port", "15021"}})).inbound_exclude_ports,
              ElementsAre(15021, 15090));
}

TEST(Annotations, TakeRangesOfPorts) {
  const auto excluded = [](const char* ports) {
    return config_of(injected({{"traffic.sidecar.istio.io/excludeInboundPorts", ports}})).inbound_exclude_ports;
  };
  EXPECT_THAT(excluded("9000-9100,80"), ElementsAre(PortRange{9000, 9100}, 80, 15020, 15021, 15090));
  // The proxy's own ports are not listed again.
  EXPECT_THAT(excluded("15000-15100"), ElementsAre(PortRange{15000, 15100}));
  EXPECT_THAT(excluded("1-65535"), ElementsAre(PortRange{1, 65535}));
  EXPECT_THAT(config_of(injected({{"traffic.sidecar.istio.io/includeOutboundPorts", "1-1023"}})).outbound_ports,
              ElementsAre(PortRange{1, 1023}));
  // A long list is neither shortened nor slow.
  std::string all;
  for (int port = 1; port <= 65535; ++port) all += std::to_string(port) + ",";
  EXPECT_EQ(excluded(all.c_str()).size(), 65535U);
}

TEST(Annotations, OfSidetrackItself) {
  const Config config = config_of(injected({{"sidetrack/include-inbound-ranges", "10.0.0.0/8,fd00::/8"},
                                            {"sidetrack/exclude-inbound-ranges", "10.1.0.0/16"}}));
  EXPECT_THAT(config.inbound_ranges.list,
              ElementsAre(*AddressRange::parse("10.0.0.0/8"), *AddressRange::parse("fd00::/8")));
  EXPECT_THAT(config.inbound_exclude_ranges, ElementsAre(*AddressRange::parse("10.1.0.0/16")));
  EXPECT_TRUE(config_of(injected({{"sidetrack/include-inbound-ranges", "*"}})).inbound_ranges.all);
  EXPECT_THAT(error_of(injected({{"sidetrack/exclude-inbound-ranges", "*"}})),
              HasSubstr("sidetrack/exclude-inbound-ranges: '*': expected address ranges, not everything"));
}

TEST(Annotations, WhoIsLeftAlone) {
  EXPECT_THAT(interception({}).left_alone, HasSubstr("no annotation sidecar.istio.io/status"));
  EXPECT_THAT(interception({{"sidecar.istio.io/inject", "nonsense"}}).left_alone, HasSubstr("no annotation"));
  EXPECT_THAT(interception(injected({{"sidecar.istio.io/inject", "false"}})).left_alone, HasSubstr("is false"));
  EXPECT_THAT(interception({{"sidecar.istio.io/inject", "false"}, {"sidecar.istio.io/status", "{}"}}).warnings,
              IsEmpty());
  const Interception contradicts =
      interception({{"sidecar.istio.io/inject", "False"},
                    {"sidecar.istio.io/status", R"({"initContainers":["istio-validation"]})"}});
  EXPECT_THAT(contradicts.left_alone, HasSubstr("is False"));
  // What a pod without a proxy's rules says besides need not be right.
  EXPECT_EQ(
      interception(injected({{"sidecar.istio.io/interceptionMode", "NONE"}, {"sidetrack/nonsense", "x"}})).left_alone,
      "sidecar.istio.io/interceptionMode is NONE");
  EXPECT_THAT(contradicts.warnings,
              ElementsAre(AllOf(HasSubstr("lists istio-validation"), HasSubstr("remove the annotation"))));
  EXPECT_THAT(interception(injected({{"sidecar.istio.io/interceptionMode", "NONE"}})).left_alone, HasSubstr("is NONE"));
  for (const char* key : {"initContainers", "containers"}) {
    const std::string text = std::string(R"({")") + key + R"(":["istio-proxy","istio-init"]})";
    EXPECT_THAT(interception({{"sidecar.istio.io/status", text}}).left_alone, HasSubstr("istio-init"));
  }
}

// A gateway, a proxyless gRPC pod, one of the user's own templates: their proxies have no init container beside them.
TEST(Annotations, ATemplateWithoutAnInitContainerIsLeftAlone) {
  const auto left_alone = [](const char* templates, const char* lists) {
    Annotations all{{"sidecar.istio.io/status", lists}};
    if (templates != nullptr) all["inject.istio.io/templates"] = templates;
    return interception(all).left_alone;
  };
  constexpr const char* no_init = R"({"initContainers":null,"containers":["istio-proxy"]})";
  constexpr const char* native = R"({"initContainers":["istio-proxy"],"containers":null})";
  constexpr const char* validated = R"({"initContainers":["istio-validation","istio-proxy"],"containers":null})";
  for (const char* templates : {"gateway", "grpc-agent", "mine", "gateway,mine", " gateway ", "Sidecar", ""}) {
    for (const char* lists : {no_init, native, R"({"initContainers":[],"containers":["istio-proxy"]})", "{}"}) {
      EXPECT_THAT(left_alone(templates, lists), StartsWith("inject.istio.io/templates is ")) << templates << lists;
    }
    EXPECT_EQ(left_alone(templates, validated), "") << "one that validates needs rules";
    EXPECT_THAT(left_alone(templates, R"({"initContainers":["istio-init"]})"), HasSubstr("istio-init"));
  }
  for (const char* templates : {"sidecar", "sidecar,mine", "mine, sidecar ", static_cast<const char*>(nullptr)}) {
    for (const char* lists : {no_init, native, validated}) EXPECT_EQ(left_alone(templates, lists), "");
  }
  // grpc-simple: whether the pod names it or the mesh.
  for (const char* templates : {"grpc-simple", "sidecar", static_cast<const char*>(nullptr)}) {
    EXPECT_THAT(left_alone(templates, R"({"initContainers":["grpc-bootstrap-init"],"containers":null})"),
                HasSubstr("lists no proxy"));
  }
}

TEST(Annotations, VariablesOfTheProxyConfigAreOptions) {
  const auto asked = [](const Variables& metadata, const Annotations& more = {}) {
    return interception(injected(more), {"", metadata});
  };
  const auto options = [&](const Variables& metadata, const Annotations& more = {}) {
    std::vector<std::string> all = asked(metadata, more).options;
    all.erase(all.begin(), all.begin() + 4);  // what every pod has: -m, -i, -b, -d
    return all;
  };
  EXPECT_THAT(options({{"ISTIO_META_DNS_CAPTURE", "true"}, {"INVALID_DROP", "1"}, {"ISTIO_DUAL_STACK", "false"}}),
              ElementsAre("--redirect-dns=true", "--capture-all-dns=true", "--drop-invalid=1", "--dual-stack=false"));
  EXPECT_THAT(options({{"ISTIO_META_DNS_CAPTURE", "true"}, {"REDIRECT_DNS", "false"}, {"INVALID_DROP", ""}}),
              ElementsAre("--redirect-dns=true", "--capture-all-dns=true"));
  EXPECT_THAT(options({{"DROP_INVALID", "false"}, {"INVALID_DROP", "true"}}), ElementsAre("--drop-invalid=true"));
  EXPECT_THAT(options({{"ISTIO_META_DNS_CAPTURE", "false"}}),
              ElementsAre("--redirect-dns=false", "--capture-all-dns=false"));
  // Of what the template passes itself, and of an annotation's option, the variable counts for nothing.
  EXPECT_THAT(options({{"PROXY_UID", "5"}, {"ENVOY_PORT", "5"}, {"ISTIO_SERVICE_CIDR", ""}, {"UNKNOWN", "x"}}),
              IsEmpty());
  EXPECT_THAT(options({{"ISTIO_OUTBOUND_PORTS", "1"}}, {{"traffic.sidecar.istio.io/includeOutboundPorts", "2"}}),
              ElementsAre("--istio-outbound-ports=2"));
  EXPECT_THAT(options({{"ISTIO_OUTBOUND_PORTS", "1"}}), ElementsAre("--istio-outbound-ports=1"));
  // A pod says nothing of how the plugin works.
  for (const char* name :
       {"NETWORK_NAMESPACE", "DRY_RUN", "CLEANUP_ONLY", "SKIP_RULE_APPLY", "ENVOY_USER", "FORCE_IPTABLES_BINARY"}) {
    EXPECT_THAT(options({{name, "legacy"}}), IsEmpty()) << name;
    EXPECT_THAT(asked({{name, "legacy"}}).warnings, ElementsAre(HasSubstr(name))) << name;
  }
  for (const auto& [name, value] : Variables{{"ISTIO_META_DNS_CAPTURE", "perhaps"},
                                             {"ISTIO_OUTBOUND_PORTS", "@/etc/x"},
                                             {"ISTIO_OUTBOUND_OWNER_GROUPS", "5,app"},
                                             {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE", "app"},
                                             {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", "10.0.0.0/8"}}) {
    try {
      static_cast<void>(asked({{name, value}}));
      ADD_FAILURE() << name;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), StartsWith("proxy.istio.io/config: proxyMetadata: " + name + ": '" + value + "'"));
    }
  }
}

// istio-init has no options for them.
TEST(Annotations, VariablesWithoutAnOptionCountForThePlugin) {
  const Interception asked = interception(injected(), {"",
                                                       {{"ISTIO_OUTBOUND_OWNER_GROUPS", "5,6"},
                                                        {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE", "7"},
                                                        {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", "127.0.0.0/8"}}});
  EXPECT_THAT(asked.warnings, IsEmpty());
  const CommandLine line = parse_apply(asked.options);
  EXPECT_EQ(line.config.loopback_ipv4.text(), "127.0.0.0/8");
  EXPECT_THAT(line.names.owner_groups.list, ElementsAre("5", "6"));
  EXPECT_FALSE(line.names.owner_groups.all);
  EXPECT_THAT(line.names.owner_groups_exclude, ElementsAre("7"));
}

TEST(Annotations, AnEmptyOneCountsMoreThanAVariable) {
  const auto ports = [](const Annotations& annotations) {
    const auto asked = interception(injected(annotations), {"", {{"ISTIO_OUTBOUND_PORTS", "5"}}});
    return parse_apply(asked.options).config.outbound_ports.size();
  };
  EXPECT_EQ(ports({}), 1U);
  EXPECT_EQ(ports({{"traffic.sidecar.istio.io/includeOutboundPorts", ""}}), 0U);
}

TEST(Annotations, AProxyWithoutEnvoyIsLeftAlone) {
  const auto left_alone = [](const char* value) {
    return interception(injected(), {"", {{"DISABLE_ENVOY", value}}}).left_alone;
  };
  EXPECT_EQ(left_alone("true"), "proxy.istio.io/config: proxyMetadata: DISABLE_ENVOY is true");
  EXPECT_EQ(left_alone("false"), "");
  EXPECT_THROW(static_cast<void>(left_alone("perhaps")), Error);
}

TEST(Annotations, TheModeOfTheProxyConfigCountsIfNoAnnotationSaysIt) {
  EXPECT_THAT(interception(injected(), {"TPROXY"}).options,
              ::testing::Contains("--istio-inbound-interception-mode=TPROXY"));
  EXPECT_THAT(interception(injected(), {"NONE"}).left_alone, HasSubstr("is NONE"));
  EXPECT_THAT(interception(injected({{"sidecar.istio.io/interceptionMode", "REDIRECT"}}), {"NONE"}).options,
              ::testing::Contains("--istio-inbound-interception-mode=REDIRECT"));
}

TEST(Annotations, ThatNobodyReadsAreSaidOfAnInjectedPod) {
  EXPECT_THAT(interception(injected()).warnings, ::testing::IsEmpty());
  EXPECT_THAT(interception(injected({{"traffic.sidecar.istio.io/excludeInboundPort", "80"}})).warnings,
              ::testing::ElementsAre(HasSubstr("traffic.sidecar.istio.io/excludeInboundPort")));
}

TEST(Annotations, AStatusNeedNotHaveAllLists) {
  for (const char* text : {"{}", R"({"initContainers":null,"containers":["istio-proxy"],"revision":"default"})"}) {
    EXPECT_EQ(interception({{"sidecar.istio.io/status", text}}).left_alone, "");
  }
  EXPECT_EQ(interception(injected({{"sidecar.istio.io/inject", "true"}})).left_alone, "");
  EXPECT_EQ(interception(injected({{"sidecar.istio.io/inject", ""}})).left_alone, "");
}

struct Wrong {
  const char* name;
  std::string value;
  const char* expected;
};

TEST(Annotations, AnErrorNamesAnnotationValueAndExpectation) {
  const Wrong all[] = {
      {"sidecar.istio.io/interceptionMode", "redirect", "one of REDIRECT|TPROXY|NONE"},
      {"traffic.sidecar.istio.io/includeOutboundIPRanges", "10.0.0.0/33", "an address range"},
      {"traffic.sidecar.istio.io/includeOutboundIPRanges", "10.0.0.0/8,*", "either '*' alone"},
      {"traffic.sidecar.istio.io/excludeOutboundIPRanges", "*", "address ranges, not everything"},
      {"traffic.sidecar.istio.io/includeInboundPorts", "80,http", "a port from 1 to 65535"},
      {"traffic.sidecar.istio.io/excludeInboundPorts", "*", "a port from 1 to 65535"},
      {"traffic.sidecar.istio.io/includeOutboundPorts", "70000", "a port from 1 to 65535"},
      {"traffic.sidecar.istio.io/excludeOutboundPorts", "1:2", "a port from 1 to 65535"},
      {"traffic.sidecar.istio.io/excludeInterfaces", "a/b", "an interface name"},
      {"istio.io/reroute-virtual-interfaces", "a b", "an interface name"},
      {"traffic.sidecar.istio.io/kubevirtInterfaces", "+", "the name of an interface"},
      {"status.sidecar.istio.io/port", "65536", "a port from 1 to 65535, or 0 for none"},
      {"sidecar.istio.io/inject", "perhaps", "true or false"},
      {"sidecar.istio.io/status", "injected", "a JSON object"},
      {"sidecar.istio.io/status", R"({"containers":"istio-proxy"})", "a list of names"},
      {"sidecar.istio.io/status", R"({"initContainers":[1]})", "a list of names"},
      {"sidecar.istio.io/status", std::string(100'000, '['), "a JSON object"},
      {"sidecar.istio.io/status", "[]", "a JSON object"},
  };
  for (const auto& [name, value, expected] : all) {
    const std::string error = error_of(injected({{name, value}}));
    EXPECT_THAT(error, StartsWith(std::string(name) + ": "));
    EXPECT_THAT(error, HasSubstr(value.empty() ? "no value" : value.substr(value.rfind(',') + 1, 20)));
    EXPECT_THAT(error, HasSubstr(expected));
  }
  EXPECT_EQ(error_of(injected({{"sidecar.istio.io/status", std::string("{}\0", 3)}})),
            "sidecar.istio.io/status: '{}\\x00': expected a JSON object, as the sidecar injector writes it");
}

TEST(Annotations, AreRefusedTogetherInTheirOwnWords) {
  EXPECT_EQ(error_of(injected({{"sidetrack/capture-udp", "443"}})),
            "sidetrack/capture-udp: '443': expected sidecar.istio.io/interceptionMode TPROXY with it, as no other mode "
            "captures UDP");
  EXPECT_EQ(error_of(injected({{"sidetrack/capture-udp", "443"}, {"sidecar.istio.io/interceptionMode", "TPROXY"}})),
            "no error");
  EXPECT_EQ(error_of(injected({{"sidetrack/capture-udp", "443"}, {"sidecar.istio.io/interceptionMode", "NONE"}})),
            "no error");
  EXPECT_EQ(error_of(injected({{"sidetrack/capture-udp", ""}})), "no error");
}

// What only the pod can say is found when the option has become a plan.
TEST(Annotations, NameThemselvesWhereTheirOptionsWouldBeNamed) {
  const Annotations pod = injected({{"sidetrack/bypass-cgroup", "nope"},
                                    {"sidetrack/exclude-uids", "5"},
                                    {"traffic.sidecar.istio.io/kubevirtInterfaces", "tap0"}});
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"--bypass-cgroup: 'nope': no such cgroup", "sidetrack/bypass-cgroup: 'nope': no such cgroup"},
           {"--exclude-uids has no effect", "sidetrack/exclude-uids has no effect"},
           {"-k, --kube-virt-interfaces: 'x'", "traffic.sidecar.istio.io/kubevirtInterfaces: 'x'"},
           {"--kube-virt-interfaces has no effect", "traffic.sidecar.istio.io/kubevirtInterfaces has no effect"},
           {"", ""},
           {"no", "no"},
           {"--exclude-uid-ports: 'x'", "--exclude-uid-ports: 'x'"},  // the conflist has no annotation
           {"no interface has an address", "no interface has an address"}})
    EXPECT_EQ(in_words_of(pod, text), expected);
}

// The text of a pod is read by a program of the node.
TEST(Annotations, NameNoFiles) {
  for (const AnnotationInfo& row : annotation_table()) {
    const std::string error = error_of(injected({{std::string(row.name), "@/etc/passwd"}}));
    EXPECT_THAT(error, HasSubstr("'@/etc/passwd'")) << row.name;
    EXPECT_THAT(error, HasSubstr("not the name of a file")) << row.name;
  }
}

TEST(Annotations, EscapeWhatATerminalWouldObey) {
  EXPECT_THAT(error_of(injected({{"sidecar.istio.io/interceptionMode", "\x1b[2J"}})), HasSubstr(R"('\x1b[2J')"));
}

TEST(Annotations, EachRowHasAnOptionOfItsOwn) {
  std::set<std::string_view> flags_of_rows;
  for (const AnnotationInfo& row : annotation_table()) flags_of_rows.insert(row.flag);
  EXPECT_EQ(flags_of_rows.size(), annotation_table().size());
}

}  // namespace
}  // namespace sidetrack
