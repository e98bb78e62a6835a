// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/cni_node.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "support/network.h"
#include "support/traffic.h"
#include "unit/read_file.h"

namespace sidetrack::netns {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* records_folder = "/run/sidetrack/pods";

std::string input(const CniCall& call) {
  return fmt::format(
      R"({{"cniVersion": "1.1.0", "name": "pods", "type": "sidetrack-cni",
          {}"runtimeConfig": {{"io.kubernetes.cri.pod-annotations": {}}},
          "prevResult": {}{}{}}})",
      call.capabilities, Json(call.annotations).dump(), CniNode::previous_result, call.keys.empty() ? "" : ", ",
      call.keys);
}

std::string path_of(const Namespace& where) { return fmt::format("/proc/{}/fd/{}", getpid(), where.fd()); }

Json answer_of(const Output& output) {
  Json answer = Json::parse(output.out, nullptr, false);
  if (!answer.is_object() || !answer.contains("code")) {
    throw std::runtime_error("no answer of a CNI plugin that fails: " + output.out + output.err);
  }
  return answer;
}

}  // namespace

const std::string CniNode::previous_result =
    R"({"cniVersion":"1.1.0","interfaces":[{"name":"eth0","sandbox":"/run/netns/x"}],"ips":[{"interface":0,"address":"10.1.0.2/24"}]})";

CniNode::CniNode() {
  std::filesystem::create_directory(folder_ + "/run");
  std::filesystem::create_symlink(program_under_test(), folder_ + "/sidetrack-cni");
  ns_.must({"ip", "link", "set", "lo", "up"});
}

Output CniNode::call(const CniCall& call, const Words& tracer, const Words& environment, Identity identity) const {
  Words variables{"CNI_COMMAND=" + call.verb, "CNI_CONTAINERID=" + call.container, "CNI_IFNAME=" + call.interface,
                  "CNI_PATH=" + folder_, "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-1"};
  const std::string netns = call.pod != nullptr ? path_of(*call.pod) : call.netns;
  if (!netns.empty()) variables.push_back("CNI_NETNS=" + netns);
  const Words own_run{"unshare", "--mount", "sh", "-c", "mount --bind \"$0/run\" /run && exec \"$@\"", folder_};
  return ns_.program(own_run + tracer + Words{folder_ + "/sidetrack-cni"}, input(call), variables + environment,
                     identity);
}

void CniNode::must(const CniCall& asked) const {
  const Output output = call(asked);
  const std::string expected = asked.verb == "ADD" ? previous_result + "\n" : "";
  if (output.exit_code != 0 || output.out != expected) {
    throw std::runtime_error(
        fmt::format("{} ended with {}: {}{}", asked.verb, output.exit_code, output.out, output.err));
  }
}

std::map<std::string, std::string> CniNode::records() const {
  std::map<std::string, std::string> all;
  const std::string path = folder_ + records_folder;
  if (!std::filesystem::exists(path)) return all;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    all[entry.path().filename()] = read_file(entry.path());
  }
  return all;
}

void CniNode::remove_records() const { std::filesystem::remove_all(folder_ + records_folder); }

int code_of(const Output& output) { return answer_of(output)["code"].get<int>(); }

std::string message_of(const Output& output) {
  const Json answer = answer_of(output);
  return answer["msg"].get<std::string>() + "\n" + answer.value("details", std::string());
}

void set_up(const Namespace& pod) {
  trust_addresses(pod);
  ip(pod, "link set lo up\naddr add 10.1.0.2/32 dev lo\naddr add fd01::2/128 dev lo nodad\n");
}

Namespace pod_of_cni() {
  Namespace pod;
  set_up(pod);
  return pod;
}

}  // namespace sidetrack::netns
