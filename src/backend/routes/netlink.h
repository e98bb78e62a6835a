// SPDX-License-Identifier: GPL-2.0-or-later
// A conversation with rtnetlink over libmnl: requests that are acknowledged, and dumps.
#pragma once

#include <libmnl/libmnl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sidetrack/error.h"

namespace sidetrack::routes {

// A message to the kernel, built in place.
class Request {
 public:
  // `header` follows the netlink header: rtmsg, fib_rule_hdr, ifaddrmsg.
  template <typename Header>
  Request(int type, int flags, const Header& header) : buffer_{}, message_(mnl_nlmsg_put_header(buffer_.data())) {
    message_->nlmsg_type = static_cast<std::uint16_t>(type);
    message_->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    *static_cast<Header*>(mnl_nlmsg_put_extra_header(message_, sizeof header)) = header;
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  void put(int type, std::uint8_t value) { mnl_attr_put_u8(message_, static_cast<std::uint16_t>(type), value); }
  void put(int type, std::uint32_t value) { mnl_attr_put_u32(message_, static_cast<std::uint16_t>(type), value); }
  void put(int type, std::span<const std::uint8_t> bytes) {
    mnl_attr_put(message_, static_cast<std::uint16_t>(type), bytes.size(), bytes.data());
  }

  [[nodiscard]] nlmsghdr& message() { return *message_; }

 private:
  alignas(nlmsghdr) std::array<char, 256> buffer_;  // the longest, a policy rule, has 80 bytes
  nlmsghdr* message_;
};

// What the kernel said of a request: 0, or an errno and its own words, if it had any.
struct Reply {
  int error = 0;
  std::string words;
};

// A message of a dump, copied.
class Message {
 public:
  explicit Message(const nlmsghdr& message)
      : bytes_(reinterpret_cast<const char*>(&message), reinterpret_cast<const char*>(&message) + message.nlmsg_len) {}

  [[nodiscard]] const nlmsghdr& header() const { return *reinterpret_cast<const nlmsghdr*>(bytes_.data()); }
  template <typename Header>
  [[nodiscard]] const Header& payload() const {
    if (mnl_nlmsg_get_payload_len(&header()) < sizeof(Header)) {
      throw Error(ExitCode::failed, "rtnetlink: a message without its header");
    }
    return *static_cast<const Header*>(mnl_nlmsg_get_payload(&header()));
  }

 private:
  std::vector<char> bytes_;
};

// The attributes of a message, for a range-for; libmnl's own macros for it are not ISO C++.
class Attributes {
 public:
  Attributes(const nlmsghdr& message, std::size_t header_size)
      : first_(static_cast<const nlattr*>(mnl_nlmsg_get_payload_offset(&message, header_size))),
        tail_(static_cast<const char*>(mnl_nlmsg_get_payload_tail(&message))) {}

  struct End {};
  class Iterator {
   public:
    Iterator(const nlattr* attribute, const char* tail) : attribute_(attribute), tail_(tail) {}
    const nlattr& operator*() const { return *attribute_; }
    Iterator& operator++() {
      attribute_ = mnl_attr_next(attribute_);
      return *this;
    }
    bool operator!=(End) const {
      return mnl_attr_ok(attribute_, static_cast<int>(tail_ - reinterpret_cast<const char*>(attribute_)));
    }

   private:
    const nlattr* attribute_;
    const char* tail_;
  };
  [[nodiscard]] Iterator begin() const { return {first_, tail_}; }
  [[nodiscard]] static End end() { return {}; }

 private:
  const nlattr* first_;
  const char* tail_;
};

class Socket {
 public:
  Socket();  // throws if the kernel gives none

  Reply request(Request& request);

  // All messages of a dump; begun anew if a change disturbed it. A family that the kernel has not is empty.
  std::vector<Message> dump(Request& request);

  // Whether lo is up.
  [[nodiscard]] bool loopback_is_up() const;

 private:
  struct Close {
    void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
  };
  unsigned send(Request& request);
  template <typename Visit>
  bool receive(unsigned sequence, Visit visit);

  std::unique_ptr<mnl_socket, Close> socket_;
  std::unique_ptr<char[]> buffer_;
  unsigned sequence_ = 0;
};

}  // namespace sidetrack::routes
