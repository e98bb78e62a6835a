// SPDX-License-Identifier: GPL-2.0-or-later
// AdmissionReviews: the answer is JSON; its patch can be applied by another library, and what comes of it needs none.
#include "inject/manifest/review.h"

#include <nlohmann/json.hpp>

#include "fuzz.h"
#include "support/base64.h"

using namespace sidetrack;
using namespace sidetrack::manifest;
using Json = nlohmann::ordered_json;

namespace {

const InjectionTemplate& proxy() {
  static const InjectionTemplate read = [] {
    std::vector<std::string> warnings;
    return read_template(
        parse_documents("spec:\n  containers: [{name: istio-proxy, image: envoy, securityContext: {runAsUser: 1337}}]\n"
                        "  volumes: [{name: sidecar, emptyDir: {}}]\n",
                        "template"),
        warnings);
  }();
  return read;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  ReviewAnswer answer;
  try {
    answer = review(text, proxy(), {});
  } catch (const Error& error) {
    fuzz::require_readable(error);
    fuzz::require(error.code() == ExitCode::usage, error.what());
    return 0;
  }
  const Json response = Json::parse(answer.document).at("response");
  fuzz::require(response.at("allowed") == (answer.verdict != Verdict::refused), answer.document);
  fuzz::require(response.contains("patch") == (answer.verdict == Verdict::injected), answer.document);
  if (answer.verdict == Verdict::refused) fuzz::require(!answer.reason.empty(), answer.document);
  if (answer.verdict != Verdict::injected) return 0;

  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return 0;
  Json& object = document.at("request").at("object");
  object = object.patch(Json::parse(decoded(response.at("patch").get<std::string>())));
  const ReviewAnswer again = review(document.dump(-1, ' ', false, Json::error_handler_t::replace), proxy(), {});
  fuzz::require(again.verdict == Verdict::unchanged, again.document);
  return 0;
}
