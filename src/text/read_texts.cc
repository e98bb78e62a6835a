// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/read_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/netfilter.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "kernel/nft/nf_tables.h"
#include "mesh/istio_rules.h"
#include "mesh/ownership.h"
#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "rule/ours.h"
#include "text/iptables_script.h"
#include "text/nft_expressions.h"
#include "text/nft_json.h"
#include "text/nft_lines.h"
#include "text/nft_listing.h"
#include "text/nft_script.h"
#include "text/pasted_lines.h"

namespace sidetrack {
namespace {

constexpr const char* ask_for_iptables = "ask for the output of: iptables-save; ip6tables-save";

// Tells whether nft, or istio-init of it, says that it has changed nothing.
bool nft_has_failed(std::string_view line) {
  constexpr std::string_view words[] = {"Error: Could not process rule", "could not run nft",
                                        "netlink: Error: ", "nft: command not found"};
  return contains_any(line, words);
}

// Lines counted from 1, the last one included.
using LineRange = std::pair<std::size_t, std::size_t>;

// The text without those lines, and with its line numbers.
std::string without_lines(std::string_view text, std::span<const LineRange> left_out) {
  std::string left;
  std::size_t number = 0;
  for (const std::string_view line : split_at_each(text, '\n')) {
    if (++number > 1) left += '\n';
    while (!left_out.empty() && left_out.front().second < number) left_out = left_out.subspan(1);
    if (left_out.empty() || number < left_out.front().first) left += line;
  }
  return left;
}

class TextsReader {
 public:
  RulesOfTexts read(std::span<const RulesText> texts, bool leaves_agents) && {
    for (const RulesText& text : texts) take(text);
    if (!has_nft_) {
      read_ = read_iptables_texts(texts, leaves_agents);
      std::ranges::move(notes_, std::back_inserter(read_.notes));
      return std::move(read_);
    }
    const bool of_nft =
        std::ranges::any_of(tables_, [](const NftTable& each) { return nft::is_of_iptables(each.key); });
    if (!rest_.empty()) {
      read_ =
          read_iptables_texts(rest_, leaves_agents, of_nft ? BackendKind::iptables_nft : BackendKind::iptables_legacy);
      if (of_nft && has_other_rules_than_nft()) {
        read_ = read_iptables_texts(rest_, leaves_agents, BackendKind::iptables_legacy);
        notes_.emplace_back(
            "taken for rules of iptables-legacy: what iptables-save prints, as nft lists other rules in these tables");
      }
      leave_out_tables_of_iptables();
    }
    std::ranges::move(notes_, std::back_inserter(read_.notes));
    add_nf_tables(leaves_agents);
    return std::move(read_);
  }

 private:
  void take(const RulesText& text) {
    const std::vector<PastedLine> lines = as_nft_lists(pasted_lines(text.text));
    std::vector<LineRange> of_nft;
    int depth = 0;                      // outside of whole tables
    std::optional<std::size_t> closes;  // the line that closes a table of which the first line is missing
    bool has_chain = false;             // of such a table
    std::string omits_at;               // the place of the first "..."
    for (std::span<const PastedLine> rest(lines); !rest.empty();) {
      const std::size_t first = rest.front().number;
      const auto source = fmt::format("{}:{}", excerpt(text.name), first);
      if (opens_nft_table(rest.front().text)) {
        const bool adds = rest.front().text.find("add table ") != std::string::npos;
        NftTable table = take_nft_table(rest);
        // The end of this table may be among them, and the first line of another.
        if (table.omits_at != 0 && omits_at.empty())
          omits_at = fmt::format("{}:{}", excerpt(text.name), table.omits_at);
        add(std::move(table), source, adds);
      } else if (opens_nft_json(rest)) {
        for (NftTable& table : json_of(rest, source)) add(std::move(table), source);
      } else if (const bool of_both = rest.front().text.find("iptables") != std::string::npos;
                 script_.take(rest, source)) {
        has_nft_ = true;
        if (of_both) continue;
      } else {
        const std::string& line = rest.front().text;
        if (nft_has_failed(line))
          notes_.push_back(fmt::format("{}: '{}': the rules are taken to be there anyway", source, excerpt(line)));
        if (stands_for_lines(line) && omits_at.empty()) omits_at = source;
        if (line.starts_with("include \"") || line.find("nft -f") != std::string::npos)
          notes_.push_back(fmt::format("{}: what '{}' loads is not read: give that file, too", source, excerpt(line)));
        has_chain = has_chain || (line.starts_with("chain ") && line.ends_with('{'));
        depth += opened_braces(line);
        if (depth < 0 && !closes) closes = first;
        rest = rest.subspan(1);
        continue;
      }
      const std::size_t last = lines[lines.size() - rest.size() - 1].number;
      of_nft.emplace_back(first, rest.empty() ? last : std::max(last, rest.front().number - 1));
    }
    RulesText left{text.name, without_lines(text.text, of_nft)};
    const auto has_iptables = [&] { return !read_iptables_script(left).sections.empty(); };
    const bool is_headless = closes && (!of_nft.empty() || (has_chain && has_iptables()));
    if (is_headless)
      add_unknown(fmt::format("{}:{}", excerpt(text.name), *closes), "[the text begins within the table]",
                  "this closes a table of nft of which the first line is missing");
    if (!omits_at.empty() && (!of_nft.empty() || has_nft_))
      add_unknown(omits_at, "[lines are omitted]", "lines are omitted here");
    has_nft_ = has_nft_ || !of_nft.empty() || is_headless;
    if (of_nft.empty() || has_iptables()) rest_.push_back(std::move(left));
  }

