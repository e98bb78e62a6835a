// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <libmnl/libmnl.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace sidetrack::netlink {

// What one receive brings: messages, in the buffer of the socket until it receives again.
class Datagram {
 public:
  explicit Datagram(std::span<const std::byte> bytes)
      : next_(reinterpret_cast<const nlmsghdr*>(bytes.data())), left_(static_cast<int>(bytes.size())) {}

  // nullptr after the last whole one.
  [[nodiscard]] const nlmsghdr* next() {
    // libmnl takes a length of more than 2 GiB for a negative one, which fits.
    if (!mnl_nlmsg_ok(next_, left_) || next_->nlmsg_len > static_cast<std::uint32_t>(left_)) return nullptr;
    const nlmsghdr* message = next_;
    next_ = mnl_nlmsg_next(next_, &left_);
    return message;
  }

  // Whether nothing is left. Something is after the last whole message if the next one was cut off.
  [[nodiscard]] bool empty() const { return left_ <= 0; }

  // In bytes, of what is left.
  [[nodiscard]] std::size_t size() const { return left_ > 0 ? static_cast<std::size_t>(left_) : 0; }

 private:
  const nlmsghdr* next_;
  int left_;
};

}  // namespace sidetrack::netlink
