// SPDX-License-Identifier: GPL-2.0-or-later
#include "host/sessions.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>

#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "system/folder.h"
#include "system/read_write.h"

namespace sidetrack {
namespace {

// /proc/PID/comm of the processes that hold a session: OpenSSH's (sshd-session since 9.8), and Dropbear's.
constexpr std::string_view ssh_servers[] = {"sshd", "sshd-session", "sshd-auth", "dropbear"};
constexpr std::uint16_t ssh_port = 22;

bool is_ssh_server(std::string_view name) { return std::ranges::find(ssh_servers, name) != std::end(ssh_servers); }

struct Process {
  std::uint32_t pid = 0;
  std::string name;
};

// Reads "/proc/PID/stat", "4711 (name) S PARENT …", whose name may hold blanks and brackets. Returns 0 without a
// parent.
std::uint32_t parent_of(std::uint32_t pid) {
  const std::string stat = read_small(fmt::format("/proc/{}/stat", pid));
  const auto columns = split_words(std::string_view(stat).substr(std::min(stat.rfind(')') + 1, stat.size())));
  return columns.size() > 1 ? to_number<std::uint32_t>(columns[1]).value_or(0) : 0;
}

// The nearest first. A container's first process has none.
std::vector<Process> ancestors() {
  constexpr std::size_t most = 64;
  std::vector<Process> all;
  for (auto pid = static_cast<std::uint32_t>(getppid()); pid != 0 && all.size() < most; pid = parent_of(pid)) {
    std::string name = process_name(pid);
    if (name.empty()) break;
    all.push_back({pid, std::move(name)});
  }
  return all;
}

// Tells whether $SSH_CONNECTION names it: "192.0.2.1 51234 192.0.2.2 22". Addresses of a link have "%eth0" behind them.
bool is_named(const TcpSocket& socket, std::string_view ssh_connection) {
  std::string named;
  for (const std::string_view word : split_words(ssh_connection)) named.append(word, 0, word.find('%')).append(" ");
  return named == fmt::format("{} {} {} {} ", socket.remote.address.text(), socket.remote.port.value(),
                              socket.local.address.text(), socket.local.port.value());
}

// "socket:[4711]", as /proc/PID/fd/N names a socket. False: this process may not look.
bool collect_sockets(const Process& process, std::map<std::uint32_t, Process>& holders) {
  constexpr std::string_view head = "socket:[";
  const std::string folder = fmt::format("/proc/{}/fd", process.pid);
  const auto entries = entries_of(folder);
  if (!entries) return errno == ENOENT;
  for (const FolderEntry& entry : *entries) {
    char link[64];
    const ssize_t size = readlink((folder + "/" + entry.name).c_str(), link, sizeof link);
    const std::string_view text(link, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    if (!text.starts_with(head) || !text.ends_with(']')) continue;
    const auto inode = to_number<std::uint32_t>(text.substr(head.size(), text.size() - head.size() - 1));
    if (inode) holders.try_emplace(*inode, process);
  }
  return true;
}

void add_sessions(std::string_view ssh_connection, Sessions& found) {
  TcpSockets sockets;
  std::vector<TcpSocket> connections = sockets.established();
  std::erase_if(connections, [](const TcpSocket& socket) {
    return socket.local.address.is_loopback() || socket.remote.address.is_loopback() ||
           socket.local.address == socket.remote.address;
  });
  if (connections.empty()) return;
  std::set<std::uint16_t> listening;
  for (const TcpSocket& socket : sockets.listening(0)) listening.insert(socket.local.port.value());

  std::map<std::uint32_t, Process> of_ssh;
  std::map<std::uint32_t, Process> of_ancestors;
  std::string unseen;  // whose sockets may not be looked at
  const auto collect = [&](const Process& process, std::map<std::uint32_t, Process>& holders) {
    if (!collect_sockets(process, holders) && unseen.empty())
      unseen = fmt::format("{} (process {})", printable(process.name), process.pid);
  };
  for (const Process& process : ancestors()) collect(process, of_ancestors);
  const auto processes = entries_of("/proc");
  for (const FolderEntry& entry : processes.value_or(std::vector<FolderEntry>())) {
    const auto pid = to_number<std::uint32_t>(entry.name);
    const Process process{pid.value_or(0), pid ? process_name(*pid) : ""};
    if (is_ssh_server(process.name)) collect(process, of_ssh);
  }
  if (!unseen.empty())
    found.unknown.push_back(fmt::format("the connections of {} cannot be seen: that takes root", unseen));

  // Not there until connection tracking is loaded: then it is 1.
  found.taken_up = read_small("/proc/sys/net/netfilter/nf_conntrack_tcp_loose") != "0\n";
  const auto said = [](const Process& process) {
    return fmt::format("{}, process {}", printable(process.name), process.pid);
  };
  for (const TcpSocket& socket : connections) {
    Session session{socket, listening.contains(socket.local.port.value()) || socket.local.port == ssh_port, ""};
    const auto ssh = of_ssh.find(socket.inode);
    const auto ancestor = of_ancestors.find(socket.inode);
    if (is_named(socket, ssh_connection)) {
      session.inbound = true;
      session.holder = "SSH_CONNECTION";
    } else if (ssh != of_ssh.end() && session.inbound) {
      session.holder = said(ssh->second);
    } else if (ancestor != of_ancestors.end() && (!is_ssh_server(ancestor->second.name) || session.inbound)) {
      session.holder = said(ancestor->second);
    } else if (socket.local.port == ssh_port && ssh == of_ssh.end()) {
      session.holder = "port 22";  // of a process that cannot be seen, or of another program
    } else {
      continue;
    }
    found.list.push_back(std::move(session));
  }
}

}  // namespace

bool may_have_sessions() {
  // "TCP: inuse 3 orphan 0 …", "TCP6: inuse 1": a count that is not understood is taken for one above 0
  const auto holds_some = [](const std::string& text, std::string_view before) {
    const std::size_t at = text.find(before);
    return at == std::string::npos || text.compare(at + before.size(), 1, "0") != 0;
  };
  if (holds_some(read_small("/proc/thread-self/net/sockstat"), "\nTCP: inuse ")) return true;
  const std::string of_ipv6 = read_small("/proc/thread-self/net/sockstat6");
  return !of_ipv6.empty() && holds_some(of_ipv6, "TCP6: inuse ");  // no such file: the kernel has no IPv6
}

Sessions find_sessions(std::string_view ssh_connection) {
  Sessions found;
  try {
    add_sessions(ssh_connection, found);
  } catch (const Error& error) {
    found.unknown.emplace_back(error.what());
  }
  return found;
}

}  // namespace sidetrack
