// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sidetrack/options.h>
#include <sidetrack/rules.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sidetrack {

// A pod's network namespace, held open: what is installed there, and what it takes to change it. Copies share what is
// open, which is closed with the last of them; what the functions return refers to nothing.
//
// Threads. Any thread may call anything; calls that work in a pod wait for each other (libiptc has global state). For a
// pod that was named, the work is done in a thread of its own, which enters the pod's namespaces: those of the caller
// stay as they are. A thread cannot enter another user namespace: a pod whose network namespace belongs to one is
// refused (not_permitted); the program can work there. Files of a process's root are read by a short-lived child, which
// is waited for before the call returns; the program's own handler of SIGCHLD may wait for it, too.
//
// Signals. apply() and clean() hold back SIGTERM, SIGINT, SIGHUP and SIGQUIT in the calling thread, so that a change is
// finished or rolled back first, and no other signal; the mask is as before when they return. A program with further
// threads blocks these signals in them. Handlers run in the threads of the program alone, and may interrupt any call.
//
// Errors. Error, with the codes of the program: usage, failed, kernel_lacks, not_permitted (CAP_NET_ADMIN is needed for
// everything, CAP_SYS_ADMIN to enter a pod), busy. When a function throws, the pod holds what it held, or the message
// says what it holds. Also std::bad_alloc, and std::system_error if no thread can be made.
class Pod {
 public:
  // Opens the network namespace of a process, whose /etc/passwd, /etc/group and /etc/resolv.conf count. Throws usage if
  // there is no such process, or if it is in the calling thread's own namespace, not_permitted if it cannot be opened.
  [[nodiscard]] static Pod of_process(std::uint32_t pid);
  // Opens a network namespace by its path, or by the name that `ip netns` gave it; the files of this process count.
  // Throws as of_process(). That a file is no network namespace, the first call that works in it says.
  [[nodiscard]] static Pod of_namespace(const std::string& path_or_name);
  // Returns the network namespace that the calling thread is in at each later call: outside of a pod, the machine's.
  [[nodiscard]] static Pod own();

  struct Applied {
    bool changed = false;               // false: all was as requested already
    std::string backend;                // that holds the rules: "iptables-nft"; empty if no rules are requested
    std::string summary;                // "installed 18 rules in nat (ipv4) through iptables-nft"
    std::vector<std::string> skipped;   // why backends that come first were not used
    std::vector<std::string> warnings;  // what of others may keep traffic from the proxy, what could not be seen
  };
  // Makes the pod hold the rules and routes of the options: all or nothing.
  Applied apply(const Options& options) const;  // NOLINT(modernize-use-nodiscard): the result need not be looked at

  struct Difference {
    bool equal = false;         // rules and routes are as requested
    bool as_requested = false;  // and no rule of another program keeps traffic from the proxy
    std::string backend;        // that holds the rules, or is to; empty if no rules are requested
    std::string summary;        // "rules and routes are as requested, through iptables-nft"
    std::string text;           // a unified diff, chain by chain; empty if there is no difference
    std::string json;           // the same as the document of `sidetrack diff --json`
    std::vector<std::string> warnings;
  };
  // Returns what apply() would change. Nothing is changed.
  [[nodiscard]] Difference diff(const Options& options) const;

  // Throws Error (differs), which says what diff() found, unless the pod is as requested. Returns what diff() does.
  Difference verify(const Options& options) const;  // NOLINT(modernize-use-nodiscard)

  struct Cleaned {
    bool changed = false;  // false: there was nothing to remove
    std::string summary;   // "removed all rules and routes of the sidecar from iptables-nft"
    std::vector<std::string> warnings;
  };
  // Removes every rule and route of the sidecar, whichever version, options or backend left it. `wait` is how long it
  // waits for other writers.
  Cleaned clean(std::chrono::milliseconds wait = std::chrono::seconds(30)) const;  // NOLINT(modernize-use-nodiscard)

  // Returns what becomes of a packet now, by all rules that are there, whichever program made them. The words are as
  // for Rules::explain.
  [[nodiscard]] Explanation explain(const std::vector<std::string>& packet) const;

 private:
  struct Values;
  explicit Pod(std::shared_ptr<const Values> values);
  std::shared_ptr<const Values> values_;
};

}  // namespace sidetrack
