// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/injector/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "model/printable.h"

namespace sidetrack::injector {
namespace {

spdlog::logger& logger() {
  static const auto made = [] {
    auto lines = spdlog::stderr_logger_mt("injector");
    lines->set_pattern("%Y-%m-%dT%H:%M:%S.%fZ\t%l\t%v", spdlog::pattern_time_type::utc);
    return lines;
  }();
  return *made;
}

}  // namespace

void log_debug_too() { logger().set_level(spdlog::level::debug); }

void debug(std::string_view message) {
  if (logger().should_log(spdlog::level::debug)) logger().debug("{}", printable(message));
}
void info(std::string_view message) { logger().info("{}", printable(message)); }
void warn(std::string_view message) { logger().warn("{}", printable(message)); }
void error(std::string_view message) { logger().error("{}", printable(message)); }

}  // namespace sidetrack::injector
