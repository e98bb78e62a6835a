// SPDX-License-Identifier: GPL-2.0-or-later
#include "system/known_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <optional>
#include <vector>

#include "system/descriptor.h"
#include "system/read_write.h"

namespace sidetrack {
namespace {

// /proc/net would be the namespace of the first thread. That of /proc/sys/net is the one of the thread that opens it.
struct Row {
  const char* path;
  std::optional<KnownFilesFor> only_for = {};  // nothing: for each
};
// In the order of KnownFile.
constexpr Row files[] = {
    {"/proc/thread-self/net/ip_tables_names"},
    {"/proc/thread-self/net/ip6_tables_names"},
    {"/proc/thread-self/net/ip_tables_matches"},
    {"/proc/sys/net/ipv4/ip_local_port_range"},
    {"/proc/sys/net/ipv4/conf/all/rp_filter"},
    {"/proc/sys/net/ipv4/conf/all/src_valid_mark"},
    {"/proc/sys/net/ipv4/conf/all/route_localnet"},
    {"/proc/sys/net/ipv4/tcp_fwmark_accept"},
    {"/proc/sys/net/bridge/bridge-nf-call-iptables"},
    {"/proc/sys/net/bridge/bridge-nf-call-ip6tables"},
    {"/proc/thread-self/net/fib_trie"},
    {"/proc/sys/net/ipv4/conf/all/accept_local", KnownFilesFor::answers},
    {"/proc/sys/net/ipv4/fwmark_reflect", KnownFilesFor::answers},
    {"/proc/sys/net/ipv6/fwmark_reflect", KnownFilesFor::answers},
    {"/proc/sys/net/ipv4/icmp_echo_ignore_all", KnownFilesFor::answers},
    {"/proc/sys/net/ipv6/icmp/echo_ignore_all", KnownFilesFor::answers},
    {"/proc/thread-self/uid_map", KnownFilesFor::changes},
    {"/proc/thread-self/gid_map", KnownFilesFor::changes},
    {"/proc/locks", KnownFilesFor::changes},
    {"/proc/thread-self/net/tcp", KnownFilesFor::all},
    {"/proc/thread-self/net/tcp6", KnownFilesFor::all},
};

constexpr std::size_t most = 1U << 26;  // sockets of a large node are 150 bytes each

struct Opened {
  Descriptor file;
  int error = 0;
};
Opened open_path(const char* path) {
  Opened opened{Descriptor(open(path, O_RDONLY | O_CLOEXEC)), 0};
  if (!opened.file.valid()) opened.error = errno;
  return opened;
}

std::vector<Opened> held_files;

KnownText text_of(const Opened& opened) {
  if (!opened.file.valid()) return {"", opened.error};
  KnownText read;
  read.error = lseek(opened.file.get(), 0, SEEK_SET) == 0 ? read_all(opened.file.get(), most, read.text) : errno;
  return read;
}

}  // namespace

const char* path_of(KnownFile file) { return files[static_cast<std::size_t>(file)].path; }

KnownText read_known_file(KnownFile file) {
  const auto index = static_cast<std::size_t>(file);
  return index < held_files.size() ? text_of(held_files[index]) : text_of(open_path(files[index].path));
}

void preopen_proc_files(KnownFilesFor what) {
  if (!held_files.empty()) return;
  for (const Row& file : files) {
    const bool wanted = !file.only_for || what == KnownFilesFor::all || what == *file.only_for;
    held_files.push_back(wanted ? open_path(file.path) : Opened{Descriptor(), ENOENT});
  }
}

}  // namespace sidetrack
