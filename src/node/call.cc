// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "model/printable.h"
#include "model/scan.h"
#include "node/cni_error.h"
#include "node/record.h"

namespace sidetrack::cni {
namespace {

struct VerbInfo {
  Verb verb;
  std::string_view name;
  std::string_view needed;  // variables, apart by blanks
  std::string_view first_version;
};
// CNI_PATH is for plugins that call others: GC alone must have it.
constexpr VerbInfo verbs[] = {
    {Verb::add, "ADD", "CNI_CONTAINERID CNI_NETNS CNI_IFNAME", ""},
    {Verb::del, "DEL", "CNI_CONTAINERID CNI_IFNAME", ""},
    {Verb::check, "CHECK", "CNI_CONTAINERID CNI_NETNS CNI_IFNAME", "0.4.0"},
    {Verb::gc, "GC", "CNI_PATH", "1.1.0"},
    {Verb::status, "STATUS", "", "1.1.0"},
    {Verb::version, "VERSION", "", ""},
};

const VerbInfo& info(Verb verb) { return *std::ranges::find(verbs, verb, &VerbInfo::verb); }

[[noreturn]] void refuse(std::string_view variable, std::string_view value, std::string_view expected) {
  throw CniError(Code::environment, value.empty()
                                        ? fmt::format("{}: no value: expected {}", variable, expected)
                                        : fmt::format("{}: '{}': expected {}", variable, excerpt(value), expected));
}

std::string value_of(const Environment& environment, std::string_view variable) {
  return std::string(environment(variable).value_or(""));
}

Verb verb_of(const std::string& command) {
  const auto* const found = std::ranges::find(verbs, command, &VerbInfo::name);
  if (found == std::end(verbs)) refuse("CNI_COMMAND", command, "one of ADD, DEL, CHECK, GC, STATUS, VERSION");
  return found->verb;
}

// As the kernel takes it for the name of an interface.
void check_interface_name(const std::string& name) {
  const auto bad = [](unsigned char c) { return c <= ' ' || c == '/' || c == ':' || c == '\x7f'; };
  if (name.size() > 15 || name == "." || name == ".." || std::ranges::any_of(name, bad)) {
    refuse("CNI_IFNAME", name, "the name of an interface: 1 to 15 characters, no blank, '/' or ':'");
  }
}

// "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-1"
void read_arguments(std::string_view all, Call& call) {
  for (const std::string_view pair : split(all, ";")) {
    const auto equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0) refuse("CNI_ARGS", pair, "NAME=VALUE, separated by ';'");
    const std::string_view key = pair.substr(0, equals);
    if (key == "K8S_POD_NAMESPACE") call.pod_namespace = pair.substr(equals + 1);
    if (key == "K8S_POD_NAME") call.pod_name = pair.substr(equals + 1);
  }
}

}  // namespace

Call read_call(const Environment& environment) {
  Call call;
  call.verb = verb_of(value_of(environment, "CNI_COMMAND"));
  std::vector<std::string_view> missing = split_words(info(call.verb).needed);
  std::erase_if(missing, [&](std::string_view variable) { return !value_of(environment, variable).empty(); });
  if (!missing.empty()) {
    throw CniError(Code::environment, fmt::format("{}: missing, but {} needs {}", fmt::join(missing, ", "),
                                                  name(call.verb), missing.size() == 1 ? "it" : "them"));
  }
  if (call.verb != Verb::add && call.verb != Verb::del && call.verb != Verb::check) return call;
  call.container_id = value_of(environment, "CNI_CONTAINERID");
  call.netns = value_of(environment, "CNI_NETNS");
  call.interface_name = value_of(environment, "CNI_IFNAME");
  if (!is_container_id(call.container_id)) {
    refuse("CNI_CONTAINERID", call.container_id,
           "a letter or a digit, then letters, digits and any of _ . -, at most 200 in all");
  }
  check_interface_name(call.interface_name);
  if (!call.netns.empty() && !call.netns.starts_with('/')) {
    refuse("CNI_NETNS", call.netns, "the absolute path of a network namespace");
  }
  try {
    read_arguments(value_of(environment, "CNI_ARGS"), call);
  } catch (const CniError&) {
    if (call.verb != Verb::del) throw;  // which needs none of them
  }
  return call;
}

std::string_view first_version(Verb verb) { return info(verb).first_version; }

std::string_view name(Verb verb) { return info(verb).name; }

}  // namespace sidetrack::cni
