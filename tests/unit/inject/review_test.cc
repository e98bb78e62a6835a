// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/review.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "inject/manifest/patch.h"
#include "inject/manifest/write.h"
#include "model/error.h"
#include "model/printable.h"
#include "support/base64.h"

namespace sidetrack::manifest {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

Node node(std::string_view yaml) { return parse_yaml(yaml, "test")[0].root; }

// nlohmann's JSON Patch is another's.
TEST(Patch, MakesTheOneToTheOther) {
  const std::pair<std::string_view, std::string_view> all[] = {
      {"{}", "{}"},
      {"{a: 1}", "{a: 2, b: {c: []}}"},
      {"{a: 1, b: 2}", "{b: 3}"},
      {"{a: [1, 2, 3]}", "{a: [0, 1, 2, 3]}"},
      {"{a: [1, 2, 3]}", "{a: [1, 2, 3, 4, 5]}"},
      {"{a: [1, 2, 3]}", "{a: [1, 9, 3]}"},
      {"{a: [1, 2, 3, 4]}", "{a: [4]}"},
      {"{a: [1, 1, 1]}", "{a: [1, 1]}"},
      {"{a: [1, 1]}", "{a: [1, 1, 1, 1]}"},
      {"{a: [{n: a}, {n: b}]}", "{a: [{n: z}, {n: a, x: 1}]}"},
      {"{a: [1]}", "{a: {b: 1}}"},
      {"{a: null}", "{a: {}}"},
      {"{a/b~c: 1}", "{a/b~c: {d/e: 2}, '': x}"},
      {"[1, 2]", "[2, 3, 1]"},
  };
  for (const auto& [before, after] : all) {
    const Json steps = Json::parse(patch(node(before), node(after)).value());
    EXPECT_EQ(Json::parse(json_text(node(before))).patch(steps), Json::parse(json_text(node(after))))
        << before << " " << after << " " << steps;
  }
}

// Ten levels below the root what differs is replaced as a whole.
TEST(Patch, GoesTenLevelsDown) {
  const auto steps = [](int depth) {
    std::string begin;
    for (int i = 0; i < depth; ++i) begin += "{a: ";
    const std::string end(static_cast<std::size_t>(depth), '}');
    return patch(node(begin + "{b: 1, c: 2}" + end), node(begin + "{b: 3, c: 2}" + end)).value();
  };
  EXPECT_EQ(steps(9), R"([{"op":"replace","path":"/a/a/a/a/a/a/a/a/a/b","value":3}])");
  EXPECT_EQ(steps(10), R"([{"op":"replace","path":"/a/a/a/a/a/a/a/a/a/a","value":{"b":3,"c":2}}])");
}

TEST(Patch, IsNoLongerThanAllowed) {
  const std::string expected = R"([{"op":"replace","path":"/a","value":2}])";
  EXPECT_EQ(patch(node("{a: 1}"), node("{a: 2}"), expected.size()), expected);
  EXPECT_EQ(patch(node("{a: 1}"), node("{a: 2}"), expected.size() - 1), std::nullopt);
  for (const auto& [before, after] :
       {std::pair("{a: 1}", "{}"), {"{}", "{a: 1}"}, {"[1]", "[]"}, {"[]", "[1]"}, {"[1]", "[2]"}})
    EXPECT_EQ(patch(node(before), node(after), 20), std::nullopt) << before;
  EXPECT_EQ(patch(node("{a: 1}"), node("{a: 1}"), 2), "[]");
}

TEST(Patch, SaysNoMoreThanItHasTo) {
  EXPECT_EQ(patch(node("{a: [1, 2]}"), node("{a: [0, 1, 2]}")), R"([{"op":"add","path":"/a/0","value":0}])");
  EXPECT_EQ(patch(node("{a: 1}"), node("{a: 1}")), "[]");
}

// ---- Reviews

InjectionTemplate with_proxy() {
  Documents documents = parse_documents(
      "spec:\n  containers: [{name: istio-proxy, image: envoy, securityContext: {runAsUser: 1337}}]\n  volumes: "
      "[{name: "
      "sidecar, emptyDir: {}}]\n",
      "template");
  std::vector<std::string> warnings;
  return read_template(documents, warnings);
}

Json pod(const Json& annotations = Json::object()) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"generateName", "web-"}, {"annotations", annotations}}},
          {"spec", {{"containers", Json::array({{{"name", "web"}, {"image", "web"}}})}}}};
}

Json request(const Json& object, const std::string& version = "admission.k8s.io/v1") {
  return {{"apiVersion", version},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "705ab4f5"},
            {"kind", {{"group", ""}, {"version", "v1"}, {"kind", "Pod"}}},
            {"namespace", "shop"},
            {"operation", "CREATE"},
            {"object", object}}}};
}

