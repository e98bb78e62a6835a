// SPDX-License-Identifier: GPL-2.0-or-later
#include "golden/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "apply/diff.h"
#include "golden/renderings.h"
#include "host/host.h"
#include "kernel/survey.h"
#include "lint/lint.h"
#include "manual/manual.h"
#include "options/flags.h"
#include "render/effect.h"
#include "render/map.h"
#include "render/render.h"
#include "render/show.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

const std::filesystem::path folder = SIDETRACK_SOURCE_DIR "/tests/golden/answers";

constexpr std::string_view of_scenarios[] = {"dns", "exclude-interfaces-tproxy", "outbound-ranges", "tproxy-ports",
                                             "virtual-interfaces-ranges"};

constexpr const char* packets[] = {
    "out tcp 10.96.0.10:443",
    "out tcp 10.96.0.10:80 --uid 1337",
    "out tcp 192.0.2.77:443 --gid 1000",
    "out udp 10.96.0.10:53",
    "out udp 10.96.0.10:53 --uid 1337 --state reply",
    "out tcp [fd00:96::10]:80",
    "out icmp 10.0.0.1",
    "lo tcp 127.0.0.1:8080",
    "lo tcp :80 --uid 1337",
    "lo tcp 127.0.0.1:15001 --gid 1337 --mark 1337",
    "in tcp :80",
    "in tcp :15020 --from 198.51.100.9 --from-port 40000",
    "in tcp :80 --in-interface net1",
    "in tcp :443 --state established --mark 0x700",
    "in tcp [2001:db8::1]:80",
    "in udp :53 --state invalid",
};

Packet packet_of(const char* words) {
  std::istringstream stream(words);
  std::vector<std::string> split{"sidetrack", "explain", "--plan"};
  for (std::string word; stream >> word;) split.push_back(word);
  const std::vector<std::string_view> views(split.begin(), split.end());
  return parse_packet(parse(views, [](std::string_view) { return std::optional<std::string_view>(); }).packet);
}

std::string explained(const char* words, const Plan& plan, const Live& live) {
  std::string title = fmt::format("\n$ explain {}   # {}\n", words, name(live.backend));
  try {
    const Packet packet = packet_of(words);
    PodView pod = assumed_pod(plan);
    if (!packet.interface.empty()) assume_interface(pod, packet.interface);
    return title + trace_text(explain(packet, pod, {&live, 1}), {.color = false, .all = false});
  } catch (const Error& error) {
    return title + error.what() + "\n";
  }
}

Live without_each_third_rule(Live live) {
  for (LiveChain& chain : live.chains) {
    for (std::size_t index = chain.rules.size(); index-- > 0;) {
      if (index % 3 == 2) chain.rules.erase(chain.rules.begin() + static_cast<std::ptrdiff_t>(index));
    }
  }
  return live;
}

}  // namespace

const std::vector<Scenario>& answered() {
  static const std::vector<Scenario> all = [] {
    std::vector<Scenario> some = scenarios();
    std::erase_if(some, [](const Scenario& scenario) {
      return std::ranges::find(of_scenarios, scenario.name) == std::end(of_scenarios);
    });
    return some;
  }();
  return all;
}

std::filesystem::path answers_file(const Scenario& scenario) { return folder / (scenario.name + ".txt"); }

std::string answers(const Scenario& scenario) {
  auto [line, plan] = planned(scenario);
  const PodView pod = assumed_pod(plan);
  std::string said;
  for (const BackendKind backend : {BackendKind::iptables_nft, BackendKind::nftables}) {
    const Live live = as_live(plan.ruleset, backend);
    said += fmt::format("$ show   # {}\n{}\n", name(backend), show({&live, 1}, plan.routing, {.pod = &pod}));
  }
  const HostFacts facts = gather(line.config, line.names, {.may_lack_addresses = true});
  said += "$ lint --plan\n" +
          lint_text(lint::lint_options({.config = line.config, .facts = facts, .pod = {}, .manifest = nullptr}), false);
  for (std::size_t i = 0; i < std::size(packets); ++i)
    said += explained(packets[i], plan, as_live(plan.ruleset, all_backends[i % std::size(all_backends)]));
  const Live live = as_live(plan.ruleset, BackendKind::nftables);
  said += "\n$ explain --json   # the first packet\n" + json(explain(packet_of(packets[0]), pod, {&live, 1}));
  space::Regions regions({{pod, {live}}});
  said += "\n$ map\n" + map_text(regions, 0, {});
  const Live damaged = without_each_third_rule(live);
  const PodDiff pod_diff{{diff(damaged, canonical(live.backend, plan.ruleset))}, plan.routing, {}};
  said += "\n$ diff   # without each third rule of a chain, and without routes\n" + diff_text(pod_diff, false);
  space::Regions two({{pod, {live}}, {pod, {damaged}}});
  said += "\n$ diff --effect   # the same\n" + effect_text(effect(two), false);
  return said;
}

std::map<std::filesystem::path, std::string> pages_and_drawings() {
  const auto scenario = std::ranges::find(scenarios(), "virtual-interfaces-ranges", &Scenario::name);
  const Plan plan = planned(*scenario).plan;
  space::Regions regions({{assumed_pod(plan), {as_live(plan.ruleset, BackendKind::nftables)}}});
  const Planned drawn = planned(*std::ranges::find(scenarios(), "exclude-interfaces-tproxy", &Scenario::name));
  std::string all = help();
  for (const CommandInfo& command : commands()) all += "\n" + help(command.command);
  return {{folder / "help", all},
          {folder / "manual", manual(read_file(SIDETRACK_SOURCE_DIR "/docs/sidetrack.8.in"))},
          {folder / "map.svg", map_svg(regions, 0, {})},
          {folder / "rules.svg", svg(drawn.plan, drawn.line.config, Families::both())}};
}

}  // namespace sidetrack
