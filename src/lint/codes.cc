// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include "lint/finding.h"
#include "model/printable.h"

namespace sidetrack::lint {
namespace {

// docs/lint.md says more of each.
constexpr CodeInfo table[] = {
    {Code::option_without_effect, "ST001", "option without effect",
     "Without the option, every packet has the same outcome."},
    {Code::value_without_effect, "ST002", "value without effect",
     "Without this value of a list, every packet has the same outcome: another value covers it, or another option "
     "decides before it is asked."},
    {Code::loop, "ST003", "loop", "What the proxy sends is redirected to the proxy again."},
    {Code::escape, "ST004", "escape", "Traffic that the options ask to capture goes elsewhere than to the proxy."},
    {Code::family_not_captured, "ST005", "family not captured",
     "The pod has an IPv6 address, and what it sends or gets by IPv6 goes past the proxy."},
    {Code::proxy_port_captured, "ST006", "port of the proxy captured",
     "Health checks and metrics of the proxy itself arrive at its inbound listener, which does not answer them."},
    {Code::probe_port_captured, "ST007", "health probe captured",
     "The kubelet's probe of the app arrives at the proxy, which asks for mutual TLS that the kubelet does not have."},
    {Code::runs_as_proxy, "ST008", "container runs as the proxy",
     "A container has the uid or gid of the proxy: what it sends is taken for the proxy's and never captured."},
    {Code::taken_by_others, "ST009", "rules of other programs decide",
     "Rules of another program drop or divert what would be captured without them."},
    {Code::proxy_hindered, "ST010", "the proxy's own traffic is blocked or changed",
     "What the proxy itself sends does not leave the pod as the proxy sent it."},
    {Code::not_known, "ST011", "outcome unknown",
     "A rule that is not understood decides: whether the traffic is captured is unknown."},
    {Code::forwarded_replies_lost, "ST012", "replies to forwarded DNS queries are lost",
     "DNS replies are tracked in another conntrack zone than the queries that the pod forwards, so their addresses "
     "are not translated back."},
    {Code::forwarded_captured, "ST013", "forwarded traffic is captured as inbound",
     "What hosts behind the pod, such as containers in it, send to others arrives at the proxy's inbound listener."},
};

}  // namespace

std::span<const CodeInfo> codes() { return table; }

std::string one_line(const Finding& finding) {
  const std::string more = finding.more == 0 ? "" : fmt::format(" (and {:L} more)", finding.more);
  return fmt::format("{} {}: {}; `{}` {}{}", info(finding.code).name, printable(finding.subject),
                     printable(finding.message), finding.witness, finding.ending, more);
}

const CodeInfo& info(Code code) { return table[static_cast<std::size_t>(code) - 1]; }

}  // namespace sidetrack::lint
