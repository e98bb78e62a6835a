// SPDX-License-Identifier: GPL-2.0-or-later
// The chains and jumps as a graph: for GitHub (mermaid) and for graphviz (dot).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "mesh/fold.h"
#include "model/iptables.h"
#include "render/picture_parts.h"
#include "render/render.h"

namespace sidetrack {
namespace {

struct Node {
  enum class Shape : std::uint8_t { begin, chain, action, end };
  std::string id;
  std::string label;
  Shape shape = Shape::chain;
  std::string group;  // the table; empty: outside of all
};

struct Edge {
  std::string from;
  std::string to;
  std::string group{};             // of the node that it comes from
  std::vector<Condition> rules{};  // of the label: the rules that lead this way
  bool onward = false;             // the kernel goes on to the next table
};

class Graph {
 public:
  Graph(const Ruleset& ruleset, Families families) {
    for (const Table table : all_tables) {
      for (Chain& chain : chains(ruleset, table, families)) chains_.push_back(std::move(chain));
    }
    way("PREROUTING", {"in", "comes in", Node::Shape::begin, ""}, {"app", "the app, as it is", Node::Shape::end, ""});
    way("OUTPUT", {"out", "the app or the proxy sends", Node::Shape::begin, ""},
        {"destination", "its destination, as it is", Node::Shape::end, ""});
  }

  std::vector<Node> nodes;
  std::vector<Edge> edges;

 private:
  // From one hook on: the tables in their order, and every chain that is reached.
  void way(const std::string& hook, const Node& begin, const Node& end) {
    std::vector<const Chain*> bases;
    for (const Chain& chain : chains_) {
      if (chain.name == hook) bases.push_back(&chain);
    }
    if (bases.empty()) return;
    edge(add(begin), "", id(*bases.front()), {});
    for (std::size_t i = 0; i < bases.size(); ++i) {
      const bool last = i + 1 == bases.size();
      onward_ = last ? end : Node{id(*bases[i + 1]), "", Node::Shape::chain, ""};
      visit(*bases[i]);
      edge(id(*bases[i]), table(*bases[i]), onward(), {"the rest"}, !last);
    }
  }

  static std::string table(const Chain& chain) { return std::string(name(chain.table)); }
  static std::string id(const Chain& chain) { return fmt::format("{}_{}", name(chain.table), chain.name); }

  std::string add(const Node& node) {
    if (seen_.insert(node.id).second) nodes.push_back(node);
    return node.id;
  }
  // Where a packet goes that this table leaves alone: to the next table, or on its way.
  std::string onward() { return onward_.label.empty() ? onward_.id : add(onward_); }

  void edge(const std::string& from, const std::string& group, const std::string& to, const Condition& rule,
            bool onward = false) {
    const auto found = std::ranges::find_if(edges, [&](const Edge& e) { return e.from == from && e.to == to; });
    Edge& it = found != edges.end() ? *found : edges.emplace_back(Edge{from, to, group});
    it.onward |= onward;
    if (!rule.empty() && std::ranges::find(it.rules, rule) == it.rules.end()) it.rules.push_back(rule);
  }

  void visit(const Chain& chain) {
    if (!seen_.insert(id(chain)).second) return;
    nodes.push_back({id(chain), chain.name, Node::Shape::chain, table(chain)});
    for (const Rule* rule : chain.rules) {
      edge(id(chain), table(chain), target(chain, *rule), condition(*rule, rule == chain.rules.front()));
    }
    for (const Rule* rule : chain.rules) {
      if (const auto* jump = std::get_if<Jump>(&rule->target)) visit(called(chain, *jump));
    }
  }

  // chains() lists those that are only jumped to as well.
  const Chain& called(const Chain& from, const Jump& jump) const {
    return *std::ranges::find_if(
        chains_, [&](const Chain& chain) { return chain.table == from.table && chain.name == jump.chain; });
  }

