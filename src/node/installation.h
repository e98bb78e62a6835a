// SPDX-License-Identifier: GPL-2.0-or-later
// The plugin on a node: the program in the folder of plugins, and an entry in the network configuration that the
// container runtime uses. The program comes first and goes last, so that no runtime is told to call what is not there.
// Each step is atomic; killed in between, the next call ends right. Processes that work on one folder wait for each
// other. Errors: usage for a folder that is not there; failed and not_permitted with the path for everything else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/record.h"
#include "system/descriptor.h"

namespace sidetrack::cni {

struct Folders {
  std::string programs = "/opt/cni/bin";
  std::string configurations = "/etc/cni/net.d";
  std::string records = records_folder;
  std::string cache = libcni_cache;
  bool standalone = false;  // those of Multus: the plugin has a configuration of its own, sidetrack-cni.conf
};

// The content of the program that is running. Throws Error (usage) if it needs shared libraries, unless they are
// allowed.
[[nodiscard]] std::string running_program(bool allow_dynamic);

// What was done, a sentence each; nothing: all was as it should be.
struct Outcome {
  std::vector<std::string> done;
  std::vector<std::string> problems;  // why the runtime may not use it all the same
  std::vector<std::string> warnings;
  std::string placed_for;  // the first plugin of the chain that the entry was put into, if it was not there
};

// Puts the program there, and the entry, a JSON object, last into the first valid configuration by name, which is what
// the runtimes use; the list as it was is kept as NAME.sidetrack-saved. A single plugin (.conf, .json) stays, with a
// list before it that is made of it, NAME-sidetrack, and goes when the single plugin does; but that of Multus becomes a
// list of the same name, and is kept in the same way. In a folder of Multus the entry has a file of its own.
[[nodiscard]] Outcome install(const Folders& folders, const std::string& program, const std::string& entry);

// Takes the entry out of every configuration, which is again as it was kept unless it has been changed since, then
// removes the program, which serves DEL until then: unless it is to go at once, it stays as long as
// attached_containers() are there, with a warning. A list that install() made of a single plugin goes; that of Multus
// becomes a single plugin again, unless it has been changed since. Folders that are not there hold nothing of ours.
[[nodiscard]] Outcome uninstall(const Folders& folders, bool at_once = false);

// Makes `held` the lock of the one process that keeps these folders as they are; two would undo each other's work. Does
// nothing where there is no directory yet. Throws Error (busy) if another process holds it.
void hold_watch(const Folders& folders, Descriptor& held);

// Whether a process, this one too, holds that lock.
[[nodiscard]] bool is_watched(const Folders& folders);

// Where install() and uninstall() look, and where the files are that links there lead to.
[[nodiscard]] std::vector<std::string> folders_to_watch(const Folders& folders);

// Below which all is that install() and uninstall() write: the folders above those, which outlive one that is made
// anew; one at the root itself.
[[nodiscard]] std::vector<std::string> folders_to_write(const Folders& folders);

// What is installed.
struct Status {
  struct Program {
    std::string path;
    bool present = false;
    bool same = false;    // as the program that is running
    std::string version;  // empty: it does not tell
  };
  struct Configuration {
    std::string path;
    std::string network;
    std::string cni_version;
    std::vector<std::string> plugins;  // their types, in their order
    std::string entry;                 // the text of ours, if it is the last and the only one
  };
  Program program;
  std::optional<Configuration> configuration;  // that the runtimes use
  std::vector<std::string> attached;           // attached_containers()
  bool is_permitted = true;                    // false: not all could be read
  std::vector<std::string> problems;           // why it is not installed as it should be, a sentence each; none: it is
};
[[nodiscard]] Status status(const Folders& folders, const std::string& program);

}  // namespace sidetrack::cni
