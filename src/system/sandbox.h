// SPDX-License-Identifier: GPL-2.0-or-later
// Least privilege: from a moment on, this process may do no more than what is left to do needs. What it reads then,
// rules that a pod's owner wrote, may be hostile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sidetrack {

// The seccomp(2) filters of filters.py. A system call that one does not allow fails with EPERM, and is remembered: see
// refused_call(). None allows another program, another process, a namespace or ptrace(2); all but the last three open
// no file.
enum class Sandbox : std::uint8_t {
  compute,  // writes its result
  read,     // and reads the rules and routes: it cannot change any
  write,    // and changes them
  plugin,   // and removes files: of a record
  probe,    // changes rules and makes connections, also as the proxy's user
  inspect,  // reads files, and asks the kernel about nothing
  install,  // replaces and watches them: on the node
  serve,    // reads files, and answers on a socket that listens already: the webhook, which may have threads
};

// Has the last word on what the process can do, and there is no way back. Keeps of its capabilities those over the
// network, CAP_NET_ADMIN and CAP_NET_RAW (`compute`: none; `probe`: CAP_SETUID and CAP_SETGID, too; the last three:
// those over files instead). `plugin` and `install` write and remove files below `folders` alone, where the kernel has
// Landlock. To be called by a process of one thread, once all is open. Returns what could not be done: "not all of the
// sandbox: …"; empty if all was done.
[[nodiscard]] std::string enter_sandbox(Sandbox kind, const std::vector<std::string>& folders = {});

// Which one has been entered.
[[nodiscard]] std::optional<Sandbox> entered_sandbox();

// The number of a system call that the sandbox has refused to this process; nothing if it has refused none. The program
// takes no such call knowingly: what it found out since, or says of an error, may be wrong.
[[nodiscard]] std::optional<int> refused_call();

// What to say then.
[[nodiscard]] std::string refusal_words(int call);

// In a sandbox that could take capabilities away: the rest of them, too. Throws Error (failed).
void give_up_capabilities();

}  // namespace sidetrack
