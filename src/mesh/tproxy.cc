// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/builder.h"

namespace sidetrack {
namespace {

using namespace words;

// The mark of what the proxy sends to this pod's own address, over lo: the one kind of traffic on lo that is inbound.
constexpr std::uint32_t outbound_mark = 1338;

void mark_owned(Builder& build, OwnerKind kind, std::uint32_t id) {
  const std::string number = std::to_string(id);
  for (Family family : build.facts.families.list()) {
    build.append(family, Table::mangle, output,
                 {except(destination(build.loopback(family))), tcp, out("lo"), owner(kind, id)}, SetMark{outbound_mark},
                 {(kind == OwnerKind::uid ? "-u " : "-g ") + number,
                  "the proxy calling this pod's own address: marked, so that it counts as inbound"});
  }
}

}  // namespace

// 17.
void tproxy_marks(Builder& build) {
  if (!build.tproxy()) return;
  const Config& config = build.config;
  const Families families = build.facts.families;
  const std::uint32_t m = config.tproxy_mark;
  const std::string flag = "-t " + std::to_string(m);

  build.append(Table::mangle, prerouting, {tcp, mark(m)}, Connmark::save,
               {flag, "a connection that the proxy opened with the client's address keeps its mark"});
  build.append(Table::mangle, output, {tcp, out("lo"), mark(m)}, Verdict::return_,
               {flag, "what the proxy passes on to the app keeps its mark"});
  for (std::uint32_t uid : config.proxy_uids) mark_owned(build, OwnerKind::uid, uid);
  for (std::uint32_t gid : config.proxy_gids) mark_owned(build, OwnerKind::gid, gid);
  build.append(Table::mangle, output, {tcp, connmark(m)}, Connmark::restore,
               {flag, "the app's answers to such a connection go back to the proxy"});

  build.insert(families, Table::mangle, istio_inbound, 1, {tcp, mark(m)}, Verdict::return_,
               {flag, "what the proxy passes on is not captured again"});
  for (Family family : families.list()) {
    const Address address = Address::passthrough(family);
    build.insert(family, Table::mangle, istio_inbound, 2, {tcp, source(AddressRange::single(address)), in("lo")},
                 Verdict::return_, {"", "the proxy passes inbound traffic on to the app from " + address.text()});
  }
  build.insert(families, Table::mangle, istio_inbound, 3, {tcp, in("lo"), except(mark(outbound_mark))},
               Verdict::return_, {"", "the app talking to itself over lo bypasses the proxy"});
}

}  // namespace sidetrack
