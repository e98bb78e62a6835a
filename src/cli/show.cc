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
std::vector<Obstacle> in_the_way(const LiveRules& live, const PodView& pod) {
  if (std::ranges::none_of(live.rules, holds_others)) return {};
  return obstacles(live.rules, live.routing, pod);
}

constexpr std::chrono::seconds refresh(1);
constexpr std::string_view clear_screen = "\033[H\033[2J\033[3J";

// Until it is interrupted.
[[noreturn]] void watch(const CommandLine& line, Kernel& kernel) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  std::vector<Live> before;
  while (true) {
    LiveRules now = read_live(kernel);
    const PodView pod = kernel.pod();
    const std::vector<Obstacle> others = in_the_way(now, pod);
    const std::string text =
        show(now.rules, now.routing, {.color = colored(line), .before = before, .obstacles = others, .pod = &pod});
    if (terminal) write_out(clear_screen);
    print(terminal ? text : text + "\n");
    before = std::move(now.rules);
    std::this_thread::sleep_for(refresh);
  }
}

void print_rules(const CommandLine& line, const LiveRules& live, const PodView& pod) {
  const std::vector<Obstacle> others = in_the_way(live, pod);
  const ShowOptions options{.color = colored(line), .obstacles = others, .pod = &pod};
  print(line.format == Format::json ? show_json(live.rules, live.routing, options)
                                    : show(live.rules, live.routing, options));
}

}  // namespace

ExitCode run_show(CommandLine& line) {
  if (line.watch && line.format == Format::json)
    throw Error(ExitCode::usage, "--watch: expected text, not --format json");
  if (!line.text.files.empty()) {
    const TextRules text = read_texts(line);
    print_rules(line, text.live, text.pod);
    return ExitCode::done;
  }
  enter_target(line);
  const auto kernel = open_kernel(line, false);
  if (line.watch) watch(line, *kernel);
  print_rules(line, read_live(*kernel), kernel->pod());
  return ExitCode::done;
}

}  // namespace sidetrack::cli
