// SPDX-License-Identifier: GPL-2.0-or-later
#include "render/show.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "cli/commands.h"
#include "rule/ours.h"

namespace sidetrack::cli {
namespace {

// Others' rules that decide otherwise than ours.
std::vector<Obstacle> in_the_way(const LiveRules& live, Kernel& kernel) {
  if (std::ranges::none_of(live.rules, holds_others)) return {};
  return obstacles(live.rules, live.routing, kernel.pod());
}

constexpr std::chrono::seconds refresh(1);
constexpr std::string_view clear_screen = "\033[H\033[2J\033[3J";

// Until it is interrupted.
[[noreturn]] void watch(const CommandLine& line, Kernel& kernel) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  std::vector<Live> before;
  const PodView pod = kernel.pod();
  while (true) {
    LiveRules now = read_live(kernel);
    const std::vector<Obstacle> others = in_the_way(now, kernel);
    const std::string text =
        show(now.rules, now.routing, {.color = colored(line), .before = before, .obstacles = others, .pod = &pod});
    if (terminal) write_out(clear_screen);
    print(terminal ? text : text + "\n");
    before = std::move(now.rules);
    std::this_thread::sleep_for(refresh);
  }
}

}  // namespace

ExitCode run_show(CommandLine& line) {
  if (line.watch && line.format == Format::json)
    throw Error(ExitCode::usage, "--watch: expected text, not --format json");
  enter_target(line);
  const auto kernel = open_kernel(line, false);
  if (line.watch) watch(line, *kernel);
  const LiveRules live = read_live(*kernel);
  const std::vector<Obstacle> others = in_the_way(live, *kernel);
  const PodView pod = kernel->pod();
  const ShowOptions options{.color = colored(line), .obstacles = others, .pod = &pod};
  print(line.format == Format::json ? show_json(live.rules, live.routing, options)
                                    : show(live.rules, live.routing, options));
  return ExitCode::done;
}

}  // namespace sidetrack::cli
