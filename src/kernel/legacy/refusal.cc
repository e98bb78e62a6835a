// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/legacy/refusal.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>

#include "kernel/legacy/iptc_table.h"
#include "rule/iptables.h"
#include "rule/xt/rule_extensions.h"
#include "system/capabilities.h"
#include "system/descriptor.h"
#include "system/id_map.h"

namespace sidetrack::legacy {
namespace {

// ---- capabilities

// Those of CAP_NET_ADMIN and CAP_NET_RAW that this process has not: libiptc opens a raw socket, and the tables are the
// administrator's.
std::vector<std::string> missing_capabilities() {
  std::vector<std::string> missing;
  if (!has_capability(CAP_NET_ADMIN)) missing.emplace_back("CAP_NET_ADMIN");
  if (!has_capability(CAP_NET_RAW)) missing.emplace_back("CAP_NET_RAW");
  return missing;
}

Error not_permitted(const std::string& what) {
  const auto missing = missing_capabilities();
  if (missing.empty()) {
    return {ExitCode::not_permitted, what + ": " + errno_words(EPERM),
            "CAP_NET_ADMIN and CAP_NET_RAW are there: either another user namespace owns this network namespace "
            "('sidetrack doctor' says), or a seccomp filter or security module refuses the call"};
  }
  const std::string names = missing.size() == 2 ? missing[0] + " and " + missing[1] : missing[0];
  return {ExitCode::not_permitted,
          fmt::format("{}: {} missing", what, missing.size() == 2 ? names + " are" : names + " is"),
          "legacy iptables needs both CAP_NET_ADMIN and CAP_NET_RAW (securityContext.capabilities.add); the nf_tables "
          "backends need only CAP_NET_ADMIN, where no table of legacy iptables exists"};
}

// ---- extensions, by IPT_SO_GET_REVISION_*: may load a module, creates no table

enum class Presence : std::uint8_t { there, missing, other_revision, unknown };

class ExtensionProbe {
 public:
  explicit ExtensionProbe(Family family)
      : family_(family), socket_(socket(domain(family), SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (!socket_.valid()) no_answer_ = errno;
    // A kernel that answers says of any match that it is there, or not: the name does not matter.
    if (socket_.valid() && ask(xt::ExtensionKind::match, "tcp", 0) == Presence::unknown) no_answer_ = errno;
  }

  // Why the kernel answers no such question (ENOPROTOOPT: it has no legacy iptables for the family); 0 if it does.
  [[nodiscard]] int no_answer() const { return no_answer_; }

  [[nodiscard]] Presence of(xt::ExtensionKind kind, const xt::Extension& extension) const {
    return no_answer_ != 0 ? Presence::unknown : ask(kind, extension.name, extension.revision);
  }

 private:
  [[nodiscard]] Presence ask(xt::ExtensionKind kind, std::string_view name, std::uint8_t revision) const {
    xt_get_revision asked{};
    std::ranges::copy(name, asked.name);
    asked.revision = revision;
    const bool match = kind == xt::ExtensionKind::match;
    const bool v4 = family_ == Family::ipv4;
    const int option = v4 ? (match ? IPT_SO_GET_REVISION_MATCH : IPT_SO_GET_REVISION_TARGET)
                          : (match ? IP6T_SO_GET_REVISION_MATCH : IP6T_SO_GET_REVISION_TARGET);
    socklen_t size = sizeof asked;
    if (getsockopt(socket_.get(), v4 ? IPPROTO_IP : IPPROTO_IPV6, option, &asked, &size) >= 0) return Presence::there;
    if (errno == ENOENT) return Presence::missing;
    if (errno == EPROTONOSUPPORT) return Presence::other_revision;
    return Presence::unknown;
  }

  Family family_;
  Descriptor socket_;
  int no_answer_ = 0;
};

struct Lacking {
  const Rule* rule;
  xt::ExtensionKind kind;
  xt::Extension extension;
  Presence presence;
};

// The first rule with an extension that the kernel does not have. One that it does not answer for counts as there.
std::optional<Lacking> first_lacking(const ExtensionProbe& probe, Family family, const Ruleset& wanted,
                                     std::optional<Table> table) {
  std::vector<xt::Extension> there[2];  // by kind; the same few extensions are in many rules
  std::optional<Lacking> lacking;
  const auto ask = [&](const Rule& rule, xt::ExtensionKind kind, const xt::Extension& extension) {
    auto& known = there[kind == xt::ExtensionKind::target];
    const bool asked = std::ranges::any_of(known, [&](const xt::Extension& other) {
      return other.name == extension.name && other.revision == extension.revision;
    });
    if (asked || lacking) return;
    const Presence presence = probe.of(kind, extension);
    if (presence == Presence::missing || presence == Presence::other_revision) {
      lacking = Lacking{&rule, kind, extension, presence};
    }
    known.push_back(extension);
  };
  for (const Rule& rule : wanted.rules) {
    if (!rule.families.contains(family) || (table && rule.table != *table)) continue;
    for (const xt::Extension& match : xt::matches_of(rule)) ask(rule, xt::ExtensionKind::match, match);
    if (!std::holds_alternative<Verdict>(rule.target) && !std::holds_alternative<Jump>(rule.target)) {
      ask(rule, xt::ExtensionKind::target, xt::target_of(rule.target, family));
    }
    if (lacking) break;
  }
  return lacking;
}

// "-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN (from -u 1337)"
std::string words_of(const Rule& rule, const MeshRules& mesh) {
  const std::string words = iptables_words(rule);
  const std::string flag = mesh.notes(rule).flag;
  return flag.empty() ? words : fmt::format("{} (from {})", words, flag);
}

Error lacks(Family family, const Lacking& lacking, const MeshRules& mesh) {
  const auto& [rule, kind, extension, presence] = lacking;
  const xt::Source source = xt::source_of(kind, extension.name);
  const char* what = kind == xt::ExtensionKind::match ? "match" : "target";
  return Error(
             ExitCode::kernel_lacks,
             fmt::format("{}: the kernel has no {} '{}'{}, which this rule needs: {}", place(family, rule->table), what,
                         extension.name,
                         presence == Presence::other_revision ? fmt::format(" of revision {}", extension.revision) : "",
                         words_of(*rule, mesh)),
             fmt::format("load module {} on the node (modprobe {}), or build the kernel with {}", source.module,
                         source.module, source.config))
      .as_of_one_backend();
}

// ---- ids

const Rule* first_unmapped_owner(Family family, const Ruleset& wanted, std::optional<Table> table) {
  std::optional<std::vector<IdMapping>> mapped[2];  // by kind
  for (const Rule& rule : wanted.rules) {
    if (!rule.families.contains(family) || (table && rule.table != *table)) continue;
    for (const Match& match : rule.matches) {
      const auto* owner = std::get_if<OwnerMatch>(&match);
      if (owner == nullptr) continue;
      const bool is_uid = owner->kind == OwnerKind::uid;
      auto& known = mapped[is_uid];
      if (!known) known = is_uid ? mapped_uids() : mapped_gids();
      for (const IdRange& ids : owner->ids) {
        if (!is_mapped(*known, ids.first) || !is_mapped(*known, ids.last)) return &rule;
      }
    }
  }
  return nullptr;
}

// ---- tables

struct TableSource {
  std::string module;
  std::string config;
};
// "iptable_nat", "CONFIG_IP_NF_NAT"; of IPv6 "ip6table_nat", "CONFIG_IP6_NF_NAT". For each table of iptables.
TableSource source_of(Family family, Table table) {
  const bool v4 = family == Family::ipv4;
  std::string capitals(name(table));
  for (char& c : capitals) c = static_cast<char>(c - 'a' + 'A');
  return {fmt::format("{}_{}", v4 ? "iptable" : "ip6table", name(table)),
          fmt::format("CONFIG_{}_NF_{}", v4 ? "IP" : "IP6", capitals)};
}

// What the kernel has not; nothing for other errors.
std::optional<Error> lacking_table(int errno_value, Family family, Table table) {
  const bool v4 = family == Family::ipv4;
  const std::string where = place(family, table);
  switch (errno_value) {
    case ENOENT: {
      const TableSource source = source_of(family, table);
      return Error{ExitCode::kernel_lacks, where + ": the kernel has no such table",
                   fmt::format("load module {0} on the node (modprobe {0}), or build the kernel with {1}",
                               source.module, source.config)};
    }
    case EAFNOSUPPORT:
      return Error{ExitCode::kernel_lacks, fmt::format("{}: the kernel has no {}", where, title(family)),
                   v4 ? "" : "IPv6 may be switched off at boot (ipv6.disable=1); --ip-families ipv4 leaves it out"};
    case ENOPROTOOPT:
    case EPROTONOSUPPORT:
      return Error{ExitCode::kernel_lacks, where + ": the kernel has no legacy iptables",
                   fmt::format("load module {0} on the node (modprobe {0}), or build the kernel with {1}, or use an "
                               "nf_tables backend",
                               v4 ? "ip_tables" : "ip6_tables",
                               v4 ? "CONFIG_IP_NF_IPTABLES_LEGACY" : "CONFIG_IP6_NF_IPTABLES_LEGACY")};
    default:
      return std::nullopt;
  }
}

}  // namespace

Error cannot_open(int errno_value, Family family, Table table) {
  const std::string where = place(family, table);
  if (errno_value == EPERM || errno_value == EACCES) return not_permitted(where);
  if (const auto lacking = lacking_table(errno_value, family, table)) return lacking->as_of_one_backend();
  return system_error(errno_value, where + ": cannot read it");
}

Error refused(int errno_value, Family family, Table table, const Ruleset& wanted, const MeshRules& mesh) {
  const std::string where = place(family, table);
  if (errno_value == EAGAIN) return {ExitCode::busy, where + ": another program changed it meanwhile", "run it again"};
  if (errno_value == EPERM || errno_value == EACCES) return not_permitted(where);
  if (errno_value == ENOMEM) return system_error(errno_value, where + ": the kernel has no memory for the rules");
  if (const auto lacking = first_lacking(ExtensionProbe(family), family, wanted, table))
    return lacks(family, *lacking, mesh);
  if (const Rule* rule = first_unmapped_owner(family, wanted, table)) {
    return Error(ExitCode::failed,
                 fmt::format("{}: the user or group does not exist in this user namespace: {}", where,
                             words_of(*rule, mesh)),
                 "map the id into the namespace (see /proc/self/uid_map and gid_map), or name one that is mapped")
        .as_of_one_backend();
  }
  return system_error(errno_value, where + ": the kernel refused the rules without naming one", ExitCode::failed,
                      "the kernel's log (dmesg) may name it; -m owner is refused for a network namespace of another "
                      "user namespace");
}

void require_extensions(Family family, const Ruleset& wanted, const MeshRules& mesh) {
  const ExtensionProbe probe(family);
  if (const int error = probe.no_answer()) throw cannot_open(error, family, wanted.rules.front().table);
  if (const auto lacking = first_lacking(probe, family, wanted, std::nullopt)) throw lacks(family, *lacking, mesh);
  if (const Rule* rule = first_unmapped_owner(family, wanted, std::nullopt))
    throw refused(EINVAL, family, rule->table, wanted, mesh);
}

bool kernel_has_tables(Family family) { return ExtensionProbe(family).no_answer() != ENOPROTOOPT; }

void require_capabilities() {
  if (!missing_capabilities().empty()) throw not_permitted("iptables-legacy");
}

}  // namespace sidetrack::legacy
