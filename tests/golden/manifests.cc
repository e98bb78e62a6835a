// SPDX-License-Identifier: GPL-2.0-or-later
#include "golden/manifests.h"

#include <algorithm>
#include <sstream>

#include "golden/scenario.h"
#include "inject/manifest/arguments.h"
#include "options/options.h"

namespace sidetrack {
namespace {

const std::filesystem::path source = SIDETRACK_SOURCE_DIR;

// Paths among the options are relative to the source.
std::vector<std::string> arguments_for(const Manifest& manifest) {
  std::vector<std::string> made{"sidetrack", "args", "-f", manifest.file};
  std::istringstream words(read_file(std::filesystem::path(manifest.file).replace_extension(".options")));
  for (std::string word; words >> word;) made.push_back(word.starts_with("tests/") ? (source / word).string() : word);
  return made;
}

}  // namespace

std::filesystem::path Manifest::expected() const { return std::filesystem::path(file).replace_extension(".args"); }

const std::vector<Manifest>& manifests() {
  static const std::vector<Manifest> all = [] {
    std::vector<Manifest> found;
    for (const auto& entry : std::filesystem::directory_iterator(source / "tests/golden/manifests")) {
      if (entry.path().extension() == ".yaml") found.push_back({entry.path().stem(), entry.path()});
    }
    std::ranges::sort(found, {}, &Manifest::name);
    return found;
  }();
  return all;
}

std::string said_of(const Manifest& manifest) {
  const auto given = arguments_for(manifest);
  const std::vector<std::string_view> views(given.begin(), given.end());
  const CommandLine line = parse(views, [](std::string_view) { return std::optional<std::string_view>(); });
  std::vector<std::string> warnings, errors;
  const auto pods = manifest::arguments(line.manifest, warnings, errors);
  std::string text =
      manifest::arguments_text(pods) + "\n" + manifest::why_text(pods) + "\n" + manifest::arguments_json(pods, errors);
  for (const std::string& warning : warnings) text += "\nwarning: " + warning + "\n";
  for (const std::string& error : errors) text += "\nerror: " + error + "\n";
  for (std::size_t at = 0; (at = text.find(source.string() + "/")) != std::string::npos;)
    text.erase(at, source.string().size() + 1);
  return text;
}

}  // namespace sidetrack
