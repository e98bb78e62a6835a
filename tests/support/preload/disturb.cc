// SPDX-License-Identifier: GPL-2.0-or-later
// To be preloaded: what the program reads of the kernel is disturbed once, or from one place on. $DISTURB names the
// fault, its errno (or 0), the number of the call, from 1, and 1 if all later ones are to meet with it, too:
// "done 12 3 0". Counted are the receives from sockets of nf_tables and rtnetlink, and the questions for the tables of
// legacy iptables, together. For each a line goes to the file $DISTURB_LOG: "dump", a datagram that belongs to one;
// "answer", another datagram; "empty", there was none; "info" and "entries", of legacy iptables; "disturbed".
#include <fcntl.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

struct Fault {
  char kind[16] = "";
  int error = 0;
  int nth = 0;
  int lasting = 0;
};

const Fault& fault() {
  static const Fault asked = [] {
    Fault made;
    const char* text = std::getenv("DISTURB");
    if (text != nullptr) std::sscanf(text, "%15s %d %d %d", made.kind, &made.error, &made.nth, &made.lasting);
    return made;
  }();
  return asked;
}

bool is(std::string_view kind) { return fault().kind == kind; }

// Whether the call that is made now is to be disturbed.
bool its_turn() {
  static int calls = 0;
  ++calls;
  return calls == fault().nth || (fault().lasting != 0 && calls > fault().nth);
}

// Opened before the program is in its sandbox.
const int file = [] {
  const char* path = std::getenv("DISTURB_LOG");
  return path != nullptr ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
}();

void log(std::string_view line) {
  if (file < 0) return;
  const int error = errno;
  if (write(file, line.data(), line.size()) < 0 || write(file, "\n", 1) < 0) std::abort();
  errno = error;
}

int option_of(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return syscall(SYS_getsockopt, fd, level, name, &value, &size) == 0 ? value : -1;
}

bool is_watched(int fd) {
  const int error = errno;
  const int protocol = option_of(fd, SOL_SOCKET, SO_DOMAIN) == AF_NETLINK ? option_of(fd, SOL_SOCKET, SO_PROTOCOL) : -1;
  errno = error;
  return protocol == NETLINK_ROUTE || protocol == NETLINK_NETFILTER;
}

// ---- datagrams

using Bytes = std::vector<char>;

nlmsghdr header_at(const Bytes& datagram, std::size_t at) {
  nlmsghdr header{};
  if (at + sizeof header <= datagram.size()) std::memcpy(&header, datagram.data() + at, sizeof header);
  return header;
}

// Where each message begins.
std::vector<std::size_t> messages_of(const Bytes& datagram) {
  std::vector<std::size_t> places;
  std::size_t at = 0;
  while (at + sizeof(nlmsghdr) <= datagram.size()) {
    places.push_back(at);
    at += NLMSG_ALIGN(std::max<std::size_t>(header_at(datagram, at).nlmsg_len, sizeof(nlmsghdr)));
  }
  return places;
}

bool is_end(const nlmsghdr& header) { return header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR; }
bool is_of_dump(const Bytes& datagram) {
  return (header_at(datagram, 0).nlmsg_flags & NLM_F_MULTI) != 0 || header_at(datagram, 0).nlmsg_type == NLMSG_DONE;
}
bool ends(const Bytes& datagram) {
  const std::vector<std::size_t> places = messages_of(datagram);
  return !places.empty() && is_end(header_at(datagram, places.back()));
}

// A message of the kernel itself: a number, and for NLMSG_ERROR the header of what it is about.
Bytes message(const nlmsghdr& like, std::uint16_t type, std::uint32_t sequence, int number) {
  nlmsgerr payload{number, like};
  payload.msg.nlmsg_seq = sequence;
  const std::size_t size = type == NLMSG_ERROR ? sizeof payload : type == NLMSG_DONE ? sizeof number : 0;
  const nlmsghdr header{static_cast<std::uint32_t>(sizeof(nlmsghdr) + size), type,
                        static_cast<std::uint16_t>(type == NLMSG_DONE ? NLM_F_MULTI : 0), sequence, like.nlmsg_pid};
  Bytes made(header.nlmsg_len);
  std::memcpy(made.data(), &header, sizeof header);
  std::memcpy(made.data() + sizeof header, &payload, size);
  return made;
}

// The first half of what the datagram says, before the end of the dump.
Bytes half_of(const Bytes& datagram) {
  std::vector<std::size_t> places = messages_of(datagram);
  if (ends(datagram)) places.pop_back();
  const std::size_t end = places.size() < 2 ? 0 : places[places.size() / 2];
  return {datagram.begin(), datagram.begin() + static_cast<std::ptrdiff_t>(end)};
}

void append(Bytes& to, const Bytes& more) { to.insert(to.end(), more.begin(), more.end()); }

// Another program changed what was being listed: all but the first message is discarded.
Bytes interrupted(Bytes datagram) {
  const std::vector<std::size_t> places = messages_of(datagram);
  if (places.size() > 1) {
    const bool has_end = ends(datagram);
    const std::size_t first = has_end && places.size() == 2 ? 0 : places[1];
    const std::size_t last = has_end ? places.back() : datagram.size();
    datagram.erase(datagram.begin() + static_cast<std::ptrdiff_t>(first),
                   datagram.begin() + static_cast<std::ptrdiff_t>(last));
  }
  for (const std::size_t at : messages_of(datagram)) {
    nlmsghdr header = header_at(datagram, at);
    header.nlmsg_flags |= NLM_F_DUMP_INTR;
    std::memcpy(datagram.data() + at, &header, sizeof header);
  }
  return datagram;
}

