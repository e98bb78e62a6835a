// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/log.h"

#include <fcntl.h>
#include <paths.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "cli/standard_streams.h"
#include "model/error.h"
#include "model/printable.h"
#include "render/json_parts.h"
#include "system/descriptor.h"
#include "system/write_all.h"

namespace sidetrack::cli {
namespace {

spdlog::level::level_enum spdlog_level(LogOptions::Level level) {
  switch (level) {
    case LogOptions::Level::debug:
      return spdlog::level::debug;
    case LogOptions::Level::info:
      return spdlog::level::info;
    case LogOptions::Level::warn:
      return spdlog::level::warn;
    case LogOptions::Level::error:
      return spdlog::level::err;
    case LogOptions::Level::fatal:
      return spdlog::level::critical;
    case LogOptions::Level::none:
      return spdlog::level::off;
  }
  return spdlog::level::info;
}

// Istio's names: info warn error.
std::string_view istio_name(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::warn:
      return "warn";
    case spdlog::level::err:
      return "error";
    case spdlog::level::critical:
      return "fatal";
    default: {
      const auto name = spdlog::level::to_string_view(level);
      return {name.data(), name.size()};
    }
  }
}

std::string_view view(const spdlog::string_view_t& text) { return {text.data(), text.size()}; }

// "plan.cc:42", as --log_caller asks for it
std::string caller(const spdlog::source_loc& source) {
  const std::string_view file = source.filename;
  return std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(source.line);
}

std::string utc(spdlog::log_clock::time_point time) {
  using namespace std::chrono;
  const std::time_t seconds = system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  const auto micros = duration_cast<microseconds>(time.time_since_epoch()).count() % 1'000'000;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, micros);
}

// A line in one of our three forms.
class LineFormatter : public spdlog::formatter {
 public:
  LineFormatter(LogForm form, bool json, bool with_caller) : form_(form), json_(json), with_caller_(with_caller) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& to) override {
    const std::string line = json_ ? json(message) : form_ == LogForm::istio ? istio(message) : plain(message);
    to.append(line.data(), line.data() + line.size());
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<LineFormatter>(*this);
  }

 private:
  [[nodiscard]] std::string json(const spdlog::details::log_msg& message) const {
    Json object{{"time", utc(message.time)},
                {"level", istio_name(message.level)},
                {"scope", "default"},
                {"msg", view(message.payload)}};
    if (with_caller_) object["caller"] = caller(message.source);
    return dumped(std::move(object), Lines::one);
  }
  [[nodiscard]] std::string istio(const spdlog::details::log_msg& message) const {
    return fmt::format("{}\t{}\t{}{}\n", utc(message.time), istio_name(message.level),
                       with_caller_ ? caller(message.source) + "\t" : "", printable_lines(view(message.payload)));
  }
  [[nodiscard]] std::string plain(const spdlog::details::log_msg& message) const {
    const bool told = message.level >= spdlog::level::warn;
    return fmt::format("sidetrack: {}{}{}\n",
                       told ? fmt::format("{}: ", spdlog::level::to_string_view(message.level)) : "",
                       with_caller_ ? caller(message.source) + ": " : "", printable_lines(view(message.payload)));
  }

  LogForm form_;
  bool json_;
  bool with_caller_;
};

// Writes each line at once, so that a program killed in the middle has said all it did. What cannot be written goes to
// standard error from then on: no line is lost silently, and no full disk stops apply.
class DescriptorSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  DescriptorSink(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}
  DescriptorSink(std::string name, Descriptor file)
      : name_(std::move(name)), file_(std::move(file)), descriptor_(file_.get()) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::string_view text(line.data(), line.size());
    const int error = write_all(descriptor_, text);
    if (error == 0 || descriptor_ == STDERR_FILENO) return;
    descriptor_ = STDERR_FILENO;
    (void)write_all(descriptor_,
                    fmt::format("sidetrack: warning: cannot write the log to {}: {}; logging continues here\n", name_,
                                errno_words(error)));
    (void)write_all(descriptor_, text);
  }
  void flush_() override {}

 private:
  std::string name_;
  Descriptor file_;
  int descriptor_;
};

