// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <paths.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

// Istio's names of the levels. Nothing prints the id of a thread.
#define SPDLOG_LEVEL_NAMES \
  { "trace", "debug", "info", "warn", "error", "fatal", "off" }
#define SPDLOG_NO_THREAD_ID
#define SPDLOG_NO_TLS
#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <vector>

#include "cli/standard_streams.h"
#include "model/error.h"
#include "model/printable.h"
#include "render/json_parts.h"
#include "system/descriptor.h"
#include "system/read_write.h"

namespace sidetrack::cli {
namespace {

using spdlog::memory_buf_t;
using LogMessage = spdlog::details::log_msg;

struct LevelNames {
  std::string_view plain;
  int syslog;
};

// The levels of LogOptions are those of spdlog from debug on.
spdlog::level::level_enum spdlog_level(LogOptions::Level level) {
  return static_cast<spdlog::level::level_enum>(spdlog::level::debug + static_cast<int>(level));
}

const LevelNames& names(spdlog::level::level_enum level) {
  static constexpr LevelNames all[] = {{"", LOG_DEBUG},      {"", LOG_INFO},       {"warning: ", LOG_WARNING},
                                       {"error: ", LOG_ERR}, {"fatal: ", LOG_ERR}, {"", LOG_ERR}};
  return all[level - spdlog::level::debug];
}

std::string_view text_of(const LogMessage& message) { return {message.payload.data(), message.payload.size()}; }

void append(memory_buf_t& to, std::string_view text) { to.append(text.data(), text.data() + text.size()); }

// ---- Lines: by spdlog's patterns, with flags of ours

// Appends "2026-01-31T12:00:00.000000Z". spdlog's own flags ask gmtime_r, which reads /etc/localtime: a sandbox would
// refuse that, and the static program is to need no file.
void append_time(const LogMessage& message, memory_buf_t& to) {
  using namespace std::chrono;
  const auto time = message.time;
  const auto midnight = floor<days>(time);
  const year_month_day date(midnight);
  const hh_mm_ss clock(floor<microseconds>(time - midnight));
  append(to, fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                         static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                         clock.minutes().count(), clock.seconds().count(), clock.subseconds().count()));
}

void append_plain_level(const LogMessage& message, memory_buf_t& to) { append(to, names(message.level).plain); }

// Appends the text as a terminal may show it.
void append_printable(const LogMessage& message, memory_buf_t& to) { append(to, printable_lines(text_of(message))); }

void append_json(const LogMessage& message, memory_buf_t& to) {
  std::string text = dumped(Json(text_of(message)), Lines::one);
  text.pop_back();  // the end of the line
  append(to, text);
}

template <void (*append_to)(const LogMessage&, memory_buf_t&)>
class PatternFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const LogMessage& message, const std::tm&, memory_buf_t& to) override { append_to(message, to); }
  [[nodiscard]] std::unique_ptr<spdlog::custom_flag_formatter> clone() const override {
    return std::make_unique<PatternFlag>();
  }
};

// Returns the pattern of a line in one of our three forms.
std::string pattern(LogForm form, const LogOptions& options) {
  if (options.json) {
    return fmt::format(R"({{"time":"%T","level":"%l","scope":"default","msg":%J{}}})",
                       options.caller ? R"(,"caller":"%s:%#")" : "");
  }
  if (form == LogForm::istio) return options.caller ? "%T\t%l\t%s:%#\t%P" : "%T\t%l\t%P";
  return options.caller ? "sidetrack: %L%s:%#: %P" : "sidetrack: %L%P";
}

std::unique_ptr<spdlog::formatter> formatter(LogForm form, const LogOptions& options) {
  auto lines = std::make_unique<spdlog::pattern_formatter>("", spdlog::pattern_time_type::utc, "\n");
  lines->add_flag<PatternFlag<append_time>>('T');
  lines->add_flag<PatternFlag<append_plain_level>>('L');
  lines->add_flag<PatternFlag<append_printable>>('P');
  lines->add_flag<PatternFlag<append_json>>('J');
  lines->set_pattern(pattern(form, options));
  return lines;
}

// ---- Targets: sinks of ours, since spdlog's own write by stdio and syslog(3)

using Sink = spdlog::sinks::base_sink<spdlog::details::null_mutex>;

// Writes each line at once, so that a program killed in the middle has said all it did. What cannot be written goes to
// standard error from then on: no line is lost silently, and no full disk stops apply. spdlog's sinks of standard
// output say nothing of a write that failed, and its sink of a file waits for the reader of a FIFO.
class DescriptorSink : public Sink {
 public:
  DescriptorSink(std::string name, int descriptor) : name_(std::move(name)), descriptor_(descriptor) {}
  DescriptorSink(std::string name, Descriptor file) : DescriptorSink(std::move(name), file.get()) {
    file_ = std::move(file);
  }

 protected:
  void sink_it_(const LogMessage& message) override {
    memory_buf_t line;
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

// Writes to /dev/log, as syslog(3) does, but never waits: with a journal that reads no more, spdlog's syslog_sink would
// wait for ever. What cannot be sent is lost.
class SyslogSink : public Sink {
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
  void sink_it_(const LogMessage& message) override {
    std::string line = fmt::format("<{}>sidetrack-cni[{}]: {}", LOG_DAEMON | names(message.level).syslog, getpid(),
                                   printable_lines(text_of(message)));
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

spdlog::logger make(const std::vector<spdlog::sink_ptr>& sinks, const LogOptions& options, LogForm form) {
  spdlog::logger made("", sinks.begin(), sinks.end());
  made.set_formatter(formatter(form, options));
  made.set_level(spdlog_level(options.level));
  made.set_error_handler([](const std::string&) { throw; });  // no memory: main says so
  return made;
}

spdlog::logger& current() {
  static spdlog::logger log = make({open_target("stderr", "", Reader::awaited)}, {}, LogForm::plain);
  return log;
}

void start(const std::vector<std::string>& targets, const LogOptions& options, LogForm form, std::string_view option,
           Reader reader) {
  std::vector<spdlog::sink_ptr> sinks;
  for (const std::string& target : targets) sinks.push_back(open_target(target, option, reader));
  current() = make(sinks, options, form);
}

}  // namespace

void start_log(const LogOptions& options, LogForm form, bool standard_output_is_taken) {
  std::vector<std::string> targets = options.targets;
  if (targets.empty()) targets.emplace_back(form == LogForm::istio && !standard_output_is_taken ? "stdout" : "stderr");
  start(targets, options, form, "--log_target", Reader::awaited);
}

void start_plugin_log(const LogOptions& options) {
  if (!options.targets.empty()) return start(options.targets, options, LogForm::istio, "logFile", Reader::ignored);
  current() = make({std::make_shared<SyslogSink>()}, options, LogForm::plain);
}

void log(LogOptions::Level level, std::string_view message, From from) {
  current().log(spdlog::source_loc{from.file, from.line, ""}, spdlog_level(level),
                spdlog::string_view_t(message.data(), message.size()));
}

bool logs(LogOptions::Level level) { return current().should_log(spdlog_level(level)); }

}  // namespace sidetrack::cli