  std::string target(const Chain& chain, const Rule& rule) {
    if (const auto* jump = std::get_if<Jump>(&rule.target)) return id(called(chain, *jump));
    if (const auto port = listening_port(rule.target)) return listener(*port, rule);
    if (const auto* verdict = std::get_if<Verdict>(&rule.target)) {
      if (*verdict == Verdict::drop) return add({"dropped", "dropped", Node::Shape::end, ""});
      if (rule.origin.rule == MeshRule::divert_accept)
        return add({"open", "the proxy's open connection", Node::Shape::end, ""});
      return onward();
    }
    const std::string words = action_label(rule.target);
    std::string unique = fmt::format("{}_{}", id(chain), words);
    std::ranges::replace_if(
        unique, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
    return add({unique, words, Node::Shape::action, table(chain)});
  }

  std::string listener(std::uint16_t port, const Rule& rule) {
    return add({fmt::format("port_{}", port), listener_label(port, rule), Node::Shape::end, ""});
  }

  std::vector<Chain> chains_;
  std::set<std::string> seen_;  // the nodes that are there
  Node onward_;
};

// In the order of the tables, those outside first.
std::vector<std::string> groups(const Graph& graph) {
  std::vector<std::string> used;
  for (const Table table : all_tables) {
    const auto in_table = [&](const Node& node) { return node.group == name(table); };
    if (std::ranges::any_of(graph.nodes, in_table)) used.emplace_back(name(table));
  }
  return used;
}

// ---- mermaid

// Entities, as mermaid writes them, for what would end a label or be read as markup.
std::string mermaid_text(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '"':
        result += "#quot;";
        break;
      case '#':
        result += "#35;";
        break;
      case '<':
        result += "#lt;";
        break;
      case '>':
        result += "#gt;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string mermaid_node(const Node& node) {
  static constexpr std::pair<const char*, const char*> brackets[] = {
      {"([", "])"}, {"[", "]"}, {"[/", "/]"}, {"([", "])"}};
  const auto& [open, close] = brackets[static_cast<std::size_t>(node.shape)];
  return fmt::format("{}{}\"{}\"{}\n", node.id, open, mermaid_text(node.label), close);
}

// mermaid breaks a label beside an arrow anywhere and lets it cover its neighbours: a long one becomes a node of its
// own.
constexpr std::size_t widest_label = 16;
constexpr std::size_t widest_line = 36;

std::string in_one_line(const Condition& rule) { return fmt::format("{}", fmt::join(rule, " ")); }

bool has_long_label(const Edge& edge) {
  return edge.rules.size() > 1 || (!edge.rules.empty() && in_one_line(edge.rules.front()).size() > widest_label);
}

std::string mermaid_rules(const Edge& edge, std::size_t number) {
  std::string text;
  for (const Condition& rule : edge.rules) {
    const char* bullet = edge.rules.size() > 1 ? "• " : "";
    for (const std::string& line : broken(rule, widest_line)) {
      text += (text.empty() ? "" : "<br/>") + std::string(bullet) + mermaid_text(line);
      bullet = "";
    }
  }
  return fmt::format("    rules_{}[\"{}\"]:::rules\n", number, text);
}

std::string mermaid_edge(const Edge& edge, std::size_t number) {
  const char* arrow = edge.onward ? "-.->" : "-->";
  if (edge.rules.empty()) return fmt::format("  {} {} {}\n", edge.from, arrow, edge.to);
  if (has_long_label(edge)) return fmt::format("  {} --- rules_{} {} {}\n", edge.from, number, arrow, edge.to);
  return fmt::format("  {} {}|\"{}\"| {}\n", edge.from, arrow, mermaid_text(in_one_line(edge.rules.front())), edge.to);
}

// ---- dot

std::string dot_node(const Node& node) {
  static constexpr const char* styles[] = {
      "shape=oval, style=filled, fillcolor=\"#dae8fc\"", "shape=box, style=\"rounded,filled\", fillcolor=white",
      "shape=parallelogram, style=filled, fillcolor=\"#f5f5f5\"", "shape=oval, style=filled, fillcolor=\"#d5e8d4\""};
  return fmt::format("\"{}\" [label=\"{}\", {}];\n", node.id, dot_text(node.label),
                     styles[static_cast<std::size_t>(node.shape)]);
}

std::string dot_edge(const Edge& edge) {
  std::string label;
  for (const Condition& rule : edge.rules) label += dot_text(in_one_line(rule)) + "\\l";  // \l: to the left
  std::string attributes = fmt::format("label=\"{}\"", label);
  if (edge.onward) attributes += ", style=dashed";
  return fmt::format("  \"{}\" -> \"{}\" [{}];\n", edge.from, edge.to, attributes);
}

}  // namespace

std::string_view stroke(Fate fate) {
  constexpr std::string_view colors[] = {"#2da44e", "#0969da", "#57606a", "#9a6700", "#cf222e"};
  return colors[static_cast<std::size_t>(fate)];
}

std::string_view fill(Fate fate) {
  constexpr std::string_view colors[] = {"#dafbe1", "#ddf4ff", "#f6f8fa", "#fff8c5", "#ffebe9"};
  return colors[static_cast<std::size_t>(fate)];
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string dot_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::vector<std::string> wrapped(const std::string& sentence, std::size_t width) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < sentence.size();) {
    const std::size_t end = std::min(sentence.find(' ', begin), sentence.size());
    const std::string word = sentence.substr(begin, end - begin);
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= width) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
    begin = end + 1;
  }
  return lines;
}

