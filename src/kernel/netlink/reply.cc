// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/netlink/reply.h"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "kernel/netlink/attributes.h"

namespace sidetrack::netlink {
namespace {

// Of the payload before the attributes, if there are any. NLMSG_ERROR quotes the request, unless it is capped
// (NETLINK_CAP_ACK).
std::size_t size_of_head(const nlmsghdr* message) {
  const std::size_t whole = mnl_nlmsg_get_payload_len(message);
  if (message->nlmsg_type == NLMSG_DONE) return sizeof(int);
  if (whole < sizeof(nlmsgerr)) return whole;
  const auto* error = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(message));
  const bool capped = (message->nlmsg_flags & NLM_F_CAPPED) != 0;
  const std::size_t quoted = std::max<std::size_t>(error->msg.nlmsg_len, sizeof error->msg) - sizeof error->msg;
  return std::min(whole, sizeof *error + (capped ? 0 : MNL_ALIGN(quoted)));
}

}  // namespace

Reply reply_of(const nlmsghdr* message) {
  Reply reply;
  reply.sequence = message->nlmsg_seq;
  // Both begin with a negative errno; NLMSG_DONE without a payload says that the dump ended well.
  if (mnl_nlmsg_get_payload_len(message) < sizeof(int)) return reply;
  const int negative = *static_cast<const int*>(mnl_nlmsg_get_payload(message));
  reply.error = negative == std::numeric_limits<int>::min() ? EPROTO : -negative;
  if ((message->nlmsg_flags & NLM_F_ACK_TLVS) == 0) return reply;
  const Attributes attributes(message, size_of_head(message));
  if (const nlattr* words = attributes.find(NLMSGERR_ATTR_MSG)) reply.words = string(words);
  if (const nlattr* offset = attributes.find(NLMSGERR_ATTR_OFFS)) reply.offset = host_order<std::uint32_t>(offset);
  return reply;
}

}  // namespace sidetrack::netlink
