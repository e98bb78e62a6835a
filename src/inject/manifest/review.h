// SPDX-License-Identifier: GPL-2.0-or-later
// The Kubernetes API of admission webhooks:
// https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "inject/manifest/template.h"
#include "options/helm_values.h"

namespace sidetrack::manifest {

enum class Verdict : std::uint8_t { injected, unchanged, skipped, refused };

struct ReviewAnswer {
  Verdict verdict = Verdict::skipped;
  std::string reason;    // skipped: a word, of few that there are; refused: the sentence that kubectl shows
  std::string pod;       // "Pod shop/web"
  std::string document;  // the AdmissionReview to answer with
};

// Answers an AdmissionReview of admission.k8s.io/v1 or v1beta1. The pod is injected as inject() does, and what is not
// as its annotations need it is refused. Throws Error (usage) for what is no AdmissionReview.
[[nodiscard]] ReviewAnswer review(std::string_view document, const InjectionTemplate& injected, const HelmValues& helm);

}  // namespace sidetrack::manifest
