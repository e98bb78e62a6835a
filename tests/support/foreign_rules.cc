// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/foreign_rules.h"

#include <fmt/format.h>

#include <string_view>

#include "support/pod.h"

namespace sidetrack::netns {
namespace {

using Strings = std::vector<std::string>;

// ---- Values that packets of these tests have, and some that they do not have

std::string port(Dice& dice) {
  return dice.one_of(Strings{"15001", "15006", "53", "80", "443", "8080", "15053", "9", "8081", "7"});
}

std::string address(Dice& dice, Family family) {
  const Addresses& a = addresses(family);
  return std::string(dice.one_of(std::vector<std::string_view>{a.any_loopback, a.pod, a.client, a.service,
                                                               a.other_service, a.dns, a.pod_second, a.guest}));
}

std::string network(Dice& dice, Family family) {
  if (dice.percent(50)) return address(dice, family);
  return family == Family::ipv4 ? dice.one_of(Strings{"10.96.0.0/16", "10.0.0.0/8", "127.0.0.0/8", "10.1.0.0/30"})
                                : dice.one_of(Strings{"fd00:96::/32", "fd00::/8", "::/64", "fd00:1::/126"});
}

// ---- iptables

struct TableChain {
  const char* table;
  const char* chain;
};
constexpr TableChain iptables_places[] = {{"raw", "PREROUTING"},     {"raw", "OUTPUT"},     {"mangle", "PREROUTING"},
                                          {"mangle", "INPUT"},       {"mangle", "FORWARD"}, {"mangle", "OUTPUT"},
                                          {"mangle", "POSTROUTING"}, {"nat", "PREROUTING"}, {"nat", "INPUT"},
                                          {"nat", "OUTPUT"},         {"nat", "OUTPUT"},     {"nat", "POSTROUTING"},
                                          {"filter", "INPUT"},       {"filter", "FORWARD"}, {"filter", "OUTPUT"},
                                          {"filter", "OUTPUT"},      {"security", "INPUT"}, {"security", "OUTPUT"}};

std::string conntrack_option(Dice& dice, Family family) {
  const std::string which = dice.one_of(Strings{"--ctorig", "--ctrepl"}) + dice.one_of(Strings{"src", "dst"});
  switch (dice.below(4)) {
    case 0:
      return which + "port " + dice.one_of(Strings{port(dice), "1:1023", "15000:15100"});
    case 1:
      return dice.one_of(Strings{"--ctstatus SEEN_REPLY", "--ctstatus CONFIRMED", "--ctstate SNAT", "--ctstate DNAT"});
    default:
      return which + " " + network(dice, family);
  }
}

std::string iptables_match(Dice& dice, Family family, std::string_view chain, bool has_ports) {
  const bool out = chain == "OUTPUT" || chain == "POSTROUTING";
  const std::string no = dice.percent(25) ? "! " : "";
  switch (dice.below(has_ports ? 15 : 11)) {
    case 0:
      return no + "-d " + network(dice, family);
    case 1:
      return no + "-s " + network(dice, family);
    case 2:
      return no + (out ? "-o " : "-i ") + dice.one_of(Strings{"lo", "eth0", "eth+", "net1"});
    case 3:
      return "-m mark " + no + "--mark " + dice.one_of(Strings{"1337", "0", "7", "0x1/0x1"});
    case 4:
      return out ? "-m owner " + no + "--uid-owner " + dice.one_of(Strings{"1337", "1000", "0-1000"}) : "";
    case 5:
      return "-m conntrack " + no + "--ctstate " + dice.one_of(Strings{"NEW", "ESTABLISHED", "INVALID", "NEW,RELATED"});
    case 6:
      return dice.percent(30) ? "-m limit --limit 1/sec" : "-m comment --comment words";
    case 7:
      return dice.percent(30) ? "-m addrtype " + no + "--dst-type LOCAL" : no + "-d " + network(dice, family);
    case 8:
      return dice.percent(30) ? "-m length " + no + "--length 60:100" : no + "-s " + network(dice, family);
    case 9:
      return "-m connmark " + no + "--mark " + dice.one_of(Strings{"1337", "0"});
    case 10:
      return "-m conntrack " + no + conntrack_option(dice, family);
    case 11:
      return no + "--dport " + port(dice);
    case 12:
      return no + "--dport " + dice.one_of(Strings{"1:1023", "15000:15100", "8000:"});
    case 13:
      return no + "--sport " + dice.one_of(Strings{"15001", "80", "53", "15000:15100", "1024:"});
    default:
      return "-m multiport " + no + "--dports 53," + port(dice) + ",15000:15050";
  }
}

std::string iptables_target(Dice& dice, Family family, std::string_view table, std::string_view chain) {
  const auto to = [&] {
    const std::string host = address(dice, family);
    const std::string with_port = family == Family::ipv4 ? host + ":" + port(dice) : "[" + host + "]:" + port(dice);
    return dice.percent(50) ? host : with_port;
  };
  if (table == "nat") {
    if (dice.percent(25)) return dice.one_of(Strings{"-j ACCEPT", "-j RETURN", "-j MINE"});
    if (chain == "INPUT" || chain == "POSTROUTING") {
      return chain == "POSTROUTING" && dice.percent(40) ? "-j MASQUERADE" : "-j SNAT --to-source " + to();
    }
    if (dice.percent(10))
      return "-j NETMAP --to " + dice.one_of(family == Family::ipv4 ? Strings{"10.97.0.0/16", "10.1.0.0/24"}
                                                                    : Strings{"fd00:97::/32", "fd00:1::/64"});
    if (dice.percent(10)) return "-j REDIRECT --to-ports " + dice.one_of(Strings{"8080-8081", "15001-15006"});
    return dice.percent(50) ? "-j REDIRECT --to-ports " + port(dice) : "-j DNAT --to-destination " + to();
  }
  if (table == "mangle" && dice.percent(45)) {
    return dice.one_of(Strings{"-j MARK --set-mark 7", "-j MARK --set-mark 1337", "-j MARK --set-xmark 0x1/0x1",
                               "-j CONNMARK --save-mark", "-j CONNMARK --restore-mark"});
  }
  if (table == "raw" && dice.percent(20)) return dice.one_of(Strings{"-j CT --notrack", "-j CT --zone 5"});
  if (table == "filter" && dice.percent(15)) return "-j REJECT";
  return dice.one_of(Strings{"-j ACCEPT", "-j ACCEPT", "-j RETURN", "-j DROP", "-j DROP", "-j MINE", "-g MINE", ""});
}

// A line of iptables-restore.
std::string iptables_rule(Dice& dice, Family family, std::string_view table, std::string_view base,
                          const std::string& chain, bool may_jump) {
  const bool has_ports = dice.percent(70);
  std::string rule = "-A " + chain;
  if (has_ports) rule += dice.percent(75) ? " -p tcp" : " -p udp";
  for (int i = static_cast<int>(dice.below(3)); i >= 0; --i) {
    const std::string match = iptables_match(dice, family, base, has_ports);
    const std::string option = match.substr(0, match.find(' ', match.starts_with("!") ? 2 : 0));
    if (!match.empty() && rule.find(option) == std::string::npos) rule += " " + match;
  }
  std::string target = iptables_target(dice, family, table, base);
  if (!may_jump && target.ends_with("MINE")) target = "-j RETURN";
  return rule + (target.empty() ? "" : " " + target);
}

std::string iptables_rules(Dice& dice, Family family) {
  std::string text;
  for (int tables = 1 + static_cast<int>(dice.below(2)); tables > 0; --tables) {
    const TableChain& place = iptables_places[dice.below(std::size(iptables_places))];
    const std::string_view table = place.table;
    const bool drops = table != "nat" && dice.percent(12);
    text += fmt::format("*{}\n", table);
    if (drops) text += fmt::format(":{} DROP\n", place.chain);
    text += ":MINE -\n";
    text += iptables_rule(dice, family, table, place.chain, "MINE", false) + "\n";
    for (int rules = 1 + static_cast<int>(dice.below(3)); rules > 0; --rules) {
      text += iptables_rule(dice, family, table, place.chain, place.chain, true) + "\n";
    }
    text += "COMMIT\n";
  }
  return text;
}

// ---- nft

std::string nft_match(Dice& dice, Family family, std::string_view hook) {
  const bool out = hook == "output" || hook == "postrouting";
  const std::string ip = family == Family::ipv4 ? "ip" : "ip6";
  const std::string no = dice.percent(25) ? "!= " : "";
  switch (dice.below(14)) {
    case 0:
      return fmt::format("{} daddr {}{}", ip, no, network(dice, family));
    case 1:
      return fmt::format("{} saddr {}{}", ip, no, network(dice, family));
    case 2:
      return fmt::format("{} daddr {}{{ {}, {} }}", ip, no, addresses(family).service, addresses(family).pod);
    case 3:
      return fmt::format("tcp dport {}{}", no, port(dice));
    case 4:
      return fmt::format("tcp dport {}",
                         dice.one_of(Strings{">= 1024", "< 1024", "15000-15100", "!= 80-443", "> 15001"}));
    case 5:
      return fmt::format("udp dport {}{{ 53, {} }}", no, dice.one_of(Strings{"443", "9", "15053", "80"}));
    case 6:
      return fmt::format("tcp sport {}", dice.one_of(Strings{"15001", "15006", "80", ">= 1024", "8080", "443"}));
    case 7:
      return fmt::format("meta l4proto {}{}", no, dice.one_of(Strings{"tcp", "udp", "{ tcp, udp }"}));
    case 8:
      return fmt::format("meta mark {}", dice.one_of(Strings{"1337", "0", "!= 0", "and 0x1 == 0x1"}));
    case 9:
      return out ? fmt::format("meta skuid {}{}", no, dice.one_of(Strings{"1337", "1000", "0-1000"}))
                 : fmt::format("iifname {}{}", no, dice.one_of(Strings{"lo", "eth0", "\"eth*\""}));
    case 10:
      return fmt::format("ct state {}", dice.one_of(Strings{"new", "established", "invalid", "{ new, established }"}));
    case 11: {
      const std::string field = fmt::format("{} {}", ip, dice.one_of(Strings{"saddr", "daddr"}));
      if (dice.percent(30)) return dice.one_of(Strings{"ct status dnat", "ct status ! snat", "ct status confirmed"});
      return fmt::format("ct {} {} {}{}", dice.one_of(Strings{"original", "reply"}), field, no, network(dice, family));
    }
    case 12:
      return out ? fmt::format("oifname {}{}", no, dice.one_of(Strings{"lo", "eth0", "net1"})) : "";
    default:
      return dice.percent(30) ? "limit rate 1/second" : "";
  }
}

std::string nft_statement(Dice& dice, Family family, std::string_view type, std::string_view hook) {
  const std::string ip = family == Family::ipv4 ? "ip" : "ip6";
  if (type == "nat") {
    if (dice.percent(20)) return dice.one_of(Strings{"accept", "return", "jump mine"});
    const std::string host = address(dice, family);
    const std::string with_port = (family == Family::ipv4 ? host : "[" + host + "]") + ":" + port(dice);
    if (hook == "input" || hook == "postrouting") {
      return hook == "postrouting" && dice.percent(40) ? "masquerade" : fmt::format("snat {} to {}", ip, host);
    }
    return dice.percent(50) ? "meta l4proto tcp redirect to :" + port(dice)
                            : fmt::format("meta l4proto tcp dnat {} to {}", ip, dice.percent(50) ? host : with_port);
  }
  return dice.one_of(Strings{"accept", "accept", "return", "drop", "drop", "counter", "counter drop", "jump mine",
                             "goto mine", "meta mark set 7", "meta mark set 1337", "meta mark set 0x1 accept",
                             "tcp dport vmap { 80 : accept, 15001 : drop, 443 : jump mine }", "ct mark set 7",
                             hook == "prerouting" || hook == "postrouting" ? "drop" : "reject"});
}

std::string nft_rule(Dice& dice, Family family, std::string_view type, std::string_view hook, bool may_jump) {
  std::string rule;
  for (int i = static_cast<int>(dice.below(3)); i > 0; --i) rule += nft_match(dice, family, hook) + " ";
  std::string statement = nft_statement(dice, family, type, hook);
  if (!may_jump && statement.find("mine") != std::string::npos) statement = "return";
  return "    " + rule + statement + "\n";
}

std::string nft_rules(Dice& dice, Family family) {
  const bool both = dice.percent(60);
  std::string text = fmt::format("table {} others {{\n", both ? "inet" : family == Family::ipv4 ? "ip" : "ip6");
  if (dice.percent(5)) text += "  flags dormant;\n";
  const bool nat = dice.percent(35);
  const std::string hook =
      nat ? dice.one_of(Strings{"prerouting", "output", "output", "input", "postrouting"})
          : dice.one_of(Strings{"prerouting", "input", "forward", "output", "output", "postrouting"});
  const std::string type = nat ? "nat" : hook == "output" && dice.percent(30) ? "route" : "filter";
  const std::string priority =
      dice.one_of(nat ? Strings{"-150", "-101", "-99", "50", "100", "0"}
                      : Strings{"-310", "-250", "-151", "-149", "-101", "-99", "0", "0", "10", "150"});
  text += "  chain mine {\n" + nft_rule(dice, family, type, hook, false) + "  }\n";
  text += fmt::format("  chain theirs {{\n    type {} hook {} priority {}; policy {};\n", type, hook, priority,
                      !nat && dice.percent(12) ? "drop" : "accept");
  for (int rules = 1 + static_cast<int>(dice.below(4)); rules > 0; --rules) {
    text += nft_rule(dice, family, type, hook, true);
  }
  return text + "  }\n}\n";
}

}  // namespace

std::vector<Foreign> foreign_rules(Dice& dice) {
  std::vector<Foreign> result;
  for (const Family family : {Family::ipv4, Family::ipv6}) {
    for (int count = 1 + static_cast<int>(dice.below(2)); count > 0; --count) {
      if (dice.percent(40)) {
        result.push_back({{"nft", "-f", "-"}, nft_rules(dice, family)});
      } else {
        const char* of = family == Family::ipv4 ? "" : "6";
        const char* kind = dice.percent(50) ? "legacy" : "nft";
        result.push_back({{fmt::format("ip{}tables-{}-restore", of, kind), "--noflush"}, iptables_rules(dice, family)});
      }
    }
  }
  return result;
}

std::string load(const Namespace& ns, const std::vector<Foreign>& all) {
  std::string text;
  for (const Foreign& one : all) {
    const Output output = ns.program(one.program, one.rules);
    text += fmt::format("{}{}\n{}\n", one.program.front(),
                        output.exit_code == 0 ? "" : " (refused: " + output.err + ")", one.rules);
  }
  return text;
}

}  // namespace sidetrack::netns
