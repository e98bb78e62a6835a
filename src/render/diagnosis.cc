// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "model/config.h"
#include "model/printable.h"
#include "pod/routing.h"
#include "render/json_parts.h"
#include "render/layout.h"
#include "render/render.h"

namespace sidetrack {
namespace {

struct Cell {
  std::string text;
  Style style = Style::plain;
};
Cell good(std::string text) { return {std::move(text), Style::green}; }
Cell bad(std::string text) { return {std::move(text), Style::red}; }
Cell unsure(std::string text) { return {std::move(text), Style::yellow}; }

std::string joined(const std::vector<std::string>& texts) {
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
}

class Page {
 public:
  explicit Page(bool color) : color_(color) {}

  void heading(std::string_view words) { text += fmt::format("\n{}\n", painted({std::string(words), Style::bold}, 0)); }
  void fact(std::string_view label, const Cell& cell) { text += fmt::format("{:<16}  {}\n", label, painted(cell, 0)); }
  void row(std::string_view label, const std::vector<Cell>& cells) {
    std::string line = fmt::format("{:<32}", label);
    for (const Cell& cell : cells) line += painted(cell, 17);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }

  std::string text;

 private:
  // As wide as it is seen: colours take no place.
  [[nodiscard]] std::string painted(const Cell& cell, std::size_t width) const {
    const std::string words = printable(cell.text);
    const std::string padding(width > words.size() ? width - words.size() : 0, ' ');
    return styled(words, cell.style, color_) + padding;
  }

