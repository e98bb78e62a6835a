// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/plugin.h"

#include <unistd.h>

#include <new>
#include <string>

#include "cli/commands.h"
#include "cli/log.h"
#include "cli/standard_streams.h"
#include "node/cni_error.h"
#include "node/network_configuration.h"
#include "node/record.h"
#include "system/read_write.h"

namespace sidetrack::cli {
namespace {

// Kubernetes limits a pod's annotations to 256 KiB.
constexpr std::size_t largest_input = 16U << 20;

cni::Answer answer() {
  std::string input;
  if (const int error = read_all(STDIN_FILENO, largest_input, input); error != 0) {
    const cni::CniError unread(cni::Code::input_output, "cannot read standard input: " + errno_words(error));
    return {json(unread, cni::current_version), 1};
  }
  const cni::Log log_of_node{start_plugin_log,
                             [](LogOptions::Level level, std::string_view line) { log(level, line); }};
  const cni::Confine confine = [](Sandbox kind) {
    const std::string problem = enter_sandbox(kind, {cni::records_folder});
    if (!problem.empty()) warn(problem);
  };
  return cni::serve(input, process_environment, log_of_node, confine);
}

}  // namespace

bool is_plugin(std::string_view program) { return program.substr(program.rfind('/') + 1) == cni::plugin_name; }

int run_plugin() {
  try {
    const cni::Answer made = answer();
    return write_all(STDOUT_FILENO, made.output) == 0 ? made.exit_code : 1;
  } catch (const std::bad_alloc&) {
    (void)write_all(STDOUT_FILENO, cni::out_of_memory);
    return 1;
  }
}

}  // namespace sidetrack::cli
