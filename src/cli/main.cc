// SPDX-License-Identifier: GPL-2.0-or-later
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/log.h"
#include "sidetrack/options.h"
#include "sidetrack/version.h"

namespace sidetrack::cli {
namespace {

ExitCode run(Command command, CommandLine& line) {
  switch (command) {
    case Command::apply:
      return run_apply(line);
    case Command::render:
      return run_render(line);
    case Command::diff:
      return run_diff(line);
    case Command::verify:
      return run_verify(line);
    case Command::doctor:
      return run_doctor(line);
    case Command::clean:
      return run_clean(line);
    case Command::show:
      return run_show(line);
    case Command::explain:
      return run_explain(line);
    case Command::completion:
      return run_completion(line);
  }
  return ExitCode::usage;  // there is no other
}

ExitCode run(const std::vector<std::string_view>& args) {
  CommandLine line = parse(args, process_environment);
  if (line.version) {
    print("sidetrack " + std::string(version) + "\n");
    return ExitCode::done;
  }
  if (line.help || !line.command) {
    print(line.command ? help(*line.command) : help());
    return ExitCode::done;
  }
  start_log(line.config.log, line.drop_in ? LogForm::istio : LogForm::plain, line.config.dry_run);
  return run(*line.command, line);
}

}  // namespace
}  // namespace sidetrack::cli

int main(int argc, char** argv) {
  using namespace sidetrack;
  try {
    return static_cast<int>(cli::run({argv, argv + argc}));
  } catch (const Error& error) {
    cli::error(error.hint().empty() ? error.what() : std::string(error.what()) + "; " + error.hint());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    cli::error(std::string("internal error: ") + error.what());
    return static_cast<int>(ExitCode::failed);
  }
}
