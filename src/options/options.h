// SPDX-License-Identifier: GPL-2.0-or-later
// From argv and the environment to what was asked for. Strict: a value that does not parse is an error that names the
// option, the value and what was expected, and nothing has been read from the host, let alone touched, by then.
#pragma once

#include <sidetrack/environment.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/packet.h"
#include "options/helm_values.h"
#include "options/log_options.h"
#include "pod/given_pod.h"

namespace sidetrack {

enum class Command : std::uint8_t {
  apply,
  render,
  diff,
  verify,
  show,
  explain,
  map,
  lint,
  clean,
  doctor,
  pods,
  args,
  inject,
  cni,
  completion
};
[[nodiscard]] std::string_view name(Command command);

enum class Format : std::uint8_t { text, nft, json, svg };           // --format
enum class Color : std::uint8_t { automatic, always, never };        // --color
enum class Shell : std::uint8_t { bash, zsh, fish };                 // completion SHELL
enum class CniAction : std::uint8_t { install, uninstall, status };  // cni ACTION

// --rules: rules from text, and what the pod has beside them.
struct PastedRules {
  std::vector<std::string> files;  // "-" is standard input; empty: the rules are those of the kernel, or of options
  GivenPod pod;
};

// The packet that `explain` is asked about.
struct PacketOptions {
  std::vector<std::string> words;  // as given: "out" "tcp" "10.96.0.10:443"; never empty after parse
  std::optional<std::uint32_t> uid;
  std::optional<std::uint32_t> gid;
  std::optional<std::string> cgroup;  // without a slash at its ends; empty: the root
  std::string given_cgroup;           // as it was written, for messages
  std::optional<Address> from;
  std::optional<std::uint16_t> from_port;  // nothing: one that the kernel chooses
  std::string in_interface;
  std::string out_interface;
  std::uint32_t mark = 0;
  ConnectionState state = ConnectionState::new_;
};

// Where the container runtime of a platform looks.
struct Platform {
  std::string_view name;
  std::string_view programs;
  std::string_view configurations;
  // Multus calls each network that a pod names: the plugin is one of its own, not the last of a chain.
  bool standalone = false;
};
inline constexpr Platform platforms[] = {
    {"aks", "/opt/cni/bin", "/etc/cni/net.d"},
    {"eks", "/opt/cni/bin", "/etc/cni/net.d"},
    {"gke", "/home/kubernetes/bin", "/etc/cni/net.d"},
    {"k3s", "/var/lib/rancher/k3s/data/cni", "/var/lib/rancher/k3s/agent/etc/cni/net.d"},
    {"kind", "/opt/cni/bin", "/etc/cni/net.d"},
    {"microk8s", "/var/snap/microk8s/current/opt/cni/bin", "/var/snap/microk8s/current/args/cni-network"},
    {"minikube", "/opt/cni/bin", "/etc/cni/net.d"},
    {"openshift", "/var/lib/cni/bin", "/etc/cni/multus/net.d", true},
    {"rke2", "/opt/cni/bin", "/etc/cni/net.d"},
};
inline constexpr const char* platform_names = "aks|eks|gke|k3s|kind|microk8s|minikube|openshift|rke2";

// The meshes whose rules `clean --mesh` removes. Cilium's agent would write its own again.
inline constexpr const char* mesh_names = "apisix|app-mesh|consul|kuma|linkerd|mirrord|osm|polaris|telepresence";

// `cni`. What the plugin is to do with every pod is in Config and ApplyOptions: what is left at its default is left out
// of the configuration.
struct CniOptions {
  CniAction action = CniAction::install;
  std::string bin_dir = "/opt/cni/bin";    // absolute
  std::string net_dir = "/etc/cni/net.d";  // absolute
  std::vector<std::string> exclude_namespaces;
  std::string plugin_log;  // absolute; empty: not given
  bool allow_dynamic = false;
  bool now = false;
  bool standalone = false;
};

// `pods`
struct PodsOptions {
  std::string records = "/run/sidetrack/pods";  // absolute: what the CNI plugin was asked for
  std::string metrics;                          // the file of --metrics; empty: none
  std::chrono::milliseconds pod_timeout = std::chrono::seconds(5);
  bool repair = false;
};

// Who puts istio-init into pods: Istio's webhook, or Sidetrack's, whose annotations the CNI plugin reads, too.
enum class Injector : std::uint8_t { istio, sidetrack };  // --injector

// `args`, `inject`, and commands that take --pod in place of options.
struct ManifestOptions {
  std::vector<std::string> files;   // "-" is standard input
  std::string pod;                  // the file of --pod; empty: not given
  HelmValues set;                   // of --set
  std::vector<std::string> values;  // files of Helm values
  std::string injected;             // the file of --template
  Injector injector = Injector::istio;
  bool why = false;
  std::vector<std::string> warnings;  // of the pod of --pod
};

// apply --when-ready
struct WhenReady {
  std::uint16_t port = 0;
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
};

struct CommandLine {
  std::optional<Command> command;  // nothing: the help or the version of the program is asked for
  bool drop_in = false;            // the form of istio-iptables; command is apply
  bool help = false;               // of the command, if there is one; everything else is then unset
  bool version = false;

