// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/listing.h"

#include <sstream>
#include <tuple>

namespace sidetrack::netns {

std::string without_time(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("# ")) result += line + "\n";
  }
  return result;
}

namespace {

// The tables of a listing of nft, and the chains in them, by their names instead of by when they were made: those that
// go and come again are last.
std::string by_name(const std::string& ruleset) {
  std::map<std::string, std::map<std::string, std::string>> tables;
  std::string table;
  std::string chain;
  std::istringstream lines(ruleset);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('\t')) {
      if (line.ends_with("{")) table = line;
      chain.clear();
    } else if (!line.starts_with("\t\t") && line.ends_with("{")) {
      chain = line;
    }
    tables[table][chain] += line + "\n";
  }
  std::string result;
  for (const auto& [name, chains] : tables) {
    for (const auto& [title, text] : chains) result += text;
  }
  return result;
}

}  // namespace

std::map<std::string, std::string> atoms(const Namespace& where) {
  std::map<std::string, std::string> all{{"nf_tables", by_name(where.must({"nft", "list", "ruleset"}))}};
  for (const auto& [tool, names, family] : {std::tuple("iptables-legacy-save", "ip_tables_names", "ipv4"),
                                            std::tuple("ip6tables-legacy-save", "ip6_tables_names", "ipv6")}) {
    std::istringstream tables(where.must({"cat", std::string("/proc/thread-self/net/") + names}));
    for (std::string table; tables >> table;) {
      all[std::string("iptables-legacy ") + family + " " + table] = without_time(where.must({tool, "-t", table}));
    }
  }
  return all;
}

namespace {

std::string routing(const Namespace& where) {
  std::string all;
  for (const char* family : {"-4", "-6"}) {
    all += where.must({"ip", family, "rule"});
    // The table of local addresses fills in the background.
    std::istringstream routes(where.must({"ip", family, "route", "show", "table", "all"}));
    for (std::string route; std::getline(routes, route);) {
      if (route.find("table local") == std::string::npos) all += route + "\n";
    }
  }
  return all + where.must({"ip", "-6", "addr", "show", "dev", "lo"});
}

}  // namespace

std::map<std::string, std::string> state(const Namespace& where) {
  auto all = atoms(where);
  std::erase_if(all, [](const auto& atom) {
    const std::string& text = atom.second;
    return atom.first != "nf_tables" && text.find("-A ") == text.npos && text.find(" - [") == text.npos;
  });
  all["routing"] = routing(where);
  return all;
}

std::string listing(const Namespace& where) {
  std::string all = where.must({"nft", "-a", "list", "ruleset"});
  for (const auto& [name, text] : atoms(where)) {
    if (name != "nf_tables") all += text;
  }
  return all + routing(where);
}

}  // namespace sidetrack::netns
