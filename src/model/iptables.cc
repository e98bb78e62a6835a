// SPDX-License-Identifier: GPL-2.0-or-later
#include "model/iptables.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "model/printable.h"

namespace sidetrack {
namespace {

const char* not_(bool negated) { return negated ? "! " : ""; }
const char* letter(End end) { return end == End::source ? "s" : "d"; }

template <typename Number>
std::string list(std::span<const Range<Number>> ranges, const char* dash) {
  std::string text;
  for (const auto& range : ranges) {
    if (!text.empty()) text += ",";
    text += range.first == range.last ? fmt::format("{}", range.first)
                                      : fmt::format("{}{}{}", range.first, dash, range.last);
  }
  return text;
}

std::string list(std::span<const AddressRange> ranges) {
  std::string text;
  for (const AddressRange& range : ranges) {
    if (!text.empty()) text += ",";
    text += range.text();
  }
  return text;
}

// As iptables-save quotes.
std::string in_quotes(std::string_view text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '"' || c == '\\' || c == '\'') quoted += '\\';
    quoted += c;
  }
  return fmt::format("\"{}\"", printable(quoted));
}

std::string masked(std::uint32_t value, std::uint32_t mask) {
  return mask == 0xffffffff ? fmt::format("{}", value) : fmt::format("{:#x}/{:#x}", value, mask);
}

std::string states(std::uint8_t bits) {
  // In the order in which iptables lists them.
  static constexpr std::pair<std::uint8_t, const char*> names[] = {
      {ConntrackStateMatch::invalid, "INVALID"},     {ConntrackStateMatch::new_, "NEW"},
      {ConntrackStateMatch::related, "RELATED"},     {ConntrackStateMatch::established, "ESTABLISHED"},
      {ConntrackStateMatch::untracked, "UNTRACKED"},
  };
  std::string text;
  for (const auto& [bit, state] : names) {
    if ((bits & bit) != 0) text += (text.empty() ? "" : ",") + std::string(state);
  }
  return text;
}

struct MatchWords {
  std::string operator()(const InterfaceMatch& m) const {
    return fmt::format("{}-{} {}", not_(m.negated), m.direction == InterfaceDirection::in ? "i" : "o",
                       printable(m.name));
  }
  std::string operator()(const AddressMatch& m) const {
    return fmt::format("{}-{} {}", not_(m.negated), letter(m.end), list(m.ranges));
  }
  std::string operator()(const ProtocolMatch& m) const {
    const std::string_view known = name(m.protocol);
    return fmt::format("{}-p {}", not_(m.negated),
                       known.empty() ? std::to_string(static_cast<unsigned>(m.protocol)) : std::string(known));
  }
  std::string operator()(const PortMatch& m) const {
    const std::string ports = list(std::span(m.ports), ":");
    if (m.ports.size() == 1) return fmt::format("{}--{}port {}", not_(m.negated), letter(m.end), ports);
    return fmt::format("-m multiport {}--{}ports {}", not_(m.negated), letter(m.end), ports);
  }
  std::string operator()(const OwnerMatch& m) const {
    return fmt::format("-m owner {}--{}-owner {}", not_(m.negated), m.kind == OwnerKind::uid ? "uid" : "gid",
                       list(std::span(m.ids), "-"));
  }
  std::string operator()(const ConntrackStateMatch& m) const {
    return fmt::format("-m conntrack {}--ctstate {}", not_(m.negated), states(m.states));
  }
  std::string operator()(const ConntrackDirectionMatch& m) const {
    return fmt::format("-m conntrack --ctdir {}", m.reply ? "REPLY" : "ORIGINAL");
  }
  std::string operator()(const MarkMatch& m) const {
    return fmt::format("-m mark {}--mark {}", not_(m.negated), masked(m.value, m.mask));
  }
  std::string operator()(const ConnmarkMatch& m) const {
    return fmt::format("-m connmark {}--mark {}", not_(m.negated), masked(m.value, m.mask));
  }
  std::string operator()(const SocketMatch& m) const {
    return fmt::format("-m owner {}--socket-exists", not_(m.negated));
  }
  std::string operator()(const SetMatch& m) const {
    const std::string name = m.name.empty() ? fmt::format("[number {}]", m.index) : printable(m.name);
    return fmt::format("-m set {}--match-set {} {}", not_(m.negated), name, m.end == End::source ? "src" : "dst");
  }
  std::string operator()(const CgroupMatch& m) const {
    // Without a path in no words of iptables, as it has none for it.
    if (m.path.empty()) return fmt::format("{}[cgroup {}, whose path is not known]", not_(m.negated), m.id);
    // Plain where a shell and iptables-restore take it so.
    const bool plain = m.path.find_first_of(" \t\"'") == std::string::npos;
    return fmt::format("-m cgroup {}--path {}", not_(m.negated), plain ? printable(m.path) : in_quotes(m.path));
  }
  std::string operator()(const CommentMatch& m) const {
    const bool plain = !m.text.empty() && std::ranges::all_of(m.text, [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
    });
    return fmt::format("-m comment --comment {}", plain ? m.text : in_quotes(m.text));
  }
  std::string operator()(const UnknownMatch& m) const { return printable(m.words); }
};

