// SPDX-License-Identifier: GPL-2.0-or-later
// The text of a CNI network configuration, with our plugin or without it. No byte is written or removed but those of
// our own entry: the order of keys, numbers, blanks and keys that nobody knows stay as they are, and taking the entry
// out gives back the text that was there before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sidetrack::cni {

// What a file holds, which its name says: one plugin (.conf, .json) or a list of them (.conflist).
enum class Form : std::uint8_t { single, list };

struct ListedPlugin {
  std::string type;
  std::size_t begin = 0;  // of its text, in that of the list
  std::size_t end = 0;
};

struct Conflist {
  std::string text;
  std::string network;  // its name
  std::vector<std::string> cni_versions;
  std::vector<ListedPlugin> plugins;  // at least one
  bool only_inlined = false;          // loadOnlyInlinedPlugins: nothing is added to them from a folder

  [[nodiscard]] bool has_entry() const;
  // The text of our entry, if it is the last plugin and the only one of its kind; else empty.
  [[nodiscard]] std::string_view entry_at_end() const;
};

// A configuration that a runtime would load, as a list: a single plugin becomes a list of one. Throws Error (failed)
// with what it lacks; the message begins with `where`.
[[nodiscard]] Conflist read_conflist(std::string_view where, std::string text, Form form);

// The files from which libcni 1.3 and later add plugins at the end of a list in this folder: FOLDER/NETWORK/*.conf.
[[nodiscard]] std::vector<std::string> plugins_beside(const std::string& folder, const Conflist& list);

// The text with this entry, a JSON object, as the last plugin, in the place of every other entry of ours. Throws Error
// (failed) if the list is of a version that we do not serve.
[[nodiscard]] std::string with_entry(std::string_view where, const Conflist& list, std::string_view entry);

// The text without any entry of ours. Throws Error (failed) if no plugin would be left.
[[nodiscard]] std::string without_entry(std::string_view where, const Conflist& list);

}  // namespace sidetrack::cni
