// SPDX-License-Identifier: GPL-2.0-or-later
// Requests, and all that the kernel answers to them.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <type_traits>
#include <vector>

#include "kernel/netlink/attributes.h"
#include "kernel/netlink/reply.h"
#include "kernel/netlink/request.h"
#include "kernel/netlink/socket.h"

namespace sidetrack::netlink {

struct Answer {
  Reply end{};
  std::size_t messages = 0;    // before the end
  const char* lost = nullptr;  // why some of it did not come, a string literal; `end` says nothing then
  bool interrupted = false;    // what was being listed changed meanwhile (NLM_F_DUMP_INTR)

  // Why it is not what the kernel held at one moment; nullptr if it is, or if the kernel refused to say.
  [[nodiscard]] const char* inconsistency() const;
};

// In bytes: a million rules are within it. What is longer is refused, for it would not fit into memory.
inline constexpr std::size_t largest_answer = 1U << 30;

// Gives each message of the answer to `take`, up to the NLMSG_ERROR or NLMSG_DONE that every request with NLM_F_ACK or
// NLM_F_DUMP ends with. Answers to other requests are dropped. Throws failed if the answer does not end, and what the
// socket throws.
[[nodiscard]] Answer ask(Socket& socket, Request& request, const std::function<void(const Message&)>& take);

// The same of what must be whole: throws busy if it was disturbed.
[[nodiscard]] Answer read_whole(Socket& socket, Request& request, const std::function<void(const Message&)>& take);

// The replies that have come already: to messages that the kernel works off before it returns from sending. If they are
// more than the socket holds, the first ones.
[[nodiscard]] std::vector<Reply> pending_replies(Socket& socket);

// Drops all that is left of earlier answers. A dump that is still under way would refuse the next one (EBUSY), and goes
// on while it is received. Not by another socket: a sandbox would refuse it. Throws as `ask` does.
void drain(Socket& socket);

inline constexpr int attempts = 10;  // to read what others keep changing

// Reads by calling `attempt` until it returns something: not if it throws busy, as `read_whole` does, nor if it finds
// by itself that what it read does not fit together. Throws busy after so many attempts.
template <typename Attempt>
auto read_consistent(Socket& socket, Attempt attempt) -> typename std::invoke_result_t<Attempt>::value_type {
  for (int i = 0; i < attempts; ++i) {
    try {
      if (auto whole = attempt()) return *std::move(whole);
    } catch (const Error& error) {
      if (error.code() != ExitCode::busy) throw;
      drain(socket);
    }
  }
  throw Error(ExitCode::busy,
              fmt::format("cannot read {} in {} attempts: another program keeps making changes, or the kernel "
                          "is short of memory",
                          socket.subsystem().contents, attempts),
              "run it again");
}

}  // namespace sidetrack::netlink
