// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/injector/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "inject/injector/log.h"
#include "model/error.h"
#include "model/printable.h"
#include "options/values.h"

namespace sidetrack::injector {
namespace {

constexpr std::string_view json_type = "application/json";

// "Application/JSON; charset=utf-8", too.
bool is_json(std::string_view content_type) {
  const auto type = options::without_blanks(content_type.substr(0, content_type.find(';')));
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(type, json_type, {}, lower);
}

void log_review(const manifest::ReviewAnswer& answer) {
  switch (answer.verdict) {
    case manifest::Verdict::injected:
      return debug(fmt::format("{}: injected", answer.pod));
    case manifest::Verdict::unchanged:
      return debug(fmt::format("{}: injected already", answer.pod));
    case manifest::Verdict::skipped:
      return debug(fmt::format("{}: not injected: {}", answer.pod, answer.reason));
    case manifest::Verdict::refused:
      return warn(fmt::format("refused: {}", answer.reason));
  }
}

}  // namespace

Response Service::answer(const Request& request, std::size_t connections) {
  const auto start = std::chrono::steady_clock::now();
  Response response = respond(request, connections);
  metrics_.count_answer(response.status, std::chrono::steady_clock::now() - start);
  return response;
}

Response Service::respond(const Request& request, std::size_t connections) {
  struct Route {
    std::string_view path;
    std::string_view method;
  };
  constexpr Route routes[] = {{"/inject", "POST"}, {"/ready", "GET"}, {"/metrics", "GET"}};
  const auto* const route = std::ranges::find(routes, request.path, &Route::path);
  if (route == std::end(routes)) return {404, {}, fmt::format("{}: not found\n", excerpt(request.path))};
  const bool is_get = route->method == "GET";
  if (route->method != request.method && !(is_get && request.method == "HEAD"))
    return {
        405, {}, fmt::format("{}: expected {}\n", route->path, route->method), is_get ? "GET, HEAD" : route->method};
  if (route->path == "/ready") return {ready_ ? 200U : 503U, {}, ready_ ? "ready\n" : "ending\n"};
  if (route->path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_.text(connections)};
  return review(request);
}

Response Service::review(const Request& request) {
  if (!is_json(request.content_type))
    return {415, {}, fmt::format("'{}': expected {}\n", excerpt(request.content_type), json_type)};
  try {
    manifest::ReviewAnswer answer = manifest::review(request.body, injected_, helm_);
    log_review(answer);
    metrics_.count_review(answer);
    return {200, json_type, std::move(answer.document)};
  } catch (const Error& error) {
    debug(fmt::format("answered 400: {}", error.what()));
    return {400, {}, std::string(error.what()) + "\n"};
  }
}

}  // namespace sidetrack::injector