  // A table of which nothing is known.
  void add_unknown(const std::string& source, std::string_view why, std::string_view note) {
    notes_.push_back(
        fmt::format("{}: {}: the rules there are not known; ask for the output of: nft list ruleset", source, note));
    const nft::TableKey key{NFPROTO_INET, "[cut off]"};
    if (std::ranges::find(tables_, key, &NftTable::key) != tables_.end()) return;
    NftTable table{key, source};
    leave_open(table, why);
    tables_.push_back(std::move(table));
  }

  static std::vector<NftTable> json_of(std::span<const PastedLine>& rest, const std::string& source) {
    try {
      return take_nft_json(rest);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", source, error.what()), error.hint());
    }
  }

  // `adds`: add table inet t { … }
  void add(NftTable table, const std::string& source, bool adds = false) {
    table.source = source;
    mark_changing_sets(table);
    if (script_.begins_ruleset()) std::erase_if(tables_, &NftTable::of_commands);
    const auto found = std::ranges::find(tables_, table.key, &NftTable::key);
    if (found == tables_.end()) {
      tables_.push_back(std::move(table));
      return;
    }
    const auto has_objects = [](const NftTable& each) { return !each.chains.empty() || !each.sets.empty(); };
    if (adds && !has_objects(table)) return;
    if (script_.builds_ruleset() || goes_on(*found, table)) return join(*found, std::move(table));
    if (found->of_commands && !script_.lists()) {
      if (has_objects(*found)) leave_open_after_commands(table);
      *found = std::move(table);
      return;
    }
    notes_.push_back(fmt::format("{}: the table {} once more: these rules count, not those before", source,
                                 printable(nft::text(table.key))));
    *found = std::move(table);
  }

  // Tells whether it adds to a base chain: what nft lists has the hook each time.
  static bool goes_on(const NftTable& before, const NftTable& table) {
    return std::ranges::any_of(table.chains, [&](const NftChain& chain) {
      const auto same = std::ranges::find(before.chains, chain.name, &NftChain::name);
      return chain.hook.empty() && same != before.chains.end() && !same->hook.empty();
    });
  }

  // What nft -f makes of two blocks of a table.
  static void join(NftTable& into, NftTable more) {
    for (NftChain& chain : more.chains) {
      const auto same = std::ranges::find(into.chains, chain.name, &NftChain::name);
      if (same == into.chains.end()) {
        into.chains.push_back(std::move(chain));
        continue;
      }
      std::vector<NftRule> rules = std::move(same->rules);
      std::ranges::move(chain.rules, std::back_inserter(rules));
      if (!chain.hook.empty()) *same = std::move(chain);
      same->rules = std::move(rules);
    }
    std::ranges::move(more.sets, std::back_inserter(into.sets));
    into.has_end = into.has_end && more.has_end;
  }

  void leave_open_after_commands(NftTable& table) {
    notes_.push_back(fmt::format(
        "{}: the table {} after commands that change it: it is not known whether these lines list it or add to "
        "it; ask for the output of: nft list ruleset",
        table.source, printable(nft::text(table.key))));
    leave_open(table, "[commands before the table]");
  }

