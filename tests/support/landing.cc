// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/landing.h"

#include <iterator>
#include <sstream>
#include <stdexcept>

namespace sidetrack::netns {
namespace {

constexpr std::string_view names[] = {"proxy_outbound", "proxy_inbound", "tunnel",  "dns",      "app",
                                      "outside",        "guest",         "refused", "no_answer"};

Role role_named(const std::string& text) {
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (names[i] == text) return static_cast<Role>(i);
  throw std::invalid_argument("an answer that is none of ours: " + text);
}

}  // namespace

std::string_view name(Role role) { return names[static_cast<std::size_t>(role)]; }

std::string Landing::line() const {
  std::string result(name(role));
  if (original) result += " original " + original->text();
  if (local) result += " local " + local->text();
  return result;
}

Landing Landing::parse(const std::string& line) {
  std::istringstream words(line);
  std::string role;
  std::string which;
  std::string endpoint;
  words >> role >> which >> endpoint;
  if (which == "original") return landed(role_named(role), netns::original(Endpoint(std::string_view(endpoint))));
  if (which == "local") return landed(role_named(role), netns::local(Endpoint(std::string_view(endpoint))));
  return landed(role_named(role));
}

std::ostream& operator<<(std::ostream& out, const Landing& landing) {
  out << landing.line();
  return landing.oddity.empty() ? out : out << ", but " << landing.oddity;
}

}  // namespace sidetrack::netns
