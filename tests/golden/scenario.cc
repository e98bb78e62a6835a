// SPDX-License-Identifier: GPL-2.0-or-later
#include "golden/scenario.h"

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

namespace sidetrack {
namespace {

// What a shell would make of a line without anything but single quotes.
std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  bool any = false;
  for (char c : line) {
    if (c == '\'') {
      open = !open;
      any = true;
    } else if (c == ' ' && !open) {
      if (any) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
      any = true;
    }
  }
  if (any) words.push_back(word);
  return words;
}

Scenario load(const std::filesystem::path& folder) {
  Scenario scenario{folder.filename(), folder, {}, {}};
  std::istringstream args(read_file(folder / "args"));
  static const std::regex assignment("([A-Z_0-9]+)=(.*)");
  for (std::string line; std::getline(args, line);) {
    std::smatch parts;
    if (line.empty() || line.front() == '#') continue;
    if (std::regex_match(line, parts, assignment)) {
      scenario.environment[parts[1]] = parts[2];
      continue;
    }
    for (std::string& word : split(line)) scenario.arguments.push_back(std::move(word));
  }
  return scenario;
}

}  // namespace

const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = [] {
    std::vector<Scenario> loaded;
    for (const auto& entry : std::filesystem::directory_iterator(SIDETRACK_SOURCE_DIR "/rules")) {
      if (std::filesystem::exists(entry.path() / "args")) loaded.push_back(load(entry.path()));
    }
    std::ranges::sort(loaded, {}, &Scenario::name);
    return loaded;
  }();
  return all;
}

}  // namespace sidetrack
