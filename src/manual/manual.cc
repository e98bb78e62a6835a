// SPDX-License-Identifier: GPL-2.0-or-later
#include "manual/manual.h"

#include <fmt/format.h>
#include <sidetrack/version.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "options/flags.h"

namespace sidetrack {
namespace {

// ---- The words that no table holds. In mdoc already.

constexpr const char* beginning = R"(.\" SPDX-License-Identifier: GPL-2.0-or-later
.\" Made from the table of options by the build; edit that.
.Dd November 20, 2026
.Dt SIDETRACK 8
.Os Sidetrack {}
.Sh NAME
.Nm sidetrack ,
.Nm istio-iptables
.Nd steer a pod's traffic onto its service-mesh sidecar
.Sh SYNOPSIS
.Nm sidetrack
.Ar command
.Op Ar option ...
.Nm sidetrack
.Op Cm istio-iptables
.Ar option ...
.Nm istio-iptables
.Ar option ...
.Sh DESCRIPTION
.Nm sidetrack
programs the netfilter rules and the routes that send a pod's connections through its sidecar proxy:
inbound connections go to the proxy's inbound port, outbound ones to its outbound port, and what the options leave out
is not affected.
It is a drop-in replacement for
.Nm istio-iptables ,
the program of the istio-init container, flag for flag; it talks to the kernel directly and starts no other program.
.Pp
Either all of the rules are there afterwards, of IPv4 and IPv6, or nothing has changed.
Running again changes nothing; running with other options replaces the rules in one step, without a gap.
.Pp
Options alone, the word
.Cm istio-iptables
before them, or the program called by that name, are the drop-in form:
.Cm apply ,
which then logs where
.Fl -log_target
says, as
.Nm istio-iptables
does.
Otherwise standard output carries the result and nothing else, and the log goes to standard error.
Without any argument the program prints its help and touches nothing.
.Sh COMMANDS
.Bl -tag -width Ds
)";

struct Detail {
  Command command;
  const char* text;
};

constexpr Detail command_details[] = {
    {Command::apply,
     R"(The pod ends with exactly what was requested, whatever was there before: nothing, rules of other options, Istio's own of any
version, half of them, rules in another backend.
Others' rules stay, with their counters.
)"},
    {Command::render, R"(The formats
.Cm text
and
.Cm nft
are what
.Xr iptables-restore 8
and
.Xr nft 8
load;
.Cm json
has the flag and the reason of every rule;
.Cm svg
is a drawing of the chains with every rule in its order.
Needs no privilege.
)"},
    {Command::diff, R"(Compares rule by rule, in their order, and the routes.
)"},
    {Command::verify, R"(As
.Cm diff ,
but for scripts; with
.Fl -probe
it also tries real connections and compares each with what the rules say about it.
)"},
    {Command::show,
     R"(Rules of every backend that holds any, starting at each hook, with policy rules and routes, and a summary of what happens
to inbound and outbound traffic.
)"},
    {Command::explain, R"(.Ar PACKET
is three words: its direction
.Pq Cm out , in No or Cm lo ,
its protocol
.Pq Cm tcp , udp No or Cm icmp ,
and its destination
.Pq Ar ADDRESS : Ns Ar PORT , No \&: Ns Ar PORT No or Ar ADDRESS .
Walks that packet through the live rules, or with
.Fl -plan
through the rules of the given options, and says where it lands.
)"},
    {Command::map,
     R"(A section for each way and protocol, a line for all packets that end alike, with the options that asked for it.
Of new connections between hosts;
.Fl -json
has every packet that
.Cm explain
can be asked about, in regions that do not overlap, each with the rule that decides and an example to paste after
.Cm sidetrack explain .
)"},
    {Command::lint,
     R"(With options, or a manifest by
.Fl -pod ,
about these; without, about the rules that are there.
Each finding has a code that stays the same, a packet that shows it, and what to do.
Exits 6 if there are any.
)"},
    {Command::clean, R"(Needs no options of the rules that it removes.
Others' rules stay.
)"},
    {Command::doctor, R"(Makes no rule, table or lock file.
The kernel may load the modules that it is asked about, as it would for the rules.
)"},
    {Command::pods, R"(Every network namespace that a process of this node is in, but the caller's own, and
every pod that the CNI plugin has recorded in
.Pa /run/sidetrack/pods .
A pod that exceeds the time limit is reported, and does not delay the others.
)"},
    {Command::args,
     R"(A line for each pod template of the files, of the arguments as Istio's injector writes them, quoted for a shell.
Pods that are not injected are named with the reason.
.Fl -set
and
.Fl -values
give the Helm values that count where a pod has no annotation.
)"},
    {Command::inject, R"(Prints the manifest with the init container istio-init, first, with the arguments that
.Cm args
prints, and with the containers and volumes of the template.
Everything else keeps its meaning and order; documents without such pods keep every byte.
A manifest that is injected already is injected anew, which changes nothing if the template is the same.
)"},
    {Command::cni, R"(.Cm install
copies this program to
.Pa /opt/cni/bin/sidetrack-cni
and makes it the last plugin of the network configuration that the container runtime uses, the first valid one by name
in
.Pa /etc/cni/net.d ;
the options of the rules become the plugin's.
.Cm uninstall
takes both away again; the pods that run keep their rules, and the program stays while a pod that was made with it may need it to end, unless
.Fl -now
is given.
.Cm status
says what is installed; exit status 6 if it is not as
.Cm install
leaves it.
)"},
    {Command::completion, R"(The packages install it already; to load it by hand, see
.Sx EXAMPLES .
)"},
};

struct Heading {
  Group group;
  const char* name;
  const char* text;  // below the heading
};

constexpr Heading heading_table[] = {
    {Group::traffic, "Traffic", R"(Lists are separated by commas and may be given several times;
.Li @ Ns Ar FILE
reads one from a file, separated by commas or lines, with
.Li #
before comments.
A
.Li *
stands for everything, and has to be quoted for the shell.
)"},
    {Group::ambient, "Ambient pods", R"(The rules of pods whose proxy is the node's ztunnel.
Options of a sidecar's rules that these do not depend on are refused with
.Fl Fl dataplane Cm ambient ,
unless they have their default values, and so are these with a sidecar's.
)"},
    {Group::run, "Work", ""},
    {Group::packet, "The packet of explain", ""},
    {Group::place, "Place", ""},
    {Group::output, "Output", ""},
    {Group::istio, "As istio-iptables", ""},
    {Group::log, "Log", ""},
};

struct InFull {
  std::string_view name;  // of the option
  const char* text;
};

// Where the line of the help is too short to stand alone.
constexpr InFull in_full_table[] = {
    {"proxy-uid", "The proxy's users, by number: what they send is not captured.\n"},
    {"proxy-gid", "The proxy's groups, by number: what they send is not captured.\n"},
    {"istio-inbound-interception-mode", R"(How inbound connections reach the proxy:
.Cm REDIRECT
changes their destination,
.Cm TPROXY
keeps both addresses,
.Cm NONE
programs no rules at all.
)"},
    {"istio-inbound-ports", "Inbound: capture connections to these ports.\n"},
    {"istio-local-exclude-ports", "Inbound: except to these ports; with\n.Fl b Li \\(aq*\\(aq .\n"},
    {"istio-service-cidr", "Outbound: capture what goes to these ranges of addresses.\n"},
    {"istio-service-exclude-cidr", "Outbound: except to these.\n"},
    {"istio-outbound-ports", "Outbound: capture these ports too, whatever the address.\n"},
    {"istio-local-outbound-ports-exclude", "Outbound: except to these ports, whatever the address.\n"},
    {"istio-exclude-interfaces", R"(Do not capture what comes in or goes out by these interfaces.
.Li eth+
stands for every interface with that prefix.
)"},
    {"kube-virt-interfaces", "What comes in by these interfaces, from a virtual machine, is treated as outbound.\n"},
    {"istio-inbound-tproxy-mark", "The mark of the packets that TPROXY diverts.\n"},
    {"istio-inbound-tproxy-route-table", "The routing table that takes them to the proxy.\n"},
    {"exclude-uids", R"(Outbound: except what these users send, by number or by a range as
.Li 1000-1999 ;
their DNS, too.
The proxy's own ids come first.
)"},
    {"exclude-gids", "Outbound: except what these groups send, in the same way.\n"},
    {"exclude-uid-ports", R"(Outbound: except what these users send to these ports:
.Li 101:443,8000-8100 .
A colon begins the ports of the next users, as in
.Li 101:443,102:53 .
)"},
    {"bypass-cgroup", R"(Outbound: except what the processes of these cgroups
.Pq v2
and of those below them send, a container's for one: the path that
.Pa /proc/PID/cgroup
shows behind
.Li 0:: ,
or that of its directory.
)"},
    {"capture-udp", R"(Inbound: capture UDP to these ports, too, as QUIC's 443; with
.Fl m Cm TPROXY
alone, which keeps the original destination.
)"},
    {"ip-families", R"(The families of the rules:
.Cm ipv4
or
.Cm ipv4,ipv6 ,
since the rules for IPv4 are always made.
)"},
    {"dns-server", "The servers of\n.Fl -redirect-dns ,\ninstead of those of resolv.conf.\n"},
    {"dry-run", "Print the rules and touch nothing, as\n.Cm render\ndoes.\n"},
    {"check", "Check that the kernel would accept the rules; nothing changes.\n"},
    {"probe", "Try real connections in addition to comparing the rules.\n"},
    {"clean", "Say what\n.Cm clean\nwould remove instead.\n"},
    {"plan", "Ask about the rules of the given options, not the live ones; needs no privilege.\n"},
    {"pod", R"(The manifest of a pod
.Pq YAML or JSON; - for standard input
whose options these are, in place of options.
)"},
    {"template", R"(A pod's manifest, or the spec of one, whose
.Li initContainers , containers , volumes
and
.Li imagePullSecrets
are put into pods.
)"},
    {"set", R"(One of Istio's Helm values that count where a pod has no annotation, as
.Li global.proxy.includeIPRanges=10.96.0.0/12 ;
may be given several times.
)"},
    {"values", "A file of such values, or an IstioOperator; may be given several times.\n"},
    {"wait",
     "How long to wait for the lock of the network namespace, which every run that changes it takes, and for the lock "
     "of the legacy tables.\n"},
    {"from", "Its source address.\n"},
    {"in-interface", "The interface by which it comes in.\n"},
    {"out-interface", "The interface by which it goes out.\n"},
    {"state", "What connection tracking knows of its connection.\n"},
    {"pid", "Work in the namespaces of this process: of a pod, from the node.\n"},
    {"format", "The format of the result.\n"},
    {"json", "As\n.Fl -format Cm json .\n"},
    {"family", "Print only the rules of this family.\n"},
    {"brief", "Print only the outcome.\n"},
    {"color", "Whether the result is coloured; by default only on a terminal.\n"},
    {"help", "Show the options of the command.\n"},
    {"skip-rule-apply", "Program nothing; only\n.Fl -run-validation\nhas an effect.\n"},
    {"run-validation", "Afterwards test the interception with a real connection; exit 126 if it fails.\n"},
    {"force-iptables-binary", R"(As
.Fl -backend Cm iptables-legacy
or
.Cm iptables-nft .
)"},
    {"log_output_level", R"(Log messages of at least this severity: one of
.Cm debug , info , warn , error , fatal , none .
Only the scope
.Cm default
has messages here.
)"},
    {"log_as_json", "Log one JSON object per line.\n"},
    {"log_target", R"(Log to
.Cm stdout , stderr
or to the file at that path; may be given several times.
A file that cannot be opened is an error; what cannot be written later goes to standard error.
)"},
};

constexpr const char* backends_section = R"(.Sh BACKENDS
.Bl -tag -width Ds
.It Cm iptables-nft
Rules in nf_tables that
.Xr iptables 8
lists, in the tables that other programs use, too.
Needs
.Dv CAP_NET_ADMIN .
.It Cm nftables
A table of its own,
.Li inet sidetrack ,
in which lists are sets: the cost of a new connection does not grow with them.
Needs
.Dv CAP_NET_ADMIN .
.It Cm iptables-legacy
The legacy tables, under the lock that
.Xr iptables 8
takes.
Needs
.Dv CAP_NET_ADMIN
and
.Dv CAP_NET_RAW .
.It Cm auto
The legacy tables if they already hold rules, else the first of
.Cm iptables-nft , nftables , iptables-legacy
whose rules the kernel accepts; with long lists
.Cm nftables
comes first.
.El
.Sh ENVIRONMENT
An option of the command line wins over its variable; of two variables the second wins.
A value that does not parse is an error.
In addition to the variables that are named with their options:
.Bl -tag -width Ds
)";

