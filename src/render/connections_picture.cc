// SPDX-License-Identifier: GPL-2.0-or-later
// Connections as a drawing: other hosts are on the left, the app on the right, and the proxy between them. What comes
// in goes from left to right, what goes out from right to left. On each part of a way there is a card with the rules
// that decide.
#include "render/connections_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "mesh/describe.h"
#include "model/scan.h"
#include "pod/ztunnel.h"
#include "render/layout.h"
#include "render/picture_parts.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

constexpr std::size_t widest_words = 36;  // characters of a card
constexpr std::size_t widest_sentence = 34;
constexpr double arrow_gap = 28;
constexpr double row_gap = 18;
constexpr std::size_t most_values = 4;  // of each list that are tried

// Holds the elements of a box, placed from its upper left corner.
struct Card {
  std::string body;
  double width = 0;
  double height = 0;
  Fate fate{};

  void add(std::string_view style, double character, std::string_view words) {
    height += line_height;
    width = std::max(width, static_cast<double>(words.size()) * character + 2 * padding);
    body += text_at(padding, height, style, words);
  }
  void add_title(std::string_view words) { add("chain", title_character, words); }
  void add_words(std::string_view words) { add("condition", condition_character, words); }
  void add_sentence(const std::string& words) {
    for (const std::string& line : wrapped(words, widest_sentence)) add("sentence", sentence_character, line);
  }
};

struct Column {
  double x = 0;
  double width = 0;
};

// ---- The connections

bool reaches_proxy(const Outcome& outcome) {
  return outcome.kind == Outcome::Kind::lands && (outcome.transparent || outcome.original);
}

// Whether it ends where it should if nothing captures it.
bool arrives(const Packet& packet, const Outcome& outcome) {
  if (outcome.answers == Outcome::Answers::lost || reaches_proxy(outcome)) return false;
  return outcome.kind == (packet.direction == Direction::out ? Outcome::Kind::leaves : Outcome::Kind::lands);
}

// Words of iptables, each option with its value: a line ends behind one.
std::vector<std::string> options_of(const std::string& rule) {
  std::vector<std::string> options;
  bool is_open = false;  // "!" takes what comes after it
  for (const std::string_view word : split(rule, " ")) {
    if (!options.empty() && (is_open || (!word.starts_with('-') && word != "!"))) {
      options.back().append(" ").append(word);
    } else {
      options.emplace_back(word);
    }
    is_open = word == "!";
  }
  return options;
}

// The rules that decide, and what becomes of the packet if it does not get where it should.
Card card_of(const Trace& trace, bool may_reach_proxy) {
  Card card;
  for (const std::size_t place : trace.decisive) {
    const Step& step = trace.steps[place];
    if (card.height > 0) card.height += padding / 2;
    card.add_title(step.table + " " + step.chain);
    const std::string words = step.live != nullptr ? short_words(step.live->rule) : step.rule;
    for (const std::string& line : wrapped(options_of(words), widest_words)) card.add_words(line);
    card.add_sentence(reason_words(step.reason));
  }
  if (trace.decisive.empty()) card.add_sentence("no rule captures it");
  const bool is_captured = may_reach_proxy && reaches_proxy(trace.outcome);
  card.fate = is_captured ? Fate::proxy : arrives(trace.packet, trace.outcome) ? Fate::onward : Fate::drop;
  if (card.fate == Fate::drop) card.add_sentence(sentence(trace.outcome));
  return card;
}

// From another host to the app, or from the app to another host. A card without a body: there is none.
struct ShownConnection {
  bool is_inbound = false;
  Card other_host;
  Card left;  // between the other host and the proxy
  Card proxy;
  Card right;  // between the proxy and the app
};

class Connections {
 public:
  Connections(const Plan& plan, const Config& config, Family family)
      : config_(config),
        family_(family),
        pod_(assumed_pod(plan)),
        live_{as_live(plan.ruleset, BackendKind::iptables_nft)} {
    const auto address = [&](const char* ipv4, const char* ipv6) {
      return *Address::parse(family == Family::ipv4 ? ipv4 : ipv6);
    };
    const std::vector<Address> clients =
        firsts(config.inbound_ranges.list, {address("10.0.0.7", "fd00::7"), address("203.0.113.7", "2001:db8:1::7")});
    const Address service = address("10.96.0.10", "fd00:10:96::10");
    add(Direction::in, Protocol::tcp, clients, firsts(config.inbound_ports.list, {8080, 80, 5000}));
    add(Direction::in, Protocol::udp, clients, firsts(config.capture_udp, {}));
    add(Direction::out, Protocol::tcp,
        firsts(config.outbound_ranges.list, {service, address("203.0.113.10", "2001:db8:1::10")}),
        firsts(config.outbound_ports, {80, 443, 5000}));
    if (!config.redirect_dns) return;
    std::vector<Address> servers = plan.dns_servers;
    if (config.capture_all_dns || config.dataplane == Dataplane::ambient) servers = {service};
    std::erase_if(servers, [&](const Address& server) { return server.family != family; });
    add(Direction::out, Protocol::udp, servers, {53});
  }

