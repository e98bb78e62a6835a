// SPDX-License-Identifier: GPL-2.0-or-later
// What a client or a pod's author can make grow: each shape at a quarter of its largest size and at that size. Four
// times as much takes about four times as long, and the largest no more than a second (of a program that is compiled
// for speed) and 64 MiB with the request itself; or it is refused by an error that says which limit.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "inject/manifest/inject.h"
#include "inject/manifest/pods.h"
#include "inject/manifest/review.h"
#include "inject/manifest/write.h"
#include "model/error.h"
#include "node/network_configuration.h"
#include "unit/apart.h"

namespace sidetrack::manifest {
namespace {

using sidetrack::testing::apart;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr std::size_t largest_request = 8U << 20;

const InjectionTemplate& usual_template() {
  static const InjectionTemplate read = [] {
    std::vector<std::string> warnings;
    return read_template(
        parse_documents("containers:\n- name: istio-proxy\n  image: envoy\n  env: [{name: LEVEL, value: info}]\n"
                        "  securityContext: {runAsUser: 1337}\nvolumes: [{name: sidecar, emptyDir: {}}]\n",
                        "template"),
        warnings);
  }();
  return read;
}

// "a0, a1, a2": `each` of every number.
template <typename Each>
std::string joined(std::size_t count, Each each, std::string_view between = ",") {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) (text += i == 0 ? "" : between) += each(i);
  return text;
}

std::string in_quotes(std::string_view text) { return json_text(Node::string(text)); }

std::string request(const std::string& metadata, const std::string& spec, const std::string& more = "") {
  return R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","namespace":"shop",)"
         R"("operation":"CREATE","kind":{"group":"","kind":"Pod"})" +
         more + R"(,"object":{"metadata":{)" + metadata + R"(},"spec":{)" + spec + "}}}}";
}
std::string with_spec(const std::string& spec) { return request("", spec); }
std::string with_annotation(std::string_view name, std::string_view value) {
  return request(fmt::format(R"("annotations":{{{}:{}}})", in_quotes(name), in_quotes(value)), "");
}
std::string with_config(std::string_view yaml) { return with_annotation("proxy.istio.io/config", yaml); }

std::string key(std::size_t i) { return fmt::format(R"("k{}":"")", i); }
std::string long_key(std::size_t i) { return fmt::format(R"("k{0:036}":"{0:036}")", i); }
std::string named(std::size_t i) { return fmt::format(R"({{"name":"n{}"}})", i); }
std::string name_alone(std::size_t i) { return fmt::format(R"("n{}")", i); }

std::string nested(std::size_t depth, const std::string& inner) {
  return joined(
             depth, [](std::size_t) { return R"({"a":)"; }, "") +
         inner + std::string(depth, '}');
}

struct Shape {
  const char* name;
  std::size_t largest;
  std::string (*text)(std::size_t size);
};

void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

// Sizes are of what grows. Those above a limit are there too: what is refused is refused in time.
constexpr std::size_t many = 40'000;
constexpr std::size_t small_text = largest_annotations - 1000;
const Shape reviews[] = {
    {"LongTexts", largest_request - 1000,
     [](std::size_t n) { return with_spec(R"("a":")" + std::string(n, 'x') + "\""); }},
    {"TextsOfThePodsOwnProxy", largest_request - 1000,
     [](std::size_t n) {
       return with_spec(R"("containers":[{"name":"istio-proxy","image":")" + std::string(n, 'x') + "\"}]");
     }},
    {"EscapedTexts", largest_request / 6 - 1000,
     [](std::size_t n) {
       return with_spec(R"("containers":[{"name":"istio-proxy","image":")" +
                        joined(
                            n, [](std::size_t) { return "\\u0001"; }, "") +
                        "\"}]");
     }},
    {"LongNames", largest_request - 1000,
     [](std::size_t n) { return request(R"("name":")" + std::string(n, 'x') + "\"", R"("volumes":5)"); }},
    {"LongUids", largest_request - 1000,
     [](std::size_t n) {
       return R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":")" +
              std::string(n, 'x') + "\"}}";
     }},
    {"ManyNumbers", 2 * many, [](std::size_t n) { return "[" + joined(n, [](std::size_t) { return "0"; }) + "]"; }},
    {"LongNumbers", largest_request - 1000, [](std::size_t n) { return with_spec("\"a\":" + std::string(n, '1')); }},
    {"ManyDocuments", largest_request / 2,
     [](std::size_t n) {
       return joined(
           n, [](std::size_t) { return "{}"; }, "");
     }},
    {"ManyLists", 2 * many,
     [](std::size_t n) { return with_spec("\"a\":[" + joined(n, [](std::size_t) { return "[]"; }) + "]"); }},
    {"Deep", 100'000, [](std::size_t n) { return nested(n, "1"); }},
    {"DeepAndWide", many,
     [](std::size_t n) { return with_spec("\"containers\":[" + nested(90, "[" + joined(n, name_alone) + "]") + "]"); }},
    {"RepeatedKeys", many, [](std::size_t n) { return with_spec(joined(n, key) + "," + key(n - 1)); }},
    {"Annotations", many / 2, [](std::size_t n) { return request("\"annotations\":{" + joined(n, key) + "}", ""); }},
    {"LongAnnotations", largest_request - 1000,
     [](std::size_t n) { return with_annotation("sidecar.istio.io/status", std::string(n, '[')); }},
    {"LongNamesOfAnnotations", small_text,
     [](std::size_t n) { return with_annotation("traffic.sidecar.istio.io/" + std::string(n, 'x'), ""); }},
    {"UnknownAnnotations", 5'000,
     [](std::size_t n) {
       return request(
           "\"annotations\":{" +
               joined(n, [](std::size_t i) { return fmt::format(R"("traffic.sidecar.istio.io/x{}":"")", i); }) + "}",
           "");
     }},
    {"Ranges", 10'000,
     [](std::size_t n) {
       return with_annotation("traffic.sidecar.istio.io/includeOutboundIPRanges",
                              joined(n, [](std::size_t i) { return fmt::format("10.{}.{}.0/24", i / 256, i % 256); }));
     }},
    {"Ports", 40'000,
     [](std::size_t n) {
       return with_annotation("traffic.sidecar.istio.io/excludeOutboundPorts",
                              joined(n, [](std::size_t i) { return std::to_string(i + 1); }));
     }},
    {"Interfaces", 20'000,
     [](std::size_t n) {
       return with_annotation("traffic.sidecar.istio.io/excludeInterfaces",
                              joined(n, [](std::size_t i) { return fmt::format("eth{}", i); }));
     }},
    {"Labels", many, [](std::size_t n) { return request("\"labels\":{" + joined(n, key) + "}", ""); }},
    {"KeysOfTheSpec", many, [](std::size_t n) { return with_spec(joined(n, key)); }},
    {"LongKeys", 80,
     [](std::size_t n) {
       return with_spec(
           joined(n, [](std::size_t i) { return fmt::format(R"("{}{}":"")", std::string(100'000, 'k'), i); }));
     }},
    {"LabelsOfAllBytes", 99'000, [](std::size_t n) { return request("\"labels\":{" + joined(n, long_key) + "}", ""); }},
    {"SpecOfAllBytes", 99'000, [](std::size_t n) { return with_spec(joined(n, long_key)); }},
    {"ContainersOfAllBytes", 33'000,
     [](std::size_t n) {
       return with_spec("\"containers\":[" +
                        joined(n, [](std::size_t i) { return "{" + long_key(i) + "," + long_key(i + 100'000) + "}"; }) +
                        "]");
     }},
    {"Containers", many, [](std::size_t n) { return with_spec("\"containers\":[" + joined(n, named) + "]"); }},
    {"NamelessContainers", 2 * many,
     [](std::size_t n) { return with_spec("\"containers\":[" + joined(n, [](std::size_t) { return "{}"; }) + "]"); }},
    {"Volumes", many, [](std::size_t n) { return with_spec("\"volumes\":[" + joined(n, named) + "]"); }},
    {"Variables", many / 2,
     [](std::size_t n) {
       return with_spec(R"("containers":[{"name":"istio-proxy","env":[)" +
                        joined(n, [](std::size_t i) { return fmt::format(R"({{"name":"n{}","value":""}})", i); }) +
                        "]}]");
     }},
    {"KeysOfThePodsOwnProxy", 20'000,
     [](std::size_t n) { return with_spec(R"("containers":[{"name":"istio-proxy",)" + joined(n, key) + "}]"); }},
    {"InjectedBefore", 20'000,
     [](std::size_t n) {  // every other container is one that the status names
       const std::string status =
           "{\"containers\":[" + joined(n / 2, [](std::size_t i) { return name_alone(2 * i); }) + "]}";
       return request(R"("annotations":{"sidecar.istio.io/status":)" + in_quotes(status) + "}",
                      "\"containers\":[" + joined(n, named) + "]");
     }},
    {"Overridden", 10'000,
     [](std::size_t n) {
       const std::string names = "{\"containers\":[" + joined(n, name_alone) + "]}";
       const std::string own = "{\"containers\":[" + joined(n / 2, named) + "]}";
       return request(R"("annotations":{"sidecar.istio.io/status":)" + in_quotes(names) +
                          R"(,"proxy.istio.io/overrides":)" + in_quotes(own) + "}",
                      "\"containers\":[" + joined(n, named) + "]");
     }},
    {"OverridesOfTheProxy", 10'000,
     [](std::size_t n) {
       const std::string own = R"({"containers":[{"name":"istio-proxy",)" + joined(n, key) + "}]}";
       return request(
           R"("annotations":{"proxy.istio.io/overrides":)" + in_quotes(own) + "}",
           R"("containers":[{"name":"istio-proxy",)" + joined(n, [](std::size_t i) { return key(i + 5'000); }) + "}]");
     }},
    {"MovedBelowALongKey", 20'000,
     [](std::size_t n) {  // each container takes the place of another one
       const auto inner = [](std::size_t i) {
         return fmt::format(R"({{"name":"n{}","{}":[{}]}})", i, std::string(100'000, 'k'),
                            joined(1000, [&](std::size_t j) { return std::to_string(i + j); }));
       };
       return request(R"("annotations":{"sidecar.istio.io/status":"{\"containers\":[\"n0\"]}"})",
                      "\"containers\":[" + joined(n / 1000, inner) + "]");
     }},
    {"OldObjects", many, [](std::size_t n) { return request("", "", R"(,"oldObject":{)" + joined(n, key) + "}"); }},
    {"AliasesOfALongText", 40'000,
     [](std::size_t n) {
       return with_config("a: &a " + std::string(100'000, 'x') + "\nb: [" +
                          joined(n, [](std::size_t) { return "*a"; }) + "]\n");
     }},
    {"AliasesOfAliases", 40,
     [](std::size_t n) {
       return with_config(
           "a0: &a0 [x]\n" +
           joined(
               n, [](std::size_t i) { return fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i + 1, i); }, ""));
     }},
    {"AnchorsWithinAnchors", 20'000,
     [](std::size_t n) {
       std::string begin;
       for (int i = 0; i < 90; ++i) begin += fmt::format("&a{} [", i);
       return with_config("a: " + begin + joined(n, [](std::size_t) { return "xxxxxxxx"; }) + std::string(90, ']') +
                          "\n");
     }},
    {"MergedMappings", 20'000,
     [](std::size_t n) {
       return with_config("a: &a {" + joined(100, [](std::size_t i) { return fmt::format("k{}: v", i); }) + "}\nb: {" +
                          joined(n, [](std::size_t) { return "<<: *a"; }) + "}\n");
     }},
    {"KeysOfYaml", 20'000,
     [](std::size_t n) {
       return with_config(joined(
           n, [](std::size_t i) { return fmt::format("k{}: v\n", i); }, ""));
     }},
    {"DirectivesOfYaml", 16'000,
     [](std::size_t n) {
       return with_config(joined(
                              n, [](std::size_t i) { return fmt::format("%TAG !a{}! x\n", i); }, "") +
                          "--- {}\n");
     }},
    {"BracketsOfYaml", small_text, [](std::size_t n) { return with_config("a: " + std::string(n, '[')); }},
    {"VariablesOfTheConfig", 20'000,
     [](std::size_t n) {
       return with_config("proxyMetadata:\n" + joined(
                                                   n, [](std::size_t i) { return fmt::format("  V{}: v\n", i); }, ""));
     }},
};

std::string said(const Error& error) { return error.what() + (error.hint().empty() ? "" : "; " + error.hint()); }

// What is answered, in a word or in the words of the refusal.
std::string answer_to(const std::string& text) {
  try {
    const ReviewAnswer answer = review(text, usual_template(), {});
    if (answer.verdict == Verdict::refused) return "refused: " + answer.reason;
    return answer.verdict == Verdict::injected ? "injected" : "other";
  } catch (const Error& error) {
    return "refused: " + said(error);
  }
}

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

template <typename Act>
double seconds_of(Act act) {
  const double start = processor_seconds();
  act();
  return processor_seconds() - start;
}

// Where nothing is compiled for speed, or sanitizers look at every access.
#if defined(SIDETRACK_SANITIZED)
constexpr double slower = 40;
#elif defined(NDEBUG)
constexpr double slower = 1;
#else
constexpr double slower = 12;
#endif

// Four times as much takes at most eight times as long: by the square it would be 16. What takes next to nothing tells
// nothing.
void expect_linear(const std::function<std::string(std::size_t)>& text, std::size_t largest,
                   const std::function<void(const std::string&)>& use) {
  constexpr double guard = 8;
  constexpr double noise = 0.02;
  const std::string part = text(largest / 4);
  const std::string all = text(largest);
  double quarter = seconds_of([&] { use(part); });
  double whole = seconds_of([&] { use(all); });
  for (int again = 0; again < 3 && (whole > guard * std::max(quarter, noise) || whole > slower); ++again) {
    quarter = std::max(quarter, seconds_of([&] { use(part); }));  // a quarter that was refused tells nothing either
    whole = std::min(whole, seconds_of([&] { use(all); }));
  }
  ::testing::Test::RecordProperty("microseconds", static_cast<int>(whole * 1e6));
  EXPECT_LE(whole, guard * std::max(quarter, noise)) << "a quarter of it took " << quarter << " s";
  EXPECT_LE(whole, slower);
}

std::size_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) << 10U;
  }
  return 0;
}

class HostileReview : public ::testing::TestWithParam<Shape> {};

TEST_P(HostileReview, TakesTimeByItsLength) {
  const Shape& shape = GetParam();
  ASSERT_LE(shape.text(shape.largest).size(), largest_request);
  expect_linear(shape.text, shape.largest, [](const std::string& text) { static_cast<void>(answer_to(text)); });
}

TEST_P(HostileReview, TakesLittleMemory) {
#ifdef SIDETRACK_SANITIZED
  GTEST_SKIP() << "sanitizers keep what was freed";
#endif
  const Shape& shape = GetParam();
  const std::string text = shape.text(shape.largest);
  static_cast<void>(usual_template());
  const std::string taken = apart([&] {
    const std::size_t before = peak_memory();
    static_cast<void>(answer_to(text));
    return std::to_string(peak_memory() - before);
  });
  ASSERT_THAT(taken, MatchesRegex("[0-9]+"));
  constexpr std::size_t most = 64U << 20;
  const std::size_t together = std::stoul(taken) + text.size();
  RecordProperty("kibibytes", static_cast<int>(together >> 10U));
  EXPECT_LE(together, most);
}

// Which limit it is.
TEST_P(HostileReview, IsAnsweredOrRefusedByALimit) {
  const Shape& shape = GetParam();
  const std::string answer = answer_to(shape.text(shape.largest));
  EXPECT_LT(answer.size(), 1000U);
  if (answer == "injected") return;
  EXPECT_THAT(answer, MatchesRegex("refused: .*(expected at most|more than|deeper than|duplicate key|number overflow|"
                                   "JSON documents: expected one|expected a JSON object|not YAML|expected an "
                                   "AdmissionReview|volumes: a number).*"));
}

INSTANTIATE_TEST_SUITE_P(Shapes, HostileReview, ::testing::ValuesIn(reviews),
                         [](const auto& shape) { return shape.param.name; });

// ---- Files: `args` and `inject`.

std::string injected_text(const std::string& text) {
  try {
    Documents documents = parse_documents(text, "a.yaml");
    std::vector<std::string> skipped;
    const auto pods = pod_templates(documents, skipped);
    auto next = pods.begin();
    return written(documents, [&](const Document& document) {
      bool is_changed = false;
      for (; next != pods.end() && next->document == document.number; ++next) {
        static_cast<void>(init_arguments(*next, {}));
        is_changed |= inject(*next, usual_template(), {}).changed;
      }
      return is_changed;
    });
  } catch (const Error& error) {
    return said(error);
  }
}

const Shape files[] = {
    {"ManyPods", 800,
     [](std::size_t n) {
       return joined(
           n, [](std::size_t) { return "kind: Pod\nspec: {}\n"; }, "---\n");
     }},
    {"ListsOfPods", 800,
     [](std::size_t n) {
       return "kind: List\nitems:\n" + joined(
                                           n, [](std::size_t) { return "- {kind: Pod, spec: {}}\n"; }, "");
     }},
    {"ManyKinds", 8'000,
     [](std::size_t n) {
       return joined(
           n,
           [](std::size_t i) {
             return fmt::format("kind: K{}\nspec: {{template: {{spec: {{containers: []}}}}}}\n", i);
           },
           "---\n");
     }},
    {"ItemsOfALongKind", 20'000,
     [](std::size_t n) {
       return "kind: " + std::string(10 * n, 'k') + "List\nitems: [" + joined(n, [](std::size_t) { return "{a: b}"; }) +
              "]\n";
     }},
    {"DirectivesOfYaml", 40'000,
     [](std::size_t n) {
       return joined(
                  n, [](std::size_t i) { return fmt::format("%TAG !a{}! x\n", i); }, "") +
              "--- {}\n";
     }},
    {"AnchorsWithinAnchors", 20'000,
     [](std::size_t n) {
       std::string begin;
       for (int i = 0; i < 90; ++i) begin += fmt::format("&a{} [", i);
       return "kind: Pod\nspec:\n  a: " + begin + joined(n, [](std::size_t) { return "x"; }) + std::string(90, ']') +
              "\n";
     }},
};

class HostileFile : public ::testing::TestWithParam<Shape> {};

TEST_P(HostileFile, TakesTimeByItsLength) {
  const Shape& shape = GetParam();
  expect_linear(shape.text, shape.largest, [](const std::string& text) { static_cast<void>(injected_text(text)); });
}

INSTANTIATE_TEST_SUITE_P(Shapes, HostileFile, ::testing::ValuesIn(files),
                         [](const auto& shape) { return shape.param.name; });

TEST(HostileFile, AliasesStandForSoManyBytes) {
  const auto aliases = [](std::size_t count) {
    return "a: &a " + std::string(1000, 'x') + "\nb: [" + joined(count, [](std::size_t) { return "*a"; }) + "]\n";
  };
  const Limits limits{.aliased_bytes = 50'000};
  EXPECT_FALSE(parse_yaml(aliases(50), "a.yaml", limits).at(0).problem);
  EXPECT_EQ(said(*parse_yaml(aliases(51), "a.yaml", limits).at(0).problem),
            "a.yaml, line 2: more than 50000 bytes that aliases stand for");
  // A text counts once where it is written, also below an anchor.
  EXPECT_FALSE(
      parse_yaml("a: &a [&b [" + std::string(1000, 'x') + "]]\n", "a.yaml", {.aliased_bytes = 1}).at(0).problem);
}

TEST(HostileFile, AliasesShareWhatTheyStandFor) {
  const Node root = parse_yaml("a: &a [x, z]\nb: [*a, *a]\nc: {<<: {d: *a}}\n", "a.yaml")[0].root;
  const Node* first = &root.entries[0].value.items[0];
  EXPECT_EQ(first, &root.entries[1].value.items[1].items[0]);
  EXPECT_EQ(first, &root.entries[2].value.entries[0].value.items[0]);
  // Until one is changed.
  Node copy = root;
  copy.find("a")->items.own().front().text = "w";
  EXPECT_EQ(json_text(copy), R"({"a":["w","z"],"b":[["x","z"],["x","z"]],"c":{"d":["x","z"]}})");
  EXPECT_EQ(json_text(root), R"({"a":["x","z"],"b":[["x","z"],["x","z"]],"c":{"d":["x","z"]}})");
}

// ---- The CNI plugin: annotations as the runtime hands them on.

TEST(HostileConfiguration, TakesTimeByItsLength) {
  const auto configuration = [](std::size_t n) {
    return R"({"cniVersion":"1.0.0","name":"a","type":"sidetrack-cni","capabilities":{"io.kubernetes.cri.pod-annotations":true},)"
           R"("runtimeConfig":{"io.kubernetes.cri.pod-annotations":{)" +
           joined(n, key) + "}}}";
  };
  EXPECT_EQ(cni::read_configuration(configuration(100), cni::Keys::all).annotations->size(), 100U);
  expect_linear(configuration, 40'000,
                [](const std::string& text) { static_cast<void>(cni::read_configuration(text, cni::Keys::all)); });
}

}  // namespace
}  // namespace sidetrack::manifest