  // Tells whether a chain that both print has another count of rules, or other targets: they cannot be the same.
  [[nodiscard]] bool has_other_rules_than_nft() const {
    nft::Dump dump;
    for (const NftTable& table : tables_) {
      if (nft::is_of_iptables(table.key)) dump.tables.push_back(kernel_table(table).table);
    }
    const Live of_nft = nft::iptables_live(dump, {}, istio_rules);
    const auto read = std::ranges::find(read_.live, BackendKind::iptables_nft, &Live::backend);
    if (read == read_.live.end()) return false;
    return std::ranges::any_of(tables_, [&](const NftTable& table) {
      return std::ranges::any_of(table.chains, [&](const NftChain& chain) {
        const auto is_it = [&](const LiveChain& each) {
          return each.table_name == nft::text(table.key) && each.name == chain.name;
        };
        const auto one = std::ranges::find_if(read->chains, is_it);
        const auto other = std::ranges::find_if(of_nft.chains, is_it);
        if (one == read->chains.end() || other == of_nft.chains.end()) return false;
        if (one->rules.size() != chain.rules.size()) return table.has_end;
        // Of other targets nft may print other words.
        const auto may_be_same = [](const LiveRule& a, const LiveRule& b) {
          const auto* redirect = std::get_if<Redirect>(&a.rule.target);
          const auto* of_nft_too = std::get_if<Redirect>(&b.rule.target);
          return redirect == nullptr || of_nft_too == nullptr || *redirect == *of_nft_too;
        };
        return other->rules.size() == one->rules.size() && !std::ranges::equal(one->rules, other->rules, may_be_same);
      });
    });
  }

  // Those that are in the text of iptables, too.
  void leave_out_tables_of_iptables() {
    std::vector<std::string> twice;
    std::erase_if(tables_, [&](const NftTable& table) {
      if (!nft::is_of_iptables(table.key) || table.of_commands) return false;
      const std::string name = nft::text(table.key);
      const bool is_there = std::ranges::any_of(read_.live, [&](const Live& live) {
        return std::ranges::find(live.chains, name, &LiveChain::table_name) != live.chains.end();
      });
      if (is_there) twice.push_back(name);
      return is_there;
    });
    if (!twice.empty())
      notes_.push_back(fmt::format("{}: read of iptables, which prints more of it than nft", fmt::join(twice, ", ")));
  }

  // Of iptables' extensions, nft 1.0.6 says on standard error which ones it does not print.
  void note_left_out() {
    std::size_t targets = 0;
    for (const NftTable& table : tables_) {
      for (const NftChain& chain : table.chains)
        targets += static_cast<std::size_t>(std::ranges::count(chain.rules, true, &NftRule::lacks_target));
    }
    if (targets == 0) return;
    for (NftTable& table : tables_) table.lacks_extensions = nft::is_of_iptables(table.key);
    read_.notes.push_back(fmt::format("targets of iptables that nft does not print: {}, and maybe matches; {}", targets,
                                      ask_for_iptables));
  }

  // nft list chain ip nat ISTIO_OUTPUT: something leads there that is not listed.
  void leave_open_single_chains() {
    const auto is_base = [](const auto& chain) {
      if constexpr (std::is_same_v<std::decay_t<decltype(chain)>, NftChain>)
        return !chain.hook.empty();
      else
        return chain.hook.has_value();
    };
    const auto has_base = [&](const auto& table) { return std::ranges::any_of(table.chains, is_base); };
    if (std::ranges::any_of(tables_, has_base) || std::ranges::any_of(read_.live, has_base)) return;
    for (NftTable& table : tables_) {
      if (!nft::is_of_iptables(table.key) || table.chains.empty()) continue;
      leave_open(table, "[not listed]");
      read_.notes.push_back(
          fmt::format("{}: the text has single chains of the table {}: what the built-in ones do is "
                      "not known; ask for the output of: nft list ruleset",
                      table.source, printable(nft::text(table.key))));
    }
  }