TEST(Review, AnswersWithAPatchInTheVersionThatIsAsked) {
  for (const std::string version : {"admission.k8s.io/v1", "admission.k8s.io/v1beta1"}) {
    const ReviewAnswer answer = review(request(pod(), version).dump(), with_proxy(), {});
    EXPECT_EQ(answer.verdict, Verdict::injected);
    EXPECT_EQ(answer.pod, "Pod shop/web-");
    const Json document = Json::parse(answer.document);
    EXPECT_EQ(document["apiVersion"], version);
    EXPECT_EQ(document["kind"], "AdmissionReview");
    EXPECT_EQ(document["response"]["uid"], "705ab4f5");
    EXPECT_EQ(document["response"]["allowed"], true);
    EXPECT_EQ(document["response"]["patchType"], "JSONPatch");
    const Json injected = pod().patch(Json::parse(decoded(document["response"]["patch"].get<std::string>())));
    EXPECT_EQ(injected["spec"]["initContainers"][0]["name"], "istio-init");
    EXPECT_EQ(injected["spec"]["initContainers"][0]["args"][0], "istio-iptables");
    EXPECT_EQ(injected["spec"]["containers"][0]["name"], "web");
    EXPECT_EQ(injected["spec"]["containers"][1]["name"], "istio-proxy");
    EXPECT_EQ(injected["spec"]["volumes"][0]["name"], "sidecar");
    // The same once more needs no patch.
    const Json again = Json::parse(review(request(injected, version).dump(), with_proxy(), {}).document);
    EXPECT_EQ(again["response"]["allowed"], true);
    EXPECT_FALSE(again["response"].contains("patch"));
  }
}

// Which kubectl prints.
TEST(Review, WarnsOfAnnotationsThatNobodyReads) {
  const ReviewAnswer answer =
      review(request(pod({{"traffic.sidecar.istio.io/excludeInboundPort", "80"}})).dump(), with_proxy(), {});
  EXPECT_EQ(answer.verdict, Verdict::injected);
  EXPECT_EQ(Json::parse(answer.document)["response"]["warnings"],
            Json::array({"annotation traffic.sidecar.istio.io/excludeInboundPort: unknown; did you mean "
                         "traffic.sidecar.istio.io/excludeInboundPorts?"}));
  EXPECT_FALSE(Json::parse(review(request(pod()).dump(), with_proxy(), {}).document)["response"].contains("warnings"));
}

TEST(Review, RefusesWithTheSentenceThatKubectlShows) {
  const ReviewAnswer answer =
      review(request(pod({{"traffic.sidecar.istio.io/includeInboundPorts", "http"}})).dump(), with_proxy(), {});
  EXPECT_EQ(answer.verdict, Verdict::refused);
  const Json response = Json::parse(answer.document)["response"];
  EXPECT_EQ(response["uid"], "705ab4f5");
  EXPECT_EQ(response["allowed"], false);
  EXPECT_EQ(response["status"]["message"],
            "Pod shop/web-: traffic.sidecar.istio.io/includeInboundPorts: 'http': expected a port from 1 to 65535, or "
            "a range such as 9000-9100");
  EXPECT_EQ(response["status"]["code"], 400);
}

// The whole of each answer.
TEST(Review, AnswersSo) {
  const auto answered = [](const Json& document) {
    const ReviewAnswer answer = review(document.dump(), with_proxy(), {});
    return answer.document + "\n" + answer.reason;
  };
  const std::string begin =
      R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"705ab4f5","allowed":)";
  Json host = pod();
  host["spec"]["hostNetwork"] = true;
  EXPECT_EQ(answered(request(host)), begin + "true}}\nhost_network");
  Json update = request(pod());
  update["request"]["subResource"] = "ephemeralcontainers";
  EXPECT_EQ(answered(update), begin + "true}}\nnot_pod_create");
  const std::string why =
      "Pod shop/web-: sidecar.istio.io/status: 'x': expected a JSON object of lists, as the sidecar injector writes "
      "it; "
      "remove the annotation if the pod is not injected";
  EXPECT_EQ(answered(request(pod({{"sidecar.istio.io/status", "x"}}))),
            begin + R"(false,"status":{"code":400,"reason":"BadRequest","message":")" + why + "\"}}}\n" + why);
  Json named = pod();
  named["metadata"]["name"] = "web";
  EXPECT_EQ(review(request(named).dump(), with_proxy(), {}).pod, "Pod shop/web");
}

