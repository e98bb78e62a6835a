// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/xt/extension.h"

#include <fmt/format.h>

#include <stdexcept>

#include "rule/xt/plain_words.h"

namespace sidetrack::xt {

std::string unknown_words(ExtensionKind kind, const ExtensionView& extension) {
  if (auto words = plain_words(kind, extension)) return *std::move(words);
  std::size_t used = extension.data.size();
  while (used > 0 && extension.data[used - 1] == std::byte{}) --used;
  std::string hex;
  for (std::byte byte : extension.data.first(used)) hex += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return fmt::format("{} {} [rev {}, {} bytes: {}]", kind == ExtensionKind::match ? "-m" : "-j", extension.name,
                     extension.revision, extension.data.size(), hex.empty() ? "all zero" : hex);
}

void refuse(const std::string& words) { throw std::logic_error("not an extension that can be sent: " + words); }

}  // namespace sidetrack::xt
