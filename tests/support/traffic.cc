// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/traffic.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace sidetrack::netns {

std::string program_under_test() {
  const char* other = std::getenv("SIDETRACK_PROGRAM");
  return other != nullptr ? other : SIDETRACK_PROGRAM;
}

namespace {

std::string as_name(std::string backend) {
  std::ranges::replace(backend, '-', '_');
  return backend;
}

}  // namespace

std::string backend_name(const ::testing::TestParamInfo<const char*>& backend) { return as_name(backend.param); }

std::string setting_name(const ::testing::TestParamInfo<Setting>& setting) {
  return as_name(std::get<const char*>(setting.param)) + '_' + std::string(name(std::get<Family>(setting.param)));
}

void Traffic::SetUp() {
  KernelTest::SetUp();
  if (!IsSkipped() && !HasFatalFailure()) pod_.emplace(options_);
}

void Traffic::apply(std::string_view options, const std::vector<std::string>& environment) const {
  std::vector<std::string> words{program_under_test(), "apply", "--backend", std::get<const char*>(GetParam()),
                                 "--dual-stack"};
  std::istringstream split{std::string(options)};
  for (std::string word; split >> word;) words.push_back(word);
  const Output output = pod_->ns().program(words, {}, environment);
  if (output.exit_code != 0)
    throw std::runtime_error("apply " + std::string(options) + " ended with " + std::to_string(output.exit_code) +
                             ":\n" + output.out + output.err);
}

Landing Traffic::connect(const Actor& actor, const Endpoint& to) const {
  return pod_->connect(actor, {.to = to, .protocol = Protocol::tcp, .from = {}});
}

Landing Traffic::send(const Actor& actor, const Endpoint& to) const {
  return pod_->connect(actor, {.to = to, .protocol = Protocol::udp, .from = {}});
}

Landing Traffic::connect_from_inbound_source(const Endpoint& to) const {
  const Endpoint source(family() == Family::ipv4 ? "127.0.0.6" : "::6", 0);
  return pod_->connect(as_proxy, {.to = to, .protocol = Protocol::tcp, .from = source});
}

std::string Traffic::both(std::string_view Addresses::*which) {
  return std::string(addresses(Family::ipv4).*which) + ',' + std::string(addresses(Family::ipv6).*which);
}

}  // namespace sidetrack::netns
