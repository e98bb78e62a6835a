// SPDX-License-Identifier: GPL-2.0-or-later
// What a kernel answers to requests for the nf_tables ruleset, routes and addresses: much like a real one, and with
// garbage, truncated messages and messages without end in between. What was read is shown and explained.
//
// The kernel is the functions of libmnl and recv(2), which this program has in their place. It makes up its answers
// from the input, each to what it is asked.
#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <functional>

#include "fuzz.h"
#include "kernel/netlink/attributes.h"
#include "kernel/nft/nf_tables.h"
#include "kernel/routes.h"
#include "mesh/istio_rules.h"
#include "render/render.h"
#include "render/show.h"
#include "walk/explain.h"

namespace {

using namespace sidetrack;
using fuzz::Choices;

constexpr std::string_view names[] = {"nat",    "filter",     "mangle",       "raw",  "sidetrack",  "t",
                                      "OUTPUT", "PREROUTING", "ISTIO_OUTPUT", "c",    "nat-OUTPUT", "nat-ISTIO_OUTPUT",
                                      "__set0", "s",          "lo",           "eth0", "",           "\x1b[2J"};
constexpr std::string_view expressions[] = {"meta",  "ct",     "payload", "immediate", "bitwise", "byteorder", "cmp",
                                            "range", "lookup", "counter", "notrack",   "reject",  "redir",     "masq",
                                            "nat",   "tproxy", "match",   "target",    "objref",  "limit",     "dynset",
                                            "log",   "fib",    "queue",   "socket",    "exthdr",  "inner",     "none"};
constexpr std::string_view extensions[] = {
    "tcp",   "udp",      "multiport", "owner",    "conntrack", "mark", "connmark",   "REDIRECT", "TPROXY",
    "MARK",  "CONNMARK", "CT",        "comment",  "DNAT",      "SNAT", "MASQUERADE", "REJECT",   "LOG",
    "NFLOG", "iprange",  "NOTRACK",   "addrtype", "state",     "DROP", "string"};

// A list of attributes.
class Attributes {
 public:
  void put(unsigned type, std::string_view value) {
    const auto length = static_cast<std::uint16_t>(sizeof(nlattr) + value.size());
    const nlattr header{length, static_cast<std::uint16_t>(type)};
    bytes_.append(reinterpret_cast<const char*>(&header), sizeof header);
    bytes_ += value;
    bytes_.resize((bytes_.size() + 3) / 4 * 4);
  }
  void put(unsigned type, const Attributes& nested) { put(type | NLA_F_NESTED, nested.bytes_); }
  void text(unsigned type, std::string_view value) { put(type, std::string(value) + '\0'); }
  void u32(unsigned type, std::uint32_t value) {  // in network order
    char text[4];
    for (int i = 3; i >= 0; --i, value >>= 8U) text[i] = static_cast<char>(value & 0xffU);
    put(type, {text, sizeof text});
  }
  void u64(unsigned type, std::uint64_t value) {
    char text[8];
    for (int i = 7; i >= 0; --i, value >>= 8U) text[i] = static_cast<char>(value & 0xffU);
    put(type, {text, sizeof text});
  }
  void host_u32(unsigned type, std::uint32_t value) {
    put(type, {reinterpret_cast<const char*>(&value), sizeof value});
  }
  [[nodiscard]] std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

class FakeKernel {
 public:
  void start(std::span<const std::uint8_t> input) {
    choices_ = Choices(input);
    datagrams_ = 0;
    was_asked_ = false;
  }
  [[nodiscard]] bool was_asked() const { return was_asked_; }

  void ask(std::span<const char> request) {
    std::memcpy(&asked_, request.data(), std::min(sizeof asked_, request.size()));
    ended_ = false;
    endless_ = false;
    was_asked_ = true;
  }

