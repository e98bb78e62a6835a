// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/show.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/commands.h"
#include "mesh/ownership.h"

namespace sidetrack::cli {
namespace {

// Others' rules that decide otherwise than ours.
std::vector<Obstacle> in_the_way(const std::vector<Live>& live, const Routing& ours) {
  if (std::ranges::none_of(live, holds_others)) return {};
  return obstacles(live, ours, read_pod());
}

constexpr std::chrono::seconds refresh(1);
constexpr std::string_view clear_screen = "\033[H\033[2J\033[3J";

// Until it is interrupted.
[[noreturn]] void watch(const CommandLine& line, Routes& routes) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  std::vector<Live> before;
  while (true) {
    std::vector<Live> now = read_live(line);
    const Routing ours = routes.read().ours;
    const std::vector<Obstacle> others = in_the_way(now, ours);
    const std::string text =
        show(now, ours, {.color = colored(line), .all = false, .before = before, .obstacles = others});
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
  const Routing ours = routes->read().ours;
  const std::vector<Obstacle> others = in_the_way(live, ours);
  print(line.format == Format::json ? show_json(live, ours, others)
                                    : show(live, ours, {.color = colored(line), .obstacles = others}));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
