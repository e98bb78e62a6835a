// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/show.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "cli/commands.h"

namespace sidetrack::cli {
namespace {

constexpr std::chrono::seconds refresh(1);
constexpr std::string_view clear_screen = "\033[H\033[2J\033[3J";

// Until it is interrupted.
[[noreturn]] void watch(const CommandLine& line, Routes& routes) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  std::vector<Live> before;
  while (true) {
    std::vector<Live> now = read_live(line);
    const std::string text = show(now, routes.read().ours, {.color = colored(line), .all = false, .before = before});
    if (terminal) write_out(clear_screen);
    print(terminal ? text : text + "\n");
    before = std::move(now);
    std::this_thread::sleep_for(refresh);
  }
}

}  // namespace

ExitCode run_show(CommandLine& line) {
  enter_target(line);
  const auto routes = open_routes();
  if (line.watch) {
    if (line.format == Format::json) throw Error(ExitCode::usage, "--watch: expected text, not --format json");
    watch(line, *routes);
  }
  const std::vector<Live> live = read_live(line);
  print(line.format == Format::json
            ? show_json(live, routes->read().ours)
            : show(live, routes->read().ours, {.color = colored(line), .all = false, .before = {}}));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