  std::vector<ShownConnection> all;
  Card app;
  // Which of the mesh's rules decide, as characters: what is the same in both families is drawn once.
  std::string deciding;

 private:
  // The first of each of some ranges, of this family if it has one, before the usual ones. Loopback is no other host.
  static std::vector<std::uint16_t> firsts(const std::vector<PortRange>& ranges, std::vector<std::uint16_t> usual) {
    const std::size_t tried = std::min(ranges.size(), most_values);
    for (std::size_t i = tried; i > 0; --i) usual.insert(usual.begin(), ranges[i - 1].first);
    return usual;
  }
  [[nodiscard]] std::vector<Address> firsts(const std::vector<AddressRange>& ranges, std::vector<Address> usual) const {
    std::vector<Address> result;
    for (const AddressRange& range : ranges) {
      if (range.family() != family_ || range.first.is_loopback() || result.size() == most_values) continue;
      Address host = range.first;
      host.bytes[host.size() - 1] |= 10;  // not the address of a network itself
      result.push_back(range.contains(host) ? host : range.first);
    }
    result.insert(result.end(), usual.begin(), usual.end());
    return result;
  }

  // The first that the rules lead to the proxy, or else the first.
  void add(Direction direction, Protocol protocol, const std::vector<Address>& hosts,
           const std::vector<std::uint16_t>& ports) {
    std::vector<Owner> owners{{1000, 1000}, {2000, 2000}};  // one of them is not the proxy
    for (const std::uint32_t group : config_.owner_groups.list) {
      if (owners.size() < most_values) owners.push_back({1000, group});
    }
    std::optional<Trace> first;
    for (const Owner& owner : owners) {
      for (const Address& host : hosts) {
        for (const std::uint16_t port : ports) {
          Packet packet;
          packet.direction = direction;
          packet.protocol = protocol;
          packet.destination_port = port;
          if (direction == Direction::in) {
            packet.source = host;
            packet.destination = own_address();
          } else {
            packet.destination = host;
            packet.owner = owner;
            packet.cgroup = "";  // the root's: none that bypasses the proxy
          }
          Trace trace = explain(packet, pod_, live_);
          const bool is_captured = reaches_proxy(trace.outcome);
          if (is_captured || !first) first = std::move(trace);
          if (is_captured) return add(*first);
        }
      }
    }
    if (first) add(*first);
  }

  [[nodiscard]] Address own_address() const {
    for (const InterfaceAddress& own : pod_.interface("eth0")->addresses) {
      if (own.address.family == family_) return own.address;
    }
    return Address::any(family_);
  }

  void add(const Trace& trace) {
    const Packet& packet = trace.packet;
    const bool is_inbound = packet.direction == Direction::in;
    ShownConnection& connection = all.emplace_back();
    connection.is_inbound = is_inbound;
    connection.other_host.fate = Fate::call;
    connection.other_host.add_sentence(is_inbound                       ? "a client"
                                       : *packet.destination_port == 53 ? "a name server"
                                                                        : "a service");
    connection.other_host.add_words(is_inbound
                                        ? fmt::format("to {} port {}", name(packet.protocol), *packet.destination_port)
                                        : Endpoint{*packet.destination, packet.destination_port}.text());
    // Where rules ask for it: whom the others are not asked about.
    const bool asks_source = !config_.inbound_ranges.list.empty() || !config_.inbound_exclude_ranges.empty();
    if (is_inbound && asks_source) connection.other_host.add_words("from " + packet.source->text());
    if (!is_inbound && app.body.empty()) {
      const bool asks_group = !config_.owner_groups.all || !config_.owner_groups_exclude.empty();
      app.add_sentence("the app");
      app.add_words(asks_group ? fmt::format("uid {}, gid {}", packet.owner->uid, packet.owner->gid)
                               : fmt::format("uid {}", packet.owner->uid));
    }
    (is_inbound ? connection.left : connection.right) = decided(trace, true);
    const Outcome& outcome = trace.outcome;
    if (!reaches_proxy(outcome)) return;
    connection.proxy.fate = Fate::proxy;
    connection.proxy.add_sentence(outcome.listener.empty() ? "the proxy" : outcome.listener);
    connection.proxy.add_words(
        fmt::format("port {}", outcome.transparent ? outcome.transparent_port : outcome.at.port.value_or(0)));
    (is_inbound ? connection.right : connection.left) = decided(explain(of_proxy(packet), pod_, live_), false);
  }