  bool color_;
};

// ---- facts

Cell capabilities(const HostState& host) {
  std::vector<std::string> held;
  for (const Capability& capability : host.capabilities) {
    if (capability.effective) held.emplace_back(capability.name);
  }
  const bool admin = std::ranges::any_of(
      host.capabilities, [](const Capability& each) { return each.effective && each.name == "CAP_NET_ADMIN"; });
  return admin ? good(joined(held)) : bad(joined(held));
}

Cell user_namespace(const UserNamespace& space) {
  if (!space.owns_network_namespace) return bad("not the owner of the network namespace");
  if (space.initial) return good("the initial one");
  if (!is_mapped(space.uids, istio_proxy_id) || !is_mapped(space.gids, istio_proxy_id))
    return bad("uid or gid 1337 is not mapped");
  return good("not the initial one; uid and gid 1337 are mapped");
}

Cell ipv6(const Ipv6State& state) {
  if (!state.in_kernel) return unsure("not in this kernel");
  if (state.off) return unsure("off (net.ipv6.conf.all.disable_ipv6 = 1)");
  if (state.off_on_lo) return bad("off on lo (net.ipv6.conf.lo.disable_ipv6 = 1)");
  return good("on");
}

Cell lock(const LockFile& lock) {
  if (!lock.problem.empty()) return unsure(fmt::format("{}: {}", lock.path, lock.problem));
  if (!lock.holder.empty()) return unsure(fmt::format("{}, {}", lock.path, lock.holder));
  return good(lock.path + ", free");
}

Cell tables(const TableNames& names) { return names ? Cell{joined(*names), {}} : unsure("not permitted to read"); }

void write_facts(Page& page, const Diagnosis& diagnosis) {
  const HostState& host = diagnosis.host;
  page.fact("kernel", {fmt::format("Linux {} {}", host.kernel, host.machine), {}});
  page.fact("capabilities", capabilities(host));
  page.fact("user namespace", user_namespace(host.user_namespace));
  page.fact("root", {host.read_only_root ? "read-only" : "writable", {}});
  page.fact("IPv6", ipv6(host.ipv6));
  page.fact("lo", host.loopback_up ? good("up") : bad("down"));
  page.fact("xtables lock", lock(diagnosis.lock));
  page.fact("legacy tables", tables(diagnosis.legacy_tables));
  page.fact("nf_tables", tables(diagnosis.nf_tables));
  page.fact("routing", {joined(ip_commands(diagnosis.routing)), {}});
}

// ---- the backends, a column each

Cell availability(const Feature& feature, Families asked) {
  if (feature.available == asked) return good("yes");
  if (feature.available.empty()) return bad("no");
  return unsure(feature.available.contains(Family::ipv4) ? "IPv4 only" : "IPv6 only");
}

struct FeatureLine {
  std::string need;
  std::vector<Cell> cells;
};

std::vector<FeatureLine> feature_lines(const Diagnosis& diagnosis) {
  std::vector<FeatureLine> lines;
  for (std::size_t column = 0; column < diagnosis.backends.size(); ++column) {
    for (const Feature& feature : diagnosis.backends[column].features) {
      auto line = std::ranges::find(lines, feature.need, &FeatureLine::need);
      if (line == lines.end()) {
        lines.push_back({feature.need, std::vector<Cell>(diagnosis.backends.size())});
        line = lines.end() - 1;
      }
      line->cells[column] = availability(feature, diagnosis.families);
    }
  }
  return lines;
}

Cell use(const BackendState& backend) {
  if (!usable(backend)) return bad(backend.permitted ? "no" : "not permitted");
  return backend.unchecked.empty() ? good("yes") : unsure("probably");
}

void write_backends(Page& page, const Diagnosis& diagnosis) {
  const auto row = [&](std::string_view label, auto cell_of) {
    std::vector<Cell> cells;
    for (const BackendState& backend : diagnosis.backends) cells.push_back(cell_of(backend));
    page.row(label, cells);
  };
  const auto count = [](std::size_t BackendState::*which) {
    return [which](const BackendState& backend) {
      return backend.problem.empty() ? Cell{std::to_string(backend.*which), {}} : unsure("?");
    };
  };
  page.text += "\n";
  row("", [](const BackendState& backend) { return Cell{std::string(name(backend.kind)), Style::bold}; });
  row("usable", use);
  row("rules of the sidecar", count(&BackendState::rules_of_sidecar));
  row("rules of other programs", count(&BackendState::rules_of_others));
  for (const FeatureLine& line : feature_lines(diagnosis)) page.row(line.need, line.cells);
}

std::string choice(const Diagnosis& diagnosis) {
  if (std::ranges::none_of(diagnosis.backends, usable)) return "No usable backend.";
  if (may_hide_rules(diagnosis)) return "apply would refuse: what legacy iptables holds cannot be seen.";
  if (!diagnosis.automatic) return "No usable backend.";
  return fmt::format("apply would use {}{}.", name(*diagnosis.automatic),
                     diagnosis.because.empty() ? "" : fmt::format(" ({})", diagnosis.because));
}

void write_findings(Page& page, const Diagnosis& diagnosis) {
  const std::vector<Finding> found = findings(diagnosis);
  if (!found.empty()) page.heading("What is missing, and the consequences");
  for (const Finding& finding : found) {
    page.text += fmt::format("- {}\n", finding.what);
    if (!finding.cost.empty()) page.text += fmt::format("    {}\n", finding.cost);
    if (!finding.remedy.empty()) page.text += fmt::format("    to do: {}\n", finding.remedy);
  }
  std::vector<std::string> unchecked;
  for (const BackendState& backend : diagnosis.backends) {
    unchecked.insert(unchecked.end(), backend.unchecked.begin(), backend.unchecked.end());
  }
  if (!unchecked.empty()) page.heading("What could not be checked");
  for (const std::string& sentence : unchecked) page.text += fmt::format("- {}\n", sentence);
}

// ---- JSON

Json mappings(const std::vector<IdMapping>& ids) {
  return array_of(ids, [](const IdMapping& each) {
    return object({{"inside", each.inside}, {"outside", each.outside}, {"count", each.count}});
  });
}

Json names_json(const TableNames& names) { return names ? Json(*names) : Json(); }

Json host_json(const HostState& host) {
  Json capabilities = array_of(host.capabilities, [](const Capability& each) {
    return object({{"name", each.name}, {"effective", each.effective}, {"bounding", each.bounding}});
  });
  const UserNamespace& space = host.user_namespace;
  return object(
      {{"kernel", host.kernel},
       {"machine", host.machine},
       {"capabilities", std::move(capabilities)},
       {"user_namespace", object({{"initial", space.initial},
                                  {"owns_network_namespace", space.owns_network_namespace},
                                  {"uids", mappings(space.uids)},
                                  {"gids", mappings(space.gids)},
                                  {"uid_1337_is_mapped", is_mapped(space.uids, istio_proxy_id)},
                                  {"gid_1337_is_mapped", is_mapped(space.gids, istio_proxy_id)}})},
       {"ipv6",
        object({{"in_kernel", host.ipv6.in_kernel}, {"off", host.ipv6.off}, {"off_on_lo", host.ipv6.off_on_lo}})},
       {"loopback_up", host.loopback_up},
       {"read_only_root", host.read_only_root}});
}

Json backend_json(const BackendState& backend) {
  Json features = array_of(backend.features, [](const Feature& feature) {
    return object({{"name", feature.name},
                   {"available", families_json(feature.available)},
                   {"essential", feature.essential},
                   {"without", feature.cost},
                   {"refusal", feature.refusal},
                   {"remedy", feature.remedy}});
  });
  const Json rules = object({{"sidecar", backend.rules_of_sidecar}, {"others", backend.rules_of_others}});
  return object({{"backend", name(backend.kind)},
                 {"usable", usable(backend)},
                 {"problem", backend.problem},
                 {"remedy", backend.remedy},
                 {"features", std::move(features)},
                 {"unchecked", backend.unchecked},
                 {"rules", backend.problem.empty() ? rules : Json()}});
}

}  // namespace

std::string diagnosis_text(const Diagnosis& diagnosis, bool color) {
  Page page(color);
  write_facts(page, diagnosis);
  write_backends(page, diagnosis);
  page.text += "\n" + choice(diagnosis) + "\n";
  write_findings(page, diagnosis);
  return page.text;
}

std::string diagnosis_json(const Diagnosis& diagnosis) {
  Json found = array_of(findings(diagnosis), [](const Finding& finding) {
    return object({{"what", finding.what}, {"cost", finding.cost}, {"remedy", finding.remedy}});
  });
  const LockFile& lock = diagnosis.lock;
  return dumped(object({{"host", host_json(diagnosis.host)},
                        {"lock", object({{"path", lock.path}, {"holder", lock.holder}, {"problem", lock.problem}})},
                        {"families", families_json(diagnosis.families)},
                        {"backends", array_of(diagnosis.backends, backend_json)},
                        {"automatic", diagnosis.automatic ? Json(name(*diagnosis.automatic)) : Json()},
                        {"because", diagnosis.because},
                        {"tables", object({{"iptables_legacy", names_json(diagnosis.legacy_tables)},
                                           {"nf_tables", names_json(diagnosis.nf_tables)}})},
                        {"routing", routing_json(diagnosis.routing)},
                        {"findings", std::move(found)}}));
}

}  // namespace sidetrack
