// SPDX-License-Identifier: GPL-2.0-or-later
// fgetpwent(3) and fgetgrent(3) parse the lines of the given text; getpwnam(3) would ask the name service switch, that
// is load modules and perhaps ask a server.
#include "host/ids.h"

#include <grp.h>
#include <pwd.h>

#include <cstdio>
#include <memory>

namespace sidetrack::host {
namespace {

using File = std::unique_ptr<FILE, int (*)(FILE*)>;

File open(std::string& text) { return {fmemopen(text.data(), text.size(), "r"), fclose}; }

}  // namespace

std::optional<std::uint32_t> uid_of(const std::string& user, std::string passwd) {
  const File file = open(passwd);
  if (!file) return std::nullopt;
  while (const struct passwd* entry = fgetpwent(file.get())) {
    if (user == entry->pw_name) return entry->pw_uid;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> gid_of(const std::string& name, std::string group) {
  const File file = open(group);
  if (!file) return std::nullopt;
  while (const struct group* entry = fgetgrent(file.get())) {
    if (name == entry->gr_name) return entry->gr_gid;
  }
  return std::nullopt;
}

}  // namespace sidetrack::host
