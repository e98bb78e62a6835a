// SPDX-License-Identifier: GPL-2.0-or-later
// What a CNI runtime says in the environment.
#pragma once

#include <sidetrack/environment.h>

#include <cstdint>
#include <string>

namespace sidetrack::cni {

enum class Verb : std::uint8_t { add, del, check, gc, status, version };

struct Call {
  Verb verb = Verb::version;
  std::string container_id;    // of ADD, DEL and CHECK; is_container_id() of record.h
  std::string netns;           // a path; empty, of DEL: it is gone
  std::string interface_name;  // of ADD, DEL and CHECK
  std::string pod_namespace;   // of CNI_ARGS; empty: not said
  std::string pod_name;
};

// Throws CniError (environment), which names what is missing or the variable, its value and what was expected.
[[nodiscard]] Call read_call(const Environment& environment);

// Since when there is such a call: "0.4.0". Empty: always.
[[nodiscard]] std::string_view first_version(Verb verb);
[[nodiscard]] std::string_view name(Verb verb);

}  // namespace sidetrack::cni