// Whatever its length.
TEST(Review, EncodesThePatch) {
  std::set<std::size_t> remainders;
  for (const std::string name : {"a", "ab", "abc", "abcd"}) {
    Json given = pod();
    given["spec"]["volumes"] = Json::array({{{"name", "sidecar"}, {"emptyDir", Json::object()}}});
    given["spec"]["containers"][0]["name"] = "istio-proxy";
    given["spec"]["containers"][0]["image"] = name;
    const Json response = Json::parse(review(request(given).dump(), with_proxy(), {}).document)["response"];
    const auto encoded = response["patch"].get<std::string>();
    const std::string steps = decoded(encoded);
    remainders.insert(steps.size() % 3);
    EXPECT_EQ(encoded.size(), (steps.size() + 2) / 3 * 4);
    EXPECT_EQ(encoded.ends_with("=="), steps.size() % 3 == 1);
    EXPECT_EQ(encoded.ends_with('='), steps.size() % 3 != 0);
    EXPECT_EQ(given.patch(Json::parse(steps))["spec"]["containers"][0]["image"], name);
  }
  EXPECT_EQ(remainders.size(), 3U);
}

TEST(Review, SaysWhetherAnythingChanged) {
  const ReviewAnswer first = review(request(pod()).dump(), with_proxy(), {});
  const Json injected =
      pod().patch(Json::parse(decoded(Json::parse(first.document)["response"]["patch"].get<std::string>())));
  EXPECT_EQ(review(request(injected).dump(), with_proxy(), {}).verdict, Verdict::unchanged);
  // The order of keys is no change.
  const std::string reordered = nlohmann::json(injected).dump();
  EXPECT_EQ(review(request(Json::parse(reordered)).dump(), with_proxy(), {}).verdict, Verdict::unchanged);
}

TEST(Review, NamesAPodWithoutAName) {
  Json nameless = pod();
  nameless["metadata"] = Json::array();
  EXPECT_EQ(review(request(nameless).dump(), with_proxy(), {}).reason,
            "Pod shop/: metadata: a list: expected a mapping");
}

TEST(Review, LeavesAloneWhatIsNotToBeInjected) {
  const auto skipped = [](const Json& document) {
    const ReviewAnswer answer = review(document.dump(), with_proxy(), {});
    EXPECT_EQ(answer.verdict, Verdict::skipped);
    const Json response = Json::parse(answer.document)["response"];
    EXPECT_EQ(response["allowed"], true);
    EXPECT_FALSE(response.contains("patch"));
    return answer.reason;
  };
  Json host = pod();
  host["spec"]["hostNetwork"] = true;
  EXPECT_EQ(skipped(request(host)), "host_network");
  EXPECT_EQ(skipped(request(pod({{"sidecar.istio.io/inject", "false"}}))), "inject_false");
  EXPECT_EQ(skipped(request(pod({{"sidecar.istio.io/interceptionMode", "NONE"}}))), "mode_none");
  EXPECT_EQ(skipped(request(pod({{"inject.istio.io/templates", "gateway"}}))), "template");
  Json system = request(pod());
  system["request"]["namespace"] = "kube-system";
  EXPECT_EQ(skipped(system), "system_namespace");
  Json update = request(pod());
  update["request"]["operation"] = "UPDATE";
  EXPECT_EQ(skipped(update), "not_pod_create");
  Json deployment = request(pod());
  deployment["request"]["kind"]["kind"] = "Deployment";
  EXPECT_EQ(skipped(deployment), "not_pod_create");
  Json other = request(pod());
  other["request"]["kind"]["group"] = "metrics.k8s.io";
  EXPECT_EQ(skipped(other), "not_pod_create");
}

TEST(Review, WhatIsNoneIsAnError) {
  Json no_uid = request(pod());
  no_uid["request"].erase("uid");
  Json no_object = request(pod());
  no_object["request"]["object"] = 5;
  const std::pair<std::string, std::string> all[] = {
      {"", "not JSON"},
      {"garbage", "not JSON"},
      {"[\"\xff\"]", "invalid string: ill-formed UTF-8 byte"},
      {"[" + std::string(100'000, '9') + "e999]", "a number of more than 1000 characters"},
      {"[" + std::string(900, '9') + "e999]", "number overflow"},
      {"{\"apiVersion\":", "not JSON"},
      {"[]", "expected an AdmissionReview"},
      {"{}{}", "2 JSON documents: expected one"},
      {"{}", "'' of '': expected AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1"},
      {R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2"})", "of 'admission.k8s.io/v2': expected"},
      {R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"})", "no request"},
      {no_uid.dump(), "request: no uid"},
      {no_object.dump(), "request.object: expected a pod"},
      {std::string(1'000'000, '['), "lists and mappings nested deeper than 100"},
  };
  for (const auto& [document, expected] : all) {
    try {
      (void)review(document, with_proxy(), {});
      ADD_FAILURE() << document.substr(0, 50);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_THAT(error.what(), HasSubstr(expected)) << document.substr(0, 50);
      EXPECT_EQ(printable(error.what()), error.what());
      EXPECT_LT(std::string_view(error.what()).size(), 300U);
    }
  }
  std::string many = "[0";
  for (int i = 0; i < 300'000; ++i) many += ",0";
  EXPECT_THROW((void)review(many + "]", with_proxy(), {}), Error);
}

}  // namespace
}  // namespace sidetrack::manifest
