// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/review.h"

#include <fmt/format.h>

#include <algorithm>

#include "inject/manifest/inject.h"
#include "inject/manifest/patch.h"
#include "model/error.h"
#include "model/printable.h"
#include "render/json_parts.h"

namespace sidetrack::manifest {
namespace {

// A pod with some hundred containers has fewer. As many take 40 MiB of memory, with the longest texts that a request
// may have.
constexpr Limits limits_of_review{.nodes = 50'000};
constexpr std::size_t longest_uid = 128;  // bytes; of Kubernetes it is a UUID, of 36
constexpr std::string_view versions[] = {"admission.k8s.io/v1", "admission.k8s.io/v1beta1"};
constexpr std::string_view kind_of_review = "AdmissionReview";

[[noreturn]] void refuse_document(const std::string& what) {
  throw Error(ExitCode::usage, fmt::format("the request: {}", what));
}

// "" if it is not there, or no string.
std::string text_at(const Node* mapping, std::string_view key) {
  const Node* found = child(mapping, key);
  return found == nullptr || found->type != Node::Type::string ? "" : found->text;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t given = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8U | (j < given ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) text += j <= given ? digits[group >> (18 - 6 * j) & 63U] : '=';
  }
  return text;
}

std::string document(const std::string& version, const Json& response) {
  return object({{"apiVersion", version}, {"kind", kind_of_review}, {"response", response}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

PodTemplate pod_of(const Node& request, Node& reviewed) {
  const Node* metadata = reviewed.find("metadata");
  PodTemplate pod{"Pod", text_at(metadata, "name"), text_at(&request, "namespace"), "", 1, &reviewed};
  if (pod.name.empty()) pod.name = text_at(metadata, "generateName");
  return pod;
}

// Only pods that are made: nothing can be put into one that runs.
bool is_about_a_new_pod(const Node& request) {
  const Node* kind = request.find("kind");
  return text_at(kind, "kind") == "Pod" && text_at(kind, "group").empty() &&
         text_at(&request, "operation") == "CREATE" && text_at(&request, "subResource").empty();
}

}  // namespace

ReviewAnswer review(std::string_view text, const InjectionTemplate& injected, const HelmValues& helm) {
  std::vector<Document> documents = parse_json(text, "the request", limits_of_review);
  if (documents.size() != 1) refuse_document(fmt::format("{} JSON documents: expected one", documents.size()));
  Node& root = documents.front().root;
  if (root.type != Node::Type::mapping) refuse_document("expected an AdmissionReview");
  const std::string version = text_at(&root, "apiVersion");
  if (text_at(&root, "kind") != kind_of_review || std::ranges::find(versions, version) == std::end(versions)) {
    refuse_document(fmt::format("'{}' of '{}': expected {} of {}", excerpt(text_at(&root, "kind")), excerpt(version),
                                kind_of_review, fmt::join(versions, " or ")));
  }
  Node* request = root.find("request");
  if (request == nullptr || request->type != Node::Type::mapping) refuse_document("no request: expected a mapping");
  const std::string uid = text_at(request, "uid");
  if (uid.empty()) refuse_document("request: no uid");
  if (uid.size() > longest_uid)
    refuse_document(fmt::format("request.uid: '{}': expected at most {} bytes", excerpt(uid), longest_uid));

  ReviewAnswer answer;
  const auto skip = [&](std::string_view reason) {
    answer.reason = reason;
    answer.document = document(version, {{"uid", uid}, {"allowed", true}});
    return answer;
  };
  if (!is_about_a_new_pod(*request)) return skip("not_pod_create");
  Node* reviewed = request->find("object");
  if (reviewed == nullptr || reviewed->type != Node::Type::mapping) refuse_document("request.object: expected a pod");

  const PodTemplate pod = pod_of(*request, *reviewed);
  answer.pod = title(pod);
  try {
    const Injected result = inject(pod, injected, helm);
    if (!result.init.not_injected.empty()) return skip(result.init.reason);
    // The order of keys, which the API server has changed since it was injected, is no change.
    const auto steps = result.changed ? patch(result.before, *reviewed) : std::string(no_patch);
    if (!steps)
      throw Error(ExitCode::usage, fmt::format("{}: its patch has more than {} bytes: expected no pod that large",
                                               answer.pod, largest_patch));
    answer.verdict = *steps == no_patch ? Verdict::unchanged : Verdict::injected;
    Json response = object({{"uid", uid}, {"allowed", true}});
    if (*steps != no_patch) response.update(object({{"patchType", "JSONPatch"}, {"patch", base64(*steps)}}));
    if (!result.init.warnings.empty()) response["warnings"] = result.init.warnings;  // which kubectl prints
    answer.document = document(version, response);
  } catch (const Error& error) {
    answer.verdict = Verdict::refused;
    answer.reason = text_with_hint(error);
    constexpr int bad_request = 400;  // of 422 (Invalid), kubectl shows the message of no webhook
    const Json status = object({{"code", bad_request}, {"reason", "BadRequest"}, {"message", answer.reason}});
    answer.document = document(version, object({{"uid", uid}, {"allowed", false}, {"status", status}}));
  }
  return answer;
}

}  // namespace sidetrack::manifest
