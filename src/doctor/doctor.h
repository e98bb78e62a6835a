// SPDX-License-Identifier: GPL-2.0-or-later
// What this kernel and this container allow. Makes no rule, table or lock file. The kernel may load the modules that it
// is asked about, as it would for the rules.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/inspect.h"
#include "kernel/kernel.h"
#include "pod/routing.h"
#include "system/id_map.h"

namespace sidetrack {

// ---- The host, seen without any privilege.

struct Capability {
  std::string_view name;   // "CAP_NET_ADMIN", a string literal
  bool effective = false;  // held by this process
  bool bounding = false;   // can be had at all in this container
};

struct UserNamespace {
  bool initial = true;
  bool owns_network_namespace = true;  // the rights held here count there
  std::vector<IdMapping> uids;
  std::vector<IdMapping> gids;
};

struct Ipv6State {
  bool in_kernel = false;
  bool off = false;        // net.ipv6.conf.all.disable_ipv6: the pod has no IPv6 address
  bool off_on_lo = false;  // net.ipv6.conf.lo.disable_ipv6: ::6 cannot be added
};

struct HostState {
  std::string kernel;   // "6.1.0-18-amd64"
  std::string machine;  // "x86_64"
  std::vector<Capability> capabilities;
  UserNamespace user_namespace;
  Ipv6State ipv6;
  bool loopback_up = true;
  bool read_only_root = false;
};
[[nodiscard]] std::vector<Capability> capabilities();  // of this process now
[[nodiscard]] HostState inspect_host();                // opens files: to be asked before a sandbox is entered

// ---- The backends.

// Something that rules need of the kernel, from a rule that needs it.
struct Feature {
  std::string need;        // the same in all backends: "REDIRECT, redir"
  std::string name;        // as this backend calls it: "REDIRECT"
  std::string cost;        // what is lost without it: "-m TPROXY fails; -m REDIRECT works"
  bool essential = false;  // without it the backend cannot be used
  Families available;      // for which the kernel takes the rule
  std::string refusal;     // what it says where it does not
  std::string remedy;
};

struct BackendState {
  BackendKind kind = BackendKind::iptables_nft;
  std::string problem;    // why it could not be asked; then nothing below is known
  bool permitted = true;  // if not, that is the problem
  std::string remedy;
  std::vector<Feature> features;
  std::vector<std::string> unchecked;  // what it was not asked, a sentence each
  std::size_t rules_of_sidecar = 0;    // Sidetrack's or istio-iptables': the kernel does not say whose
  std::size_t rules_of_others = 0;     // in the tables that this backend writes to
};
[[nodiscard]] bool usable(const BackendState& backend);

struct Diagnosis {
  HostState host;
  LockFile lock;
  Families families;  // those that were asked about
  std::vector<BackendState> backends;
  std::optional<BackendKind> automatic;  // what --backend auto would take; nothing: none would do
  std::string because;                   // if that is not the usual choice
  TableNames legacy_tables;
  TableNames nf_tables;
  Routing routing;  // policy rules, routes and addresses of the sidecar
};

// Whether rules may be in legacy tables that we may not read: then apply refuses, whichever backend it is to take.
[[nodiscard]] bool may_hide_rules(const Diagnosis& diagnosis);

// Throws only if the kernel does not answer what every process may ask.
[[nodiscard]] Diagnosis diagnose(Kernel& kernel, HostState host, LockFile lock, Routes& routes);

// That of this process, in its namespaces. `lock_file` as for open_lock_file(). `confine` is called when all files are
// open, before any rule is read: what it enters may be Sandbox::read.
[[nodiscard]] Diagnosis diagnose_here(const std::string& lock_file, const std::function<void()>& confine);

// What is not as it should be, the gravest first.
struct Finding {
  std::string what;    // "iptables-nft: no TPROXY"
  std::string cost;    // "-m TPROXY fails; -m REDIRECT works"
  std::string remedy;  // "modprobe …"; may be empty
};
[[nodiscard]] std::vector<Finding> findings(const Diagnosis& diagnosis);

}  // namespace sidetrack
