// SPDX-License-Identifier: GPL-2.0-or-later
// A node on which a container runtime calls the CNI plugin.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/namespace.h"
#include "support/words.h"
#include "unit/temporary_folder.h"

namespace sidetrack::netns {

using Annotations = std::map<std::string, std::string>;

// One call. The rest of the environment and of the network configuration is usual.
struct CniCall {
  std::string verb = "ADD";
  std::string container = "c1";
  const Namespace* pod = nullptr;  // nullptr: no CNI_NETNS
  std::string netns = {};          // a path in its place
  std::string interface = "eth0";
  Annotations annotations = {{"sidecar.istio.io/status", "{}"}};
  std::string capabilities = R"("capabilities": {"io.kubernetes.cri.pod-annotations": true}, )";
  std::string keys = {};  // more of the network configuration: R"("dualStack": true, "backend": "nftables")"
};

// With a network namespace and a folder /run of its own.
class CniNode {
 public:
  CniNode();

  // `tracer` are words to run the plugin by, such as strace's.
  [[nodiscard]] Output call(const CniCall& call, const Words& tracer = {}, const Words& environment = {},
                            Identity identity = {}) const;

  // A call that must succeed, and ADD give the previous result on; throws with the answer if not.
  void must(const CniCall& call) const;

  // What is in the folder of records: by the name of the file its text.
  [[nodiscard]] std::map<std::string, std::string> records() const;
  void remove_records() const;

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] const Namespace& ns() const { return ns_; }

  static const std::string previous_result;

 private:
  const testing::TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  Namespace ns_;
};

// The "code" of the plugin's answer, and its "msg" with its "details"; throws if it is no such answer.
[[nodiscard]] int code_of(const Output& output);
[[nodiscard]] std::string message_of(const Output& output);

// A pod as the plugins before leave it: lo up and an address of each family.
[[nodiscard]] Namespace pod_of_cni();
void set_up(const Namespace& pod);

}  // namespace sidetrack::netns
