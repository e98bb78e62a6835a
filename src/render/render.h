// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "apply/diff.h"
#include "doctor/doctor.h"
#include "lint/finding.h"
#include "mesh/plan.h"
#include "model/config.h"
#include "probe/probe.h"
#include "walk/explain.h"

namespace sidetrack {

// The whole plan with the configuration that it came from, as indented JSON.
[[nodiscard]] std::string json(const Plan& plan, const Config& config);

// A unified diff from what is live to what is asked, chain by chain; empty if there is no difference.
[[nodiscard]] std::string diff_text(const PodDiff& pod_diff, bool color);
[[nodiscard]] std::string diff_json(const PodDiff& pod_diff);

// What a failed probe points to, a line each: the rules of its way that are missing; if `compared` is null, all of its
// rules, as what is likely missing.
[[nodiscard]] std::vector<std::string> likely_missing(const ProbeResult& result, const PodDiff* compared);

// A line for each result, and what a failed one points to. `compared` is null if the rules could not be read.
[[nodiscard]] std::string probe_text(const std::vector<ProbeResult>& results, const PodDiff* compared, bool color);
// The document of diff_json, with "probes"; "equal" is null if the rules could not be read.
[[nodiscard]] std::string probe_json(const std::vector<ProbeResult>& results, const PodDiff* compared);

// Draws how a connection goes in and out, with the rules that decide, and below it every chain with its rules in their
// order, and where each of them leads; chains that nothing leads to are omitted. The same on every machine: no font is
// measured.
[[nodiscard]] std::string svg(const Plan& plan, const Config& config, Families families);

struct TextOptions {
  bool color = false;
  bool all = false;  // every rule; otherwise long runs of rules that do not match for the same reason are one line
};
[[nodiscard]] std::string trace_text(const Trace& trace, const TextOptions& options);
[[nodiscard]] std::string json(const Trace& trace);

[[nodiscard]] std::string lint_text(const lint::Findings& findings, bool color);
[[nodiscard]] std::string lint_json(const lint::Findings& findings);

// A table that a person reads at a glance; the whole as indented JSON.
[[nodiscard]] std::string diagnosis_text(const Diagnosis& diagnosis, bool color);
[[nodiscard]] std::string diagnosis_json(const Diagnosis& diagnosis);

}  // namespace sidetrack
