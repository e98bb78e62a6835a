// SPDX-License-Identifier: GPL-2.0-or-later
// What a process tells that has looked at a pod, and may have been taken over by it: it is understood entirely, or not
// at all.
#include "node/findings.h"

#include "fuzz.h"

using namespace sidetrack;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto found = cni::findings_of(fuzz::text_of(data, size));
  if (!found) return 0;
  fuzz::require(!cni::name(found->state).empty(), "a state has a name");
  const std::string text = cni::text_of(*found);
  fuzz::require(cni::findings_of(text) == found, text);
  return 0;
}
