// SPDX-License-Identifier: GPL-2.0-or-later
#include <utility>

#include "library/values.h"
#include "model/printable.h"
#include "render/render.h"

namespace sidetrack {
namespace {

constexpr std::pair<Outcome::Kind, Explanation::Result> results[] = {
    {Outcome::Kind::lands, Explanation::Result::lands},
    {Outcome::Kind::leaves, Explanation::Result::leaves},
    {Outcome::Kind::forwarded, Explanation::Result::forwarded},
    {Outcome::Kind::dropped, Explanation::Result::dropped},
    {Outcome::Kind::unroutable, Explanation::Result::unroutable},
    {Outcome::Kind::unknown, Explanation::Result::unknown},
};

bool arrives(Explanation::Result result) {
  using enum Explanation::Result;
  return result == lands || result == leaves || result == forwarded;
}

}  // namespace

Explanation explanation(const Trace& trace) {
  Explanation made;
  for (const auto& [kind, result] : results) {
    if (trace.outcome.kind == kind) made.result = result;
  }
  if (arrives(made.result)) {
    made.address = trace.outcome.at.address.text();
    // By TPROXY the socket sees the packet's own destination as its address, and has another port.
    made.port = trace.outcome.transparent ? trace.outcome.transparent_port : trace.outcome.at.port.value_or(0);
  }
  made.sentence = printable(sentence(trace.outcome));
  for (const std::string& doubt : trace.doubts) made.doubts.push_back(printable(doubt));
  made.text = printable_page(trace_text(trace, {.color = false, .all = false}));
  made.json = json(trace);
  return made;
}

}  // namespace sidetrack