  void add_nf_tables(bool leaves_agents) {
    nft::Dump dump;
    std::size_t extensions = 0;
    std::vector<std::string> empty_sets;
    const auto has_rules = [](const NftTable& table) {
      return std::ranges::any_of(table.chains, [](const NftChain& chain) { return !chain.rules.empty(); });
    };
    const auto has_elements = [](const NftTable& table) {
      return std::ranges::any_of(table.sets,
                                 [](const NftSet& set) { return set.elements && !set.elements->parts.empty(); });
    };
    if (!tables_.empty() && std::ranges::none_of(tables_, has_rules))
      read_.notes.emplace_back("no rule is in the tables of nft: nft list ruleset prints all, nft list chains none");
    note_left_out();
    leave_open_single_chains();
    for (NftTable& table : tables_) {
      if (table.of_commands) mark_changing_sets(table);
      if (table.assumed_empty)
        read_.notes.push_back(
            fmt::format("{}: the table {} is assumed to be empty before these commands of nft, and they to be whole",
                        table.source, printable(nft::text(table.key))));
      if (table.of_commands && std::ranges::any_of(table.chains, &NftChain::is_cut_off))
        read_.notes.push_back(
            fmt::format("{}: commands of nft change what the text does not show of the table {}: what it "
                        "does is not known; ask for the output of: nft list ruleset",
                        table.source, printable(nft::text(table.key))));
      if (!table.has_end)
        read_.notes.push_back(fmt::format("{}: the table {} has no closing brace: its end may be missing", table.source,
                                          printable(nft::text(table.key))));
      if (table.lost_flags)
        read_.notes.push_back(
            fmt::format("{}: the flags of the table {} are missing: taken as not dormant; ask for "
                        "the output of: nft list ruleset",
                        table.source, printable(nft::text(table.key))));
      MadeTable made = kernel_table(table);
      extensions += made.extensions;
      for (const auto& [name, set] : made.table.sets) {
        if (set.elements.empty() && !set.any_other && set.opaque.empty())
          empty_sets.push_back(fmt::format("{} {}", nft::text(table.key), name));
      }
      dump.tables.push_back(std::move(made.table));
    }
    std::vector<Live> live;
    live.push_back(nft::native_live(dump, istio_rules));
    live.push_back(nft::iptables_live(dump, {}, istio_rules));
    std::set<std::string> missing;
    for (Live& each : live) {
      missing.merge(forget_missing_chains(each.chains));
      if (leaves_agents) leave_to_agents(each, false);
      if (holds_rules(each)) join(std::move(each));
    }
    // nft -t leaves out those of all sets.
    if (std::ranges::any_of(tables_, has_elements)) empty_sets.clear();
    note(missing, empty_sets, extensions);
  }

  // Chains of a backend of which the text of iptables may have some; the newest backend first.
  void join(Live live) {
    const auto place = std::ranges::find_if(read_.live, [&](const Live& each) { return each.backend <= live.backend; });
    if (place == read_.live.end() || place->backend != live.backend) {
      read_.live.insert(place, std::move(live));
      return;
    }
    std::ranges::move(live.chains, std::back_inserter(place->chains));
    std::ranges::move(live.tables, std::back_inserter(place->tables));
  }

  void note(const std::set<std::string>& missing, const std::vector<std::string>& empty_sets, std::size_t extensions) {
    if (!missing.empty())
      read_.notes.push_back(fmt::format(
          "the text has no chain {}: what its rules do is not known; ask for the output of: nft list ruleset",
          printable(fmt::format("{}", fmt::join(missing, ", ")))));
    if (!empty_sets.empty())
      read_.notes.push_back(fmt::format("taken as empty: the set {}; nft -t leaves out what sets hold",
                                        printable(fmt::format("{}", fmt::join(empty_sets, ", ")))));
    if (extensions > 0)
      read_.notes.push_back(fmt::format("matches and targets of iptables that nft does not print whole: {}; {}",
                                        extensions, ask_for_iptables));
    if (std::ranges::find(read_.live, BackendKind::iptables_legacy, &Live::backend) == read_.live.end())
      read_.notes.emplace_back(
          "rules of iptables-legacy are taken to be none: nft lists none of them; iptables-legacy-save does");
  }

  bool has_nft_ = false;
  std::vector<NftTable> tables_;
  NftScript script_{tables_};
  std::vector<RulesText> rest_;  // what nft has not printed
  std::vector<std::string> notes_;
  RulesOfTexts read_;
};

}  // namespace

RulesOfTexts read_texts(std::span<const RulesText> texts, bool leaves_agents) {
  return TextsReader().read(texts, leaves_agents);
}

}  // namespace sidetrack
