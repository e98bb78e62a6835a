// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <libmnl/libmnl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

namespace sidetrack::netlink {

// A message to the kernel, built in place. `put` adds an attribute; what is longer than any request throws
// std::length_error.
class Request {
 public:
  // `header` follows the netlink header: nfgenmsg, rtmsg, …
  template <typename Header>
  Request(int type, int flags, const Header& header) : message_(mnl_nlmsg_put_header(buffer_)) {
    message_->nlmsg_type = static_cast<std::uint16_t>(type);
    message_->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    *static_cast<Header*>(mnl_nlmsg_put_extra_header(message_, sizeof header)) = header;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  void put(int type, std::uint8_t value) { put(type, &value, sizeof value); }
  void put(int type, std::uint32_t value) { put(type, &value, sizeof value); }  // in the byte order of the host
  void put(int type, std::span<const std::uint8_t> bytes) { put(type, bytes.data(), bytes.size()); }
  void put(int type, const std::string& text) { put(type, text.c_str(), text.size() + 1); }  // with its final zero

  // One that holds those that `build` puts.
  template <typename Build>
  void nest(int type, Build build) {
    nlattr* const opened = mnl_attr_nest_start_check(message_, sizeof buffer_, static_cast<std::uint16_t>(type));
    if (opened == nullptr) throw std::length_error("a netlink request is too long");
    build();
    mnl_attr_nest_end(message_, opened);
  }

  void set_sequence(std::uint32_t sequence) { message_->nlmsg_seq = sequence; }

  [[nodiscard]] int type() const { return message_->nlmsg_type; }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(message_), message_->nlmsg_len};
  }

 private:
  void put(int type, const void* data, std::size_t size) {
    if (!mnl_attr_put_check(message_, sizeof buffer_, static_cast<std::uint16_t>(type), size, data)) {
      throw std::length_error("a netlink request is too long");
    }
    const std::size_t padding = MNL_ALIGN(size) - size;  // libmnl 1.0.4 leaves it as it was
    std::memset(buffer_ + message_->nlmsg_len - padding, 0, padding);
  }

  // Not cleared. The longest is that for the rules of a chain: two names of at most 256 bytes.
  alignas(nlmsghdr) char buffer_[1024];
  nlmsghdr* message_;
};

}  // namespace sidetrack::netlink
