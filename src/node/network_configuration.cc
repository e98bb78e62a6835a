// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/network_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "model/error.h"
#include "model/printable.h"
#include "node/cni_error.h"
#include "node/json_text.h"
#include "options/flags.h"
#include "options/suggest.h"
#include "options/values.h"
#include "render/json_parts.h"

namespace sidetrack::cni {
namespace {

enum class Type : std::uint8_t { number, boolean, text };

// A key whose value an option takes.
struct OptionKey {
  const char* key;
  Type type;
  std::string_view flag;
  std::string_view preset = {};        // empty: the option's own
  std::optional<Dataplane> only = {};  // of pods of this one; nothing: of both
};
constexpr auto with_sidecar = Dataplane::sidecar;
constexpr auto in_ambient = Dataplane::ambient;
// DNS to any server: which ones a pod is to ask is not known yet when it is given its network.
constexpr OptionKey option_keys[] = {
    {"uid", Type::number, "proxy-uid", "1337", with_sidecar},
    {"gid", Type::number, "proxy-gid", "1337", with_sidecar},
    {"envoyPort", Type::number, "envoy-port"},
    {"inboundCapturePort", Type::number, "inbound-capture-port"},
    {"inboundTunnelPort", Type::number, "inbound-tunnel-port"},
    {"tproxyMark", Type::number, "istio-inbound-tproxy-mark", {}, with_sidecar},
    {"tproxyRouteTable", Type::number, "istio-inbound-tproxy-route-table", {}, with_sidecar},
    {"dns", Type::boolean, "redirect-dns"},
    {"dns", Type::boolean, "capture-all-dns", {}, with_sidecar},
    {"dualStack", Type::boolean, "dual-stack"},
    {"dropInvalid", Type::boolean, "drop-invalid", {}, with_sidecar},
    {"dataplane", Type::text, "dataplane", {}, in_ambient},
    {"probeAddress", Type::text, "probe-address", {}, in_ambient},
    {"probeAddress6", Type::text, "probe-address6", {}, in_ambient},
    {"backend", Type::text, "backend"},
    {"noSandbox", Type::boolean, "no-sandbox"},
};

// The other keys that a configuration may have: the specification's, and ours that no option takes.
constexpr std::string_view other_keys[] = {"cniVersion", "name",          "type",       "capabilities",
                                           "args",       "runtimeConfig", "prevResult", "excludeNamespaces",
                                           "confDir",    "logFile",       "logLevel",   "standalone"};
constexpr std::string_view reserved_prefix = "cni.dev/";  // for what the specification may add
// The second is what libcni 1.2.0 wrote.
constexpr const char* attachments_keys[] = {"cni.dev/valid-attachments", "cni.dev/attachments"};

[[noreturn]] void refuse(std::string_view key, const Parsed* value, std::string_view expected) {
  const std::string what =
      value == nullptr ? "missing" : excerpt(value->dump(-1, ' ', false, Parsed::error_handler_t::replace));
  throw CniError(Code::configuration, fmt::format("{}: {}: expected {}", excerpt(key), what, expected));
}

const Parsed* find(const Parsed& document, std::string_view key) {
  const auto found = document.find(key);
  return found != document.end() ? &*found : nullptr;
}

std::string text_of(const Parsed& document, const char* key, const char* expected) {
  const Parsed* value = find(document, key);
  if (value == nullptr || !value->is_string() || value->get_ref<const std::string&>().empty()) {
    refuse(key, value, expected);
  }
  return value->get<std::string>();
}

// The option's own check, whose error names the key.
template <typename Check>
void as_of_key(Check check) {
  try {
    check();
  } catch (const Error& error) {
    throw CniError(Code::configuration, error.what(), error.hint());
  }
}

void check(std::string_view key, std::string_view flag, const std::string& text, CommandLine& line) {
  const Given given{flag_named(flag), text, key};
  as_of_key([&] { given.flag.set(line, given); });
}

std::string path_of(const Parsed& value, const char* key, const char* expected) {
  const bool is_path = value.is_string() && value.get_ref<const std::string&>().starts_with('/') &&
                       value.get_ref<const std::string&>().find('\0') == std::string::npos;
  if (!is_path) refuse(key, &value, fmt::format("the absolute path of {}", expected));
  return value.get<std::string>();
}

std::vector<std::string> namespaces_of(const Parsed& value) {
  constexpr const char* key = "excludeNamespaces";
  if (!value.is_array()) refuse(key, &value, "a list of the names of namespaces");
  std::vector<std::string> names;
  for (const Parsed& item : value) {
    if (!item.is_string()) refuse(key, &item, "a string");
    names.push_back(item.get<std::string>());
    as_of_key([&] {
      const Given given{flag_named("exclude-namespaces"), names.back(), key};
      options::namespace_name({given, names.back()});
    });
  }
  return names;
}

Parsed parsed(std::string_view text) {
  if (text.empty()) throw CniError(Code::decoding, "standard input: empty: expected a network configuration as JSON");
  try {
    return parse_object(text);
  } catch (const Error& error) {
    throw CniError(Code::decoding, fmt::format("standard input: '{}': {}", excerpt(text), error.what()));
  }
}

std::string version_of(const Parsed& document) {
  const Parsed* version = find(document, "cniVersion");
  const std::string text = version != nullptr && version->is_string() ? version->get<std::string>() : "";
  if (is_served(text)) return text;
  throw CniError(Code::incompatible_version, fmt::format("cniVersion: {}: expected one of {}",
                                                         version == nullptr ? "missing" : excerpt(version->dump()),
                                                         fmt::join(supported_versions, ", ")));
}

std::vector<Attachment> attachments_of(const char* key, const Parsed& value) {
  constexpr const char* expected = R"(a list of {"containerID": …, "ifname": …})";
  if (value.is_null()) return {};  // an empty list of Go's
  if (!value.is_array()) refuse(key, &value, expected);
  std::vector<Attachment> all;
  for (const Parsed& item : value) {
    const Parsed* container = item.is_object() ? find(item, "containerID") : nullptr;
    const Parsed* interface = item.is_object() ? find(item, "ifname") : nullptr;
    if (container == nullptr || interface == nullptr || !container->is_string() || !interface->is_string()) {
      refuse(key, &value, expected);
    }
    all.push_back({container->get<std::string>(), interface->get<std::string>()});
  }
  return all;
}

void refuse_unknown_keys(const Parsed& document) {
  std::vector<std::string_view> known(std::begin(other_keys), std::end(other_keys));
  for (const OptionKey& row : option_keys) known.emplace_back(row.key);
  for (const auto& [key, value] : document.items()) {
    if (key.starts_with(reserved_prefix) || std::ranges::find(known, key) != known.end()) continue;
    const auto meant = options::nearest(key, known);
    std::ranges::sort(known);
    known.erase(std::ranges::unique(known).begin(), known.end());
    throw CniError(Code::configuration,
                   fmt::format("{}: unknown key: expected one of {}", excerpt(key), fmt::join(known, ", ")),
                   meant ? fmt::format("did you mean {}?", *meant) : "");
  }
}

std::string value_of(const OptionKey& row, const Parsed& value) {
  if (row.type == Type::number && !value.is_number_integer()) refuse(row.key, &value, "a whole number");
  if (row.type == Type::boolean && !value.is_boolean()) refuse(row.key, &value, "true or false");
  if (row.type == Type::text && !value.is_string()) refuse(row.key, &value, "a string");
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// Sets those of both dataplanes in `line`; returns those of one.
std::vector<std::string> options_of(const Parsed& document, Dataplane dataplane, CommandLine& line) {
  std::vector<std::string> options;
  for (const OptionKey& row : option_keys) {
    const Parsed* value = find(document, row.key);
    if (value == nullptr && row.preset.empty()) continue;
    const std::string text = value != nullptr ? value_of(row, *value) : std::string(row.preset);
    check(row.key, row.flag, text, line);
    if (row.only && *row.only != dataplane) continue;
    options.push_back(fmt::format("--{}={}", row.flag, text));
  }
  return options;
}

LogOptions log_of(const Parsed& document) {
  CommandLine line;
  if (const Parsed* file = find(document, "logFile")) {
    line.log.targets = {path_of(*file, "logFile", "a file")};
  }
  if (const Parsed* level = find(document, "logLevel")) {
    if (!level->is_string()) refuse("logLevel", level, "a string such as debug, info, warn or error");
    check("logLevel", "log_output_level", level->get<std::string>(), line);
  }
  return line.log;
}

// Without it every pod would pass unseen. A runtime may take the key out of what it passes to the plugin, and give the
// annotations all the same.
void require_capability(const Parsed& document) {
  const Parsed* capabilities = find(document, "capabilities");
  if (capabilities == nullptr || *capabilities != Parsed::object({{annotations_capability, true}}))
    refuse("capabilities", capabilities, R"({"io.kubernetes.cri.pod-annotations": true})");
}

Annotations annotations_of(const Parsed& given, const char* key, const char* expected) {
  Annotations annotations;
  if (given.is_null()) return annotations;  // a pod without any
  if (!given.is_object()) refuse(key, &given, expected);
  for (const auto& [name, value] : given.items()) {
    if (!value.is_string()) refuse(key, &given, expected);
    annotations.emplace(name, value.get<std::string>());
  }
  return annotations;
}

std::optional<Annotations> annotations_of_runtime(const Parsed& document) {
  const Parsed* runtime = find(document, "runtimeConfig");
  if (runtime == nullptr) return std::nullopt;
  if (!runtime->is_object()) refuse("runtimeConfig", runtime, "an object");
  const Parsed* given = find(*runtime, annotations_capability);
  if (given == nullptr) return std::nullopt;
  return annotations_of(*given, annotations_capability, "an object of strings, the pod's annotations");
}

// Multus passes no annotations, but "cni-args" of the pod's annotation k8s.v1.cni.cncf.io/networks. It calls the plugin
// for pods alone that name this network, as the injector makes them.
Annotations annotations_of_multus(const Parsed* args) {
  const Parsed* given = args != nullptr ? find(*args, "cni") : nullptr;
  Annotations annotations = given != nullptr
                                ? annotations_of(*given, "args.cni", "an object of strings, as the pod's annotations")
                                : Annotations();
  // Where the pod says itself which template it has, or that it has none, that decides.
  const auto inject = annotations.find(inject_annotation);
  const bool decides =
      annotations.contains(templates_annotation) || (inject != annotations.end() && inject->second != "true");
  annotations.emplace(status_annotation,
                      decides ? R"({"containers": ["istio-proxy"]})"
                              : R"({"initContainers": ["istio-validation"], "containers": ["istio-proxy"]})");
  return annotations;
}

void read_own_keys(const Parsed& document, NetworkConfiguration& made) {
  refuse_unknown_keys(document);
  CommandLine line;
  made.options = options_of(document, Dataplane::sidecar, line);
  made.dataplane = line.config.dataplane;
  if (made.dataplane == Dataplane::ambient) {
    CommandLine again;
    made.ambient_options = options_of(document, Dataplane::ambient, again);
  }
  if (const Parsed* excluded = find(document, "excludeNamespaces")) {
    made.exclude_namespaces = namespaces_of(*excluded);
  }
  if (const Parsed* folder = find(document, "confDir")) made.conf_dir = path_of(*folder, "confDir", "a directory");
  const Parsed* args = find(document, "args");
  if (args != nullptr && !args->is_object()) refuse("args", args, "an object");
  if (const Parsed* standalone = find(document, "standalone")) {
    if (!standalone->is_boolean()) refuse("standalone", standalone, "true or false");
    made.standalone = standalone->get<bool>();
  }
  made.log = log_of(document);
  made.annotations = annotations_of_runtime(document);
  if (!made.annotations && made.standalone) made.annotations = annotations_of_multus(args);
  if (!made.annotations || find(document, "capabilities") != nullptr) require_capability(document);
}

}  // namespace

bool is_served(std::string_view version) {
  return std::ranges::find(supported_versions, version) != std::end(supported_versions);
}

NetworkConfiguration read_configuration(std::string_view text, Keys keys) {
  const Parsed document = parsed(text);
  NetworkConfiguration made;
  made.cni_version = version_of(document);
  made.name = text_of(document, "name", "the name of the network");
  made.type = text_of(document, "type", "the name of the plugin");
  for (const char* key : attachments_keys) {
    const Parsed* valid = find(document, key);
    if (valid == nullptr) continue;
    made.valid_attachments = attachments_of(key, *valid);
    break;
  }
  if (keys == Keys::all) {
    if (const auto key = repeated_key(text, "prevResult"))  // which is handed on as it was written
      throw CniError(Code::configuration, fmt::format("{}: duplicate key: expected each once", excerpt(*key)));
    if (const Parsed* previous = find(document, "prevResult")) {
      if (!previous->is_object()) refuse("prevResult", previous, "the result of the plugin before");
      made.previous_result = objects_of(text, "prevResult").back();
    }
    read_own_keys(document, made);
  } else {
    try {
      made.log = log_of(document);
    } catch (const CniError&) {  // syslog then
    }
  }
  return made;
}

std::string version_to_answer_in(std::string_view text) {
  try {
    return version_of(parsed(text));
  } catch (const CniError&) {
    return std::string(current_version);
  }
}

std::string version_answer(std::string_view text) {
  const Parsed document = text.empty() ? Parsed::object() : parsed(text);
  const Parsed* version = find(document, "cniVersion");
  return dumped(
      {{"cniVersion", version != nullptr && version->is_string() ? version->get<std::string>() : current_version},
       {"supportedVersions", supported_versions}},
      Lines::one);
}

}  // namespace sidetrack::cni
