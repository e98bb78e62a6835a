// SPDX-License-Identifier: GPL-2.0-or-later
// What single functions cost, by the number of excluded ranges. `-x` is what people give long lists.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "host/host.h"
#include "kernel/nft/native.h"
#include "mesh/istio_rules.h"
#include "mesh/plan.h"
#include "options/options.h"
#include "rule/fold.h"
#include "rule/iptables.h"
#include "rule/xt/entry.h"

namespace sidetrack {
namespace {

// 20.0.0.0/30, 20.0.0.8/30, …: no two of them touch.
std::string ranges(std::int64_t count) {
  std::string list;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto host = static_cast<std::uint32_t>(i * 8);
    const Address address{Family::ipv4,
                          {20, static_cast<std::uint8_t>(host >> 16), static_cast<std::uint8_t>(host >> 8),
                           static_cast<std::uint8_t>(host)}};
    list += AddressRange::prefix(address, 30).text() + ",";
  }
  return list;
}

CommandLine parsed(const std::string& excluded) {
  const std::array<std::string_view, 12> words = {
      "sidetrack", "apply", "-i", "*", "-b", "*", "-d", "15090", "-x", excluded, "--ip-families", "ipv4"};
  return parse(words, [](std::string_view) { return std::nullopt; });
}

Plan planned(std::int64_t count) {
  CommandLine line = parsed(ranges(count));
  const HostFacts facts = gather(line.config, line.names);
  return plan(line.config, facts);
}

void BM_parse(benchmark::State& state) {
  const std::string list = ranges(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(parsed(list));
}

void BM_plan(benchmark::State& state) {
  CommandLine line = parsed(ranges(state.range(0)));
  const HostFacts facts = gather(line.config, line.names);
  for (auto _ : state) benchmark::DoNotOptimize(plan(line.config, facts));
}

void BM_fold(benchmark::State& state) {
  const Plan made = planned(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(fold(made.ruleset));
}

void BM_encode_xt(benchmark::State& state) {
  const Plan made = planned(state.range(0));
  for (auto _ : state) {
    for (const Rule& rule : made.ruleset.rules) benchmark::DoNotOptimize(xt::encode_entry(rule, Family::ipv4));
  }
}

void BM_encode_native(benchmark::State& state) {
  const Ruleset folded = fold(planned(state.range(0)).ruleset);
  for (auto _ : state) benchmark::DoNotOptimize(nft::native(folded, istio_rules));
}

void BM_render(benchmark::State& state) {
  const Plan made = planned(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(iptables_restore(made.ruleset, Family::ipv4));
}

void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->RangeMultiplier(10)->Range(1, 100'000)->Unit(benchmark::kMicrosecond);
}
BENCHMARK(BM_parse)->Apply(sizes);
BENCHMARK(BM_plan)->Apply(sizes);
BENCHMARK(BM_fold)->Apply(sizes);
BENCHMARK(BM_encode_xt)->Apply(sizes);
BENCHMARK(BM_encode_native)->Apply(sizes);
BENCHMARK(BM_render)->Apply(sizes);

}  // namespace
}  // namespace sidetrack

BENCHMARK_MAIN();
