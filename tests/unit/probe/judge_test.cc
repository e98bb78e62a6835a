// SPDX-License-Identifier: GPL-2.0-or-later
// What is said of a connection that was tried: each place where one may land, for each end that a plan may have for it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cerrno>

#include "probe/trial.h"
#include "render/render.h"

namespace sidetrack::probe {
namespace {

using ::testing::Not;
using ::testing::StartsWith;
using Kind = Landing::Kind;
using Verdict_ = ProbeResult::Verdict;

const Address host = *Address::parse("192.0.2.1");
const Endpoint to{host, 80};
const Endpoint proxy{Address::loopback(Family::ipv4), 15001};

Trial trial(Target end, Protocol protocol = Protocol::tcp) {
  Trial made;
  made.name = "outbound";
  made.attempt = {.protocol = protocol, .as = {1000, 1000}, .from = {}, .to = to};
  made.end = std::move(end);
  return made;
}
Trial by_route() {
  Trial made = trial(Verdict::accept);
  made.routing.local_routes.emplace_back();
  return made;
}
Trial or_port() {
  Trial made = trial(Redirect{15001});
  made.or_port = 15006;
  return made;
}

Landing landing(Kind kind, const Endpoint& at = {}, std::uint16_t listener = 0, std::optional<Endpoint> original = {}) {
  return {.kind = kind, .at = at, .listener = listener, .original = std::move(original)};
}

std::string said(const Trial& of, const Landing& landing) {
  static constexpr const char* verdicts[] = {"ok", "failed", "unknown"};
  const ProbeResult result = judge(of, landing);
  EXPECT_EQ(result.name, of.name);
  EXPECT_EQ(result.routing == of.routing || result.routing == Routing{}, true);
  return fmt::format("{}: {}\n", verdicts[static_cast<int>(result.verdict)], result.finding);
}

std::string all_of(const Trial& of) {
  std::string text = "\n";
  const Endpoint other{proxy.address, 15006};
  for (const Landing& each :
       {landing(Kind::taken, to, 80), landing(Kind::taken, to, 15006), landing(Kind::taken, proxy, 15001, to),
        landing(Kind::taken, proxy, 15001, Endpoint{host, 81}), landing(Kind::taken, proxy, 15001),
        landing(Kind::taken, other, 15006, to), landing(Kind::seen, to), landing(Kind::seen, proxy),
        landing(Kind::seen, proxy, 15001), landing(Kind::answered), landing(Kind::refused), landing(Kind::strayed),
        landing(Kind::unanswered)})
    text += said(of, each);
  return text;
}

TEST(Judge, WhatIsToBeLeftAlone) {
  EXPECT_EQ(all_of(trial(Verdict::accept)), R"(
ok: uid 1000 to 192.0.2.1:80 is left alone
failed: uid 1000 to 192.0.2.1:80 reaches the transparent socket at port 15006 unchanged instead of being left alone
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of being left alone
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of being left alone
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of being left alone
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15006 instead of being left alone
ok: uid 1000 to 192.0.2.1:80 is left alone
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of being left alone
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of being left alone
ok: uid 1000 to 192.0.2.1:80 is answered from inside the pod
ok: uid 1000 to 192.0.2.1:80 is left alone
failed: uid 1000 to 192.0.2.1:80 leaves the pod instead of being left alone
failed: uid 1000 to 192.0.2.1:80 is not answered instead of being left alone
)");
}
TEST(Judge, WhatIsToBeDeliveredByARoute) {
  EXPECT_EQ(all_of(by_route()), R"(
ok: uid 1000 to 192.0.2.1:80 is delivered in this pod
failed: uid 1000 to 192.0.2.1:80 reaches the transparent socket at port 15006 unchanged instead of being delivered in this pod unchanged
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of being delivered in this pod unchanged
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of being delivered in this pod unchanged
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of being delivered in this pod unchanged
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15006 instead of being delivered in this pod unchanged
ok: uid 1000 to 192.0.2.1:80 is delivered in this pod
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of being delivered in this pod unchanged
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of being delivered in this pod unchanged
ok: uid 1000 to 192.0.2.1:80 is answered from inside the pod
ok: uid 1000 to 192.0.2.1:80 is delivered in this pod
failed: uid 1000 to 192.0.2.1:80 leaves the pod instead of being delivered in this pod unchanged
failed: uid 1000 to 192.0.2.1:80 is not answered instead of being delivered in this pod unchanged
)");
}
TEST(Judge, WhatIsToBeRedirected) {
  EXPECT_EQ(all_of(trial(Redirect{15001})), R"(
failed: uid 1000 to 192.0.2.1:80 is left alone instead of being redirected to port 15001
failed: uid 1000 to 192.0.2.1:80 reaches the transparent socket at port 15006 unchanged instead of being redirected to port 15001
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 with its original destination
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001, but its original destination reads 192.0.2.1:81
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001, but its original destination reads nothing
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15006 instead of being redirected to port 15001
failed: uid 1000 to 192.0.2.1:80 is left alone instead of being redirected to port 15001
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001, where the proxy listens (only the proxy can read the original destination)
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001
ok: uid 1000 to 192.0.2.1:80 is answered from inside the pod
failed: uid 1000 to 192.0.2.1:80 is refused instead of being redirected to port 15001
failed: uid 1000 to 192.0.2.1:80 leaves the pod instead of being redirected to port 15001
failed: uid 1000 to 192.0.2.1:80 is not answered instead of being redirected to port 15001
)");
}
TEST(Judge, WhatMayBeRedirectedToEitherOfTwoPorts) {
  EXPECT_EQ(all_of(or_port()), R"(
failed: uid 1000 to 192.0.2.1:80 is left alone instead of being redirected to port 15001
failed: uid 1000 to 192.0.2.1:80 reaches the transparent socket at port 15006 unchanged instead of being redirected to port 15001
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 with its original destination
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001, but its original destination reads 192.0.2.1:81
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001, but its original destination reads nothing
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15006 with its original destination
failed: uid 1000 to 192.0.2.1:80 is left alone instead of being redirected to port 15001
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001, where the proxy listens (only the proxy can read the original destination)
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001
ok: uid 1000 to 192.0.2.1:80 is answered from inside the pod
failed: uid 1000 to 192.0.2.1:80 is refused instead of being redirected to port 15001
failed: uid 1000 to 192.0.2.1:80 leaves the pod instead of being redirected to port 15001
failed: uid 1000 to 192.0.2.1:80 is not answered instead of being redirected to port 15001
)");
}
TEST(Judge, WhatIsToReachATransparentSocket) {
  EXPECT_EQ(all_of(trial(Tproxy{.port = 15006})), R"(
failed: uid 1000 to 192.0.2.1:80 is left alone instead of reaching the transparent socket at port 15006
ok: uid 1000 to 192.0.2.1:80 reaches the transparent socket at port 15006 unchanged
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of reaching the transparent socket at port 15006
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of reaching the transparent socket at port 15006
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of reaching the transparent socket at port 15006
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15006 instead of reaching the transparent socket at port 15006
ok: uid 1000 to 192.0.2.1:80 reaches the proxy's transparent socket unchanged
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of reaching the transparent socket at port 15006
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001 instead of reaching the transparent socket at port 15006
ok: uid 1000 to 192.0.2.1:80 is answered from inside the pod
failed: uid 1000 to 192.0.2.1:80 is refused instead of reaching the transparent socket at port 15006
failed: uid 1000 to 192.0.2.1:80 leaves the pod instead of reaching the transparent socket at port 15006
failed: uid 1000 to 192.0.2.1:80 is not answered instead of reaching the transparent socket at port 15006
)");
}
TEST(Judge, ADatagramThatIsToBeRedirected) {
  EXPECT_EQ(all_of(trial(Redirect{15001}, Protocol::udp)), R"(
failed: uid 1000 to 192.0.2.1:80 is left alone instead of being redirected to port 15001
failed: uid 1000 to 192.0.2.1:80 reaches the transparent socket at port 15006 unchanged instead of being redirected to port 15001
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001
failed: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15006 instead of being redirected to port 15001
failed: uid 1000 to 192.0.2.1:80 is left alone instead of being redirected to port 15001
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001, where the proxy listens (only the proxy can read the original destination)
ok: uid 1000 to 192.0.2.1:80 lands on 127.0.0.1:15001
ok: uid 1000 to 192.0.2.1:80 is answered from inside the pod
failed: uid 1000 to 192.0.2.1:80 is refused instead of being redirected to port 15001
failed: uid 1000 to 192.0.2.1:80 leaves the pod instead of being redirected to port 15001
unknown: uid 1000 to 192.0.2.1:80 is not answered; whether it reached the process that listens there is not known
)");
}

TEST(Judge, WhatIsNotSent) {
  const auto because = [](int error, std::uint32_t mark) {
    Trial made = trial(Verdict::accept);
    made.attempt.mark = mark;
    Landing landed = landing(Kind::not_sent);
    landed.error = error;
    return said(made, landed);
  };
  EXPECT_EQ("\n" + because(EADDRINUSE, 0) + because(EPERM, 1337) + because(EPERM, 0) + because(ENETUNREACH, 1337),
            R"(
unknown: uid 1000 to 192.0.2.1:80: no port to try it from is left of net.ipv4.ip_local_port_range: not tried
unknown: uid 1000 to 192.0.2.1:80 with mark 1337: setting a mark needs CAP_NET_ADMIN: not tried
unknown: uid 1000 to 192.0.2.1:80 cannot be tried: Operation not permitted (EPERM)
unknown: uid 1000 to 192.0.2.1:80 with mark 1337 cannot be tried: Network is unreachable (ENETUNREACH)
)");
}

// Beside its group, where that is not the one of the same number.
TEST(Judge, WhoTries) {
  Trial made = trial(Verdict::accept);
  made.attempt.as.gid = 2000;
  made.attempt.mark = 7;
  EXPECT_EQ(made.attempt.text(), "uid 1000 gid 2000 to 192.0.2.1:80 with mark 7");
}

// A port that nobody may listen at shows nothing of what is to land there.
TEST(Judge, WhereNobodyMayListen) {
  SourcePorts ports;
  const auto carried_out = [&](const Trial& of, const Listener& listener) {
    std::vector<Listener> listeners;
    listeners.push_back({listener.protocol, listener.port, listener.state, listener.error, Descriptor()});
    return carry_out(of, listeners, ports, Clock::now()).finding;
  };
  Trial made = trial(Redirect{81});
  made.attempt.as = {geteuid(), getegid()};
  made.attempt.to.address = Address::loopback(Family::ipv4);  // of this host: it is refused, or somebody listens
  const Listener refused{Protocol::tcp, 81, Listener::State::refused, EACCES, Descriptor()};
  EXPECT_EQ(carried_out(made, refused), "cannot listen at port 81: Permission denied (EACCES)");
  EXPECT_THAT(carried_out(made, {Protocol::udp, 81, Listener::State::refused, EACCES, Descriptor()}),
              Not(StartsWith("cannot listen")));
  EXPECT_THAT(carried_out(made, {Protocol::tcp, 82, Listener::State::refused, EACCES, Descriptor()}),
              Not(StartsWith("cannot listen")));
  made.end = Verdict::accept;
  made.attempt.to.port = 81;
  EXPECT_THAT(carried_out(made, refused), Not(StartsWith("cannot listen"))) << "refused is as good as left alone";
}

TEST(Judge, ADatagramThatAServerAlsoMayNotAnswer) {
  Trial made = trial(Redirect{15001}, Protocol::udp);
  made.attempt.complete = true;
  EXPECT_EQ("\n" + said(made, landing(Kind::unanswered)), R"(
failed: uid 1000 to 192.0.2.1:80 is not answered instead of being redirected to port 15001
)");
}

// What failed says which rules it was about; what did not has none.
TEST(Judge, RulesAreOfWhatFailed) {
  Trial made = trial(Redirect{15001});
  made.rules.resize(2);
  made.routing.loopback_addresses = {host};
  const ProbeResult failed = judge(made, landing(Kind::refused));
  EXPECT_EQ(failed.verdict, Verdict_::failed);
  EXPECT_EQ(failed.rules.size(), 2U);
  EXPECT_EQ(failed.routing, made.routing);
  const ProbeResult good = judge(made, landing(Kind::taken, proxy, 15001, to));
  EXPECT_EQ(good.verdict, Verdict_::ok);
  EXPECT_TRUE(good.rules.empty());
  EXPECT_EQ(good.routing, Routing{});
}

TEST(Judge, ThePortWhereItLands) {
  EXPECT_EQ(captured_at(trial(Verdict::accept)), std::nullopt);
  EXPECT_EQ(captured_at(trial(Redirect{15001})), 15001);
  EXPECT_EQ(captured_at(trial(Tproxy{.port = 15006})), 15006);
  EXPECT_EQ(landing_port(trial(Verdict::accept)), 80);
  EXPECT_EQ(landing_port(trial(Redirect{15001})), 15001);
}

TEST(ProbeText, SaysWhatIsMissingOfWhatFailed) {
  using std::chrono::microseconds;
  const Rule rule{Family::ipv4, Table::nat, "ISTIO_OUTPUT", {}, Jump{"ISTIO_REDIRECT"}, {}, {}};
  Routing routing;
  routing.loopback_addresses = {*Address::parse("::6")};
  const std::vector<ProbeResult> results{
      {"inbound", Verdict_::ok, "lands", microseconds(1250), {}, {}},
      {"outbound tcp ipv4", Verdict_::failed, "is refused", microseconds(40), {rule}, routing},
      {"dns", Verdict_::unknown, "not tried", {}, {}, {}}};
  EXPECT_EQ("\n" + probe_text(results, nullptr, false), R"(
ok         1.2 ms  inbound:            lands
failed     0.0 ms  outbound tcp ipv4:  is refused
        likely missing, one of: ip -6 addr add ::6/128 dev lo
        likely missing, one of: -t nat -A ISTIO_OUTPUT -j ISTIO_REDIRECT
unknown         -  dns:                not tried
)");
  EXPECT_EQ("\n" + probe_text(results, nullptr, true),
            "\n\033[32mok     \033[0m    1.2 ms  inbound:            lands\n\033[31mfailed \033[0m    0.0 ms  outbound "
            "tcp ipv4:  is refused\n        likely missing, one of: ip -6 addr add ::6/128 dev lo\n        likely "
            "missing, one of: -t nat -A ISTIO_OUTPUT -j ISTIO_REDIRECT\n\033[33munknown\033[0m         -  dns:         "
            "       not tried\n");
  PodDiff compared;
  compared.backends.resize(1);
  EXPECT_EQ("\n" + probe_text(results, &compared, false), R"(
ok         1.2 ms  inbound:            lands
failed     0.0 ms  outbound tcp ipv4:  is refused
        all its rules are there: rules of other programs may decide before them ('sidetrack show')
unknown         -  dns:                not tried
)");
  compared.missing = routing;
  EXPECT_EQ("\n" + probe_text(results, &compared, false), R"(
ok         1.2 ms  inbound:            lands
failed     0.0 ms  outbound tcp ipv4:  is refused
        missing: ip -6 addr add ::6/128 dev lo
unknown         -  dns:                not tried
)");
  EXPECT_EQ("\n" + probe_json(results, nullptr), R"(
{
  "equal": null,
  "probes": [
    {"name": "inbound", "verdict": "ok", "finding": "lands", "milliseconds": 1.25, "missing": []},
    {
      "name": "outbound tcp ipv4",
      "verdict": "failed",
      "finding": "is refused",
      "milliseconds": 0.04,
      "missing": ["ip -6 addr add ::6/128 dev lo", "-t nat -A ISTIO_OUTPUT -j ISTIO_REDIRECT"]
    },
    {"name": "dns", "verdict": "unknown", "finding": "not tried", "milliseconds": 0.0, "missing": []}
  ]
}
)");
}

}  // namespace
}  // namespace sidetrack::probe
