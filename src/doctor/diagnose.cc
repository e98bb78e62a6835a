// SPDX-License-Identifier: GPL-2.0-or-later
// The backends' part of `doctor`: the kernel is asked about one rule for each thing that rules need, in the way in
// which apply --check asks about a plan.
#include <algorithm>

#include "apply/choice.h"
#include "doctor/doctor.h"
#include "mesh/istio_rules.h"
#include "mesh/rule_words.h"
#include "model/error.h"
#include "system/known_file.h"

namespace sidetrack {
namespace {

using namespace words;

struct Question {
  const char* iptables;  // its name there; nullptr: not a matter of that backend
  const char* nftables;
  Rule rule;
  const char* cost;
  bool essential = false;
};

constexpr const char* nothing_works = "this backend cannot be used";
constexpr const char* no_tproxy = "-m TPROXY fails; -m REDIRECT works";
constexpr const char* no_dns = "DNS capture (--redirect-dns, --capture-all-dns) fails; everything else works";

Rule rule(Table table, const char* chain, std::vector<Match> matches, Target target) {
  return {Families::both(), table, chain, std::move(matches), std::move(target), {}, {}};
}

std::vector<Question> questions() {
  const Match ports = PortMatch{End::destination, {{53, 53}, {15008, 15008}}, false};
  const Match port_ranges = PortMatch{End::destination, {{53, 53}, {15000, 15008}}, false};
  return {
      {"owner", "meta skuid", rule(Table::nat, output, {owner(OwnerKind::uid, 1337)}, Verdict::return_), nothing_works,
       true},
      {"REDIRECT", "redir", rule(Table::nat, output, {tcp}, Redirect{15001}), nothing_works, true},
      {"multiport", nullptr, rule(Table::nat, output, {tcp, ports}, Verdict::return_), no_dns},
      {nullptr, "set", rule(Table::nat, output, {tcp, ports}, Verdict::return_),
       "lists (-b, -d, -o, -q, …) fail in this backend"},
      {nullptr, "interval set", rule(Table::nat, output, {udp, port_ranges}, Verdict::return_),
       "lists of ranges (-i, -x) fail in this backend"},
      {nullptr, "nat in inet", rule(Table::nat, output, {}, Verdict::return_), nothing_works, true},
      {"TPROXY", "tproxy", rule(Table::mangle, prerouting, {tcp}, Tproxy{15006, 1337, 0xffffffff}), no_tproxy},
      {"conntrack", "ct state", rule(Table::mangle, prerouting, {ctstate(ConntrackStateMatch::invalid)}, Verdict::drop),
       "--drop-invalid and -m TPROXY fail; -m REDIRECT works"},
      {"mark", "meta mark", rule(Table::mangle, prerouting, {tcp, mark(1337)}, Verdict::return_), no_tproxy},
      {"MARK", "meta mark set", rule(Table::mangle, prerouting, {udp}, SetMark{1337}), no_tproxy},
      {"connmark", "ct mark", rule(Table::mangle, output, {tcp, connmark(1337)}, Verdict::return_), no_tproxy},
      {"CONNMARK", "ct mark set", rule(Table::mangle, prerouting, {tcp, in("lo")}, Connmark::save), no_tproxy},
      {"CT", "ct zone set", rule(Table::raw, output, {udp, dport(53)}, CtZone{1}), no_dns},
  };
}

const char* name_in(BackendKind kind, const Question& question) {
  return traits(kind).in_own_table ? question.nftables : question.iptables;
}

std::string need(const Question& question) {
  if (question.iptables == nullptr) return question.nftables;
  if (question.nftables == nullptr) return question.iptables;
  return std::string(question.iptables) + ", " + question.nftables;
}

// One backend, asked again and again. Others' changes in between are met by reading again.
class Inquiry {
 public:
  Inquiry(Kernel& kernel, BackendKind kind) : kernel_(kernel), kind_(kind) { read(); }

  [[nodiscard]] const Live& seen() const { return seen_; }

  // Throws what apply would; returns what was not asked.
  std::vector<std::string> ask(Ruleset rules, Families families) {
    for (Rule& each : rules.rules) each.families = families;
    constexpr int attempts = 10;
    for (int attempt = 1;; ++attempt) {
      try {
        const Change change{&seen_, &rules, EqualRules::keep};
        return kernel_.check({&change, 1});
      } catch (const Error& error) {
        if (error.code() != ExitCode::busy || attempt == attempts) throw;
        read();
      }
    }
  }

 private:
  void read() {
    Survey survey = kernel_.survey();
    ReadResult<Live>& result = survey.of(kind_);
    if (const auto* unreadable = std::get_if<Unreadable>(&result)) throw unreadable->why;
    if (const auto* absent = std::get_if<Absent>(&result)) {
      if (absent->lacking) throw *absent->lacking;
      seen_.backend = kind_;
    } else {
      seen_ = std::get<Live>(std::move(result));
    }
  }

