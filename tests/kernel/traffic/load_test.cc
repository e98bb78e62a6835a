// SPDX-License-Identifier: GPL-2.0-or-later
// Rules are replaced while connections come and go: none fails, none passes by the proxy. And several writers at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "support/amount.h"
#include "support/kernel_test.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// Clients that connect one connection after the other until they are stopped, and what was not as expected.
class Load {
 public:
  Load(const Pod& pod, std::vector<std::pair<Actor, Endpoint>> paths, std::vector<Role> expected)
      : pod_(pod), paths_(std::move(paths)), expected_(std::move(expected)) {
    for (std::size_t i = 0; i < paths_.size(); ++i) clients_.emplace_back([this, i] { connect_again_and_again(i); });
  }
  ~Load() { stop(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void stop() {
    stopped_ = true;
    for (std::thread& client : clients_) {
      if (client.joinable()) client.join();
    }
  }
  [[nodiscard]] int connections() const { return connections_; }
  [[nodiscard]] const std::vector<std::string>& failures() const { return failures_; }  // after stop()

 private:
  void connect_again_and_again(std::size_t i) {
    const auto& [actor, to] = paths_[i];
    while (!stopped_) {
      std::string failure;
      try {
        const Landing landing = pod_.connect(actor, {.to = to, .protocol = Protocol::tcp, .from = {}});
        if (landing.role != expected_[i]) failure = to.text() + " landed on " + std::string(name(landing.role));
      } catch (const std::exception& error) {
        failure = to.text() + ": " + error.what();
      }
      ++connections_;
      if (failure.empty()) continue;
      const std::lock_guard lock(mutex_);
      failures_.push_back(failure);
    }
  }

  const Pod& pod_;
  const std::vector<std::pair<Actor, Endpoint>> paths_;
  const std::vector<Role> expected_;
  std::atomic<bool> stopped_ = false;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;
  std::vector<std::string> failures_;
  std::vector<std::thread> clients_;
};

class UnderLoad : public Traffic {
 protected:
  void replace(std::string_view backend, const std::vector<std::string>& options) const {
    std::vector<std::string> words{program_under_test(),
                                   "apply",
                                   "--backend",
                                   std::string(backend),
                                   "--ip-families",
                                   "ipv4,ipv6",
                                   "-i",
                                   "*",
                                   "-b",
                                   "*"};
    words.insert(words.end(), options.begin(), options.end());
    pod_->ns().must(words);
  }
  [[nodiscard]] std::string backend() const { return std::get<const char*>(GetParam()); }

  // Runs `replace` so often under load.
  void expect_no_loss(unsigned replacements, const std::function<void(unsigned)>& replace_once) const {
    const auto start = Clock::now();
    Load load(*pod_, {{as_app, service(80)}, {from_outside, pod(8080)}, {as_app, other_service(443)}},
              {Role::proxy_outbound, Role::proxy_inbound, Role::proxy_outbound});
    for (unsigned i = 0; i < replacements; ++i) replace_once(i);
    // Where replacing is so quick that few connections were made meanwhile, go on until there are enough.
    while (load.connections() < 400) replace_once(0);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    load.stop();
    EXPECT_THAT(load.failures(), ::testing::IsEmpty());
    RecordProperty("connections_per_second", std::to_string(load.connections() / seconds));
    std::printf("%u replacements, %d connections in %.1f s: %.0f a second\n", replacements, load.connections(), seconds,
                load.connections() / seconds);
    EXPECT_GE(load.connections() / seconds, 200);
  }

  const std::vector<std::string> one{"-d", "15021"};
  const std::vector<std::string> other{"-d",   "15090,15020",   "-x", "192.0.2.0/24,2001:db8::/32", "-o",
                                       "3306", "--drop-invalid"};
};

TEST_P(UnderLoad, ManyReplacementsLoseNothing) {
  replace(backend(), one);
  expect_no_loss(amount("SIDETRACK_REPLACEMENTS", 250),
                 [&](unsigned i) { replace(backend(), i % 2 == 0 ? other : one); });
}

TEST_P(UnderLoad, AChangeOfBackendLosesNothing) {
  const std::string others = backend() == "nftables" ? "iptables-nft" : "nftables";
  replace(backend(), one);
  expect_no_loss(60, [&](unsigned i) { replace(i % 2 == 0 ? others : backend(), i % 3 == 0 ? other : one); });
}

INSTANTIATE_TEST_SUITE_P(, UnderLoad, settings(Family::ipv4), setting_name);

// Two sidetracks and an iptables-nft-restore at once.
class Concurrent : public Traffic {};

TEST_P(Concurrent, WritersLoseNothingAndMixNothing) {
  const Namespace& ns = pod_->ns();
  const auto words = [](const char* command, const char* port) {
    return std::vector<std::string>{program_under_test(),
                                    command,
                                    "--backend",
                                    std::get<const char*>(GetParam()),
                                    "--ip-families",
                                    "ipv4,ipv6",
                                    "-i",
                                    "*",
                                    "-b",
                                    port};
  };
  constexpr int rounds = 200;
  ns.must({"iptables-nft-restore", "--noflush"}, "*nat\n-N OTHERS\nCOMMIT\n");
  for (int round = 0; round < rounds; ++round) {
    auto first = std::async(std::launch::async, [&] { return ns.program(words("apply", "80")); });
    auto second = std::async(std::launch::async, [&] { return ns.program(words("apply", "8080")); });
    ns.must({"iptables-nft-restore", "--noflush"},
            "*nat\n-A OTHERS -p udp --dport " + std::to_string(1 + round) + " -j RETURN\nCOMMIT\n");
    for (const Output& output : {first.get(), second.get()}) ASSERT_THAT(output.exit_code, AnyOf(0, 5)) << output.err;
    const int a = ns.program(words("verify", "80")).exit_code;
    const int b = ns.program(words("verify", "8080")).exit_code;
    ASSERT_TRUE((a == 0) != (b == 0)) << "round " << round << ": a mixture";
  }
  const std::string others = ns.must({"iptables-nft", "-t", "nat", "-S", "OTHERS"});
  for (int round = 0; round < rounds; ++round) {
    EXPECT_THAT(others, HasSubstr("--dport " + std::to_string(1 + round) + " -j RETURN"));
  }
}

INSTANTIATE_TEST_SUITE_P(, Concurrent,
                         ::testing::Combine(::testing::Values("iptables-nft", "nftables"),
                                            ::testing::Values(Family::ipv4)),
                         setting_name);

}  // namespace
}  // namespace sidetrack::netns
