// SPDX-License-Identifier: GPL-2.0-or-later
#include "cni/conflist.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "cni/json_text.h"
#include "cni/network_configuration.h"
#include "cni/plugin.h"
#include "model/error.h"
#include "model/printable.h"
#include "system/folder.h"

namespace sidetrack::cni {
namespace {

constexpr const char* fix_it = "correct the file, or remove it if no runtime is to use it";

[[noreturn]] void refuse_list(std::string_view where, const std::string& what, std::string hint = fix_it) {
  throw Error(ExitCode::failed, fmt::format("{}: {}", excerpt(where), what), std::move(hint));
}

// ---- Reading

Parsed parsed(std::string_view where, std::string_view text) {
  try {
    return parse_object(text);
  } catch (const Error& error) {
    refuse_list(where, error.what());
  }
}

// The text of a value of the object; of a key that is there twice it is not clear which of them counts.
std::optional<TextRange> find_value(std::string_view where, std::string_view text, std::string_view wanted) {
  const std::vector<TextRange> found = values_of(text, wanted);
  if (found.size() > 1) refuse_list(where, fmt::format("duplicate key \"{}\"", wanted));
  return found.empty() ? std::nullopt : std::optional(found.front());
}

// The list that a runtime makes of a single plugin: with its name and its version.
std::string as_list(std::string_view where, std::string_view text) {
  std::string list = "{\n";
  for (const char* key : {"cniVersion", "name"}) {
    if (const auto value = find_value(where, text, key)) list += fmt::format("  \"{}\": {},\n", key, value->of(text));
  }
  const std::size_t begin = text.find('{');
  const std::size_t end = text.rfind('}') + 1;
  return list + fmt::format("  \"plugins\": [\n    {}\n  ]\n}}\n", text.substr(begin, end - begin));
}

std::string text_of(std::string_view where, const Parsed& value, std::string_view key) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    refuse_list(where, fmt::format("\"{}\": {}: expected a string", key, excerpt(value.dump())));
  return value.get<std::string>();
}

std::vector<std::string> versions_of(std::string_view where, const Parsed& document) {
  std::vector<std::string> versions;
  if (const auto found = document.find("cniVersion"); found != document.end())
    versions.push_back(text_of(where, *found, "cniVersion"));
  if (const auto found = document.find("cniVersions"); found != document.end()) {
    if (!found->is_array()) refuse_list(where, "\"cniVersions\": expected a list");
    for (const Parsed& version : *found) versions.push_back(text_of(where, version, "cniVersions"));
  }
  return versions;
}

// ---- Writing

bool is_ours(const ListedPlugin& plugin) { return plugin.type == plugin_name; }

// The text without the plugins of ours, each with the comma that separates it from those that stay.
std::string cut(const Conflist& list) {
  std::string text;
  std::size_t copied = 0;
  bool any_left = false;
  const std::span<const ListedPlugin> plugins = list.plugins;
  for (std::size_t i = 0; i < plugins.size(); ++i) {
    if (!is_ours(plugins[i])) {
      any_left = true;
      continue;
    }
    // From the end of the plugin before, or up to the beginning of the next one.
    const bool has_next = i + 1 < plugins.size();
    const std::size_t from = any_left ? std::max(copied, plugins[i - 1].end) : plugins[i].begin;
    const std::size_t to = any_left || !has_next ? plugins[i].end : plugins[i + 1].begin;
    text.append(list.text, copied, from - copied);
    copied = to;
  }
  return text.append(list.text, copied);
}

// What stands between the plugins, or before the only one: a line feed and an indentation, mostly.
std::string_view blanks_before_last(std::string_view text, const ListedPlugin& last) {
  const std::size_t end = text.find_last_not_of(" \t\r\n", last.begin - 1) + 1;
  return text.substr(end, last.begin - end);
}

}  // namespace

bool Conflist::has_entry() const { return std::ranges::any_of(plugins, is_ours); }

std::string_view Conflist::entry_at_end() const {
  if (!is_ours(plugins.back()) || std::ranges::count_if(plugins, is_ours) != 1) return {};
  return std::string_view(text).substr(plugins.back().begin, plugins.back().end - plugins.back().begin);
}

Conflist read_conflist(std::string_view where, std::string text, Form form) {
  Parsed document = parsed(where, text);
  if (form == Form::single) {
    if (document.contains("plugins"))
      refuse_list(where, "a list of plugins", "a runtime takes lists from files whose name ends in .conflist alone");
    if (!document.contains("type")) refuse_list(where, "expected the key \"type\", the name of the plugin");
    text = as_list(where, text);
    document = parsed(where, text);
  }

  Conflist list;
  if (!document.contains("name")) refuse_list(where, "expected the key \"name\", the name of the network");
  list.network = text_of(where, document["name"], "name");
  list.cni_versions = versions_of(where, document);
  list.only_inlined = document.value("loadOnlyInlinedPlugins", Parsed()) == Parsed(true);
  const auto place = find_value(where, text, "plugins");
  if (!place || !document["plugins"].is_array() || document["plugins"].empty())
    refuse_list(where, "expected the key \"plugins\", a list of at least one plugin");
  each_value(text, place->begin, [&](std::string_view, TextRange value) {
    const Parsed& plugin = document["plugins"][list.plugins.size()];
    if (!plugin.is_object() || !plugin.contains("type"))
      refuse_list(where, fmt::format("plugin {}: expected an object with the key \"type\"", list.plugins.size() + 1));
    list.plugins.push_back({text_of(where, plugin["type"], "type"), value.begin, value.end});
  });
  list.text = std::move(text);
  return list;
}

std::vector<std::string> plugins_beside(const std::string& folder, const Conflist& list) {
  const std::string path = fmt::format("{}/{}", folder, list.network);
  std::vector<std::string> files;
  const auto entries = list.only_inlined ? std::nullopt : entries_of(path);
  if (!entries) return files;
  for (const FolderEntry& entry : *entries) {
    if (!entry.is_folder && entry.name.ends_with(".conf")) files.push_back(fmt::format("{}/{}", path, entry.name));
  }
  return files;
}

std::string with_entry(std::string_view where, const Conflist& list, std::string_view entry) {
  if (std::ranges::none_of(list.cni_versions, is_served)) {
    refuse_list(
        where,
        fmt::format("\"cniVersion\": {}: expected one of {}",
                    list.cni_versions.empty() ? "none" : excerpt(list.cni_versions.front()),
                    fmt::join(supported_versions, ", ")),
        "earlier versions have no lists of plugins, and later ones are not known: let the primary plugin write one of "
        "these");
  }
  Conflist others = list;
  if (list.has_entry()) others = read_conflist(where, without_entry(where, list), Form::list);
  const ListedPlugin& last = others.plugins.back();
  return fmt::format("{},{}{}{}", others.text.substr(0, last.end), blanks_before_last(others.text, last), entry,
                     others.text.substr(last.end));
}

std::string without_entry(std::string_view where, const Conflist& list) {
  if (std::ranges::all_of(list.plugins, is_ours))
    refuse_list(where, "holds no other plugin: without its entry nothing would be left", "remove the file");
  return cut(list);
}

}  // namespace sidetrack::cni
