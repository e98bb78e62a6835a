// SPDX-License-Identifier: GPL-2.0-or-later
// What a CNI runtime writes to the plugin's standard input: its entry of the conflist, and what comes with the call.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "options/annotations.h"
#include "options/log_options.h"

namespace sidetrack::cni {

inline constexpr std::string_view supported_versions[] = {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"};
inline constexpr std::string_view current_version = supported_versions[4];
[[nodiscard]] bool is_served(std::string_view version);

// The capability by which containerd and CRI-O pass a pod's annotations.
inline constexpr const char* annotations_capability = "io.kubernetes.cri.pod-annotations";

struct Attachment {
  std::string container_id;
  std::string interface_name;
  friend bool operator==(const Attachment&, const Attachment&) = default;
};

struct NetworkConfiguration {
  std::string cni_version;                                   // one of supported_versions
  std::string name;                                          // of the network
  std::string type;                                          // the name of the plugin
  std::optional<std::string> previous_result;                // prevResult, as JSON
  std::optional<std::vector<Attachment>> valid_attachments;  // of GC

  // ---- The keys of the plugin.
  std::vector<std::string> options;          // as `sidetrack apply` takes them; with the proxy's uid and gid
  Dataplane dataplane = Dataplane::sidecar;  // of pods without a sidecar: ambient, or none
  std::vector<std::string> ambient_options;  // of such pods, if they are ambient
  std::vector<std::string> exclude_namespaces;
  bool standalone = false;                  // a network of its own, of Multus, not the last of a chain
  std::string conf_dir = "/etc/cni/net.d";  // where the runtime finds its conflists
  LogOptions log;                           // its targets are the log file; none: syslog

  std::optional<Annotations> annotations;  // of the pod; nothing: the runtime did not pass them
};

// Which keys are read. To take down what a pod had, its entry need not be right: then pods could not end.
enum class Keys : bool { protocol, all };

// Throws CniError: decoding, incompatible_version, configuration (naming key, value and expectation).
[[nodiscard]] NetworkConfiguration read_configuration(std::string_view text, Keys keys);

// The cniVersion of the text, if it can be read and is a supported one; else the current one: for errors.
[[nodiscard]] std::string version_to_answer_in(std::string_view text);

// What VERSION answers. Throws CniError (decoding).
[[nodiscard]] std::string version_answer(std::string_view text);

}  // namespace sidetrack::cni