  Card decided(const Trace& trace, bool may_reach_proxy) {
    for (const std::size_t place : trace.decisive)
      deciding += static_cast<char>(static_cast<int>(trace.steps[place].reason.rule) + 1);
    deciding += '\0';
    return card_of(trace, may_reach_proxy);
  }

  // Returns what the proxy sends for it: to the app from the address that Envoy takes for that, ztunnel from the
  // client's.
  [[nodiscard]] Packet of_proxy(Packet packet) const {
    const bool is_ztunnel = config_.dataplane == Dataplane::ambient;
    packet.source_port.reset();
    packet.interface.clear();
    packet.cgroup = "";
    packet.owner = is_ztunnel ? Owner{} : Owner{config_.proxy_uids.front(), config_.proxy_gids.front()};
    if (is_ztunnel) packet.mark = ztunnel_mark;
    if (packet.direction == Direction::in) {
      packet.direction = Direction::lo;
      if (!is_ztunnel) packet.source = Address::passthrough(family_);
    } else {
      packet.source.reset();
    }
    return packet;
  }

  const Config& config_;
  Family family_;
  PodView pod_;
  std::vector<Live> live_;
};

// ---- How they are drawn

void widen(Column& column, const Card& card) { column.width = std::max(column.width, card.width); }

// A box with its lines, its middle at this height.
std::string node(const Card& card, const Column& column, double middle, double height, std::string_view more = "") {
  if (card.body.empty()) return "";
  const double inner = card.height + padding;
  return box(column.x, middle - std::max(height, inner) / 2, column.width, std::max(height, inner), 6, card.fate,
             more) +
         fmt::format("<g transform=\"translate({:.0f} {:.0f})\">\n{}</g>\n", column.x, middle - inner / 2, card.body);
}

Drawn drawn(const Connections& connections, const std::string& heading) {
  Column columns[5];  // other hosts, rules, the proxy, rules, the app
  auto& [others, left, proxy, right, app] = columns;
  widen(app, connections.app);
  for (const ShownConnection& each : connections.all) {
    widen(others, each.other_host);
    widen(left, each.left);
    widen(proxy, each.proxy);
    widen(right, each.right);
  }
  double x = margin;
  for (Column& column : columns) {
    column.x = x;
    x += column.width + arrow_gap;
  }
  const double pod_left = left.x - arrow_gap / 2;
  const double pod_right = app.x + app.width + padding;
  const double pod_top = margin + line_height + padding;
  const double top = pod_top + 2 * line_height;
  double y = top;
  std::string rows;
  for (const ShownConnection& each : connections.all) {
    const double height = std::max({each.other_host.height, each.left.height, each.right.height}) + padding;
    const double middle = y + height / 2;
    double from = others.x + others.width;
    const auto lead = [&](const Column& to, Fate fate) {
      const auto [begin, end] = each.is_inbound ? std::pair(from, to.x) : std::pair(to.x, from);
      rows += arrow(fmt::format("M{:.0f} {:.0f}H{:.0f}", begin, middle, end), fate, true);
      from = to.x + to.width;
    };
    if (!each.left.body.empty()) lead(left, each.left.fate);
    if (!each.proxy.body.empty()) lead(proxy, each.left.fate);
    if (!each.right.body.empty()) lead(right, each.right.fate);
    lead(app, (each.right.body.empty() ? each.left : each.right).fate);
    rows += node(each.other_host, others, middle, 0) + node(each.left, left, middle, 0, " card") +
            node(each.proxy, proxy, middle, 0) + node(each.right, right, middle, 0, " card");
    y += height + row_gap;
  }
  const double bottom = y - row_gap;
  return {pod_right + margin, bottom + padding,
          text_at(margin, margin + line_height, "band", heading) +
              box(pod_left, pod_top, pod_right - pod_left, bottom + padding - pod_top, 8, Fate::call, " pod") +
              text_at(pod_left + padding, pod_top + line_height + 2, "band", "the pod") +
              node(connections.app, app, (top + bottom) / 2, bottom - top) + rows};
}

}  // namespace

Drawn connections_picture(const Plan& plan, const Config& config, Families families) {
  Drawn all;
  const auto add = [&](const Connections& connections, Families of) {
    const Drawn part = drawn(connections, fmt::format("A connection in, and one out, with the rules that decide ({})",
                                                      of == Families::both() ? "IPv4 and IPv6" : title(of.list()[0])));
    all.body += fmt::format("<g transform=\"translate(0 {:.0f})\">\n{}</g>\n", all.height, part.body);
    all.height += part.height;
    all.width = std::max(all.width, part.width);
  };
  const std::vector<Family> list = (families & plan.families).list();
  if (list.empty()) return all;
  const Connections first(plan, config, list.front());
  const Connections last(plan, config, list.back());
  if (first.deciding == last.deciding) {
    add(first, families & plan.families);
  } else {
    add(first, list.front());
    add(last, list.back());
  }
  return all;
}

}  // namespace sidetrack
