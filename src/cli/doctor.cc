// SPDX-License-Identifier: GPL-2.0-or-later
#include "doctor/doctor.h"

#include "cli/commands.h"

namespace sidetrack::cli {
namespace {

std::unique_ptr<Backend> open_backend(BackendKind kind) {
  if (kind == BackendKind::iptables_nft) return open_iptables_nft();
  if (kind == BackendKind::nftables) return open_nftables();
  return open_iptables_legacy({.read_only = true});
}

}  // namespace

ExitCode run_doctor(CommandLine& line) {
  enter_target(line);
  const auto routes = open_routes();
  const Diagnosis diagnosis = diagnose(open_backend, in_own_pod(line) ? "" : namespace_lock, *routes);
  print(line.format == Format::json ? diagnosis_json(diagnosis) : diagnosis_text(diagnosis, colored(line)));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