Ruleset of_families(const Ruleset& ruleset, Families families) {
  Ruleset result;
  for (const Rule& rule : ruleset.rules) {
    if (!(rule.families & families).empty()) result.rules.push_back(rule);
  }
  return fold(result);
}

Condition condition(const Rule& rule, bool first) {
  Condition matches = short_matches(rule);
  if (matches.empty()) matches.emplace_back(first ? "everything" : "everything else");
  if (std::holds_alternative<Tproxy>(rule.target)) matches.emplace_back("(TPROXY)");
  return matches;
}

std::vector<std::string> broken(const Condition& condition, std::size_t width) {
  std::vector<std::string> lines;
  for (const std::string& match : condition) {
    if (!lines.empty() && lines.back().size() + 1 + match.size() <= width) {
      lines.back() += " " + match;
    } else {
      lines.push_back(match);
    }
  }
  return lines;
}

std::string action_label(const Target& target) { return iptables_words(target).substr(std::string_view("-j ").size()); }

std::string listener_label(std::uint16_t port, const Rule& rule) {
  const auto known = port_name(port, rule);
  return known.empty() ? fmt::format("port {}", port) : fmt::format("port {}: {}", port, known);
}

std::string mermaid(const Ruleset& ruleset, Families families) {
  const Graph graph(of_families(ruleset, families), families);
  if (graph.nodes.empty()) return fmt::format("flowchart LR\n  nothing([\"{}\"])\n", nothing_captured);
  // The rules are broken here already; mermaid would break them within a match.
  std::string text = "%%{init: {\"flowchart\": {\"wrappingWidth\": 600}}}%%\nflowchart LR\n";
  for (const Node& node : graph.nodes) {
    if (node.group.empty()) text += "  " + mermaid_node(node);
  }
  for (const std::string& group : groups(graph)) {
    text += fmt::format("  subgraph {}\n", group);
    for (const Node& node : graph.nodes) {
      if (node.group == group) text += "    " + mermaid_node(node);
    }
    for (std::size_t i = 0; i < graph.edges.size(); ++i) {
      if (graph.edges[i].group == group && has_long_label(graph.edges[i])) text += mermaid_rules(graph.edges[i], i);
    }
    text += "  end\n";
  }
  for (std::size_t i = 0; i < graph.edges.size(); ++i) text += mermaid_edge(graph.edges[i], i);
  return text + "  classDef rules fill:none,stroke:none,text-align:left\n";
}

std::string dot(const Ruleset& ruleset, Families families) {
  const Graph graph(of_families(ruleset, families), families);
  std::string text =
      "digraph sidetrack {\n"
      "  rankdir=LR;\n"
      "  node [fontname=\"sans-serif\", fontsize=11];\n"
      "  edge [fontname=\"monospace\", fontsize=9];\n";
  if (graph.nodes.empty()) text += fmt::format("  \"{}\";\n", nothing_captured);
  for (const Node& node : graph.nodes) {
    if (node.group.empty()) text += "  " + dot_node(node);
  }
  for (const std::string& group : groups(graph)) {
    text +=
        fmt::format("  subgraph \"cluster_{}\" {{\n    label=\"{}\"; labeljust=l; style=filled; color=\"#eeeeee\";\n",
                    group, group);
    for (const Node& node : graph.nodes) {
      if (node.group == group) text += "    " + dot_node(node);
    }
    text += "  }\n";
  }
  for (const Edge& edge : graph.edges) text += dot_edge(edge);
  return text + "}\n";
}

}  // namespace sidetrack
