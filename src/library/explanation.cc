// SPDX-License-Identifier: GPL-2.0-or-later
#include <utility>

#include "library/values.h"
#include "model/printable.h"
#include "render/explain.h"

namespace sidetrack {
namespace {

constexpr std::pair<Ending::Kind, Explanation::Result> results[] = {
    {Ending::Kind::lands, Explanation::Result::lands},           {Ending::Kind::leaves, Explanation::Result::leaves},
    {Ending::Kind::forwarded, Explanation::Result::forwarded},   {Ending::Kind::dropped, Explanation::Result::dropped},
    {Ending::Kind::unroutable, Explanation::Result::unroutable}, {Ending::Kind::unknown, Explanation::Result::unknown},
};

bool arrives(Explanation::Result result) {
  using enum Explanation::Result;
  return result == lands || result == leaves || result == forwarded;
}

}  // namespace

Explanation explanation(const Trace& trace) {
  Explanation made;
  for (const auto& [kind, result] : results) {
    if (trace.ending.kind == kind) made.result = result;
  }
  if (arrives(made.result)) {
    made.address = trace.ending.at.address.text();
    // By TPROXY the socket sees the packet's own destination as its address, and has another port.
    made.port = trace.ending.transparent ? trace.ending.transparent_port : trace.ending.at.port;
  }
  made.sentence = printable(sentence(trace.ending));
  for (const std::string& doubt : trace.doubts) made.doubts.push_back(printable(doubt));
  made.text = printable_page(text(trace, {.color = false, .all = false}));
  made.json = json(trace);
  return made;
}

}  // namespace sidetrack