constexpr const char* files_section = R"(.It Ev NO_COLOR
Set: no colours, unless
.Fl -color Cm always .
.It Ev XTABLES_LOCKFILE
Another path for the lock of the legacy tables.
.El
.Sh FILES
.Bl -tag -width Ds
.It Pa /proc/thread-self/ns/net
The lock of the network namespace, by
.Xr flock 2 .
.It Pa /run/xtables.lock
The lock of the legacy tables, taken in addition.
In another pod
.Pq Fl -netns , -pid , -network-namespace , -cni-mode
it is not taken.
.It Pa /etc/resolv.conf
The servers of
.Fl -redirect-dns .
.It Pa /etc/passwd , /etc/group
The proxy's user and the owner groups, if they are given by name.
With
.Fl -pid
these files are the pod's.
.It Pa /run/netns/
The network namespaces that
.Fl -netns
knows by name.
.El
.Sh EXIT STATUS
.Bl -tag -width 127
)";

struct Example {
  const char* about;
  const char* line;
};

constexpr Example example_table[] = {
    {"What Istio's injected init container does:",
     "sidetrack istio-iptables -p 15001 -z 15006 -u 1337 -m REDIRECT \\\n"
     "    -i '*' -x '' -b '*' -d 15090,15021,15020"},
    {"See what that would program, as a script of nft:",
     "sidetrack render -i '*' -b '*' -d 15090,15021,15020 --format nft"},
    {"Check that the kernel would accept the rules, without changing anything:",
     "sidetrack apply -i '*' -b '*' --check"},
    {"On a node, see what is programmed in the pod of a process, and where one connection goes:",
     "sidetrack show --pid 4711\nsidetrack explain out tcp 10.96.0.10:443 --uid 1000 --pid 4711 --brief"},
    {"Check the pod with real connections; exit status 6 if the rules differ, 126 if a connection fails:",
     "sidetrack verify -i '*' -b '*' --probe"},
    {"Let the shell complete commands and options:",
     "source <(sidetrack completion bash)\nsource <(sidetrack completion zsh)\nsidetrack completion fish | source"},
};

