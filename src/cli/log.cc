// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <paths.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <vector>

#include "cli/standard_streams.h"
#include "model/error.h"
#include "model/printable.h"
#include "render/json_parts.h"
#include "system/descriptor.h"
#include "system/write_all.h"

namespace sidetrack::cli {
namespace {

using Level = LogOptions::Level;

struct LevelNames {
  std::string_view istio;
  std::string_view plain;
  int syslog;
};

const LevelNames& names(Level level) {
  static constexpr LevelNames all[] = {{"debug", "", LOG_DEBUG},
                                       {"info", "", LOG_INFO},
                                       {"warn", "warning: ", LOG_WARNING},
                                       {"error", "error: ", LOG_ERR},
                                       {"fatal", "fatal: ", LOG_ERR}};
  return all[static_cast<std::size_t>(level)];
}

struct Message {
  Level level;
  std::string_view text;
  From from;
};

// "plan.cc:42", as --log_caller asks for it
std::string caller(const From& from) {
  const std::string_view file = from.file;
  return std::string(file.substr(file.rfind('/') + 1)) + ":" + std::to_string(from.line);
}

std::string now() {
  using namespace std::chrono;
  // Not gmtime_r, which reads /etc/localtime.
  const auto time = system_clock::now();
  const auto midnight = floor<days>(time);
  const year_month_day date(midnight);
  const hh_mm_ss clock(floor<microseconds>(time - midnight));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

// A line in one of our three forms.
std::string line_of(const Message& message, LogForm form, const LogOptions& options) {
  const std::string where = options.caller ? caller(message.from) : "";
  if (options.json) {
    Json object{{"time", now()}, {"level", names(message.level).istio}, {"scope", "default"}, {"msg", message.text}};
    if (options.caller) object["caller"] = where;
    return dumped(std::move(object), Lines::one);
  }
  if (form == LogForm::istio)
    return fmt::format("{}\t{}\t{}{}{}\n", now(), names(message.level).istio, where, options.caller ? "\t" : "",
                       printable_lines(message.text));
  return fmt::format("sidetrack: {}{}{}{}\n", names(message.level).plain, where, options.caller ? ": " : "",
                     printable_lines(message.text));
}

// Where messages go.
class Target {
 public:
  Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  virtual ~Target() = default;
  virtual void write(const Message& message) = 0;
};

// Writes each line at once, so that a program killed in the middle has said all it did. What cannot be written goes to
// standard error from then on: no line is lost silently, and no full disk stops apply.
class Stream : public Target {
 public:
  Stream(std::string name, int descriptor, LogForm form, const LogOptions& options)
      : name_(std::move(name)), descriptor_(descriptor), form_(form), options_(options) {}
  Stream(std::string name, Descriptor file, LogForm form, const LogOptions& options)
      : Stream(std::move(name), file.get(), form, options) {
    file_ = std::move(file);
  }

  void write(const Message& message) override {
    const std::string text = line_of(message, form_, options_);
    const int error = write_all(descriptor_, text);
    if (error == 0 || descriptor_ == STDERR_FILENO) return;
    descriptor_ = STDERR_FILENO;
    (void)write_all(descriptor_,
                    fmt::format("sidetrack: warning: cannot write the log to {}: {}; logging continues here\n", name_,
                                errno_words(error)));
    (void)write_all(descriptor_, text);
  }

 private:
  std::string name_;
  Descriptor file_;
  int descriptor_;
  LogForm form_;
  LogOptions options_;
};

// To /dev/log, as syslog(3) writes, but never waiting: with a journal that does not read any more that would be for
// ever. What cannot be sent is lost.
class Syslog : public Target {
 public:
  Syslog() {
    sockaddr_un address{.sun_family = AF_UNIX, .sun_path = _PATH_LOG};
    for (const int type : {SOCK_DGRAM, SOCK_STREAM}) {
      is_stream_ = type == SOCK_STREAM;
      socket_ = Descriptor(socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
          errno != EPROTOTYPE)
        break;
    }
  }

  void write(const Message& message) override {
    std::string line = fmt::format("<{}>sidetrack-cni[{}]: {}", LOG_DAEMON | names(message.level).syslog, getpid(),
                                   printable_lines(message.text));
    if (is_stream_) line += '\0';  // by which the end of a message is told
    (void)send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
  }

 private:
  Descriptor socket_;
  bool is_stream_ = false;
};

// Whether a slow one of a FIFO is waited for, as one of standard output is.
enum class Reader : bool { awaited, ignored };

// `option`: that which names the target.
std::unique_ptr<Target> open_target(const std::string& target, std::string_view option, Reader reader, LogForm form,
                                    const LogOptions& options) {
  if (target == "stdout") return std::make_unique<Stream>(target, STDOUT_FILENO, form, options);
  if (target == "stderr") return std::make_unique<Stream>(target, STDERR_FILENO, form, options);
  // Without O_NONBLOCK, opening a FIFO that has no reader would hang here.
  Descriptor file(open(target.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666));
  if (!file.valid()) {
    throw Error(ExitCode::usage,
                fmt::format("{}: cannot write to '{}': {}", option, excerpt(target), errno_words(errno)),
                "give the path of a file that can be written");
  }
  if (reader == Reader::awaited) fcntl(file.get(), F_SETFL, O_APPEND);
  return std::make_unique<Stream>("'" + target + "'", std::move(file), form, options);
}

struct Log {
  Level level;
  std::vector<std::unique_ptr<Target>> targets;
};

Log make(const LogOptions& options, LogForm form, const std::vector<std::string>& targets,
         std::string_view option = "--log_target", Reader reader = Reader::awaited) {
  Log made{options.level, {}};
  for (const std::string& target : targets) made.targets.push_back(open_target(target, option, reader, form, options));
  return made;
}

Log& current() {
  static Log log = make({}, LogForm::plain, {"stderr"});
  return log;
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
  Log made{options.level, {}};
  made.targets.push_back(std::make_unique<Syslog>());
  current() = std::move(made);
}

void log(LogOptions::Level level, std::string_view message, From from) {
  if (!logs(level)) return;
  for (const auto& target : current().targets) target->write({level, message, from});
}

bool logs(LogOptions::Level level) { return level >= current().level; }

}  // namespace sidetrack::cli
