// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "mesh/catalogue.h"
#include "mesh/describe.h"
#include "mesh/other_meshes.h"
#include "mesh/releases.h"
#include "model/ports.h"
#include "model/printable.h"
#include "model/range.h"
#include "model/stable_sort.h"
#include "render/layout.h"
#include "walk/chain_index.h"

namespace sidetrack {
namespace {

constexpr std::size_t widest_rule = 72;  // what is said of longer ones is not aligned
constexpr std::size_t number_width = 6;  // with the space after it
constexpr std::size_t longest_run = 8;   // of rules of one kind, before they become one line

struct Line {
  enum class Kind : std::uint8_t { heading, rule, note };
  Kind kind = Kind::note;
  std::size_t indent = 0;
  std::string text;    // a rule's words
  std::string number;  // of a rule
  Counters counters;
  std::uint64_t moved = 0;  // packets since it was shown last
  std::string whose;        // if it is not plain from the chain
  std::string sentence;
};

// Another mesh is named where its chains are.
std::string_view whose(Maker maker, std::string_view mesh) {
  return maker == Maker::other && !mesh.empty() ? mesh : name(maker);
}

// The known ports that a rule speaks of: "15021 readiness".
std::string port_names(const Rule& rule) {
  std::vector<std::uint16_t> ports;
  for (const Match& match : rule.matches) {
    const auto* m = std::get_if<PortMatch>(&match);
    if (m == nullptr) continue;
    for (const NamedPort& named : known_ports(rule)) {
      const auto holds = [&](const PortRange& range) { return range.contains(named.port); };
      if (std::ranges::any_of(m->ports, holds)) ports.push_back(named.port);
    }
  }
  if (const auto port = listening_port(rule.target)) ports.push_back(*port);
  std::string text;
  for (std::uint16_t port : ports) {
    const std::string_view name = port_name(port, rule);
    if (!name.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", port, name);
  }
  return text;
}

std::string sentence_of(const LiveRule& live) {
  const Reason reason = describe_live(live);
  std::string text = reason.sentence;
  if (!reason.flag.empty()) text += fmt::format(" ({})", shell_words(reason));
  const std::string ports = port_names(live.rule);
  if (!ports.empty()) text += fmt::format("{}[{}]", text.empty() ? "" : " ", ports);
  return text;
}

// Rules of one kind are of the same row and differ in their values alone: where such a run ends.
std::size_t end_of_run(const std::vector<LiveRule>& rules, std::size_t first) {
  const auto alike = [](const Match& x, const Match& y) {
    const auto* owner = std::get_if<OwnerMatch>(&x);
    return x.index() == y.index() && (owner == nullptr || owner->kind == std::get<OwnerMatch>(y).kind);
  };
  const LiveRule& a = rules[first];
  std::optional<MeshRule> kind;
  std::size_t end = first + 1;
  for (; end < rules.size(); ++end) {
    const LiveRule& b = rules[end];
    const bool same = a.ours == b.ours && a.rule.families == b.rule.families && a.rule.target == b.rule.target &&
                      std::ranges::equal(a.rule.matches, b.rule.matches, alike);
    if (!same) break;
    if (!kind) kind = kind_of(a.rule);
    if (*kind != kind_of(b.rule)) break;
  }
  return end;
}

// In the order in which a packet comes by them; those of a device before and after all.
constexpr Hook hooks_in_order[] = {Hook::ingress, Hook::prerouting,  Hook::input, Hook::forward,
                                   Hook::output,  Hook::postrouting, Hook::egress};

// "nat OUTPUT"; of other tables, and where it is not what iptables has there: "inet mine out, at -150, policy drop"
std::string title_of(const LiveChain& chain) {
  const std::string table = chain.table == Table::other ? chain.table_name : std::string(name(chain.table));
  std::string title = fmt::format("{} {}", printable(table), printable(chain.name));
  if (!chain.hook) return title;
  const auto usual = builtin_hook(chain.table, chain.name);
  if (!chain.hook->device.empty()) title += ", device " + printable(chain.hook->device);
  if (!usual || usual->priority != chain.hook->priority) title += fmt::format(", at priority {}", chain.hook->priority);
  if (chain.policy != Verdict::accept) title += ", policy drop";
  if (chain.dormant) title += ", never called: its table is dormant";
  return title;
}

// All that one backend holds for some families, as lines.
class Tree {
 public:
  Tree(const Live& live, Families families, const ShowOptions& options)
      : live_(live), families_(families), options_(options), chains_(live, families) {
    const auto found = std::ranges::find(options.before, live.backend, &Live::backend);
    if (found != options.before.end()) before_.emplace(*found, families);
  }

  std::vector<Line> lines() {
    for (const Hook hook : hooks_in_order) {
      std::vector<const LiveChain*> called;
      for (const LiveChain& chain : live_.chains) {
        if (shown(chain) && chain.hook && chain.hook->hook == hook && chain.has_effect()) called.push_back(&chain);
      }
      sort_stably(called, {}, [](const LiveChain* chain) { return chain->hook->priority; });
      if (!called.empty()) note(0, std::string(name(hook)), Line::Kind::heading);
      for (const LiveChain* chain : called) show(*chain, 0);
    }
    bool first = true;
    for (const LiveChain& chain : live_.chains) {
      if (!shown(chain) || chain.hook || seen_.contains(&chain)) continue;
      if (first) note(0, "not reached from any hook", Line::Kind::heading);
      first = false;
      show(chain, 0);
    }
    return std::move(lines_);
  }

 private:
  [[nodiscard]] bool shown(const LiveChain& chain) const { return chain.families == families_; }

  void note(std::size_t indent, std::string text, Line::Kind kind = Line::Kind::note) {
    Line line;
    line.kind = kind;
    line.indent = indent;
    line.text = std::move(text);
    lines_.push_back(std::move(line));
  }

  // Each chain once: further jumps name it.
  void show(const LiveChain& chain, std::size_t depth) {
    const std::size_t indent = 2 + 4 * depth;
    const std::string title = title_of(chain);
    if (!seen_.insert(&chain).second) return;  // it stands above
    note(indent,
         chain.hook ? title : fmt::format("{} [{}]", title, whose(maker_of(live_, chain), mesh_of_chain(chain.name))));
    Range<std::size_t> numbers;
    for (std::size_t i = 0; i < chain.rules.size();) {
      std::size_t end = end_of_run(chain.rules, i);
      if (options_.all || end - i <= longest_run) end = i + 1;
      for (std::size_t j = i; j < end; ++j) {
        if (!is_more_of_one(chain, chain.rules[j])) ++numbers.last;
        if (j == i) numbers.first = numbers.last;
      }
      rules(chain, i, end, numbers, indent);
      if (const auto* jump = std::get_if<Jump>(&chain.rules[i].rule.target); jump != nullptr)
        follow(chain, *jump, depth);
      i = end;
    }
  }

  // One rule, or a run of rules of one kind.
  void rules(const LiveChain& chain, std::size_t from, std::size_t to, Range<std::size_t> numbers, std::size_t indent) {
    const LiveRule& first = chain.rules[from];
    Line line;
    line.kind = Line::Kind::rule;
    line.indent = indent + 2;
    line.number = fmt::format("{}", numbers.first);
    line.text = short_words(first.rule);
    line.sentence = sentence_of(first);
    if (first.rule.families != families_) {
      line.text = fmt::format("({}) {}", name(first.rule.families.list().front()), line.text);
    }
    if (to - from > 1) {
      if (numbers.last > numbers.first) line.number += fmt::format("-{}", numbers.last);
      line.text = fmt::format("{} rules, the first: {}", grouped(to - from), line.text);
    }
    for (std::size_t i = from; i < to; ++i) {
      line.counters.packets += chain.rules[i].counters.packets;
      line.counters.bytes += chain.rules[i].counters.bytes;
      line.moved += moved(chain, i);
    }
    if (chain.hook || first.ours != chain.ours)
      line.whose = whose(maker_of(live_, chain, first), mesh_of_rule(first.rule));
    lines_.push_back(std::move(line));
  }

  // What nests deeper, or in a circle where no hook leads, is shown on its own.
  void follow(const LiveChain& chain, const Jump& jump, std::size_t depth) {
    constexpr std::size_t deepest = 16;
    if (depth == deepest) return;
    if (const LiveChain* next = chains_.find(chain, jump.chain)) show(*next, depth + 1);
  }

  // Packets that the rule has counted since it was shown last; none if it was not there.
  [[nodiscard]] std::uint64_t moved(const LiveChain& chain, std::size_t place) {
    const LiveChain* old = before_ ? before_->find(chain, chain.name) : nullptr;
    if (old == nullptr || place >= old->rules.size()) return 0;
    if (!(old->rules[place].rule == chain.rules[place].rule)) return 0;
    const std::uint64_t then = old->rules[place].counters.packets;
    const std::uint64_t now = chain.rules[place].counters.packets;
    return now > then ? now - then : 0;
  }

  const Live& live_;
  Families families_;
  const ShowOptions& options_;
  ChainIndex chains_;
  std::optional<ChainIndex> before_;
  std::set<const LiveChain*> seen_;
  std::vector<Line> lines_;
};

// The lines below a title that heads the columns: the counters stand in front, where long rules do not push them about.
std::string laid_out(const std::string& title, const std::vector<Line>& lines, bool color) {
  static constexpr std::string_view packets = "packets";
  static constexpr std::string_view bytes = "bytes";
  std::size_t rule_width = 0;
  std::size_t packets_width = packets.size();
  std::size_t bytes_width = bytes.size();
  for (const Line& line : lines) {
    if (line.kind != Line::Kind::rule) continue;
    const std::size_t width = line.indent + line.text.size();
    if (width <= widest_rule) rule_width = std::max(rule_width, width);
    packets_width = std::max(packets_width, grouped(line.counters.packets).size());
    bytes_width = std::max(bytes_width, grouped(line.counters.bytes).size());
  }
  std::string text =
      styled(fmt::format("{:>{}}  {:>{}}  {}", packets, packets_width, bytes, bytes_width, title), Style::bold, color) +
      "\n";
  for (const Line& line : lines) {
    if (line.kind != Line::Kind::rule) {
      text += fmt::format("{:{}}{}\n", "", packets_width + bytes_width + 4 + line.indent,
                          styled(line.text, line.kind == Line::Kind::heading ? Style::bold : Style::plain, color));
      continue;
    }
    std::string row = fmt::format("{:>{}}  {:>{}}  {:{}}{:>{}}  {}", grouped(line.counters.packets), packets_width,
                                  grouped(line.counters.bytes), bytes_width, "", line.indent, line.number,
                                  number_width - 2, line.text);
    std::string notes;
    if (line.moved > 0) notes += styled(fmt::format("  +{}", grouped(line.moved)), Style::yellow, color);
    if (!line.whose.empty()) notes += fmt::format("  [{}]", line.whose);
    if (!line.sentence.empty()) notes += "  " + styled(line.sentence, Style::dim, color);
    const std::size_t width = line.indent + line.text.size();
    if (!notes.empty() && width < rule_width) row.append(rule_width - width, ' ');
    text += row + notes + "\n";
  }
  return text;
}

std::string routing_text(const Routing& routing, bool color) {
  std::string text = styled("policy rules, routes, addresses", Style::bold, color) + "\n";
  for (const PolicyRule& rule : routing.policy_rules) {
    const char* usual = is_of_ambient(rule) ? "answers to what ztunnel sent with a client's address come back to it"
                                            : "what TPROXY has marked stays in the pod";
    const std::string effect =
        rule.before_others ? usual : fmt::format("at {}, after other programs' rules", rule.priority.value_or(0));
    text += fmt::format("  {}  rule {}: {}\n", name(rule.family), ip_arguments(rule), effect);
  }
  for (const Route& route : routing.local_routes) {
    text += fmt::format("  {}  route {}\n", name(route.family()), ip_arguments(route));
  }
  for (const Address& address : routing.loopback_addresses) {
    text += fmt::format("  {}  address {} dev lo: the proxy's source towards the app\n", name(address.family),
                        AddressRange::single(address).text());
  }
  return routing == Routing{} ? text + "  none of ours\n" : text;
}

// Families that have chains of their own, in the order in which they are shown.
std::vector<Families> groups(const Live& live) {
  std::vector<Families> found;
  for (const Families group : {Families(Family::ipv4), Families(Family::ipv6), Families::both(), Families()}) {
    const auto has_rules = [&](const LiveChain& chain) {
      return chain.families == group && (chain.has_effect() || !chain.hook);
    };
    if (std::ranges::any_of(live.chains, has_rules)) found.push_back(group);
  }
  return found;
}

}  // namespace

std::string show(std::span<const Live> live, const Routing& routing, const ShowOptions& options) {
  std::string text;
  for (const Live& one : live) {
    for (const Families group : groups(one)) {
      const std::string title =
          fmt::format("{}, {}", name(one.backend), group.empty() ? "frames" : names(group, " and "));
      text += laid_out(title, Tree(one, group, options).lines(), options.color) + "\n";
    }
  }
  if (text.empty()) text = "no rules\n\n";
  text += routing_text(routing, options.color) + "\n";
  const Summary all = summary(options, live);
  text +=
      fmt::format("inbound       {}\noutbound      {}\nnot captured  {}\n", all.inbound, all.outbound, all.left_out);
  if (const std::string release = older_release(live); !release.empty())
    text += fmt::format("release       {}\n", release);
  for (const Obstacle& obstacle : options.obstacles) {
    text += styled("but           ", Style::yellow, options.color) + sidetrack::text(obstacle) + "\n";
  }
  return text;
}

}  // namespace sidetrack
