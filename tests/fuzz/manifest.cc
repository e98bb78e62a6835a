// SPDX-License-Identifier: GPL-2.0-or-later
// Manifests, which hold annotations: what is read can be written and read again; what a proxy is put into is the same
// after it is put there once more.
#include <fmt/format.h>

#include "fuzz.h"
#include "inject/manifest/inject.h"
#include "inject/manifest/report.h"
#include "inject/manifest/write.h"
#include "options/annotations.h"

using namespace sidetrack;
using namespace sidetrack::manifest;

namespace {

constexpr std::size_t most = 2000;  // nodes: what grows with them is to be quick here

const InjectionTemplate& proxy() {
  static const InjectionTemplate read = [] {
    std::vector<std::string> warnings;
    return read_template(
        parse_documents(
            "spec:\n  containers:\n  - {name: istio-proxy, image: envoy, env: [{name: LEVEL, value: info}]}\n"
            "  volumes: [{name: sidecar, emptyDir: {}}]\n",
            "template"),
        warnings);
  }();
  return read;
}

void write_and_read(const Node& root) {
  const std::string yaml = yaml_text(root);
  fuzz::require(parse_yaml(yaml, "again")[0].root == root, yaml);
  const std::string json = json_text(root);
  fuzz::require(parse_json(json, "again").size() == 1, json);
}

std::string inject_all(Documents& documents) {
  std::vector<std::string> skipped;
  const auto pods = pod_templates(documents, skipped);
  auto next = pods.begin();
  return written(documents, [&](const Document& document) {
    bool is_changed = false;
    for (; next != pods.end() && next->document == document.number; ++next) {
      const Injected done = inject(*next, proxy(), {});
      fuzz::require(done.init.not_injected.empty() || !done.changed, "changed, and not injected");
      is_changed |= done.changed;
    }
    return is_changed;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  try {
    Documents each = parse_each_document(text, "manifest", {.nodes = most});
    for (const Document& document : each.list) {
      if (document.problem) fuzz::require_readable(*document.problem);
    }
    std::vector<std::string> skipped;
    static_cast<void>(pod_templates(each, skipped));
  } catch (const Error& error) {
    fuzz::require_readable(error);
    fuzz::require(error.code() == ExitCode::usage, error.what());
  }
  Documents documents;
  try {
    documents = parse_documents(text, "manifest", {.nodes = most});
  } catch (const Error& error) {
    fuzz::require_readable(error);
    fuzz::require(error.code() == ExitCode::usage, error.what());
    return 0;
  }
  Documents same = documents;
  fuzz::require(written(same, [](const Document&) { return false; }) == documents.text,
                "what is not changed keeps its bytes");
  for (const Document& document : documents.list) write_and_read(document.root);

  try {
    std::vector<std::string> skipped;
    std::vector<PodArguments> pods;
    for (const PodTemplate& pod : pod_templates(documents, skipped)) pods.push_back({pod, init_arguments(pod, {})});
    static_cast<void>(arguments_text(pods));
    static_cast<void>(why_text(pods));
    static_cast<void>(arguments_json(pods, {}));
    for (const PodArguments& pod : pods) {
      HelmValues helm;
      static_cast<void>(interception(metadata_of(pod.pod, helm).annotations));
    }

    const std::string once = inject_all(documents);
    Documents again = parse_documents(once, "injected");
    fuzz::require(inject_all(again) == once, once);
  } catch (const Error& error) {
    fuzz::require_readable(error);
    fuzz::require(error.code() == ExitCode::usage, error.what());
  }
  return 0;
}