constexpr const char* outcome = R"(.Sh SEE ALSO
.Xr nsenter 1 ,
.Xr ip-netns 8 ,
.Xr iptables 8 ,
.Xr iptables-restore 8 ,
.Xr nft 8
)";

// ---- Text as mdoc takes it.

// Options keep their dashes, and quotes to be typed stay straight.
std::string text(std::string_view words) {
  std::string result;
  char before = ' ';
  for (std::size_t i = 0; i < words.size(); ++i) {
    const char c = words[i];
    const bool begins = before == ' ' || before == '-';
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-' && begins) {
      result += "\\-";
    } else if (c == '\'' && (begins || before == '*')) {
      result += "\\(aq";
    } else {
      result += c;
    }
    before = c;
  }
  return result;
}

// A line to be typed.
std::string literal(std::string_view line) {
  std::string result;
  for (const char c : line) result += c == '\\' ? "\\e" : c == '-' ? "\\-" : c == '\'' ? "\\(aq" : std::string(1, c);
  return result;
}

std::string sentence(std::string_view words) {
  std::string result = text(words);
  result.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(result.front())));
  return result + ".\n";
}

std::string joined(const std::vector<std::string_view>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string takers(const Flag& flag) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> others;
  for (const CommandInfo& command : commands()) {
    (flag.commands.contains(command.command) ? names : others).push_back(command.name);
  }
  if (others.empty()) return "all commands";
  return others.size() == 1 ? fmt::format("all commands but {}", others.front()) : joined(names);
}

