// SPDX-License-Identifier: GPL-2.0-or-later
// sidetrack-injector: the admission webhook that puts istio-init and a proxy of one's own into pods.
#include <fmt/format.h>
#include <malloc.h>
#include <sidetrack/version.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "inject/injector/certificate.h"
#include "inject/injector/log.h"
#include "inject/injector/server.h"
#include "inject/manifest/arguments.h"
#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "system/folder.h"
#include "system/folder_watch.h"
#include "system/sandbox.h"

namespace sidetrack::injector {
namespace {

// inotify tells nothing of a file system that is mounted over a folder.
constexpr std::chrono::seconds look_again(60);
constexpr std::chrono::seconds try_again(5);

struct Options {
  CertificateFiles files;
  std::string injected;
  std::string listen = "[::]:8443";
  std::vector<std::string> values;
  std::vector<std::string> set;
  bool verbose = false;
  bool no_sandbox = false;
};

struct Endpoint {
  std::string address;
  std::uint16_t port = 0;
};

// "[::]:8443", "10.0.0.1:8443", ":8443"
Endpoint endpoint(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto refuse = [&] {
    throw Error(ExitCode::usage, fmt::format("--listen: '{}': expected ADDRESS:PORT", excerpt(text)));
  };
  if (colon == std::string::npos) refuse();
  const auto port = to_number<std::uint16_t>(std::string_view(text).substr(colon + 1));
  if (!port) refuse();
  Endpoint made{text.substr(0, colon), *port};
  if (made.address.starts_with('[') && made.address.ends_with(']'))
    made.address = made.address.substr(1, made.address.size() - 2);
  if (made.address.empty()) made.address = "::";
  return made;
}

HelmValues helm_values(const Options& options, std::vector<std::string>& warnings) {
  ManifestOptions given;
  given.values = options.values;
  given.injector = Injector::sidetrack;
  for (const std::string& text : options.set) set_helm_values(given.set, text);
  return manifest::helm_values(given, warnings);
}

std::string absolute(const std::string& path) {
  return path.starts_with('/') ? path : fmt::format("{}/{}", std::filesystem::current_path().string(), path);
}

// Waits for a change, so long at most.
bool is_to_end(FolderWatch& watch, std::chrono::seconds longest) {
  for (; longest.count() > 0; --longest) {
    const FolderWatch::Woken woken = watch.wait(std::chrono::seconds(1));
    if (refused_call() || woken == FolderWatch::Woken::asked_to_end) return true;  // by the other thread, perhaps
    if (woken == FolderWatch::Woken::changed) return false;
  }
  return false;
}

// Serves new connections with the certificate as it is, until SIGTERM or SIGINT.
void keep_certificate(FolderWatch& watch, Server& server, const CertificateFiles& files, CertificateTexts known) {
  const std::vector<std::string> folders{folder_above(files.certificate), folder_above(files.key)};
  std::string problem;
  while (true) {
    try {
      do {
        watch.arm(folders);
        CertificateTexts now = read(files);
        if (now == known) continue;
        server.use(load(now, files));
        known = std::move(now);
        info("loaded the new certificate");
      } while (watch.arm(folders));
      problem.clear();
    } catch (const Error& what) {
      // Half of a change, perhaps: the certificate, and not yet its key.
      if (problem != what.what()) error(fmt::format("keeping the old certificate: {}", what.what()));
      problem = what.what();
      server.count_failed_reload();
    }
    if (is_to_end(watch, problem.empty() ? look_again : try_again)) return;
  }
}

// Before the other thread is there: it holds for both.
void confine(const Options& options) {
  if (options.no_sandbox) return info("not in a sandbox: --no-sandbox");
  const std::string problem = enter_sandbox(Sandbox::serve);
  if (!problem.empty()) warn(problem);
}

void serve(const Options& options) {
  std::vector<std::string> warnings;
  Service service(manifest::read_template(manifest::read_documents(options.injected), warnings),
                  helm_values(options, warnings));
  for (const std::string& warning : warnings) warn(warning);
  const CertificateFiles files{absolute(options.files.certificate), absolute(options.files.key)};
  CertificateTexts known = read(files);
  const Endpoint where = endpoint(options.listen);
  Server server(service, where.address, where.port, load(known, files));
  FolderWatch watch({SIGHUP});  // before the other thread is there: it holds the signals in both
  confine(options);
  info(fmt::format("sidetrack-injector {} listens on {} port {}", version, where.address, server.port()));
  std::thread serving([&] {
    try {
      server.run();
    } catch (const std::exception& what) {
      error(fmt::format("internal error: {}", what.what()));
      std::_Exit(static_cast<int>(ExitCode::failed));
    }
  });
  keep_certificate(watch, server, files, std::move(known));
  info("shutting down: draining requests");
  server.drain();
  serving.join();
  if (const auto call = refused_call()) throw Error(ExitCode::failed, refusal_words(*call));
  info("ended");
}

}  // namespace
}  // namespace sidetrack::injector

int main(int argc, char** argv) {
  using namespace sidetrack;
  std::signal(SIGPIPE, SIG_IGN);  // of a log that nobody reads any more
  // What is larger goes back to the kernel at once: glibc keeps more and more of it otherwise, in pieces.
  mallopt(M_MMAP_THRESHOLD, 256 << 10);
  injector::Options options;
  CLI::App app("Puts istio-init and a proxy of your own into pods, as admission webhook of Kubernetes.",
               "sidetrack-injector");
  app.set_version_flag("--version", "sidetrack-injector " + std::string(version));
  app.add_option("--cert", options.files.certificate, "the certificate, PEM, with its chain; reloaded when it changes")
      ->required();
  app.add_option("--key", options.files.key, "its key, PEM")->required();
  app.add_option("--template", options.injected, "what is put into pods, as of sidetrack inject")->required();
  app.add_option("--listen", options.listen, "ADDRESS:PORT")->capture_default_str();
  app.add_option("--values", options.values, "a file of Istio's Helm values; may be repeated");
  app.add_option("--set", options.set, "one of Istio's Helm values, NAME=VALUE; may be repeated");
  app.add_flag("--verbose", options.verbose, "log every pod");
  app.add_flag("--no-sandbox", options.no_sandbox, "keep capabilities and system calls that are not needed");
  try {
    app.parse(argc, argv);
    if (options.verbose) injector::log_debug_too();
    injector::serve(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? static_cast<int>(ExitCode::done) : static_cast<int>(ExitCode::usage);
  } catch (const Error& error) {
    injector::error(text_with_hint(error));
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    injector::error(fmt::format("internal error: {}", error.what()));
    return static_cast<int>(ExitCode::failed);
  }
  return 0;
}
