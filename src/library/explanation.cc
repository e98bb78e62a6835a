// SPDX-License-Identifier: GPL-2.0-or-later
#include "library/values.h"
#include "model/printable.h"
#include "render/render.h"

namespace sidetrack {

// A result is the kind of an outcome.
static_assert(static_cast<int>(Explanation::Result::unknown) == static_cast<int>(Outcome::Kind::unknown));

Explanation explanation(const Trace& trace) {
  Explanation made;
  made.result = static_cast<Explanation::Result>(trace.outcome.kind);
  if (made.result <= Explanation::Result::forwarded) {  // it arrives somewhere
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
