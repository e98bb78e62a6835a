// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/printable.h"
#include "pod/routing.h"
#include "render/json_parts.h"
#include "render/layout.h"
#include "render/render.h"
#include "rule/iptables.h"

namespace sidetrack {
namespace {

constexpr std::size_t context = 3;  // unchanged lines around a change, as `diff -u` shows them

char sign(DiffLine::Kind kind) {
  return kind == DiffLine::Kind::missing ? '+' : kind == DiffLine::Kind::extra ? '-' : ' ';
}

struct Writer {
  bool color;
  std::string text;

  void line(std::string_view words, Style style = Style::plain) { text += styled(words, style, color) + "\n"; }
  void changed(char mark, std::string_view words) {
    line(fmt::format("{}{}", mark, words), mark == '+' ? Style::green : mark == '-' ? Style::red : Style::plain);
  }
};

// Where a rule stands in its chain does not show how it came there.
std::string appended_words(const Rule& rule) {
  Rule appended = rule;
  appended.insert_at.reset();
  return iptables_words(appended);
}

void write(Writer& out, const ChainDiff& chain) {
  const std::string chain_name = printable(chain.name);
  out.line(fmt::format("@@ {} {} ({}) @@", name(chain.table), chain_name, names(chain.families)), Style::cyan);
  if (chain.missing) out.changed('+', "-N " + chain_name);
  if (chain.extra) out.changed('-', "-N " + chain_name);
  if (chain.drops) out.changed('-', fmt::format("-P {} DROP", chain_name));
  if (chain.dormant) out.line("-flags dormant   # its table: the kernel calls none of its chains");

  const auto& lines = chain.lines;
  const auto changed = [&](std::size_t i) { return sign(lines[i].kind) != ' '; };
  // Where the families are all the difference between two lines, they are said.
  std::map<std::string, Families> removed, added;
  for (const DiffLine& line : lines) {
    if (sign(line.kind) == '-') removed.emplace(appended_words(line.rule), line.rule.families);
    if (sign(line.kind) == '+') added.emplace(appended_words(line.rule), line.rule.families);
  }
  bool skipped = false;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    bool near = false;
    for (std::size_t j = i < context ? 0 : i - context; j < lines.size() && j <= i + context; ++j)
      near = near || changed(j);
    if (!near) {
      if (!skipped) out.line(" ...");
      skipped = true;
      continue;
    }
    skipped = false;
    std::string comment = lines[i].kind == DiffLine::Kind::foreign ? "   # not ours" : "";
    const std::string rule = appended_words(lines[i].rule);
    if (changed(i)) {
      const auto& others = sign(lines[i].kind) == '+' ? removed : added;
      const auto twin = others.find(rule);
      if (twin != others.end() && twin->second != lines[i].rule.families)
        comment += "   # " + names(lines[i].rule.families);
    }
    out.changed(sign(lines[i].kind), rule + comment);
  }
}

void write(Writer& out, char mark, const Routing& routing) {
  Routing others = routing;
  others.policy_rules.clear();
  for (const PolicyRule& rule : routing.policy_rules) {
    Routing one;
    one.policy_rules.push_back(rule);
    const char* comment = rule.before_others ? "" : "   # behind another program's rule that may decide first";
    out.changed(mark, ip_commands(one).front() + comment);
  }
  for (const std::string& line : ip_commands(others)) out.changed(mark, line);
}

Json lost_replies_json(const std::vector<LostReplies>& all) {
  return array_of(all, [](const LostReplies& lost) -> Json {
    return object({{"packet", lost.packet}, {"interface", lost.interface}, {"why", lost.why}});
  });
}

Json line_json(const DiffLine& line) {
  static constexpr const char* kinds[] = {"same", "missing", "extra", "foreign"};
  return object({{"kind", kinds[static_cast<int>(line.kind)]}, {"rule", appended_words(line.rule)}});
}

Json chain_json(const ChainDiff& chain) {
  return object({{"families", families_json(chain.families)},
                 {"table", name(chain.table)},
                 {"chain", chain.name},
                 {"missing", chain.missing},
                 {"extra", chain.extra},
                 {"policy_drop", chain.drops},
                 {"dormant", chain.dormant},
                 {"rules", array_of(chain.lines, line_json)}});
}

Json difference_json(const Difference& difference) {
  return object({{"backend", name(difference.backend)},
                 {"equal", difference.empty()},
                 {"chains", array_of(difference.chains, chain_json)},
                 {"tables", difference.tables},
                 {"warnings", difference.warnings}});
}

}  // namespace

std::string diff_text(const PodDiff& pod_diff, bool color) {
  Writer out{color, {}};
  for (const Difference& difference : pod_diff.backends) {
    if (difference.empty()) continue;
    out.line(fmt::format("--- {}, live", name(difference.backend)), Style::red);
    out.line(fmt::format("+++ {}, requested", name(difference.backend)), Style::green);
    for (const ChainDiff& chain : difference.chains) write(out, chain);
    for (const std::string& table : difference.tables) out.changed('-', "add table " + table);
  }
  if (pod_diff.missing != Routing{} || pod_diff.extra != Routing{}) {
    out.line("--- routing, live", Style::red);
    out.line("+++ routing, requested", Style::green);
    write(out, '-', pod_diff.extra);
    write(out, '+', pod_diff.missing);
  }
  return out.text;
}

Json pod_diff_json(const PodDiff& pod_diff) {
  return object(
      {{"equal", pod_diff.equal()},
       {"obstacles", obstacles_json(pod_diff.obstacles)},
       {"lost_replies", lost_replies_json(pod_diff.lost_replies)},
       {"backends", array_of(pod_diff.backends, difference_json)},
       {"routing", object({{"missing", routing_json(pod_diff.missing)}, {"extra", routing_json(pod_diff.extra)}})}});
}

std::string diff_json(const PodDiff& pod_diff) { return dumped(pod_diff_json(pod_diff)); }

}  // namespace sidetrack
