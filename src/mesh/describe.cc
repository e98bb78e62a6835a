// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "mesh/catalogue.h"
#include "mesh/other_meshes.h"
#include "mesh/ownership.h"
#include "mesh/rule_words.h"
#include "model/list_text.h"
#include "model/ports.h"
#include "model/printable.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

// Istio's nftables tables name their chains istio-output-dns where iptables has ISTIO_OUTPUT_DNS.
bool is_istio_nftables(std::string_view chain) { return chain.starts_with("istio-"); }

// Cilium's chains hold the rules of Istio's.
std::string renamed(std::string chain) {
  if (is_cilium_chain(chain)) return chain == "CILIUM_OUTPUT" ? words::istio_output : words::istio_prert;
  return is_istio_nftables(chain) ? in_iptables_names(std::move(chain)) : chain;
}

Rule renamed(Rule rule) {
  rule.chain = renamed(std::move(rule.chain));
  if (auto* jump = std::get_if<Jump>(&rule.target)) jump->chain = renamed(std::move(jump->chain));
  return rule;
}

// Tells what Istio's agent makes on the node from the rules of a pod.
Maker maker_of_others(const Live& live, bool is_of_host) {
  return is_of_host && !traits(live.backend).in_own_table ? Maker::istio : Maker::other;
}

}  // namespace

std::string in_iptables_names(std::string chain) {
  if (chain == "istio-prerouting") return words::istio_prert;
  std::ranges::transform(chain, chain.begin(), [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return chain;
}

Reason describe(const Rule& rule) {
  Reason reason = reason_of(rule);
  if (reason.rule == MeshRule::none && rule.table != Table::other) {
    const Rule named = renamed(rule);
    if (const Row* row = row_of(named)) reason = reason_of(*row, named);
  }
  if (reason.sentence.empty()) reason.sentence = sentence_of_other_mesh(rule);
  for (std::string* text : {&reason.option, &reason.values, &reason.flag, &reason.sentence}) *text = printable(*text);
  return reason;
}

Reason describe_live(const LiveRule& live) {
  Reason reason = describe(live.rule);
  if (live.ours || live.of_agent || is_of_host(reason.rule)) return reason;
  reason.option = reason.values = reason.flag = "";
  if (reason.sentence.find("(Istio 1.") != std::string::npos) reason.sentence = "";  // it is not that release's
  return reason;
}

bool is_of_istio(const Rule& rule) {
  if (rule.chain == words::istio_postrouting || rule.chain == words::postrouting) return false;
  const auto known = [](const Rule& named) {
    // Rules of one kind follow each other: thousands of excluded ranges.
    static thread_local const Row* last = nullptr;
    if (last != nullptr && is_of(named, *last)) return true;
    const Row* row = row_of(named);
    if (row != nullptr) last = row;
    return row != nullptr;
  };
  const bool has_other_names = is_istio_nftables(rule.chain) || is_cilium_chain(rule.chain) || is_builtin(rule.chain);
  return has_other_names ? known(renamed(rule)) : known(rule);
}

std::string_view port_name(std::uint16_t port, const Rule& rule) {
  const std::span<const NamedPort> ports = known_ports(rule);
  const auto named = std::ranges::find(ports, port, &NamedPort::port);
  if (named == ports.end()) return "";
  const std::string_view of_sidecar = named->name, of_ztunnel = named->of_ztunnel;
  return of_ztunnel.empty() || of_sidecar == of_ztunnel || !is_of_ambient(describe(rule).rule) ? of_sidecar
                                                                                               : of_ztunnel;
}

bool is_istio_chain(std::string_view chain) {
  const auto is_of_pod = [&](const Row& row) { return row.chain == chain && !is_of_host(row.id); };
  return !is_builtin(chain) && std::ranges::any_of(catalogue(), is_of_pod);
}

std::string in_short(std::string text) {
  constexpr std::size_t shown = 100;
  if (text.size() <= shown) return text;
  const std::size_t more = text.size() - shown;
  return text.substr(0, shown) + fmt::format("...(+{}){}", more, text.ends_with('`') ? "`" : "");
}

std::vector<std::string> short_matches(const Rule& rule) {
  std::vector<std::string> texts;
  for (Match match : rule.matches) {
    const std::size_t count = count_of_values(match);
    const std::size_t more = count - std::min(count, shown_of_list);
    with_list(match, [&](auto& list) { list.resize(list.size() - more); });
    const std::string words = iptables_words(match);
    texts.push_back(std::holds_alternative<UnknownMatch>(match) ? in_short(words) : words);
    if (more > 0) texts.back() += fmt::format(",...(+{})", more);
  }
  return texts;
}

std::string short_words(const Rule& rule) {
  const std::string text = fmt::format("{}", fmt::join(short_matches(rule), " "));
  const std::string target = in_short(iptables_words(rule.target));
  if (target.empty()) return text;
  return text.empty() ? target : text + " " + target;
}

Maker maker_of(const Live& live, const LiveChain& chain) {
  if (!chain.ours && !chain.of_agent) return maker_of_others(live, chain.name == words::istio_postrouting);
  if (is_cilium_chain(chain.name)) return Maker::cilium;
  if (chain.of_agent) return Maker::istio;
  if (!traits(live.backend).in_own_table) return Maker::istio_or_sidetrack;  // the same names
  return is_istio_nftables(chain.name) ? Maker::istio : Maker::sidetrack;
}

Maker maker_of(const Live& live, const LiveChain& chain, const LiveRule& rule) {
  if (!rule.ours && !rule.of_agent) return maker_of_others(live, is_of_host(describe(rule.rule).rule));
  const auto* jump = std::get_if<Jump>(&rule.rule.target);
  if (is_cilium_chain(chain.name) || (jump != nullptr && is_cilium_chain(jump->chain))) return Maker::cilium;
  if (rule.of_agent) return Maker::istio;
  if (!traits(live.backend).in_own_table) return Maker::istio_or_sidetrack;
  if (!is_builtin(chain.name)) return maker_of(live, chain);
  // Their base chains bear the names of the hooks, as ours do.
  if (jump != nullptr) return is_istio_nftables(jump->chain) ? Maker::istio : Maker::sidetrack;
  const auto starts = [&](const char* with) {
    return std::ranges::any_of(live.own_tables, [&](const std::string& table) { return table.starts_with(with); });
  };
  return starts("inet istio-proxy-") && !starts("inet sidetrack") ? Maker::istio : Maker::sidetrack;
}

}  // namespace sidetrack