// ---- The parts.

std::string item(const CommandInfo& command) {
  std::string page = fmt::format(".It Cm {}", command.name);
  for (std::string_view rest = command.arguments; !rest.empty();) {
    const auto blank = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, blank);
    page += word == "[options]" ? " Op Ar option ..." : fmt::format(" Ar {}", word);
    rest.remove_prefix(std::min(blank + 1, rest.size()));
  }
  page += "\n" + sentence(command.summary);
  for (const auto& [of, detail] : command_details) {
    if (of == command.command) page += detail;
  }
  return page;
}

std::string item(const Flag& flag, bool with_takers) {
  std::string page = ".It ";
  if (flag.name.empty()) {
    page += fmt::format("Ev {}\n", flag.variables[0]);
  } else {
    if (flag.letter != '\0') page += fmt::format("Fl {} , ", flag.letter);
    page += fmt::format("Fl -{}", flag.name);
    page += flag.value.empty() ? "\n" : fmt::format(" Ar {}\n", literal(flag.value));
  }
  const auto* const in_full = std::ranges::find(in_full_table, flag.name, &InFull::name);
  page += in_full != std::end(in_full_table) ? in_full->text : sentence(flag.description);
  if (flag.kind == Kind::choice) page += fmt::format("One of {}.\n", text(joined(each_choice(flag.choices))));
  if (!flag.preset.empty()) page += fmt::format("Default: {}.\n", text(flag.preset));
  if (!flag.name.empty() && !flag.variables[0].empty()) {
    page += fmt::format("Environment:\n.Ev {}", flag.variables[0]);
    if (!flag.variables[1].empty()) page += fmt::format(" , {}", flag.variables[1]);
    page += " .\n";
  }
  if (with_takers) page += fmt::format("Taken by {}.\n", takers(flag));
  return page;
}