int syslog_priority(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::debug:
      return LOG_DEBUG;
    case spdlog::level::info:
      return LOG_INFO;
    case spdlog::level::warn:
      return LOG_WARNING;
    default:
      return LOG_ERR;
  }
}

// To /dev/log, as syslog(3) writes, but never waiting: with a journal that does not read any more that would be for
// ever. What cannot be sent is lost.
class SyslogSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  SyslogSink() {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = _PATH_LOG};
    for (const int type : {SOCK_DGRAM, SOCK_STREAM}) {
      is_stream_ = type == SOCK_STREAM;
      socket_ = Descriptor(socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
          errno != EPROTOTYPE)
        break;
    }
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string line = fmt::format("<{}>sidetrack-cni[{}]: {}", LOG_DAEMON | syslog_priority(message.level), getpid(),
                                   printable_lines(view(message.payload)));
    if (is_stream_) line += '\0';  // by which the end of a message is told
    (void)send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
  }
  void flush_() override {}

 private:
  Descriptor socket_;
  bool is_stream_ = false;
};

// Whether a slow one of a FIFO is waited for, as one of standard output is.
enum class Reader : bool { awaited, ignored };

// `option`: that which names the target.
spdlog::sink_ptr open_target(const std::string& target, std::string_view option, Reader reader) {
  if (target == "stdout") return std::make_shared<DescriptorSink>(target, STDOUT_FILENO);
  if (target == "stderr") return std::make_shared<DescriptorSink>(target, STDERR_FILENO);
  // Without O_NONBLOCK, opening a FIFO that has no reader would hang here.
  Descriptor file(open(target.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  if (!file.valid()) {
    throw Error(ExitCode::usage,
                fmt::format("{}: cannot write to '{}': {}", option, excerpt(target), errno_words(errno)),
                "give the path of a file that can be written");
  }
  if (reader == Reader::awaited) fcntl(file.get(), F_SETFL, O_APPEND);
  return std::make_shared<DescriptorSink>("'" + target + "'", std::move(file));
}

std::unique_ptr<spdlog::logger> make(const LogOptions& options, LogForm form, const std::vector<std::string>& targets,
                                     std::string_view option = "--log_target", Reader reader = Reader::awaited) {
  std::vector<spdlog::sink_ptr> sinks;
  for (const std::string& target : targets) sinks.push_back(open_target(target, option, reader));
  auto logger = std::make_unique<spdlog::logger>("default", sinks.begin(), sinks.end());
  logger->set_formatter(std::make_unique<LineFormatter>(form, options.json, options.caller));
  logger->set_level(spdlog_level(options.level));
  return logger;
}

std::unique_ptr<spdlog::logger>& current() {
  static std::unique_ptr<spdlog::logger> logger = make({}, LogForm::plain, {"stderr"});
  return logger;
}

}  // namespace

void start_log(const LogOptions& options, LogForm form, bool standard_output_is_taken) {
  std::vector<std::string> targets = options.targets;
  if (targets.empty()) targets.emplace_back(form == LogForm::istio && !standard_output_is_taken ? "stdout" : "stderr");
  current() = make(options, form, targets);
}

void start_plugin_log(const LogOptions& options) {
  if (!options.targets.empty()) {
    current() = make(options, LogForm::istio, options.targets, "logFile", Reader::ignored);
    return;
  }
  current() = std::make_unique<spdlog::logger>("default", std::make_shared<SyslogSink>());
  current()->set_level(spdlog_level(options.level));
}

void log(LogOptions::Level level, std::string_view message, From from) {
  current()->log(spdlog::source_loc{from.file, from.line, ""}, spdlog_level(level),
                 spdlog::string_view_t(message.data(), message.size()));
}

bool logs(LogOptions::Level level) { return current()->should_log(spdlog_level(level)); }

}  // namespace sidetrack::cli
