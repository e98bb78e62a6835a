// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "inject/injector/metrics.h"
#include "inject/manifest/template.h"
#include "options/helm_values.h"

namespace sidetrack::injector {

struct Request {
  std::string_view method;  // "POST"
  std::string_view path;    // "/inject", without a query
  std::string_view content_type;
  std::string_view body;
};

struct Response {
  unsigned status = 200;
  std::string_view content_type = "text/plain; charset=utf-8";
  std::string body;
  std::string_view allow = {};  // of 405: the methods that there are
};

// What is answered to whom, without the network. Of one thread.
class Service {
 public:
  Service(manifest::InjectionTemplate injected, HelmValues helm)
      : injected_(std::move(injected)), helm_(std::move(helm)) {}

  // Answers every request, and counts it.
  [[nodiscard]] Response answer(const Request& request, std::size_t connections);

  // For requests that never got whole: too large, malformed.
  void count_refused(unsigned status) { metrics_.count_answer(status, {}); }

  void not_ready() { ready_ = false; }  // it is to end: /ready says so
  [[nodiscard]] Metrics& metrics() { return metrics_; }

 private:
  [[nodiscard]] Response respond(const Request& request, std::size_t connections);
  [[nodiscard]] Response review(const Request& request);

  manifest::InjectionTemplate injected_;
  HelmValues helm_;
  Metrics metrics_;
  bool ready_ = true;
};

}  // namespace sidetrack::injector
