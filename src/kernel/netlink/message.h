// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "kernel/netlink/attributes.h"

namespace sidetrack::netlink {

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
