// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/injector/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace sidetrack::injector {
namespace {

constexpr std::string_view prefix = "sidetrack_injector_";

std::string head(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format("# HELP {0}{1} {2}\n# TYPE {0}{1} {3}\n", prefix, name, help, type);
}

std::string sample(std::string_view name, std::string_view type, std::string_view help, std::uint64_t value) {
  return fmt::format("{}{}{} {}\n", head(name, type, help), prefix, name, value);
}

}  // namespace

void Metrics::count_answer(unsigned status, std::chrono::nanoseconds time) {
  ++answers_[status];
  const double seconds = std::chrono::duration<double>(time).count();
  seconds_ += seconds;
  ++times_[static_cast<std::size_t>(std::ranges::lower_bound(bounds, seconds) - bounds.begin())];
}

void Metrics::count_review(const manifest::ReviewAnswer& answer) {
  using enum manifest::Verdict;
  if (answer.verdict == injected) ++injected_;
  if (answer.verdict == unchanged) ++skipped_["injected_already"];
  if (answer.verdict == skipped) ++skipped_[answer.reason];
  if (answer.verdict == refused) ++refused_;
}

std::string Metrics::text(std::size_t connections) const {
  std::string text = head("requests_total", "counter", "Requests by the status of their answer.");
  for (const auto& [status, count] : answers_)
    text += fmt::format("{}requests_total{{code=\"{}\"}} {}\n", prefix, status, count);
  text += sample("injected_total", "counter", "Pods that were injected.", injected_);
  text += head("skipped_total", "counter", "Pods that were not, by reason.");
  for (const auto& [reason, count] : skipped_)
    text += fmt::format("{}skipped_total{{reason=\"{}\"}} {}\n", prefix, reason, count);
  text += sample("refused_total", "counter", "Pods that were refused.", refused_);
  text += head("request_seconds", "histogram", "From the last byte of a request to its answer.");
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < times_.size(); ++i) {
    below += times_[i];
    text += fmt::format("{}request_seconds_bucket{{le=\"{}\"}} {}\n", prefix,
                        i < bounds.size() ? fmt::format("{}", bounds[i]) : "+Inf", below);
  }
  text += fmt::format("{0}request_seconds_sum {1:.6f}\n{0}request_seconds_count {2}\n", prefix, seconds_, below);
  text += sample("certificate_reloads_total", "counter", "How often a new certificate was loaded.", reloads_);
  text += sample("certificate_reload_failures_total", "counter", "Failed reloads of the certificate.", failed_reloads_);
  text += sample("connections", "gauge", "Connections that are open.", connections);
  return text;
}

}  // namespace sidetrack::injector
