// SPDX-License-Identifier: GPL-2.0-or-later
#include "cni/attachments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "cni/plugin.h"
#include "model/error.h"
#include "model/printable.h"
#include "system/file.h"
#include "system/folder.h"

namespace sidetrack::cni {
namespace {

// Up to the first character that is none of its digits.
std::string decode_base64(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char c : text) {
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) break;
    group = group << 6U | static_cast<std::uint32_t>(digit);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> static_cast<unsigned>(bits) & 0xffU);
  }
  return bytes;
}

// Returns the container of a file of libcni's cache, if its configuration names us: {"kind": "cniCacheV1",
// "containerId": …, "config": BASE64, …}.
std::string container_in(const std::string& text) {
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_object()) return "";
  const auto field = [&](const char* key) {
    const auto found = document.find(key);
    return found != document.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const bool names_us = decode_base64(field("config")).find(fmt::format("\"{}\"", plugin_name)) != std::string::npos;
  return names_us ? field("containerId") : "";
}

std::vector<std::string> files_in(const std::string& folder) {
  const auto entries = entries_of(folder);
  if (!entries && errno != ENOENT && errno != ENOTDIR)
    throw system_error(errno, fmt::format("cannot read the folder '{}'", excerpt(folder)));
  std::vector<std::string> names;
  for (const FolderEntry& entry : entries.value_or(std::vector<FolderEntry>())) {
    if (!entry.is_folder) names.push_back(entry.name);
  }
  return names;
}

}  // namespace

std::vector<std::string> attached_containers(const std::string& records, const std::string& cache) {
  std::vector<std::string> ids;
  for (const std::string& name : files_in(records)) {
    if (!name.starts_with('.')) ids.push_back(name);  // that cannot be read, too: then something was programmed
  }
  for (const std::string& name : files_in(cache)) {
    const std::string path = fmt::format("{}/{}", cache, name);
    const host::FileText file = host::read_file(-1, path);
    if (file.error == EACCES) throw system_error(file.error, fmt::format("cannot read '{}'", excerpt(path)));
    const std::string id = file.text ? container_in(*file.text) : "";
    if (!id.empty()) ids.push_back(id);
  }
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return ids;
}

}  // namespace sidetrack::cni
