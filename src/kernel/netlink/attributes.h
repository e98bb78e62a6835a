// SPDX-License-Identifier: GPL-2.0-or-later
// The attributes of a netlink message, and their values. They stay in the buffer of the message.
#pragma once

#include <libmnl/libmnl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <string>

#include "model/error.h"

namespace sidetrack::netlink {

[[nodiscard]] inline std::span<const std::byte> payload(const nlattr* attribute) {
  return {static_cast<const std::byte*>(mnl_attr_get_payload(attribute)), mnl_attr_get_payload_len(attribute)};
}

// A number in the byte order of the host, as rtnetlink has them. Throws failed if the attribute is not of its size.
template <typename Number>
[[nodiscard]] Number host_order(const nlattr* attribute) {
  const auto bytes = payload(attribute);
  if (bytes.size() != sizeof(Number)) throw Error(ExitCode::failed, "netlink: an attribute has an unexpected length");
  Number number{};
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

// The same of a number in network byte order, as nf_tables has them.
template <typename Number>
[[nodiscard]] Number network_order(const nlattr* attribute) {
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(Number)>>(host_order<Number>(attribute));
  if constexpr (std::endian::native == std::endian::little) std::ranges::reverse(bytes);
  return std::bit_cast<Number>(bytes);
}

// A text with or without its final zero.
[[nodiscard]] inline std::string string(const nlattr* attribute) {
  const auto bytes = payload(attribute);
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  return {text, strnlen(text, bytes.size())};
}

// The attributes of a message or of a nested attribute, in order. (libmnl's macros for this do not compile as pedantic
// C++.)
class Attributes {
 public:
  class Iterator {
   public:
    Iterator(const nlattr* attribute, const std::byte* end) : attribute_(attribute), end_(end) {}
    const nlattr* operator*() const { return attribute_; }
    Iterator& operator++() {
      attribute_ = mnl_attr_next(attribute_);
      return *this;
    }
    bool operator==(std::default_sentinel_t) const {
      const auto left = end_ - reinterpret_cast<const std::byte*>(attribute_);
      return !mnl_attr_ok(attribute_, static_cast<int>(left));
    }

   private:
    const nlattr* attribute_;
    const std::byte* end_;
  };

  // Those after the header of `header_size` bytes, which follows the netlink header.
  Attributes(const nlmsghdr* message, std::size_t header_size)
      : first_(static_cast<const nlattr*>(mnl_nlmsg_get_payload_offset(message, header_size))),
        end_(reinterpret_cast<const std::byte*>(message) + message->nlmsg_len) {}
  explicit Attributes(std::span<const std::byte> bytes)
      : first_(reinterpret_cast<const nlattr*>(bytes.data())), end_(bytes.data() + bytes.size()) {}
  explicit Attributes(const nlattr* nest) : Attributes(payload(nest)) {}

  [[nodiscard]] Iterator begin() const { return {first_, end_}; }
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

  // The first of that type, or nullptr.
  [[nodiscard]] const nlattr* find(int type) const {
    for (const nlattr* attribute : *this) {
      if (mnl_attr_get_type(attribute) == type) return attribute;
    }
    return nullptr;
  }

 private:
  const nlattr* first_;
  const std::byte* end_;
};

// A message of the kernel, where it was received: valid until its socket receives again.
class Message {
 public:
  explicit Message(const nlmsghdr* message) : message_(message) {}

  // What follows the netlink header: nfgenmsg, rtmsg, … Throws failed if the message is shorter.
  template <typename Header>
  [[nodiscard]] const Header& header() const {
    if (mnl_nlmsg_get_payload_len(message_) < sizeof(Header)) {
      throw Error(ExitCode::failed, "netlink: a message without its header");
    }
    return *static_cast<const Header*>(mnl_nlmsg_get_payload(message_));
  }

  // Those after that header.
  template <typename Header>
  [[nodiscard]] Attributes attributes() const {
    return {message_, sizeof(Header)};
  }

  // All of it, with the netlink header.
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(message_), message_->nlmsg_len};
  }

 private:
  const nlmsghdr* message_;
};

}  // namespace sidetrack::netlink
