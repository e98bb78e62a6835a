// SPDX-License-Identifier: GPL-2.0-or-later
#include "mesh/other_meshes.h"
#include "render/json_parts.h"
#include "render/render.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

Json endpoint(const Endpoint& end) { return object({{"address", end.address.text()}, {"port", end.port.value_or(0)}}); }

Json packet(const Packet& p) {
  static constexpr const char* states[] = {"new", "established", "reply", "invalid"};
  Json result = object({{"direction", name(p.direction)},
                        {"protocol", name(p.protocol)},
                        {"source", endpoint({*p.source, p.source_port})},
                        {"destination", endpoint({*p.destination, p.destination_port})},
                        {"state", states[static_cast<std::size_t>(p.state)]},
                        {"mark", p.mark}});
  if (p.owner) result["owner"] = object({{"uid", p.owner->uid}, {"gid", p.owner->gid}});
  if (p.cgroup) result["cgroup"] = *p.cgroup;
  if (!p.interface.empty()) result["interface"] = p.interface;
  return result;
}

Json step(const Step& s) {
  static constexpr const char* kinds[] = {"hook", "kernel", "passed", "unknown", "matched", "decided"};
  Json result = object({{"kind", kinds[static_cast<std::size_t>(s.kind)]}, {"text", s.text}});
  if (s.kind < Step::Kind::passed) return result;
  result.update(object({{"backend", name(s.backend)},
                        {"table", s.table},
                        {"chain", s.chain},
                        {"number", s.number},
                        {"rule", iptables_words(s)},
                        {"flag", s.reason.flag},
                        {"reason", s.reason.sentence}}));
  if (const std::string_view mesh = mesh_of_chain(s.chain); !mesh.empty()) result["mesh"] = mesh;
  return result;
}

Json outcome(const Outcome& o) {
  static constexpr const char* kinds[] = {"lands", "leaves", "forwarded", "dropped", "unroutable", "unknown"};
  static constexpr const char* answers[] = {"arrive", "lost", "unknown"};
  Json result =
      object({{"kind", kinds[static_cast<std::size_t>(o.kind)]}, {"sentence", sentence(o)}, {"at", endpoint(o.at)}});
  if (!o.interface.empty()) result["interface"] = o.interface;
  if (!o.listener.empty()) result["listener"] = o.listener;
  if (o.original) result["original_destination"] = endpoint(*o.original);
  if (o.source) result["translated_source"] = o.source->address ? o.source->text() : "unknown";
  if (o.transparent) result["tproxy_port"] = o.transparent_port;
  if (!o.why.empty()) result["why"] = o.why;
  if (o.answers != Outcome::Answers::arrive) {
    result["answers"] = answers[static_cast<std::size_t>(o.answers)];
    result["answers_why"] = o.answers_why;
  }
  return result;
}

}  // namespace

std::string json(const Trace& trace) {
  Json document = object({{"packet", packet(trace.packet)},
                          {"outcome", outcome(trace.outcome)},
                          {"decided_by", trace.decisive},
                          {"steps", array_of(trace.steps, step)},
                          {"uncertain", trace.doubts}});
  return dumped(std::move(document));
}

}  // namespace sidetrack
