// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/netlink/reply.h"

#include "kernel/netlink/attributes.h"

namespace sidetrack::netlink {
namespace {

// Of the payload before the attributes. NLMSG_ERROR quotes the request, unless it is capped (NETLINK_CAP_ACK).
std::size_t size_of_head(const nlmsghdr* message) {
  if (message->nlmsg_type == NLMSG_DONE) return sizeof(int);
  const auto* error = static_cast<const nlmsgerr*>(mnl_nlmsg_get_payload(message));
  const bool capped = (message->nlmsg_flags & NLM_F_CAPPED) != 0;
  return sizeof *error + (capped ? 0 : MNL_ALIGN(mnl_nlmsg_get_payload_len(&error->msg)));
}

}  // namespace

Reply reply_of(const nlmsghdr* message) {
  Reply reply;
  reply.sequence = message->nlmsg_seq;
  // Both begin with a negative errno; NLMSG_DONE without a payload says that the dump ended well.
  if (mnl_nlmsg_get_payload_len(message) < sizeof(int)) return reply;
  reply.error = -*static_cast<const int*>(mnl_nlmsg_get_payload(message));
  if ((message->nlmsg_flags & NLM_F_ACK_TLVS) == 0) return reply;
  const Attributes attributes(message, size_of_head(message));
  if (const nlattr* words = attributes.find(NLMSGERR_ATTR_MSG)) reply.words = string(words);
  if (const nlattr* offset = attributes.find(NLMSGERR_ATTR_OFFS)) reply.offset = host_order<std::uint32_t>(offset);
  return reply;
}

}  // namespace sidetrack::netlink