  // -1 with errno, or the size of a datagram.
  ssize_t answer(std::span<char> into, int flags) {
    constexpr int most_datagrams = 200;
    if (ended_ && (flags & MSG_DONTWAIT) != 0) return fail(EAGAIN);
    if (endless_) return copy(endless_datagram_, into);
    if (++datagrams_ > most_datagrams) return fail(EIO);
    std::string datagram;
    if (ended_ || choices_.empty()) {
      end(datagram, 0);
      return copy(datagram, into);
    }
    switch (choices_.below(32)) {
      case 0:
        return fail(ENOBUFS);
      case 1:
        return fail(EINTR);
      case 2:
        return static_cast<ssize_t>(into.size() + 1);  // truncated
      case 3:
        datagram = raw();
        return copy(datagram, into);
      case 4:
        if (choices_.byte() != 0xff) break;
        message(datagram, static_cast<std::uint16_t>(asked_.nlmsg_type), NLM_F_MULTI, std::string(200, '\0'));
        reinterpret_cast<nlmsghdr*>(datagram.data())->nlmsg_seq = asked_.nlmsg_seq + 1;  // to be dropped
        for (const std::string one = datagram; datagram.size() + one.size() < into.size();) datagram += one;
        endless_datagram_ = std::move(datagram);
        endless_ = true;
        return copy(endless_datagram_, into);
      default:
        break;
    }
    for (std::size_t count = choices_.below(5); count > 0; --count) one_message(datagram);
    if (choices_.below(3) != 0) end(datagram, choices_.below(8) == 0 ? static_cast<int>(choices_.number()) : 0);
    if (choices_.below(32) == 0)
      datagram.resize(datagram.size() - std::min<std::size_t>(datagram.size(), 1 + choices_.below(40)));
    if (choices_.below(16) == 0 && !datagram.empty()) {
      datagram[choices_.number() % datagram.size()] = static_cast<char>(choices_.byte());
    }
    return copy(datagram, into);
  }

 private:
  static ssize_t fail(int error) {
    errno = error;
    return -1;
  }
  static ssize_t copy(const std::string& datagram, std::span<char> into) {
    std::memcpy(into.data(), datagram.data(), std::min(datagram.size(), into.size()));
    return static_cast<ssize_t>(datagram.size());
  }

  void message(std::string& datagram, std::uint16_t type, unsigned flags, std::string_view payload) const {
    nlmsghdr header{};
    header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + payload.size());
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(flags);
    header.nlmsg_seq = asked_.nlmsg_seq;
    datagram.append(reinterpret_cast<const char*>(&header), sizeof header);
    datagram += payload;
    datagram.resize((datagram.size() + 3) / 4 * 4);
  }

