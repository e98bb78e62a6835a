// SPDX-License-Identifier: GPL-2.0-or-later
// What the CNI plugin was asked for, container by container, in a folder of root's: how the node knows later what a pod
// is to hold.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "system/descriptor.h"

namespace sidetrack::cni {

inline constexpr const char* records_folder = "/run/sidetrack/pods";

struct Record {
  std::string container_id;
  std::string interface_name;
  std::string netns;  // the path that ADD was given
  std::string pod_namespace;
  std::string pod_name;
  std::vector<std::string> options;  // as `sidetrack apply` takes them
  std::string network;               // the name of the network configuration
  std::string network_namespace;     // own_network_namespace() of the pod: the path may lead to another one later
  friend bool operator==(const Record&, const Record&) = default;
};

// Whether the CNI specification takes it for the id of a container, and it is short enough to be the name of a file. It
// cannot be a path.
[[nodiscard]] bool is_container_id(std::string_view text);

// What a folder of records holds.
struct Records {
  std::vector<Record> records;        // by container id
  std::vector<std::string> problems;  // a sentence for each file that is no record, with its name
};

// The folder, held open: it can be written to even after other namespaces were entered. Writers take turns by flock(2)
// on it. All functions throw Error (failed, not_permitted) that names the path.
class RecordFolder {
 public:
  // Makes the folder (0700) if it is not there, and those above it. Refuses one that others may write to.
  explicit RecordFolder(const std::string& path = records_folder);

  // Atomically: whoever reads, even after a crash, sees the former record or this one.
  void write(const Record& record) const;

  // That there is none is no error.
  void remove(const std::string& container_id) const;

  // Removes what writers left behind that were killed.
  void remove_leftovers() const;

  // Throws unless a record could be written.
  void require_writable() const;

 private:
  void write_new(const std::string& name, std::string_view text, const std::string& what) const;
  [[nodiscard]] std::string in_folder(const std::string& name) const { return path_ + "/" + name; }

  std::string path_;
  Descriptor folder_;
};

void remove(const std::string& container_id, const std::string& folder = records_folder);
// A folder that is not there holds no records. Of one container: nothing if there is none; throws Error (failed) if the
// file is no record.
[[nodiscard]] std::optional<Record> read(const std::string& container_id, const std::string& folder = records_folder);
[[nodiscard]] Records read_all(const std::string& folder = records_folder);

// Where libcni keeps what ADD was called with. CRI-O calls DEL with that, whatever the configuration says by then.
inline constexpr const char* libcni_cache = "/var/lib/cni/results";

// The ids of the containers for which a runtime may still call the plugin, each once, sorted: those with a record of
// ours, unless their network namespace is gone, and those whose cached configuration names it. A folder that is not
// there holds none. Throws Error (failed, not_permitted) if one cannot be read.
[[nodiscard]] std::vector<std::string> attached_containers(const std::string& records = records_folder,
                                                           const std::string& cache = libcni_cache);

}  // namespace sidetrack::cni
