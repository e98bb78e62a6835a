// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/entry.h"

#include <fmt/format.h>

#include <vector>

#include "model/error.h"
#include "node/network_configuration.h"
#include "node/plugin.h"
#include "options/flags.h"
#include "render/json_parts.h"

namespace sidetrack::cni {
namespace {

void add_id(Json& entry, const char* key, const std::vector<std::uint32_t>& ids, const char* option) {
  if (ids.empty()) return;
  if (ids.size() > 1)
    throw Error(ExitCode::usage, fmt::format("{}: expected one number, not {}", option, ids.size()),
                "the plugin knows the proxy by one");
  entry[key] = ids.front();
}

template <typename Value>
void add(Json& entry, const char* key, const Value& value, const Value& preset) {
  if (value != preset) entry[key] = value;
}

}  // namespace

std::string entry(const CommandLine& line) {
  const Config preset;
  const Config& config = line.config;
  if (config.dataplane == Dataplane::ambient && line.cni.standalone) {
    throw Error(ExitCode::usage,
                "--dataplane: 'ambient': not for a network of Multus, whose pods get a sidecar's rules",
                "on OpenShift, Istio's own agent programs ambient pods");
  }
  Json made = object({{"type", plugin_name}});
  made["capabilities"][annotations_capability] = true;
  add_id(made, "uid", config.proxy_uids, "-u, --proxy-uid");
  add_id(made, "gid", config.proxy_gids, "-g, --proxy-gid");
  add(made, "envoyPort", config.proxy_port, preset.proxy_port);
  add(made, "inboundCapturePort", config.inbound_port, preset.inbound_port);
  add(made, "inboundTunnelPort", config.tunnel_port, preset.tunnel_port);
  add(made, "tproxyMark", config.tproxy_mark, preset.tproxy_mark);
  add(made, "tproxyRouteTable", config.tproxy_route_table, preset.tproxy_route_table);
  add(made, "dns", config.redirect_dns, preset.redirect_dns);
  add(made, "dualStack", config.dual_stack, preset.dual_stack);
  add(made, "dropInvalid", config.drop_invalid, preset.drop_invalid);
  if (config.dataplane == Dataplane::ambient) made["dataplane"] = "ambient";
  add(made, "probeAddress", config.probe_address.text(), preset.probe_address.text());
  add(made, "probeAddress6", config.probe_address6.text(), preset.probe_address6.text());
  add(made, "excludeNamespaces", line.cni.exclude_namespaces, {});
  if (line.applying.backend) made["backend"] = name(*line.applying.backend);
  add(made, "noSandbox", line.no_sandbox, false);
  add(made, "standalone", line.cni.standalone, false);
  add(made, "confDir", line.cni.net_dir, CniOptions().net_dir);
  add(made, "logFile", line.cni.plugin_log, {});
  return made.dump();
}

}  // namespace sidetrack::cni
