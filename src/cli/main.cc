// SPDX-License-Identifier: GPL-2.0-or-later
#include <sidetrack/version.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/log.h"
#include "cli/standard_streams.h"
#include "inject/manifest/arguments.h"
#include "model/error.h"
#include "options/options.h"
#include "system/read_write.h"
#include "system/sandbox.h"

namespace sidetrack::cli {
namespace {

ExitCode run(const std::vector<std::string_view>& args, CommandLine& line) {
  if (args.size() > 1 && args[1] == "__complete") {
    print(complete(std::span(args).subspan(2)));
    return ExitCode::done;
  }
  line = parse(args, process_environment, manifest::options_of_pod);
  if (line.version) {
    print("sidetrack " + std::string(version) + "\n");
    return ExitCode::done;
  }
  if (line.help || !line.command) {
    print(line.command ? help(*line.command) : help());
    return ExitCode::done;
  }
  start_log(line.log, line.drop_in ? LogForm::istio : LogForm::plain, line.dry_run);
  for (const std::string& warning : line.warnings) warn(warning);
  for (const std::string& warning : line.manifest.warnings) warn(warning);
  return std::ranges::find(runs, *line.command, &Run::command)->run(line);
}

// What is known of the pod after an unexpected error. Nothing is allocated: there may be no memory.
const char* what_stands(const CommandLine& line) {
  return writes(line) ? "'sidetrack verify' with the same options tells whether the pod is as requested"
                      : "nothing was changed";
}

ExitCode out_of_memory(const CommandLine& line) {
  for (const std::string_view part :
       {std::string_view("sidetrack: error: out of memory; "), std::string_view(what_stands(line)),
        std::string_view("; raise the memory limit of the container (resources.limits.memory) or of the shell "
                         "(ulimit -v)\n")}) {
    (void)write_all(STDERR_FILENO, part);
  }
  return ExitCode::failed;
}

}  // namespace
}  // namespace sidetrack::cli

namespace {

// What is returned if the sandbox has refused something that was not to be asked of it.
int checked(int code) {
  const auto call = sidetrack::refused_call();
  if (!call) return code;
  sidetrack::cli::error(sidetrack::refusal_words(*call));
  return static_cast<int>(sidetrack::ExitCode::failed);
}

int run_program(int argc, char** argv) {
  using namespace sidetrack;
  cli::prepare_standard_streams();
  if (argc > 0 && cli::is_plugin(argv[0])) return cli::run_plugin();
  CommandLine line;
  try {
    try {
      return static_cast<int>(cli::run({argv, argv + argc}, line));
    } catch (const Error& error) {
      // An error by a refused call says what the kernel would mean by it.
      if (!refused_call()) cli::error(text_with_hint(error));
      return static_cast<int>(error.code());
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      cli::error(std::string("internal error: ") + error.what() + "; " + cli::what_stands(line) +
                 "; please report it with the command line");
      return static_cast<int>(ExitCode::failed);
    }
  } catch (const std::bad_alloc&) {
    return static_cast<int>(cli::out_of_memory(line));
  }
}

}  // namespace

int main(int argc, char** argv) { return checked(run_program(argc, argv)); }