  Config config;  // its proxy_uids, proxy_gids and owner groups are complete only after gather() (host.h)
  Names names;
  ApplyOptions applying;
  LogOptions log;

  bool dry_run = false;
  bool skip_rule_apply = false;
  bool cleanup_only = false;
  bool run_validation = false;

  std::string network_namespace;        // --network-namespace: the path of one
  std::string netns;                    // --netns: a path or a name; empty: this one
  std::optional<std::uint32_t> pid;     // --pid; never together with netns
  bool host = false;                    // --host: the place is this program's own namespace, and that is meant
  Format format = Format::text;         // --format, --json; one that the command can print
  Color color = Color::automatic;       // --color
  Families printed = Families::both();  // --family: of render, map and dry runs; one alone
  bool check = false;                   // apply --check
  bool no_sandbox = false;              // --no-sandbox
  bool prove = false;                   // apply --prove
  std::optional<WhenReady> when_ready;  // apply --when-ready
  std::optional<std::chrono::nanoseconds> confirm;  // apply --confirm: how long it is waited for
  bool probe = false;                               // verify --probe
  bool watch = false;                               // show --watch, cni --watch
  bool clean = false;                               // diff --clean
  std::string mesh;                                 // clean, diff --clean: --mesh; empty: Istio's rules and ours
  bool effect = false;                              // diff --effect
  std::vector<std::string> compared;                // diff --effect: the files
  bool plan = false;                                // explain, map: over the given options, not over the live rules
  bool brief = false;                               // explain --brief
  std::optional<Direction> way;                     // map --way
  bool forwarded = false;                           // map --way forward
  PacketOptions packet;                             // explain
  PastedRules text;                                 // --rules
  PodsOptions pods;                                 // pods
  ManifestOptions manifest;                         // args; --pod
  CniOptions cni;                                   // cni
  Shell shell = Shell::bash;                        // completion

  std::vector<std::string> warnings;  // what became of options of older releases
};

// The options that a pod's manifest stands for, with the variables of its istio-init.
struct OptionsOfPod {
  std::vector<std::string> arguments;
  std::map<std::string, std::string, std::less<>> environment;
  std::vector<std::string> warnings{};
};
using PodReader = std::function<OptionsOfPod(const ManifestOptions&)>;

// `args` as main has them, the program's own name first. No arguments at all ask for the help. For commands that work
// by a plan, what the command line leaves open is taken from the environment, else it is upstream's default. Sets
// dry_run for render, and for explain and map with --plan, as well. With --pod, `read_pod` gives the options, and the
// variables in place of the environment. Throws Error (usage).
[[nodiscard]] CommandLine parse(std::span<const std::string_view> args, const Environment& environment,
                                const PodReader& read_pod = {});

// The options of `sidetrack apply` alone, one word each: nothing is taken from the environment. Throws Error (usage).
[[nodiscard]] CommandLine parse_apply(std::span<const std::string> options);

// Whether the command works by a plan of the given options: then gather() and plan() have to be called.
[[nodiscard]] bool works_by_plan(const CommandLine& line);

// One screen: at most 45 lines of 80 columns, with the defaults and an example.
[[nodiscard]] std::string help();
[[nodiscard]] std::string help(Command command);

// Completes a command line for the scripts in completions/, which call `sidetrack __complete WORD...`. Takes the words
// from the program's name to the one being typed. Returns lines with tabs in them: "words", or "list" if a comma may
// follow, or "files" if paths are offered too, and the part of the typed word that stays; then what can follow that
// part, and its description.
[[nodiscard]] std::string complete(std::span<const std::string_view> words);

}  // namespace sidetrack
