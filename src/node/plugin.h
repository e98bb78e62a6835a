// SPDX-License-Identifier: GPL-2.0-or-later
// The CNI plugin: a chained one of specification 1.1, which intercepts the traffic of pods whose annotations ask for
// it. Nothing is asked but the call itself and the kernel: no API server, no file of the pod.
#pragma once

#include <sidetrack/environment.h>

#include <functional>
#include <string>
#include <string_view>

#include "options/log_options.h"
#include "system/sandbox.h"

namespace sidetrack::cni {

struct NetworkConfiguration;

// The program called by this name is the plugin.
inline constexpr std::string_view plugin_name = "sidetrack-cni";

struct Log {
  // Opens what the configuration names. Throws Error (usage).
  std::function<void(const LogOptions& options)> start;
  std::function<void(LogOptions::Level level, std::string_view message)> write;
};

// What the process ends with.
struct Answer {
  std::string output;  // for standard output
  int exit_code = 0;
};

// One call: the environment and standard input as the CNI specification has them. Every failure is an answer, too; only
// std::bad_alloc is thrown. The process is to end after it: it may be in another pod's namespaces.
// Called before rules are read: what the process is left to do from then on.
using Confine = std::function<void(Sandbox kind)>;
[[nodiscard]] Answer serve(
    std::string_view input, const Environment& environment, const Log& log, const Confine& confine = [](Sandbox) {});

// Whether ADD could succeed: by what the kernel and the permissions allow in a network namespace that is made for it
// (this process stays in it), and by the plugin's place in the conflist of the runtime. Throws CniError (not_available)
// with the reason.
void require_available(const NetworkConfiguration& configuration, const Confine& confine);

// An answer that needs no memory to be made.
inline constexpr std::string_view out_of_memory =
    R"({"cniVersion": "1.1.0", "code": 101, "msg": "out of memory", "details": "raise the memory limit of the runtime"})"
    "\n";

}  // namespace sidetrack::cni