  Kernel& kernel_;
  BackendKind kind_;
  Live seen_;
};

void ask(Inquiry& inquiry, const Rule& rule, Families families, Feature& feature) {
  try {
    inquiry.ask({{rule}}, families);
    feature.available = feature.available | families;
  } catch (const Error& error) {
    if (error.code() == ExitCode::not_permitted) throw;
    feature.refusal = error.what();
    feature.remedy = error.hint();
  }
}

void ask_features(Inquiry& inquiry, Families families, BackendState& state) {
  std::vector<Question> asked = questions();
  std::erase_if(asked, [&](const Question& question) { return name_in(state.kind, question) == nullptr; });
  Ruleset all;
  for (const Question& question : asked) all.rules.push_back(question.rule);

  // What is refused costs nf_tables 10 to 15 ms (Linux 6.18), so all at once first.
  bool all_there = true;
  try {
    state.unchecked = inquiry.ask(all, families);
  } catch (const Error& error) {
    if (error.code() == ExitCode::not_permitted) throw;
    all_there = false;
  }
  for (const Question& question : asked) {
    Feature feature{need(question), name_in(state.kind, question), question.cost, question.essential, {}, {}, {}};
    if (all_there) {
      feature.available = families;
    } else {
      ask(inquiry, question.rule, families, feature);
      // Which of the two it is.
      if (feature.available != families && families == Families::both()) {
        for (Family family : families.list()) ask(inquiry, question.rule, family, feature);
      }
    }
    state.features.push_back(std::move(feature));
  }
}

BackendState inspect_backend(BackendKind kind, Kernel& kernel, Families families) {
  BackendState state;
  state.kind = kind;
  try {
    Inquiry inquiry(kernel, kind);
    for (const LiveChain& chain : inquiry.seen().chains) {
      for (const LiveRule& each : chain.rules) ++(each.ours ? state.rules_of_sidecar : state.rules_of_others);
    }
    ask_features(inquiry, families, state);
  } catch (const Error& error) {
    state.problem = error.what();
    state.remedy = error.hint();
    state.permitted = error.code() != ExitCode::not_permitted;
    state.features.clear();
  }
  return state;
}

std::vector<BackendKind> holders_of(const std::vector<BackendState>& backends) {
  std::vector<BackendKind> holders;
  for (const BackendState& state : backends) {
    if (state.rules_of_sidecar > 0) holders.push_back(state.kind);
  }
  return holders;
}

}  // namespace

bool usable(const BackendState& backend) {
  return backend.problem.empty() && std::ranges::all_of(backend.features, [](const Feature& feature) {
           return !feature.essential || feature.available.contains(Family::ipv4);
         });
}

bool may_hide_rules(const Diagnosis& diagnosis) {
  if (!diagnosis.legacy_tables) return true;
  const auto legacy = std::ranges::find(diagnosis.backends, BackendKind::iptables_legacy, &BackendState::kind);
  return legacy != diagnosis.backends.end() && !legacy->permitted &&
         std::ranges::any_of(*diagnosis.legacy_tables, [](const std::string& named) {  // "nat (ipv4)"
           return is_written(std::string_view(named).substr(0, named.find(' ')));
         });
}

Diagnosis diagnose(Kernel& kernel, HostState host, LockFile lock, Routes& routes) {
  Diagnosis diagnosis;
  diagnosis.host = std::move(host);
  diagnosis.lock = std::move(lock);
  diagnosis.families = diagnosis.host.ipv6.in_kernel ? Families::both() : Family::ipv4;
  for (BackendKind kind : all_backends) {
    diagnosis.backends.push_back(inspect_backend(kind, kernel, diagnosis.families));
  }
  const Choice choice = choose({}, {}, iptables_legacy_in_use(), holders_of(diagnosis.backends));
  diagnosis.because = choice.because;
  diagnosis.legacy_tables = legacy_tables();
  const bool refuses = may_hide_rules(diagnosis);
  for (BackendKind kind : choice.order) {
    const auto state = std::ranges::find(diagnosis.backends, kind, &BackendState::kind);
    if (!refuses && !diagnosis.automatic && usable(*state)) diagnosis.automatic = kind;
  }
  diagnosis.nf_tables = nf_tables();
  diagnosis.routing = routes.read().ours;
  return diagnosis;
}

Diagnosis diagnose_here(const std::string& lock_file, const std::function<void()>& confine) {
  HostState host = inspect_host();
  LockFile lock = inspect_lock(lock_file);
  const auto routes = open_routes_to_read();
  const auto kernel =
      open_kernel(istio_rules, {.agent_rules = AgentRules::ours});  // counts the rules of agents as well
  preopen_proc_files(KnownFilesFor::all);                           // rules are asked about, too
  confine();
  return diagnose(*kernel, std::move(host), std::move(lock), *routes);
}

}  // namespace sidetrack
