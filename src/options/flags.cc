// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <tuple>
#include <utility>

#include "model/error.h"
#include "model/printable.h"
#include "options/values.h"

namespace sidetrack {
namespace {

using options::each_item;
using options::Item;
using options::namespace_name;
using options::refuse;

// ---- Setters: where a value goes. A member of Config, Names, PacketOptions or of the command line itself.

template <typename Value, typename Part>
Value& member(CommandLine& line, Value Part::*which) {
  const auto parts = std::tie(line, line.config, line.applying, line.names, line.log, line.packet, line.text, line.pods,
                              line.manifest, line.cni);
  return std::get<Part&>(parts).*which;
}

template <auto Member, auto Parse>
void store(CommandLine& line, const Given& given) {
  member(line, Member) = Parse(given);
}

template <auto Member, auto Parse>
void store_list(CommandLine& line, const Given& given) {
  each_item(given, [&](const Item& item) { member(line, Member).push_back(Parse(item)); });
}

// A list, or "*" for everything.
template <auto Member, auto Parse>
void store_selection(CommandLine& line, const Given& given) {
  auto& selected = member(line, Member);
  each_item(given, [&](const Item& item) {
    if (item.text == "*") {
      selected.all = true;
    } else {
      selected.list.push_back(Parse(item));
    }
    if (selected.all && !selected.list.empty()) refuse(item, "either '*' alone, or a list without it");
  });
}

// ---- The same the other way round: what a member of Config holds.

bool held(const Flag&, bool value) { return value; }
template <std::unsigned_integral Number>
std::uint32_t held(const Flag&, Number value) {
  return value;
}
std::string held(const Flag&, const std::string& value) { return value; }
std::string held(const Flag&, const AddressRange& value) { return value.text(); }
const std::vector<AddressRange>& held(const Flag&, const std::vector<AddressRange>& values) { return values; }
const std::vector<PortRange>& held(const Flag&, const std::vector<PortRange>& values) { return values; }
const std::vector<IdRange>& held(const Flag&, const std::vector<IdRange>& values) { return values; }
std::string held(const Flag&, const Cgroup& value) { return value.path; }
std::string held(const Flag&, const UidPorts& value) {
  return fmt::format("{}:{}", text(value.uids), list_text(value.ports));
}
std::string held(const Flag&, const Address& value) { return value.text(); }
template <typename Enum>
requires std::is_enum_v<Enum> std::string held(const Flag& flag, Enum value) {
  return std::string(each_choice(flag.choices)[static_cast<std::size_t>(value)]);
}
template <typename Value>
auto held(const Flag& flag, const std::vector<Value>& values) {
  std::vector<decltype(held(flag, values.front()))> all;
  for (const Value& value : values) all.push_back(held(flag, value));
  return all;
}
template <typename Value>
auto held(const Flag& flag, const std::optional<Value>& value) {
  return held(flag, value.value_or(Value()));
}
template <typename Value>
OptionValue held(const Flag& flag, const Selection<Value>& value) {
  if (value.all) return std::vector<std::string>{"*"};
  return held(flag, value.list);
}

template <auto Member>
void erase(Config& config, std::size_t which) {
  const auto erase_from = [&](auto& list) { list.erase(list.begin() + static_cast<std::ptrdiff_t>(which)); };
  if constexpr (requires { (config.*Member).list; }) {
    erase_from((config.*Member).list);
  } else if constexpr (requires { (config.*Member).erase((config.*Member).begin()); }) {
    erase_from(config.*Member);
  }
}

template <auto Member>
constexpr Setter setter(Setter::Set set) {
  if constexpr (requires(Config config) { config.*Member; }) {
    return {set, [](const Flag& flag, const Config& config) -> OptionValue { return held(flag, config.*Member); },
            [](Config& config) { config.*Member = Config().*Member; }, erase<Member>};
  } else {
    return set;
  }
}

template <auto Member, auto Parse>
constexpr Setter value = setter<Member>(store<Member, Parse>);
template <auto Member>
constexpr Setter boolean = value<Member, options::boolean>;
template <auto Member, auto Parse>
constexpr Setter list = setter<Member>(store_list<Member, Parse>);
template <auto Member, auto Parse>
constexpr Setter selection = setter<Member>(store_selection<Member, Parse>);

// Returns the place of the value among the choices of its flag.
std::size_t place_of_choice(const Given& given) { return options::choice(given, given.flag.choices); }

// The enumerators are in the order of the choices.
template <auto Member>
void choice(CommandLine& line, const Given& given) {
  auto& chosen = member(line, Member);
  using Enum = std::remove_reference_t<decltype(chosen)>;
  chosen = static_cast<Enum>(place_of_choice(given));
}

void set_mode(CommandLine& line, const Given& given) {
  if (given.text.empty()) {
    line.config.mode = Mode::redirect;
  } else {
    choice<&Config::mode>(line, given);
  }
}

// "auto" and nothing leave it open.
void set_backend(CommandLine& line, const Given& given) {
  static_cast<void>(place_of_choice(given));
  line.applying.backend.reset();
  for (const BackendKind kind : all_backends) {
    if (name(kind) == given.text) line.applying.backend = kind;
  }
}

void set_forced_binary(CommandLine& line, const Given& given) {
  line.applying.force_iptables_binary.reset();
  if (given.text.empty()) return;
  const bool legacy = place_of_choice(given) == 0;
  line.applying.force_iptables_binary = legacy ? BackendKind::iptables_legacy : BackendKind::iptables_nft;
}

AddressRange excludable_range(const Item& item) {
  if (item.text == "*") {
    refuse(item, "address ranges, not everything",
           "to leave all outbound traffic alone, leave out -i, --istio-service-cidr");
  }
  return options::range(item);
}

AddressRange excludable_source(const Item& item) {
  if (item.text == "*") {
    refuse(item, "address ranges, not everything",
           "to leave all inbound traffic alone, leave out -b, --istio-inbound-ports");
  }
  return options::range(item);
}

Cgroup bypassing_cgroup(const Item& item) {
  Cgroup made{options::cgroup(item), 0, std::string(item.text)};
  if (made.path.empty()) refuse(item, "a cgroup other than the root, which every process is in");
  return made;
}

void set_cgroup(CommandLine& line, const Given& given) {
  line.packet.cgroup = options::cgroup(given);
  line.packet.given_cgroup = given.text;
}

std::string word(const Item& item) { return std::string(item.text); }

// 101:443,8000-8100,102:53: a colon begins the ports of the next users. A line of a file begins anew.
void set_exclude_uid_ports(CommandLine& line, const Given& given) {
  auto& all = line.config.exclude_uid_ports;
  std::optional<std::size_t> of_line;
  each_item(given, [&](const Item& item) {
    const auto colon = item.text.find(':');
    if (of_line != item.line) {
      if (colon == std::string_view::npos)
        refuse(item, "the uid before its ports, as in 101:443,8000-8100",
               "several have their ports each: 101:443,102:443");
      of_line = item.line;
    }
    Item ports = item;
    if (colon != std::string_view::npos) {
      Item uids = item;
      uids.text = options::without_blanks(item.text.substr(0, colon));
      ports.text = options::without_blanks(item.text.substr(colon + 1));
      if (uids.text.empty() || ports.text.empty()) refuse(item, "a uid and its ports, as in 101:443,8000-8100");
      all.push_back({options::id_range(uids), {}});
    }
    all.back().ports.push_back(options::port_range(ports));
  });
}

void set_dns_servers(CommandLine& line, const Given& given) {
  auto& servers = line.config.dns_servers;
  if (!servers) servers.emplace();
  each_item(given, [&](const Item& item) { servers->push_back(options::address(item)); });
}

Family family(const Item& item) { return options::choice(item, "ipv4|ipv6") == 0 ? Family::ipv4 : Family::ipv6; }

void set_mesh(CommandLine& line, const Given& given) {
  if (given.text == "cilium")
    refuse(given, fmt::format("one of {}", given.flag.choices),
           "Cilium's agent owns the rules of the node and of its pods, and writes them again: remove Cilium itself");
  static_cast<void>(place_of_choice(given));
  line.mesh = given.text;
}

// Folders that are named count wherever they stand: see parse.cc.
void set_platform(CommandLine& line, const Given& given) {
  const Platform& platform = platforms[place_of_choice(given)];
  line.cni.bin_dir = platform.programs;
  line.cni.net_dir = platform.configurations;
  line.cni.standalone = platform.standalone;
}

// Of several the union; check_combinations() refuses IPv6 alone.
void set_ip_families(CommandLine& line, const Given& given) {
  bool any = false;
  each_item(given, [&](const Item& item) {
    line.config.families = line.config.families.value_or(Families()) | family(item);
    any = true;
  });
  if (!any) refuse(given, "ipv4, or ipv4,ipv6");
}

// An address of one host that is known by it. One of fe80::/10 is of an interface, too; of 169.254.0.0/16 Istio's own
// address of probes is.
bool is_of_one_host(const Address& address) {
  const bool ipv4 = address.family == Family::ipv4;
  const bool multicast = ipv4 ? address.bytes[0] >= 224 : address.bytes[0] == 0xff;  // and what is reserved
  return address != Address::any(address.family) && !address.is_loopback() && !multicast &&
         (ipv4 || !address.is_link_local());
}

template <Family Of>
Address probe_source(const Item& item) {
  const auto address = Address::parse(item.text);
  if (!address || address->family != Of || !is_of_one_host(*address) || address->unmapped()) {
    constexpr bool ipv4 = Of == Family::ipv4;
    refuse(item,
           fmt::format("an {} address, not loopback, multicast{}", title(Of),
                       ipv4 ? " or unspecified" : ", unspecified, link-local or of ::ffff:0:0/96"),
           ipv4 ? "for IPv6, use --probe-address6" : "for IPv4, use --probe-address");
  }
  return *address;
}

// No deadline is beyond what the system's clocks can hold.
constexpr std::chrono::hours longest_wait(24 * 365);

std::chrono::nanoseconds waiting_time(const Item& item) {
  const auto time = options::duration(item);
  if (time > longest_wait) refuse(item, "a duration of at most 8760h");
  return time;
}

std::chrono::nanoseconds time_limit(const Item& item) {
  const auto time = waiting_time(item);
  if (time == std::chrono::nanoseconds(0)) refuse(item, "a duration above 0");
  return time;
}

template <auto Parse>
std::chrono::milliseconds in_milliseconds(const Item& item) {
  return std::chrono::ceil<std::chrono::milliseconds>(Parse(item));
}

// "15021", "15021,5m"
void set_when_ready(CommandLine& line, const Given& given) {
  constexpr std::string_view expected = "a port, or a port and a duration above 0, such as 15021,5m";
  const std::size_t comma = given.text.find(',');
  WhenReady& awaited = line.when_ready.emplace();
  awaited.port = options::port({given, given.text.substr(0, comma)});
  if (comma == std::string_view::npos) return;
  awaited.timeout = waiting_time({given, given.text.substr(comma + 1)});
  if (awaited.timeout == std::chrono::nanoseconds(0)) refuse(given, expected);
}

void set_metrics(CommandLine& line, const Given& given) {
  if (given.text.empty()) refuse(given, "the path of a file");
  line.pods.metrics = given.text;
}

// One of the choices that the flag has here.
void set_format(CommandLine& line, const Given& given) {
  constexpr Format formats[] = {Format::text, Format::json, Format::svg};
  line.format = formats[place_of_choice(given)];
}

void set_json(CommandLine& line, const Given& given) {
  if (options::boolean(given)) line.format = Format::json;
}

void set_netns(CommandLine& line, const Given& given) {
  if (given.text.empty()) refuse(given, "the path or the name of a network namespace");
  line.netns = given.text;
}

template <auto Member>
void absolute_path(CommandLine& line, const Given& given) {
  if (!given.text.starts_with('/') || given.text.find('\0') != std::string_view::npos)
    refuse(given, "an absolute path");
  const auto end = given.text.find_last_not_of('/');
  member(line, Member) = given.text.substr(0, end == std::string_view::npos ? 1 : end + 1);
}

std::string file_name(const Given& given) {
  if (given.text.empty()) refuse(given, "the name of a file, or - for standard input");
  return std::string(given.text);
}

template <auto Member>
void file(CommandLine& line, const Given& given) {
  auto& name = member(line, Member);
  if (!name.empty()) refuse(given, fmt::format("one file, and '{}' is given already", excerpt(name)));
  name = file_name(given);
}

template <auto Member>
void files(CommandLine& line, const Given& given) {
  member(line, Member).push_back(file_name(given));
}

void add_address(CommandLine& line, const Given& given) {
  each_item(given, [&](const Item& item) { line.text.pod.addresses.push_back(options::own_address(item)); });
}

void add_route(CommandLine& line, const Given& given) { options::route(given, line.text.pod); }

void set_way(CommandLine& line, const Given& given) {
  constexpr std::size_t forward = 3;
  const std::size_t chosen = place_of_choice(given);
  line.forwarded = chosen == forward;
  line.way = line.forwarded ? std::nullopt : std::optional(static_cast<Direction>(chosen));
}

void set_helm(CommandLine& line, const Given& given) { set_helm_values(line.manifest.set, given.text); }

void set_envoy_user(CommandLine& line, const Given& given) {
  if (given.text.empty()) return;
  line.names.envoy_user = given.text;
  line.names.envoy_user_given = true;
}

// ---- What istio-iptables took once

// An option of older releases, whose description says what became of it.
void set_former(CommandLine& line, const Given& given) {
  if (given.flag.kind == Kind::boolean) options::boolean(given);
  if (!given.variable.empty() && given.text.empty()) return;
  const std::string source = given.variable.empty() ? spelled(given.flag) : std::string(given.variable);
  line.warnings.push_back(fmt::format("{}: {}", source, given.flag.description));
}

// Istio 1.7 took ALL: all queries, whatever their server.
void set_redirect_dns(CommandLine& line, const Given& given) {
  const bool may_be_all = given.variable == "ISTIO_META_DNS_CAPTURE";
  const bool all = may_be_all && given.text == "ALL";
  if (may_be_all && !all && !options::to_boolean(given.text)) refuse(given, "true, false or ALL");
  line.config.redirect_dns = all || options::boolean(given);
  line.config.capture_all_dns = line.config.capture_all_dns || all;
}

// One owner match a group: xtables rules with more would not be the ones that istio-iptables makes.
constexpr std::size_t most_owner_groups = 64;

void limit_groups(const Given& given, std::size_t count) {
  if (count > most_owner_groups) refuse(given, fmt::format("at most {} groups, not {}", most_owner_groups, count));
}

void set_owner_groups(CommandLine& line, const Given& given) {
  line.names.owner_groups = {};
  store_selection<&Names::owner_groups, word>(line, given);
  limit_groups(given, line.names.owner_groups.list.size());
}

void set_owner_groups_exclude(CommandLine& line, const Given& given) {
  store_list<&Names::owner_groups_exclude, word>(line, given);
  limit_groups(given, line.names.owner_groups_exclude.size());
}

// ---- The logging flags of Istio's programs, which are in every injected manifest

// Our messages are those of the scope "default"; "all" covers every scope.
bool is_ours(std::string_view scope) { return scope == "default" || scope == "all"; }

std::pair<std::string_view, LogOptions::Level> scoped_level(const Item& item) {
  const auto colon = item.text.rfind(':');
  const bool scoped = colon != std::string_view::npos;
  const auto scope = scoped ? item.text.substr(0, colon) : "default";
  const auto levels = each_choice(log_levels);
  const auto level = std::ranges::find(levels, scoped ? item.text.substr(colon + 1) : item.text);
  if (scope.empty() || level == levels.end()) {
    refuse(item, fmt::format("[scope:]level, the level one of {}", fmt::join(levels, ", ")));
  }
  return {scope, static_cast<LogOptions::Level>(level - levels.begin())};
}

void set_log_output_level(CommandLine& line, const Given& given) {
  each_item(given, [&](const Item& item) {
    const auto [scope, level] = scoped_level(item);
    if (is_ours(scope)) line.log.level = level;
  });
}

void check_log_levels(CommandLine&, const Given& given) {
  each_item(given, [](const Item& item) { scoped_level(item); });
}

void set_log_target(CommandLine& line, const Given& given) {
  if (given.text.empty()) refuse(given, "stdout, stderr or a path");
  line.log.targets.emplace_back(given.text);
}

void set_log_caller(CommandLine& line, const Given& given) {
  each_item(given, [&](const Item& item) { line.log.caller |= is_ours(item.text); });
}

void check_verbosity(CommandLine&, const Given& given) {
  if (to_number<int>(given.text).value_or(-1) < 0) refuse(given, "a number");
}

// ---- Who takes what.

using enum Command;
constexpr CommandSet asking =
    CommandSet(explain) | Command::map | Command::lint;  // about live rules, or those of a plan
constexpr CommandSet all = asking | apply | render | diff | verify | show | clean | doctor;
constexpr CommandSet planned = asking | apply | render | diff | verify;
constexpr CommandSet sandboxed = planned | Command::clean | show | doctor | pods;
constexpr CommandSet in_pictures = CommandSet(Command::map);
constexpr CommandSet printing =
    CommandSet(explain) | Command::lint | diff | verify | show | doctor | pods | args | cni;  // as text or as JSON
constexpr CommandSet with_pod_file =
    asking | render | diff | verify;                  // of one that is not there yet, or as it should be
constexpr CommandSet of_text = asking | show | diff;  // rules that were pasted
constexpr CommandSet of_manifest = CommandSet(args) | inject;
constexpr CommandSet logging = all | pods | of_manifest | cni;

// clang-format off
constexpr CommandInfo command_table[] = {
    {apply, "apply", "[options]", {}, "install the rules in this pod",
     "sidetrack apply -u 1337 -i '*' -b '*' -d 15090,15021"},
    {render, "render", "[options]", {}, "print what apply would install; touch nothing",
     "sidetrack render -i '*' -b '*' --format nft"},
    {diff, "diff", "[--effect [A B]] [options]", {}, "what apply would change; exit 6 if anything",
     "sidetrack diff -i '*' -b '*' --pid 4711"},
    {verify, "verify", "[options]", {}, "check that rules and routes are as requested; exit 6 if not",
     "sidetrack verify -i '*' -b '*' --probe"},
    {show, "show", "[options]", {}, "which rules are installed and by whom, with counters",
     "sidetrack show --pid 4711"},
    {explain, "explain", "PACKET [options]", {"out|in|lo", "tcp|udp|icmp"}, "which rule decides about this packet, and why",
     "sidetrack explain out tcp 10.96.0.10:443 --uid 1000"},
    {Command::map, "map", "[options]", {}, "what becomes of all traffic, and which option is the reason",
     "sidetrack map --plan -i '*' -b '*' -o 22"},
    {Command::lint, "lint", "[options]", {}, "options or live rules: what has no effect, loops or escapes",
     "sidetrack lint -i '*' -b '*' -x 10.0.0.0/8,10.1.0.0/16"},
    {clean, "clean", "[options]", {}, "remove every trace, whichever version, flags or backend left it",
     "sidetrack clean --netns blue"},
    {doctor, "doctor", "[options]", {}, "what this kernel and container allow, and what is missing",
     "sidetrack doctor --json"},
    {pods, "pods", "[options]", {}, "the node's pods: what is captured, and whether as recorded",
     "sidetrack pods --repair"},
    {args, "args", "-f FILE [options]", {}, "what istio-init gets for a pod's manifest, and why",
     "sidetrack args -f deployment.yaml --why"},
    {inject, "inject", "-f FILE --template FILE [options]", {}, "put istio-init and a proxy of your own into a pod's manifest",
     "sidetrack inject -f deployment.yaml --template proxy.yaml"},
    {cni, "cni", "install|uninstall|status [options]", {"install|uninstall|status"}, "the CNI plugin of this node",
     "sidetrack cni install --exclude-namespaces kube-system --watch"},
    {completion, "completion", "bash|zsh|fish", {"bash|zsh|fish"}, "print the completion script for a shell",
     "source <(sidetrack completion bash)"},
};
// clang-format on

constexpr ExitMeaning exit_code_table[] = {
    {ExitCode::done, "done", "done"},
    {ExitCode::failed, "failed", "failed, not ready in time (--when-ready), or rolled back (--confirm)"},
    {ExitCode::usage, "wrong usage", "wrong usage or bad input; nothing was touched"},
    {ExitCode::kernel_lacks, "not supported by the kernel",
     "not supported by the kernel: which rule, which extension, what to load"},
    {ExitCode::not_permitted, "not permitted", "not permitted: which capability is missing"},
    {ExitCode::busy, "busy", "busy: another writer holds the lock, or another program keeps changing the rules"},
    {ExitCode::differs, "differs",
     "differs (verify, diff, pods, cni), findings (lint), or refused (apply --strict, SSH sessions)"},
    {ExitCode::validation_failed, "validation failed",
     "connections fail (--run-validation, verify --probe), or traffic escapes (apply --prove)"},
};

// ---- The options. Two rows of one name differ in the commands that take them.

constexpr Direction inbound[] = {Direction::in};
constexpr Direction outbound[] = {Direction::out, Direction::lo};
constexpr Direction any_way[] = {Direction::out, Direction::lo, Direction::in};  // -k makes inbound traffic outbound

// A row a few screen lines, the columns in their order.
// clang-format off
constexpr Flag flag_table[] = {
    {"envoy-port", 'p', {"ENVOY_PORT"}, Kind::scalar, "PORT", "", "15001",
     "the proxy's port for outbound", Group::traffic, planned | cni, value<&Config::proxy_port, options::port>},
    {"inbound-capture-port", 'z', {"INBOUND_CAPTURE_PORT"}, Kind::scalar, "PORT", "", "15006",
     "the proxy's port for inbound", Group::traffic, planned | cni, value<&Config::inbound_port, options::port>},
    {"inbound-tunnel-port", 'e', {"INBOUND_TUNNEL_PORT"}, Kind::scalar, "PORT", "", "15008",
     "the proxy's port for HBONE", Group::traffic, planned | cni, value<&Config::tunnel_port, options::port>},
    {"proxy-uid", 'u', {"PROXY_UID"}, Kind::list, "UIDS", "", "ENVOY_USER's or 1337",
     "the proxy's uid", Group::traffic, planned | cni,
     list<&Config::proxy_uids, options::id>.is_proxy(PacketField::uid, outbound)},
    {"proxy-gid", 'g', {"PROXY_GID"}, Kind::list, "GIDS", "", "as -u",
     "the proxy's gid", Group::traffic, planned | cni,
     list<&Config::proxy_gids, options::id>.is_proxy(PacketField::gid, outbound)},
    {"istio-inbound-interception-mode", 'm', {"ISTIO_INBOUND_INTERCEPTION_MODE"}, Kind::choice, "MODE",
     "REDIRECT|TPROXY|NONE", "REDIRECT",
     "how inbound is captured", Group::traffic, planned, setter<&Config::mode>(set_mode)},
    {"istio-inbound-ports", 'b', {"ISTIO_INBOUND_PORTS"}, Kind::list, "PORTS|'*'", "", "none",
     "inbound: capture these", Group::traffic, planned,
     selection<&Config::inbound_ports, options::port_range>.captures(PacketField::destination_port, inbound)},
    {"istio-local-exclude-ports", 'd', {"ISTIO_LOCAL_EXCLUDE_PORTS"}, Kind::list, "PORTS", "", "",
     "inbound: all but these, with -b '*'", Group::traffic, planned,
     list<&Config::inbound_exclude_ports, options::port_range>.leaves_out(PacketField::destination_port, inbound)},
    {"include-inbound-ranges", '\0', {"INCLUDE_INBOUND_RANGES"}, Kind::list, "CIDRS|'*'", "", "*",
     "inbound: capture only from these", Group::traffic, planned,
     selection<&Config::inbound_ranges, options::range>.narrows("istio-inbound-ports", PacketField::source, inbound)},
    {"exclude-inbound-ranges", '\0', {"EXCLUDE_INBOUND_RANGES"}, Kind::list, "CIDRS", "", "",
     "inbound: not from these sources", Group::traffic, planned,
     list<&Config::inbound_exclude_ranges, excludable_source>.leaves_out(PacketField::source, inbound)},
    {"istio-exclude-interfaces", 'c', {"ISTIO_EXCLUDE_INTERFACES"}, Kind::list, "NAMES", "", "",
     "leave these interfaces alone", Group::traffic, planned,
     list<&Config::exclude_interfaces, options::interface>.leaves_out(PacketField::interface, inbound)},
    {"istio-service-cidr", 'i', {"ISTIO_SERVICE_CIDR"}, Kind::list, "CIDRS|'*'", "", "none",
     "outbound: capture these ranges", Group::traffic, planned,
     selection<&Config::outbound_ranges, options::range>.captures(PacketField::destination, any_way)},
    {"istio-service-exclude-cidr", 'x', {"ISTIO_SERVICE_EXCLUDE_CIDR"}, Kind::list, "CIDRS", "", "",
     "outbound: not these ranges", Group::traffic, planned,
     list<&Config::outbound_exclude_ranges, excludable_range>.leaves_out(PacketField::destination, outbound)},
    {"istio-outbound-ports", 'q', {"ISTIO_OUTBOUND_PORTS"}, Kind::list, "PORTS", "", "",
     "outbound: also these, to any address", Group::traffic, planned,
     list<&Config::outbound_ports, options::port_range>.captures(PacketField::destination_port, outbound)},
    {"istio-local-outbound-ports-exclude", 'o', {"ISTIO_LOCAL_OUTBOUND_PORTS_EXCLUDE"}, Kind::list, "PORTS", "", "",
     "outbound: not these ports", Group::traffic, planned,
     list<&Config::outbound_exclude_ports, options::port_range>.leaves_out(PacketField::destination_port, outbound)},
    {"kube-virt-interfaces", 'k', {"KUBE_VIRT_INTERFACES"}, Kind::list, "NAMES", "", "",
     "traffic from them is outbound", Group::traffic, planned,
     list<&Config::virtual_interfaces, options::interface>.captures(PacketField::interface, inbound)},
    {"istio-inbound-tproxy-mark", 't', {"ISTIO_INBOUND_TPROXY_MARK"}, Kind::scalar, "MARK", "", "1337",
     "the mark of TPROXY's packets", Group::traffic, planned | cni, value<&Config::tproxy_mark, options::mark>},
    {"istio-inbound-tproxy-route-table", 'r', {"ISTIO_INBOUND_TPROXY_ROUTE_TABLE"}, Kind::scalar, "TABLE", "", "133",
     "TPROXY's routing table", Group::traffic, planned | cni, value<&Config::tproxy_route_table, options::route_table>},
    {"exclude-uids", '\0', {}, Kind::list, "UIDS", "", "",
     "outbound: skip traffic from these UIDs", Group::traffic, planned,
     list<&Config::exclude_uids, options::id_range>.leaves_out(PacketField::uid, outbound)},
    {"exclude-gids", '\0', {}, Kind::list, "GIDS", "", "",
     "outbound: skip traffic from these GIDs", Group::traffic, planned,
     list<&Config::exclude_gids, options::id_range>.leaves_out(PacketField::gid, outbound)},
    {"exclude-uid-ports", '\0', {}, Kind::list, "UIDS:PORTS", "", "",
     "outbound: skip traffic from these UIDs to these ports", Group::traffic, planned,
     setter<&Config::exclude_uid_ports>(set_exclude_uid_ports)},
    {"bypass-cgroup", '\0', {}, Kind::list, "PATHS", "", "",
     "outbound: not from these cgroups (v2)", Group::traffic, planned,
     list<&Config::bypass_cgroups, bypassing_cgroup>},
    {"capture-udp", '\0', {}, Kind::list, "PORTS", "", "",
     "inbound: also capture these UDP ports, with -m TPROXY", Group::traffic, planned,
     list<&Config::capture_udp, options::port_range>.captures(PacketField::destination_port, inbound, Protocol::udp)},
    {"redirect-dns", '\0', {"REDIRECT_DNS", "ISTIO_META_DNS_CAPTURE"}, Kind::boolean, "", "", "",
     "capture DNS to resolv.conf's servers", Group::traffic, planned | cni,
     setter<&Config::redirect_dns>(set_redirect_dns)},
    {"capture-all-dns", '\0', {"CAPTURE_ALL_DNS"}, Kind::boolean, "", "", "",
     "with --redirect-dns: to any server", Group::traffic, planned, boolean<&Config::capture_all_dns>},
    {"track-forwarded-dns", '\0', {"TRACK_FORWARDED_DNS"}, Kind::boolean, "", "", "",
     "with --redirect-dns: replies reach hosts behind -k", Group::traffic, planned,
     boolean<&Config::track_forwarded_dns>},
    {"drop-invalid", '\0', {"DROP_INVALID", "INVALID_DROP"}, Kind::boolean, "", "", "",
     "drop packets of conntrack state INVALID", Group::traffic, planned | cni, boolean<&Config::drop_invalid>},
    {"dual-stack", '\0', {"DUAL_STACK", "ISTIO_DUAL_STACK"}, Kind::boolean, "", "", "",
     "IPv6 too, if the pod has it", Group::traffic, planned | cni, boolean<&Config::dual_stack>},
    {"dataplane", '\0', {}, Kind::choice, "MODE", "sidecar|ambient", "sidecar",
     "the proxy in the pod, or the node's ztunnel", Group::ambient, planned | cni,
     setter<&Config::dataplane>(choice<&Config::dataplane>)},
    {"dataplane", '\0', {}, Kind::choice, "MODE", "sidecar|ambient", "sidecar",
     "ambient: an agent's rules count, too", Group::run, CommandSet(clean) | show, choice<&Config::dataplane>},
    {"probe-address", '\0', {}, Kind::scalar, "ADDRESS", "", "169.254.7.127",
     "ambient: where the kubelet's probes come from", Group::ambient, planned | cni,
     value<&Config::probe_address, probe_source<Family::ipv4>>},
    {"probe-address6", '\0', {}, Kind::scalar, "ADDRESS", "", "fd16:9254:7127:1337:ffff:ffff:ffff:ffff",
     "ambient: the same in IPv6", Group::ambient, planned | cni,
     value<&Config::probe_address6, probe_source<Family::ipv6>>},
    {"ingress", '\0', {}, Kind::boolean, "", "", "",
     "ambient: a gateway, whose inbound is not captured", Group::ambient, planned, boolean<&Config::ingress>},

    {"ip-families", '\0', {}, Kind::list, "FAMILIES", "ipv4|ipv6", "as the pod's addresses",
     "ipv4 or ipv4,ipv6", Group::run, planned, set_ip_families},
    {"dns-server", '\0', {}, Kind::list, "ADDRESSES", "", "of /etc/resolv.conf",
     "servers for --redirect-dns", Group::run, planned, setter<&Config::dns_servers>(set_dns_servers)},
    {"dry-run", 'n', {"DRY_RUN"}, Kind::boolean, "", "", "",
     "print the rules, touch nothing (render)", Group::run, apply, boolean<&CommandLine::dry_run>},
    {"strict", '\0', {}, Kind::boolean, "", "", "", "fail if other programs' rules interfere",
     Group::run, apply, boolean<&ApplyOptions::strict>},
    {"check", '\0', {}, Kind::boolean, "", "", "",
     "check that the kernel would accept the rules", Group::run, apply, boolean<&CommandLine::check>},
    {"prove", '\0', {}, Kind::boolean, "", "", "",
     "refuse rules by which traffic escapes or loops", Group::run, apply, boolean<&CommandLine::prove>},
    {"when-ready", '\0', {}, Kind::scalar, "PORT[,TIME]", "", "",
     "first wait, 60s, until proxy or ztunnel listens", Group::run, apply, set_when_ready},
    {"confirm", '\0', {}, Kind::scalar, "DURATION", "", "",
     "roll back unless confirmed in that time", Group::run, apply, store<&CommandLine::confirm, time_limit>},
    {"probe", '\0', {}, Kind::boolean, "", "", "",
     "try real connections, too", Group::run, verify, boolean<&CommandLine::probe>},
    {"clean", '\0', {}, Kind::boolean, "", "", "",
     "show what clean would remove", Group::run, diff, boolean<&CommandLine::clean>},
    {"mesh", '\0', {}, Kind::scalar, "NAME", mesh_names, "",
     "which mesh's rules to remove, if not Istio's", Group::run, clean, set_mesh},
    {"mesh", '\0', {}, Kind::scalar, "NAME", mesh_names, "",
     "with --clean: which mesh's, if not Istio's", Group::run, diff, set_mesh},
    {"watch", '\0', {}, Kind::boolean, "", "", "",
     "refresh every second, and mark the counters that move", Group::run, show, boolean<&CommandLine::watch>},
    {"watch", '\0', {}, Kind::boolean, "", "", "",
     "keep running, and reinstall when removed", Group::run, cni, boolean<&CommandLine::watch>},
    {"platform", '\0', {}, Kind::choice, "NAME", platform_names, "",
     "the directories of this platform", Group::run, cni, set_platform},
    {"bin-dir", '\0', {}, Kind::text, "PATH", "", "/opt/cni/bin",
     "where the runtime looks for plugins", Group::run, cni, absolute_path<&CniOptions::bin_dir>},
    {"net-dir", '\0', {}, Kind::text, "PATH", "", "/etc/cni/net.d",
     "the runtime's CNI configuration", Group::run, cni, absolute_path<&CniOptions::net_dir>},
    {"exclude-namespaces", '\0', {}, Kind::list, "NAMES", "", "",
     "install: do not intercept pods of these", Group::traffic, cni,
     list<&CniOptions::exclude_namespaces, namespace_name>},
    {"plugin-log", '\0', {}, Kind::text, "PATH", "", "syslog",
     "install: where the plugin logs", Group::run, cni, absolute_path<&CniOptions::plugin_log>},
    {"allow-dynamic", '\0', {}, Kind::boolean, "", "", "",
     "install: allow a program that needs libraries", Group::run, cni, boolean<&CniOptions::allow_dynamic>},
    {"now", '\0', {}, Kind::boolean, "", "", "",
     "uninstall: remove the program, whichever pods need it", Group::run, cni, boolean<&CniOptions::now>},
    {"plan", '\0', {}, Kind::boolean, "", "", "",
     "the rules of the given options, not the live ones", Group::run, asking, boolean<&CommandLine::plan>},
    {"backend", '\0', {}, Kind::choice, "BACKEND", backend_choices, "auto",
     "which backend holds the rules", Group::run, planned | show | doctor | cni, set_backend},
    {"backend", '\0', {}, Kind::choice, "BACKEND", backend_choices, "auto: all",
     "remove the rules of one alone", Group::run, clean, set_backend},
    {"filename", 'f', {}, Kind::text, "FILE", "", "",
     "the manifest, YAML or JSON; - for standard input", Group::run, of_manifest, files<&ManifestOptions::files>},
    {"template", '\0', {}, Kind::text, "FILE", "", "",
     "the containers and volumes to put into pods", Group::run, inject, file<&ManifestOptions::injected>},
    {"pod", '\0', {}, Kind::text, "FILE", "", "",
     "a pod's manifest in place of options", Group::run, with_pod_file, file<&ManifestOptions::pod>},
    {"set", '\0', {}, Kind::text, "NAME=VALUE", "", "",
     "one of Istio's Helm values", Group::run, with_pod_file | of_manifest, set_helm},
    {"values", '\0', {}, Kind::text, "FILE", "", "",
     "a file of Istio's Helm values", Group::run, with_pod_file | of_manifest, files<&ManifestOptions::values>},
    {"injector", '\0', {}, Kind::choice, "WHO", "istio|sidetrack", "istio",
     "whose webhook injects the pod", Group::run, with_pod_file | args, choice<&ManifestOptions::injector>},
    {"why", '\0', {}, Kind::boolean, "", "", "",
     "which annotation or default gives each argument", Group::output, args, boolean<&ManifestOptions::why>},
    {"repair", '\0', {}, Kind::boolean, "", "", "",
     "apply what is recorded where it differs", Group::run, pods, boolean<&PodsOptions::repair>},
    {"metrics", '\0', {}, Kind::text, "FILE", "", "",
     "write metrics for node_exporter's textfiles", Group::run, pods, set_metrics},
    {"pod-timeout", '\0', {}, Kind::scalar, "DURATION", "", "5s",
     "time limit for each pod", Group::run, pods, store<&PodsOptions::pod_timeout, in_milliseconds<time_limit>>},
    {"records", '\0', {}, Kind::text, "PATH", "", "/run/sidetrack/pods",
     "the CNI plugin's records", Group::run, CommandSet(pods) | cni, absolute_path<&PodsOptions::records>},
    {"wait", '\0', {}, Kind::scalar, "DURATION", "", "30s",
     "how long to wait for other writers", Group::run, CommandSet(apply) | clean, store<&ApplyOptions::lock_wait, in_milliseconds<waiting_time>>},

    {"uid", '\0', {}, Kind::scalar, "UID", "", "0",
     "uid of the sender", Group::packet, explain, value<&PacketOptions::uid, options::id>},
    {"gid", '\0', {}, Kind::scalar, "GID", "", "the uid's",
     "the group that sends it", Group::packet, explain, value<&PacketOptions::gid, options::id>},
    {"cgroup", '\0', {}, Kind::text, "PATH", "", "",
     "the sender's cgroup", Group::packet, explain, set_cgroup},
    {"from", '\0', {}, Kind::scalar, "ADDRESS", "", "",
     "source address", Group::packet, explain, value<&PacketOptions::from, options::address>},
    {"from-port", '\0', {}, Kind::scalar, "PORT", "", "",
     "source port", Group::packet, explain, value<&PacketOptions::from_port, options::port>},
    {"in-interface", '\0', {}, Kind::scalar, "NAME", "", "",
     "the interface it arrives on", Group::packet, explain, value<&PacketOptions::in_interface, options::interface>},
    {"out-interface", '\0', {}, Kind::scalar, "NAME", "", "",
     "the interface it leaves by", Group::packet, explain, value<&PacketOptions::out_interface, options::interface>},
    {"mark", '\0', {}, Kind::scalar, "MARK", "", "none",
     "the mark of its socket", Group::packet, explain, value<&PacketOptions::mark, options::mark>},
    {"state", '\0', {}, Kind::choice, "STATE", "new|established|reply|invalid", "new",
     "the state of its connection", Group::packet, explain, choice<&PacketOptions::state>},

    {"rules", '\0', {}, Kind::text, "FILE", "", "",
     "rules of iptables-save, nft list ruleset; - for stdin", Group::place, of_text, files<&PastedRules::files>},
    {"address", '\0', {}, Kind::list, "ADDRESSES", "", "192.0.2.2/24",
     "with --rules: the pod's addresses, A/LEN%INTERFACE", Group::place, of_text, add_address},
    {"route", '\0', {}, Kind::text, "ROUTE", "", "a default route",
     "with --rules: what ip route or ip rule prints", Group::place, of_text, add_route},
    {"netns", '\0', {}, Kind::text, "PATH|NAME", "", "",
     "work in this network namespace", Group::place, all, set_netns},
    {"pid", '\0', {}, Kind::scalar, "PID", "", "",
     "work in this process's namespaces", Group::place, all, value<&CommandLine::pid, options::process_id>},
    {"host", '\0', {}, Kind::boolean, "", "", "",
     "allow the caller's own network namespace", Group::place, all, boolean<&CommandLine::host>},
    {"no-sandbox", '\0', {}, Kind::boolean, "", "", "",
     "keep capabilities and system calls that are not needed", Group::place, sandboxed,
     boolean<&CommandLine::no_sandbox>},
    {"no-sandbox", '\0', {}, Kind::boolean, "", "", "",
     "keep capabilities and system calls that are not needed", Group::run, of_manifest | cni,
     boolean<&CommandLine::no_sandbox>},

    {"format", '\0', {}, Kind::choice, "FORMAT", "text|nft|json|svg", "text",
     "the format of the result", Group::output, CommandSet(apply) | render, choice<&CommandLine::format>},
    {"format", '\0', {}, Kind::choice, "FORMAT", "text|json", "text",
     "the format of the result", Group::output, printing, set_format},
    {"format", '\0', {}, Kind::choice, "FORMAT", "text|json|svg", "text",
     "the format of the result", Group::output, in_pictures, set_format},
    {"json", '\0', {}, Kind::boolean, "", "", "", "--format json", Group::output, CommandSet(apply) | render | in_pictures | printing, set_json},
    {"effect", '\0', {}, Kind::boolean, "", "", "",
     "compare by effect: which packets differ", Group::run, diff, boolean<&CommandLine::effect>},
    {"family", '\0', {}, Kind::choice, "FAMILY", "ipv4|ipv6", "both",
     "print only this family's rules", Group::output, CommandSet(apply) | render | Command::map,
     value<&CommandLine::printed, family>},
    {"way", '\0', {}, Kind::choice, "WAY", "out|in|lo|forward", "all",
     "only what goes out, comes in, goes over lo, or is forwarded", Group::output, Command::map, set_way},
    {"brief", '\0', {}, Kind::boolean, "", "", "",
     "only the outcome", Group::output, explain, boolean<&CommandLine::brief>},
    {"color", '\0', {}, Kind::choice, "WHEN", "auto|always|never", "auto",
     "whether to colour the result", Group::output, all, choice<&CommandLine::color>},

    {"iptables-probe-port", '\0', {"IPTABLES_PROBE_PORT"}, Kind::scalar, "PORT", "", "15002",
     "the port that validation connects to", Group::istio, CommandSet(apply) | verify,
     value<&Config::probe_port, options::port>},
    {"probe-timeout", '\0', {"PROBE_TIMEOUT"}, Kind::scalar, "DURATION", "", "5s",
     "the time limit of validation", Group::istio, CommandSet(apply) | verify, store<&Config::probe_timeout, time_limit>},
    {"skip-rule-apply", '\0', {"SKIP_RULE_APPLY"}, Kind::boolean, "", "", "",
     "install nothing", Group::istio, apply, boolean<&CommandLine::skip_rule_apply>},
    {"run-validation", '\0', {"RUN_VALIDATION"}, Kind::boolean, "", "", "",
     "then test the interception with a real connection; exit 126 if it fails", Group::istio, apply,
     boolean<&CommandLine::run_validation>},
    {"network-namespace", '\0', {"NETWORK_NAMESPACE"}, Kind::text, "PATH", "", "",
     "as --netns", Group::istio, apply, value<&CommandLine::network_namespace, word>},
    {"cni-mode", '\0', {"CNI_MODE"}, Kind::boolean, "", "", "",
     "called by a CNI plugin on the node", Group::istio, apply, boolean<&ApplyOptions::cni_mode>},
    {"reconcile", '\0', {"RECONCILE"}, Kind::boolean, "", "", "",
     "accepted: apply always replaces what differs", Group::istio, apply, boolean<&ApplyOptions::reconcile>},
    {"cleanup-only", '\0', {"CLEANUP_ONLY"}, Kind::boolean, "", "", "",
     "remove the rules, as the command clean", Group::istio, apply, boolean<&CommandLine::cleanup_only>},
    {"force-apply", '\0', {"FORCE_APPLY"}, Kind::boolean, "", "", "",
     "rewrite even equal rules", Group::istio, apply, boolean<&ApplyOptions::force_apply>},
    {"native-nftables", '\0', {"NATIVE_NFTABLES"}, Kind::boolean, "", "", "",
     "as --backend nftables", Group::istio, planned, boolean<&ApplyOptions::native_nftables>},
    {"force-iptables-binary", '\0', {"FORCE_IPTABLES_BINARY"}, Kind::choice, "BINARY", "legacy|nft", "",
     "as --backend iptables-legacy, iptables-nft", Group::istio, planned, set_forced_binary},

    {"restore-format", 'f', {}, Kind::boolean, "", "", "",
     "of Istio before 1.24; without effect: each table is changed as a whole", Group::former, apply, set_former},
    {"iptables-trace-logging", '\0', {}, Kind::boolean, "", "", "",
     "of Istio before 1.25; no rule writes a log: 'sidetrack show' has each rule's counters", Group::former, apply, set_former},
    {"output-paths", '\0', {}, Kind::text, "FILE", "", "",
     "of Istio before 1.18; no file is written: 'sidetrack render' prints the rules", Group::former, apply, set_former},
    {"host-nsenter-exec", '\0', {}, Kind::boolean, "", "", "",
     "of Istio before 1.18; without effect: no program is called", Group::former, apply, set_former},
    {"iptables-version", '\0', {}, Kind::text, "VERSION", "", "",
     "of Istio 1.18 to 1.21; without effect: no program is called, --backend chooses", Group::former, apply, set_former},
    {"clean", '\0', {}, Kind::boolean, "", "", "",
     "of older releases; without effect: apply always removes what it replaces", Group::former, apply, set_former},

    {"log_output_level", '\0', {}, Kind::list, "[SCOPE:]LEVEL", "", "default:info",
     "debug, info, warn, error, fatal or none", Group::log, logging, set_log_output_level},
    {"log_as_json", '\0', {}, Kind::boolean, "", "", "",
     "one JSON object per line", Group::log, logging, boolean<&LogOptions::json>},
    {"log_target", '\0', {}, Kind::text, "TARGET", "", "",
     "stdout, stderr or a path; may be repeated", Group::log, logging, set_log_target},
    {"log_caller", '\0', {}, Kind::list, "SCOPES", "", "",
     "add the source line of each message", Group::log, logging, set_log_caller},
    {"log_stacktrace_level", '\0', {}, Kind::list, "[SCOPE:]LEVEL", "", "default:none",
     "accepted, without effect", Group::log, logging, check_log_levels},
    {"log_rotate", '\0', {}, Kind::text, "FILE", "", "",
     "of Istio before 1.24; no file is written: --log_target names one", Group::former, apply, set_former},
    {"log_rotate_max_age", '\0', {}, Kind::scalar, "DAYS", "", "",
     "of Istio before 1.24; without effect: no log is rotated", Group::former, apply, set_former},
    {"log_rotate_max_backups", '\0', {}, Kind::scalar, "N", "", "",
     "of Istio before 1.24; without effect: no log is rotated", Group::former, apply, set_former},
    {"log_rotate_max_size", '\0', {}, Kind::scalar, "MEGABYTES", "", "",
     "of Istio before 1.24; without effect: no log is rotated", Group::former, apply, set_former},
    {"vklog", '\0', {}, Kind::scalar, "N", "", "0",
     "accepted, without effect", Group::log, logging, check_verbosity},

    {"help", 'h', {}, Kind::boolean, "", "", "", "print this help", Group::output, logging | completion, boolean<&CommandLine::help>},

    {"", '\0', {"ENVOY_USER"}, Kind::text, "NAME", "", "istio-proxy",
     "the proxy's user if -u is not given", Group::environment, planned, set_envoy_user},
    {"", '\0', {"DISABLE_REDIRECTION_ON_LOCAL_LOOPBACK"}, Kind::text, "ANY", "", "",
     "of older releases; without effect: what the proxy sends to the pod's own address is inbound traffic",
     Group::former, planned, set_former},
    {"", '\0', {"ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR"}, Kind::scalar, "CIDR", "", "127.0.0.1/32",
     "what counts as the pod's own IPv4 loopback", Group::environment, planned,
     value<&Config::loopback_ipv4, options::loopback_prefix>},
    {"", '\0', {"ISTIO_OUTBOUND_OWNER_GROUPS"}, Kind::list, "GROUPS|'*'", "", "*",
     "capture outbound of these groups only", Group::environment, planned,
     setter<&Config::owner_groups>(set_owner_groups)},
    {"", '\0', {"ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE"}, Kind::list, "GROUPS", "", "",
     "do not capture outbound of these groups", Group::environment, planned,
     setter<&Config::owner_groups_exclude>(set_owner_groups_exclude).leaves_out(PacketField::gid, outbound)},
};
// clang-format on

}  // namespace

std::string_view name(Command command) { return info(command).name; }

std::span<const CommandInfo> commands() { return command_table; }

const CommandInfo* find_command(std::string_view name) {
  const auto* const found = std::ranges::find(command_table, name, &CommandInfo::name);
  return found != std::end(command_table) ? found : nullptr;
}

const CommandInfo& info(Command command) { return command_table[static_cast<std::size_t>(command)]; }

std::span<const Flag> flags() { return flag_table; }

const Flag& flag_named(std::string_view name) { return *std::ranges::find(flag_table, name, &Flag::name); }

const Flag* flag_of(std::string_view word, std::optional<Command> command) {
  const auto* const found = std::ranges::find_if(flag_table, [&](const Flag& flag) {
    const bool is_taken = !command || flag.commands.contains(*command);
    return is_taken && !flag.name.empty() && (word == short_name(flag) || word == fmt::format("--{}", flag.name));
  });
  return found != std::end(flag_table) ? found : nullptr;
}

const Flag* flag_of_variable(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      flag_table, [&](const Flag& flag) { return flag.name.empty() && flag.variables[0] == name; });
  return found != std::end(flag_table) ? found : nullptr;
}

std::span<const ExitMeaning> exit_codes() { return exit_code_table; }

std::vector<std::string_view> each_choice(std::string_view choices) { return split(choices, "|"); }

std::string short_name(const Flag& flag) {
  if (flag.name.empty()) return std::string(flag.variables[0]);
  return flag.letter != '\0' ? fmt::format("-{}", flag.letter) : fmt::format("--{}", flag.name);
}

std::string spelled(const Flag& flag) {
  return flag.letter != '\0' ? fmt::format("-{}, --{}", flag.letter, flag.name) : short_name(flag);
}

}  // namespace sidetrack