std::string options(const Heading& heading) {
  std::vector<const Flag*> group;
  for (const Flag& flag : flags()) {
    if (flag.group == heading.group) group.push_back(&flag);
  }
  const std::string common = takers(*group.front());
  const bool alike = std::ranges::all_of(group, [&](const Flag* flag) { return takers(*flag) == common; });

  std::string page = fmt::format(".Ss {}\n{}", heading.name, heading.text);
  if (alike) page += fmt::format("Taken by {}.\n", common);
  page += ".Bl -tag -width Ds\n";
  for (const Flag* flag : group) page += item(*flag, !alike);
  return page + ".El\n";
}

std::string exit_status() {
  std::string page;
  for (const auto& [code, brief, in_full] : exit_codes()) {
    page += fmt::format(".It {}\n{}", static_cast<int>(code), sentence(in_full));
  }
  return page;
}

std::string examples() {
  std::string page;
  for (const auto& [about, lines] : example_table) {
    page +=
        fmt::format("{}{}\n.Bd -literal -offset indent\n{}\n.Ed\n", page.empty() ? "" : ".Pp\n", about, literal(lines));
  }
  return page;
}

}  // namespace

std::string manual() {
  std::string page = fmt::format(fmt::runtime(beginning), version);
  for (const CommandInfo& command : commands()) page += item(command);
  page += ".El\n.Sh OPTIONS\n";
  for (const Heading& heading : heading_table) page += options(heading);
  page += backends_section;
  for (const Flag& flag : flags()) {
    if (flag.group == Group::environment) page += item(flag, false);
  }
  page += files_section + exit_status() + ".El\n.Sh EXAMPLES\n" + examples() + outcome;
  return page;
}

}  // namespace sidetrack
