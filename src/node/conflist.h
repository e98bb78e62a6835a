// SPDX-License-Identifier: GPL-2.0-or-later
// A CNI network configuration, with our plugin or without it: keys that nobody knows stay, in their order.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "node/json_text.h"

namespace sidetrack::cni {

// What a file holds, which its name says: one plugin (.conf, .json) or a list of them (.conflist).
enum class Form : std::uint8_t { single, list };

struct Conflist {
  Ordered document;
  std::string text;     // of the file
  std::string network;  // its name
  std::vector<std::string> cni_versions;
  std::vector<std::string> plugins;  // their types, at least one
  bool only_inlined = false;         // loadOnlyInlinedPlugins: nothing is added to them from a folder

  [[nodiscard]] bool has_entry() const;
  // Our entry, if it is the last plugin and the only one of its kind; else null.
  [[nodiscard]] Ordered entry_at_end() const;
};

// A configuration that a runtime would load, as a list: a single plugin becomes a list of one. Throws Error (failed)
// with what it lacks; the message begins with `where`.
[[nodiscard]] Conflist read_conflist(std::string_view where, std::string text, Form form);

// The files from which libcni 1.3 and later add plugins at the end of a list in this folder: FOLDER/NETWORK/*.conf.
[[nodiscard]] std::vector<std::string> plugins_beside(const std::string& folder, const Conflist& list);

// The list with this entry, a JSON object, as the last plugin, in the place of every other entry of ours. Throws Error
// (failed) if the list is of a version that we do not serve.
[[nodiscard]] Ordered with_entry(std::string_view where, const Conflist& list, std::string_view entry);

// The list without any entry of ours. Throws Error (failed) if no plugin would be left.
[[nodiscard]] Ordered without_entry(std::string_view where, const Conflist& list);

// The text of a file.
[[nodiscard]] std::string file_text(const Ordered& document);

}  // namespace sidetrack::cni
