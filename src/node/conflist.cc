// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/conflist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "model/error.h"
#include "model/printable.h"
#include "node/network_configuration.h"
#include "node/plugin.h"
#include "system/folder.h"

namespace sidetrack::cni {
namespace {

constexpr const char* fix_it = "correct the file, or remove it if no runtime is to use it";

[[noreturn]] void refuse_list(std::string_view where, const std::string& what, std::string hint = fix_it) {
  throw Error(ExitCode::failed, fmt::format("{}: {}", excerpt(where), what), std::move(hint));
}

Ordered parsed(std::string_view where, std::string_view text, Form form) {
  try {
    static_cast<void>(parse_object(text));
  } catch (const Error& error) {
    refuse_list(where, error.what());
  }
  // Of a key that is there twice it is not clear which of them counts.
  for (const char* key : form == Form::single ? std::vector{"cniVersion", "name"} : std::vector{"plugins"}) {
    if (objects_of(text, key).size() > 1) refuse_list(where, fmt::format("duplicate key \"{}\"", key));
  }
  return Ordered::parse(text);
}

// The list that a runtime makes of a single plugin: with its name and its version.
Ordered as_list(std::string_view where, const Ordered& plugin) {
  if (plugin.contains("plugins"))
    refuse_list(where, "a list of plugins", "a runtime reads lists only from files whose name ends in .conflist");
  if (!plugin.contains("type")) refuse_list(where, "expected the key \"type\", the name of the plugin");
  Ordered list;
  for (const char* key : {"cniVersion", "name"}) {
    if (plugin.contains(key)) list[key] = plugin[key];
  }
  list["plugins"] = Ordered::array({plugin});
  return list;
}

std::string string_of(std::string_view where, const Ordered& value, std::string_view key) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    refuse_list(where, fmt::format("\"{}\": {}: expected a string", key, excerpt(value.dump())));
  return value.get<std::string>();
}

std::vector<std::string> versions_of(std::string_view where, const Ordered& document) {
  std::vector<std::string> versions;
  if (const auto found = document.find("cniVersion"); found != document.end())
    versions.push_back(string_of(where, *found, "cniVersion"));
  if (const auto found = document.find("cniVersions"); found != document.end()) {
    if (!found->is_array()) refuse_list(where, "\"cniVersions\": expected a list");
    for (const Ordered& version : *found) versions.push_back(string_of(where, version, "cniVersions"));
  }
  return versions;
}

}  // namespace

bool Conflist::has_entry() const { return std::ranges::find(plugins, plugin_name) != plugins.end(); }

Ordered Conflist::entry_at_end() const {
  if (plugins.back() != plugin_name || std::ranges::count(plugins, plugin_name) != 1) return nullptr;
  return document["plugins"].back();
}

Conflist read_conflist(std::string_view where, std::string text, Form form) {
  Conflist list;
  list.document = parsed(where, text, form);
  list.text = std::move(text);
  if (form == Form::single) list.document = as_list(where, list.document);
  const Ordered& document = list.document;
  if (!document.contains("name")) refuse_list(where, "expected the key \"name\", the name of the network");
  list.network = string_of(where, document["name"], "name");
  list.cni_versions = versions_of(where, document);
  list.only_inlined = document.value("loadOnlyInlinedPlugins", Ordered()) == Ordered(true);
  if (!document.contains("plugins") || !document["plugins"].is_array() || document["plugins"].empty())
    refuse_list(where, "expected the key \"plugins\", a list of at least one plugin");
  for (const Ordered& plugin : document["plugins"]) {
    if (!plugin.is_object() || !plugin.contains("type"))
      refuse_list(where, fmt::format("plugin {}: expected an object with the key \"type\"", list.plugins.size() + 1));
    list.plugins.push_back(string_of(where, plugin["type"], "type"));
  }
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

Ordered with_entry(std::string_view where, const Conflist& list, std::string_view entry) {
  if (std::ranges::none_of(list.cni_versions, is_served)) {
    refuse_list(
        where,
        fmt::format("\"cniVersion\": {}: expected one of {}",
                    list.cni_versions.empty() ? "none" : excerpt(list.cni_versions.front()),
                    fmt::join(supported_versions, ", ")),
        "earlier versions have no lists of plugins, and later ones are not known: let the primary plugin write one of "
        "these");
  }
  Ordered made = without_entry(where, list);
  made["plugins"].push_back(Ordered::parse(entry));
  return made;
}

Ordered without_entry(std::string_view where, const Conflist& list) {
  Ordered made = list.document;
  auto& plugins = made["plugins"].get_ref<Ordered::array_t&>();
  std::erase_if(plugins, [](const Ordered& plugin) { return plugin["type"] == plugin_name; });
  if (plugins.empty())
    refuse_list(where, "holds no other plugin: without its entry nothing would be left", "remove the file");
  return made;
}

std::string file_text(const Ordered& document) { return document.dump(2) + "\n"; }

}  // namespace sidetrack::cni
