// SPDX-License-Identifier: GPL-2.0-or-later
#include "unit/asking.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

#include "host/host.h"

namespace sidetrack {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

CommandLine parsed(std::vector<std::string> words) {
  std::map<std::string, std::string, std::less<>> variables;
  std::erase_if(words, [&](const std::string& word) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || !std::isupper(static_cast<unsigned char>(word.front()))) return false;
    variables[word.substr(0, equals)] = word.substr(equals + 1);
    return true;
  });
  words.insert(words.begin(), {"sidetrack", "explain"});
  const std::vector<std::string_view> arguments(words.begin(), words.end());
  return parse(arguments, [&](std::string_view name) -> std::optional<std::string_view> {
    const auto found = variables.find(name);
    if (found == variables.end()) return {};
    return found->second;
  });
}

// Removes "NAME NUMBER" from the words.
std::optional<std::uint32_t> take(std::vector<std::string>& words, std::string_view name) {
  const auto found = std::ranges::find(words, name);
  if (found == words.end()) return {};
  const auto number = static_cast<std::uint32_t>(std::stoul(*(found + 1)));
  words.erase(found, found + 2);
  return number;
}

}  // namespace

HostFacts asked(std::string_view options, CommandLine& line) {
  std::vector<std::string> words = split(options);
  if (options.find("--ip-families") == std::string_view::npos) {
    words.insert(words.end(), {"--ip-families", "ipv4,ipv6"});
  }
  words.insert(words.end(), {"--plan", "out", "tcp", "192.0.2.1:1"});
  line = parsed(std::move(words));
  Host nothing;
  nothing.may_lack_addresses = true;
  nothing.passwd = nothing.group = "/nonexistent";
  return gather(line.config, line.names, nothing);
}

Plan planned(std::string_view options) {
  CommandLine line;
  const HostFacts facts = asked(options, line);
  return plan(line.config, facts);
}

Packet packet_of(std::string_view text) {
  std::vector<std::string> words = split(text);
  const auto source_port = take(words, "sport");
  const auto connmark = take(words, "connmark");
  const bool kernel = std::erase(words, "no-socket") > 0;
  Packet packet = parse_packet(parsed(std::move(words)).packet);
  if (source_port) packet.source_port = static_cast<std::uint16_t>(*source_port);
  packet.connmark = connmark;
  if (kernel) packet.owner.reset();
  return packet;
}

Trace ask(std::string_view options, std::string_view packet, BackendKind backend) {
  const Plan plan = planned(options);
  const Live live[] = {as_live(plan.ruleset, backend)};
  return explain(packet_of(packet), assumed_pod(plan), live);
}

}  // namespace sidetrack