  void end(std::string& datagram, int error) {
    ended_ = true;
    const bool dump = (asked_.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
    std::string payload(reinterpret_cast<const char*>(&error), sizeof error);
    if (!dump) {
      nlmsghdr quoted = asked_;
      if (choices_.below(16) == 1) quoted.nlmsg_len = choices_.number();
      payload.append(reinterpret_cast<const char*>(&quoted),
                     choices_.below(16) == 1 ? choices_.below(16) : sizeof quoted);
    }
    unsigned flags = choices_.below(16) == 1 ? choices_.number() & 0xffffU : dump ? NLM_F_MULTI : NLM_F_CAPPED;
    if (choices_.below(8) == 1) {
      flags |= NLM_F_ACK_TLVS;
      Attributes more;
      more.text(NLMSGERR_ATTR_MSG, "words");
      more.host_u32(NLMSGERR_ATTR_OFFS, choices_.number());
      payload += more.bytes();
    }
    message(datagram, dump ? NLMSG_DONE : NLMSG_ERROR, flags, payload);
  }

  std::string raw() {
    const auto bytes = choices_.bytes(choices_.number() % 2048);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // ---- What is in a message.

  std::string_view name() { return choices_.of(names); }
  std::string some(std::size_t most) {
    const auto bytes = choices_.bytes(choices_.below(most + 1));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string value(std::size_t size) {
    const auto bytes = choices_.bytes(size);
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    text.resize(size);
    return text;
  }
  std::size_t size() {
    constexpr std::size_t sizes[] = {4, 1, 2, 16, 8, 4, 12, 20, 0, 3, 64, 32};
    return choices_.of(sizes);
  }
  std::uint32_t reg() {
    return choices_.below(4) == 1 ? choices_.number() : NFT_REG_1 + static_cast<std::uint32_t>(choices_.below(2)) * 7;
  }

  Attributes data(std::size_t length) {
    Attributes made;
    if (choices_.below(8) != 1) made.put(NFTA_DATA_VALUE, value(length));
    return made;
  }
  Attributes verdict() {
    constexpr std::int32_t codes[] = {NF_ACCEPT, NF_DROP, NFT_RETURN, NFT_JUMP, NFT_GOTO, NFT_CONTINUE, NF_QUEUE};
    Attributes parts;
    const std::int32_t code = choices_.of(codes);
    parts.u32(NFTA_VERDICT_CODE, static_cast<std::uint32_t>(code));
    if (code == NFT_JUMP || code == NFT_GOTO) parts.text(NFTA_VERDICT_CHAIN, name());
    Attributes made;
    made.put(NFTA_DATA_VERDICT, parts);
    return made;
  }
  // Any attribute at all.
  void any(Attributes& into, int depth) {
    const auto type = static_cast<unsigned>(choices_.below(36));
    switch (choices_.below(6)) {
      case 0:
        into.u32(type, choices_.number());
        break;
      case 1:
        into.u64(type, choices_.number());
        break;
      case 2:
        into.text(type, name());
        break;
      case 3:
        into.put(type, some(40));
        break;
      case 4:
        if (depth < 3) {
          Attributes nested;
          for (std::size_t count = choices_.below(4); count > 0; --count) any(nested, depth + 1);
          into.put(type, nested);
        }
        break;
      default:
        into.put(type, data(size()));
    }
  }

  Attributes expression() {
    const std::string_view kind = choices_.of(expressions);
    Attributes inner;
    if (kind == "meta" || kind == "ct") {
      inner.u32(NFTA_META_KEY, static_cast<std::uint32_t>(choices_.below(34)));
      inner.u32(choices_.below(4) == 1 ? NFTA_META_SREG : NFTA_META_DREG, reg());
      static_assert(NFTA_CT_DREG == 1 && NFTA_META_DREG == 1);
    } else if (kind == "payload") {
      inner.u32(NFTA_PAYLOAD_DREG, reg());
      inner.u32(NFTA_PAYLOAD_BASE, static_cast<std::uint32_t>(choices_.below(4)));
      inner.u32(NFTA_PAYLOAD_OFFSET, static_cast<std::uint32_t>(choices_.below(26)));
      inner.u32(NFTA_PAYLOAD_LEN, static_cast<std::uint32_t>(size()));
    } else if (kind == "immediate") {
      const bool decides = choices_.yes();
      inner.u32(NFTA_IMMEDIATE_DREG, decides ? std::uint32_t{NFT_REG_VERDICT} : reg());
      inner.put(NFTA_IMMEDIATE_DATA, decides ? verdict() : data(size()));
    } else if (kind == "bitwise") {
      const std::size_t length = size();
      inner.u32(NFTA_BITWISE_SREG, reg());
      inner.u32(NFTA_BITWISE_DREG, reg());
      inner.u32(NFTA_BITWISE_LEN, choices_.below(8) == 1 ? choices_.number() : static_cast<std::uint32_t>(length));
      inner.u32(NFTA_BITWISE_OP, static_cast<std::uint32_t>(choices_.below(4)));
      inner.put(NFTA_BITWISE_MASK, data(length));
      inner.put(NFTA_BITWISE_XOR, data(length));
    } else if (kind == "byteorder") {
      inner.u32(NFTA_BYTEORDER_SREG, reg());
      inner.u32(NFTA_BYTEORDER_DREG, reg());
      inner.u32(NFTA_BYTEORDER_OP, static_cast<std::uint32_t>(choices_.below(3)));
      inner.u32(NFTA_BYTEORDER_LEN, choices_.number());
      inner.u32(NFTA_BYTEORDER_SIZE, choices_.number());
    } else if (kind == "cmp") {
      inner.u32(NFTA_CMP_SREG, reg());
      inner.u32(NFTA_CMP_OP, static_cast<std::uint32_t>(choices_.below(7)));
      inner.put(NFTA_CMP_DATA, data(size()));
    } else if (kind == "range") {
      const std::size_t length = size();
      inner.u32(NFTA_RANGE_SREG, reg());
      inner.u32(NFTA_RANGE_OP, static_cast<std::uint32_t>(choices_.below(3)));
      inner.put(NFTA_RANGE_FROM_DATA, data(length));
      inner.put(NFTA_RANGE_TO_DATA, data(length));
    } else if (kind == "lookup") {
      inner.text(NFTA_LOOKUP_SET, choices_.yes() ? "s" : name());
      inner.u32(NFTA_LOOKUP_SREG, reg());
      if (choices_.yes()) inner.u32(NFTA_LOOKUP_DREG, choices_.yes() ? std::uint32_t{NFT_REG_VERDICT} : reg());
      if (choices_.yes()) inner.u32(NFTA_LOOKUP_FLAGS, static_cast<std::uint32_t>(choices_.below(3)));
    } else if (kind == "redir" || kind == "masq" || kind == "nat" || kind == "tproxy" || kind == "reject") {
      for (unsigned type = 1; type <= 6; ++type) {
        if (choices_.yes()) inner.u32(type, choices_.number());
      }
    } else if (kind == "match" || kind == "target") {
      inner.text(NFTA_MATCH_NAME, choices_.of(extensions));
      inner.u32(NFTA_MATCH_REV, static_cast<std::uint32_t>(choices_.below(5)));
      constexpr std::size_t sizes[] = {16, 8, 24, 32, 40, 48, 72, 168, 4, 0, 256, 56, 44};
      inner.put(NFTA_MATCH_INFO, value(choices_.of(sizes)));
    } else if (kind == "counter") {
      inner.u64(NFTA_COUNTER_PACKETS, choices_.number());
      inner.u64(NFTA_COUNTER_BYTES, choices_.number());
    }
    while (choices_.below(8) == 1) any(inner, 0);
    Attributes made;
    made.text(NFTA_EXPR_NAME, kind);
    made.put(NFTA_EXPR_DATA, inner);
    return made;
  }

  void table(Attributes& made) {
    made.text(NFTA_TABLE_NAME, name());
    made.u32(NFTA_TABLE_USE, choices_.number());
    if (choices_.yes()) made.u32(NFTA_TABLE_FLAGS, static_cast<std::uint32_t>(choices_.below(8)));
    if (choices_.yes()) made.u32(NFTA_TABLE_OWNER, choices_.number());
  }
  void chain(Attributes& made) {
    made.text(NFTA_CHAIN_TABLE, name());
    made.text(NFTA_CHAIN_NAME, name());
    if (choices_.yes()) {
      Attributes hook;
      hook.u32(NFTA_HOOK_HOOKNUM, static_cast<std::uint32_t>(choices_.below(7)));
      hook.u32(NFTA_HOOK_PRIORITY, choices_.number());
      if (choices_.below(4) == 1) {
        Attributes devices;
        for (std::size_t count = choices_.below(4); count > 0; --count) devices.text(1, name());
        hook.put(NFTA_HOOK_DEVS, devices);
      }
      constexpr std::string_view types[] = {"filter", "nat", "route", "?"};
      made.put(NFTA_CHAIN_HOOK, hook);
      made.text(NFTA_CHAIN_TYPE, choices_.of(types));
      made.u32(NFTA_CHAIN_POLICY, static_cast<std::uint32_t>(choices_.below(2)));
    }
  }
  void rule(Attributes& made) {
    made.text(NFTA_RULE_TABLE, name());
    made.text(NFTA_RULE_CHAIN, name());
    made.u64(NFTA_RULE_HANDLE, choices_.number());
    Attributes list;
    for (std::size_t count = choices_.below(9); count > 0; --count) list.put(NFTA_LIST_ELEM, expression());
    made.put(NFTA_RULE_EXPRESSIONS, list);
    if (choices_.below(4) == 1) made.put(NFTA_RULE_USERDATA, some(40));
  }
  void set(Attributes& made) {
    made.text(NFTA_SET_TABLE, name());
    made.text(NFTA_SET_NAME, choices_.yes() ? "s" : name());
    made.u32(NFTA_SET_FLAGS, choices_.byte());
    made.u32(NFTA_SET_KEY_LEN, static_cast<std::uint32_t>(size()));
    if (choices_.yes()) made.u32(NFTA_SET_DATA_TYPE, choices_.yes() ? 0xffffff00 : choices_.number());
  }
  void elements(Attributes& made) {
    made.text(NFTA_SET_ELEM_LIST_TABLE, name());
    Attributes list;
    for (std::size_t count = choices_.below(6); count > 0; --count) {
      Attributes element;
      const std::size_t length = size();
      element.put(NFTA_SET_ELEM_KEY, data(length));
      if (choices_.below(4) == 1) element.put(NFTA_SET_ELEM_KEY_END, data(length));
      if (choices_.below(4) == 1) element.put(NFTA_SET_ELEM_DATA, choices_.yes() ? verdict() : data(size()));
      if (choices_.below(4) == 1) element.u32(NFTA_SET_ELEM_FLAGS, static_cast<std::uint32_t>(choices_.below(5)));
      if (choices_.below(8) == 1) any(element, 0);
      list.put(NFTA_LIST_ELEM, element);
    }
    made.put(NFTA_SET_ELEM_LIST_ELEMENTS, list);
  }

  // Of rtnetlink: a header of small numbers, addresses and numbers in host order.
  std::string routing(std::size_t header) {
    std::string payload = value(header);
    constexpr char families[] = {AF_INET, AF_INET6, AF_UNSPEC};
    payload[0] = choices_.of(families);
    Attributes made;
    for (std::size_t count = choices_.below(8); count > 0; --count) {
      const auto type = static_cast<unsigned>(choices_.below(28));
      if (choices_.yes())
        made.host_u32(type, choices_.number());
      else if (choices_.yes())
        made.put(type, value(payload[0] == AF_INET ? 4 : 16));
      else if (choices_.yes())
        made.text(type, name());
      else
        made.put(type, some(20));
    }
    return payload + made.bytes();
  }

  std::string payload() {
    switch (asked_.nlmsg_type) {
      case RTM_GETRULE:
        return routing(sizeof(fib_rule_hdr));
      case RTM_GETROUTE:
        return routing(sizeof(rtmsg));
      case RTM_GETADDR:
        return routing(8);
      case RTM_GETLINK:
        return routing(16);
      default:
        break;
    }
    constexpr std::uint8_t families[] = {NFPROTO_INET, NFPROTO_IPV4, NFPROTO_IPV6, NFPROTO_NETDEV, NFPROTO_ARP, 200};
    const nfgenmsg header{choices_.of(families), NFNETLINK_V0, 0};
    Attributes made;
    switch (asked_.nlmsg_type & 0xffU) {
      case NFT_MSG_GETGEN:
        made.u32(NFTA_GEN_ID, choices_.below(8) == 1 ? choices_.number() : 7);
        break;
      case NFT_MSG_GETTABLE:
        table(made);
        break;
      case NFT_MSG_GETCHAIN:
        chain(made);
        break;
      case NFT_MSG_GETRULE:
        rule(made);
        break;
      case NFT_MSG_GETSET:
        set(made);
        break;
      default:
        elements(made);
    }
    while (choices_.below(16) == 1) any(made, 0);
    return std::string(reinterpret_cast<const char*>(&header), sizeof header) + made.bytes();
  }

  void one_message(std::string& datagram) {
    const std::size_t kind = choices_.below(32);
    if (kind == 1) return message(datagram, static_cast<std::uint16_t>(choices_.below(20)), choices_.byte(), raw());
    if (kind == 2) return message(datagram, NLMSG_OVERRUN, 0, "");
    message(datagram, static_cast<std::uint16_t>(asked_.nlmsg_type), kind == 3 ? NLM_F_DUMP_INTR : NLM_F_MULTI,
            payload());
  }

  Choices choices_{{}};
  nlmsghdr asked_{};
  bool was_asked_ = false;
  bool ended_ = false;
  bool endless_ = false;
  std::string endless_datagram_;
  int datagrams_ = 0;
};

FakeKernel fake_kernel;

}  // namespace

// ---- In the place of libmnl's sockets.

struct mnl_socket {
  int opened;
};
static mnl_socket the_socket{};

extern "C" {
mnl_socket* mnl_socket_open2(int, int) { return &the_socket; }
int mnl_socket_bind(mnl_socket*, unsigned, pid_t) { return 0; }
int mnl_socket_get_fd(const mnl_socket*) { return -1; }
int mnl_socket_close(mnl_socket*) { return 0; }
ssize_t send(int, const void* request, size_t size, int) {
  fake_kernel.ask({static_cast<const char*>(request), size});
  return static_cast<ssize_t>(size);
}
ssize_t recv(int, void* into, size_t size, int flags) {
  return fake_kernel.answer({static_cast<char*>(into), size}, flags);
}
}

namespace {

void look_at(std::vector<Live> live, const PodView& pod) {
  static_cast<void>(show(live, {}, {.all = true}));
  static_cast<void>(show_json(live, {}, {}));
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"out", "tcp", "10.96.0.10:443"},
                                                                                     {"in", "tcp", ":8080"},
                                                                                     {"out", "udp", "[fd00::1]:53"},
                                                                                     {"lo", "tcp", ":80"}}) {
    PacketOptions options;
    options.words = words;
    const Trace trace = explain(parse_packet(options), pod, live);
    fuzz::require(!trace_text(trace, {}).empty() && !json(trace).empty(), "an explanation");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fake_kernel.start({data, size});
  try {
    nft::LiveNfTables both = nft::NfTables(istio_rules).read();
    std::vector<Live> live;
    live.push_back(std::move(both.iptables_nft));
    live.push_back(std::move(both.nftables));
    PodView pod;
    try {
      pod = read_pod();
      static_cast<void>(open_routes()->read());
    } catch (const Error&) {
    }
    look_at(std::move(live), pod);
  } catch (const Error& error) {
    fuzz::require(*error.what() != '\0', "an error without words");
  }
  fuzz::require(fake_kernel.was_asked(), "a request");
  try {  // What is left of the input.
    const PodView pod = read_pod();
    static_cast<void>(open_routes()->read());
    look_at({}, pod);
  } catch (const Error&) {
  }
  return 0;
}