struct TargetWords {
  std::string operator()(Verdict verdict) const {
    switch (verdict) {
      case Verdict::accept:
        return "-j ACCEPT";
      case Verdict::drop:
        return "-j DROP";
      case Verdict::return_:
        return "-j RETURN";
    }
    return "";
  }
  std::string operator()(const Jump& t) const { return (t.is_goto ? "-g " : "-j ") + printable(t.chain); }
  std::string operator()(const Redirect& t) const { return fmt::format("-j REDIRECT --to-ports {}", t.port); }
  std::string operator()(const Tproxy& t) const {
    return fmt::format("-j TPROXY --tproxy-mark {}/{:#x} --on-port {}", t.mark, t.mask, t.port);
  }
  std::string operator()(const SetMark& t) const {
    if (t.mask == 0xffffffff) return fmt::format("-j MARK --set-mark {}", t.mark);
    return fmt::format("-j MARK --set-xmark {:#x}/{:#x}", t.mark, t.mask);
  }
  std::string operator()(Connmark t) const {
    return t == Connmark::save ? "-j CONNMARK --save-mark" : "-j CONNMARK --restore-mark";
  }
  std::string operator()(const CtZone& t) const { return fmt::format("-j CT --zone {}", t.zone); }
  std::string operator()(const SetConnmark& t) const {
    return fmt::format("-j CONNMARK --set-xmark {:#x}/{:#x}", t.mark, t.mask);
  }
  std::string operator()(const Notrack&) const { return "-j CT --notrack"; }
  std::string operator()(const Nat& t) const { return printable(t.words); }
  // Those that are only read.
  std::string operator()(const NonTerminating& t) const { return printable(t.words); }
  std::string operator()(const Reject& t) const { return printable(t.words); }
  std::string operator()(const UnknownTarget& t) const { return printable(t.words); }
};

}  // namespace

std::string iptables_words(const Match& match) { return std::visit(MatchWords{}, match); }
std::string iptables_words(const Target& target) { return std::visit(TargetWords{}, target); }

std::string iptables_words(const Rule& rule) {
  const std::string chain = printable(rule.chain);
  std::string text = rule.insert_at ? fmt::format("-I {} {}", chain, *rule.insert_at) : "-A " + chain;
  for (const Match& match : rule.matches) text += " " + iptables_words(match);
  const std::string target = iptables_words(rule.target);
  return target.empty() ? text : text + " " + target;
}

std::string iptables_restore(const Ruleset& ruleset, Family family) {
  std::string text;
  for (Table table : {Table::mangle, Table::nat, Table::raw}) {  // in alphabetical order, as upstream
    const std::vector<Chain> used = chains(ruleset, table, family);
    if (used.empty()) continue;
    text += fmt::format("*{}\n", name(table));
    for (const Chain& chain : used) {
      if (!is_builtin(chain.name)) text += fmt::format("-N {}\n", chain.name);
    }
    for (const Rule& rule : ruleset.rules) {
      if (rule.table == table && rule.families.contains(family)) text += iptables_words(rule) + "\n";
    }
    text += "COMMIT\n";
  }
  return text;
}

}  // namespace sidetrack