// What the kernel would not send after it broke the dump off.
void discard_rest(int fd, Bytes datagram) {
  while (!ends(datagram)) {
    datagram.resize(std::size_t{64} * 1024);
    const long size = syscall(SYS_recvfrom, fd, datagram.data(), datagram.size(), 0, nullptr, nullptr);
    if (size < 0) std::abort();
    datagram.resize(static_cast<std::size_t>(size));
  }
}

Bytes disturbed(int fd, const Bytes& datagram) {
  const nlmsghdr first = header_at(datagram, 0);
  Bytes made;
  if (is("cut")) {
    made.assign(datagram.begin(), datagram.end() - NLMSG_ALIGNTO);
  } else if (is("foreign")) {  // an answer to another question
    made = message(first, NLMSG_ERROR, first.nlmsg_seq ^ 0x40000000, -EPERM);
    append(made, datagram);
  } else if (is("interrupted")) {
    made = interrupted(datagram);
  } else if (is("overrun")) {
    made = half_of(datagram);
    const auto rest = static_cast<std::ptrdiff_t>(made.size());
    append(made, message(first, NLMSG_OVERRUN, first.nlmsg_seq, 0));
    made.insert(made.end(), datagram.begin() + rest, datagram.end());
  } else if (is("done") || is("error")) {
    made = half_of(datagram);
    append(made, message(first, is("done") ? NLMSG_DONE : NLMSG_ERROR, first.nlmsg_seq, -fault().error));
    discard_rest(fd, datagram);
  } else {
    std::abort();  // no such fault
  }
  return made;
}

// `really` receives into the buffer. `truncated` is set if the datagram is to be told as larger than the buffer.
template <typename Really>
ssize_t receive(int fd, void* buffer, std::size_t length, Really really, bool& truncated) {
  if (!is_watched(fd)) return really();
  const bool now = its_turn();
  if (now) log("disturbed");
  if (now && (is("fails") || is("lost"))) {
    if (is("lost")) static_cast<void>(really());
    errno = fault().error;
    return -1;
  }
  const ssize_t size = really();
  if (size < 0 || static_cast<std::size_t>(size) > length) {
    if (!now) log("empty");
    return size;
  }
  const Bytes datagram(static_cast<char*>(buffer), static_cast<char*>(buffer) + size);
  if (!now) {
    log(is_of_dump(datagram) ? "dump" : "answer");
    return size;
  }
  if (is("truncated")) {
    truncated = true;
    return static_cast<ssize_t>(length);
  }
  // From that place on, but not what is no dump.
  const bool of_dumps = !is("cut") && !is("foreign");
  if (of_dumps && !is_of_dump(datagram)) return size;
  const Bytes made = disturbed(fd, datagram);
  if (made.size() > length) std::abort();
  std::memcpy(buffer, made.data(), made.size());
  return static_cast<ssize_t>(made.size());
}

// ---- legacy iptables

// The size of the table's entries, before another program changed it.
void make_stale(int level, void* value) {
  constexpr unsigned entry = 152;
  if (level == IPPROTO_IP) static_cast<ipt_getinfo*>(value)->size += entry;
  if (level == IPPROTO_IPV6) static_cast<ip6t_getinfo*>(value)->size += entry;
}

}  // namespace

extern "C" {

ssize_t recvfrom(int fd, void* buffer, size_t length, int flags, sockaddr* from, socklen_t* from_length) {
  bool truncated = false;
  const ssize_t size = receive(
      fd, buffer, length, [&] { return syscall(SYS_recvfrom, fd, buffer, length, flags, from, from_length); },
      truncated);
  return truncated && (flags & MSG_TRUNC) != 0 ? size + 1 : size;
}

ssize_t recv(int fd, void* buffer, size_t length, int flags) {
  return recvfrom(fd, buffer, length, flags, nullptr, nullptr);
}

ssize_t recvmsg(int fd, msghdr* into, int flags) {
  bool truncated = false;
  const ssize_t size = receive(
      fd, into->msg_iov->iov_base, into->msg_iov->iov_len, [&] { return syscall(SYS_recvmsg, fd, into, flags); },
      truncated);
  if (truncated) into->msg_flags |= MSG_TRUNC;
  return size;
}

int getsockopt(int fd, int level, int option, void* value, socklen_t* size) noexcept {
  static_assert(IPT_SO_GET_INFO == IP6T_SO_GET_INFO && IPT_SO_GET_ENTRIES == IP6T_SO_GET_ENTRIES);
  const auto really = [&] { return static_cast<int>(syscall(SYS_getsockopt, fd, level, option, value, size)); };
  if (level != IPPROTO_IP && level != IPPROTO_IPV6) return really();
  if (option != IPT_SO_GET_INFO && option != IPT_SO_GET_ENTRIES) return really();
  const bool now = its_turn();
  log(now ? "disturbed" : option == IPT_SO_GET_INFO ? "info" : "entries");
  if (now && is("fails")) {
    errno = fault().error;
    return -1;
  }
  const int done = really();
  if (now && is("stale") && option == IPT_SO_GET_INFO && done == 0) make_stale(level, value);
  return done;
}

}  // extern "C"
