// SPDX-License-Identifier: GPL-2.0-or-later
// Puts the struct of an extension into bytes and takes it out. Each kind of match and target has its own: name,
// revision, struct. The revisions that are sent are those of iptables 1.8.9, which every kernel since 4.17 has. An
// older one would do for CONNMARK, but iptables 1.8.9 lists it without its words.
#pragma once

#include <linux/netfilter/x_tables.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <type_traits>

#include "model/address.h"
#include "rule/xt/extension.h"

namespace sidetrack::xt {

// XT_ALIGN: on every 64-bit machine, and on 32-bit ones with 64-bit alignment, a multiple of 8.
constexpr std::size_t aligned(std::size_t size) { return (size + 7) & ~std::size_t{7}; }

template <typename Info>
struct Spec {
  static_assert(std::is_trivially_copyable_v<Info>);
  std::string_view name;
  std::uint8_t revision;
  std::size_t padding = 0;  // bytes at the end of the struct that no field covers: the kernel is sent zeros there

  [[nodiscard]] Extension encode(const Info& info) const {
    Extension extension{std::string(name), revision, std::vector<std::byte>(aligned(sizeof info))};
    std::memcpy(extension.data.data(), &info, sizeof info - padding);
    return extension;
  }

  // The struct, if `extension` is this one, and nothing else is in its bytes.
  [[nodiscard]] std::optional<Info> decode(const ExtensionView& extension) const {
    const bool of_size = extension.data.size() == sizeof(Info) || extension.data.size() == aligned(sizeof(Info));
    if (extension.name != name || extension.revision != revision || !of_size) return std::nullopt;
    for (const std::byte rest : extension.data.subspan(sizeof(Info) - padding)) {
      if (rest != std::byte{}) return std::nullopt;
    }
    Info info;
    std::memcpy(&info, extension.data.data(), sizeof info);
    return info;
  }
};

// The address of the family that begins there, in network byte order.
[[nodiscard]] inline Address address_in(Family family, const void* bytes) {
  Address address{family, {}};
  std::memcpy(address.bytes.data(), bytes, address.size());
  return address;
}

// Whether all bytes of a part of a struct are zero.
template <typename Part>
[[nodiscard]] bool is_zero(const Part& part) {
  static const Part zero{};
  return std::memcmp(&part, &zero, sizeof part) == 0;
}

[[nodiscard]] inline bool is_exactly(const Extension& encoded, const ExtensionView& extension) {
  return encoded.name == extension.name && encoded.revision == extension.revision &&
         std::ranges::equal(encoded.data, extension.data);
}

[[nodiscard]] constexpr std::uint8_t flag(bool set) { return set ? 1 : 0; }

}  // namespace sidetrack::xt
