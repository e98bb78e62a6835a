// SPDX-License-Identifier: GPL-2.0-or-later
#include "state/when_ready.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/error.h"
#include "system/awaited_signals.h"

namespace sidetrack {
namespace {

// The kernel tells of no socket that begins to listen, so it is asked: a question takes some microseconds.
constexpr std::chrono::milliseconds between_looks{50};

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

ProxyWatch::ProxyWatch(AwaitedProxy proxy, Say warn, Say note)
    : proxy_(std::move(proxy)), warn_(std::move(warn)), note_(std::move(note)) {}

bool ProxyWatch::listens() {
  std::vector<std::uint32_t> others;
  for (const TcpSocket& socket : sockets_.listening(proxy_.port)) {
    if (std::ranges::find(proxy_.uids, socket.uid) != proxy_.uids.end()) return true;
    if (std::ranges::find(others, socket.uid) == others.end()) others.push_back(socket.uid);
  }
  std::ranges::sort(others);
  if (!others.empty() && others != others_) {
    warn_(fmt::format("port {} is held by uid {}, not by the proxy (-u {})", proxy_.port, fmt::join(others, ", "),
                      fmt::join(proxy_.uids, ",")));
  }
  others_ = std::move(others);
  return false;
}

void ProxyWatch::wait() {
  using Clock = AwaitedSignals::Clock;
  AwaitedSignals signals;
  const auto start = Clock::now();
  const auto end = start + proxy_.timeout - waited_;
  const auto count = [&] { return Clock::now() - start; };
  if (listens()) return;
  note_(fmt::format("waiting for the proxy (uid {}) to listen on port {}, for at most {:g} s",
                    fmt::join(proxy_.uids, ", "), proxy_.port, seconds(end - start)));
  do {
    if (Clock::now() >= end) {
      const std::string holder =
          others_.empty() ? "" : fmt::format("; uid {} holds that port", fmt::join(others_, ", "));
      throw Error(ExitCode::failed,
                  fmt::format("the proxy (uid {}) did not listen on port {} within {:g} s{}; nothing was changed",
                              fmt::join(proxy_.uids, ", "), proxy_.port, seconds(proxy_.timeout), holder),
                  others_.empty()
                      ? fmt::format("see why it does not start, or wait longer: --when-ready {},10m", proxy_.port)
                      : "stop what holds the port, or give the uid that the proxy has with -u");
    }
    const auto woken = signals.wait(std::min<Clock::time_point>(end, Clock::now() + between_looks));
    if (woken.signal != 0) {
      throw Error(ExitCode::failed,
                  fmt::format("ended by {} after {:.1f} s of waiting for the proxy on port {}; nothing was changed",
                              signal_name(woken.signal), seconds(waited_ + count()), proxy_.port));
    }
  } while (!listens());
  waited_ += count();
  note_(fmt::format("the proxy listens on port {}", proxy_.port));
}

void await_proxy(Kernel& kernel, ProxyWatch& watch) {
  do {
    kernel.release_locks();
    watch.wait();
    kernel.take_locks();
  } while (!watch.listens());  // to wait for a lock takes time, too
}

}  // namespace sidetrack
