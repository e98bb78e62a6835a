// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/injector/server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <chrono>
#include <list>
#include <optional>
#include <utility>

#include "inject/injector/log.h"
#include "model/error.h"
#include "model/printable.h"

namespace sidetrack::injector {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using Code = beast::error_code;

constexpr std::chrono::milliseconds try_again(100);
constexpr std::size_t largest_buffer = 64U << 10;  // bytes that are read and not parsed yet
constexpr int socket_buffer = 128 << 10;           // bytes, each way
constexpr unsigned version = 11;                   // HTTP/1.1
constexpr const char* too_many_large = "too many large requests at once\n";

// As many as the process may open, but for those that it needs of its own.
std::size_t most_connections(std::size_t wanted) {
  constexpr rlim_t own = 16;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  return std::clamp<rlim_t>(limit.rlim_cur, own + 1, wanted + own) - own;
}

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct Server::State {
  class Session;
  using Sessions = std::list<Session*>;  // every connection, the one first that does longest what it does

  State(Service& used, Context made_with, const Limits& bounds)
      : service(used), context(std::move(made_with)), limits(bounds) {
    limits.connections = most_connections(limits.connections);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { is_over = true; }

  void listen(const std::string& address, std::uint16_t port);
  void accept();
  void accept_later();
  bool make_room();
  bool make_large_room();
  void ended(Sessions::iterator session);
  void drain();
  void close();

  Service& service;
  Context context;
  Limits limits;
  Sessions sessions;  // outlives `io`, with which those go that wait for something
  bool is_over = false;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer again{io};     // of accept_later()
  asio::steady_timer deadline{io};  // of drain()
  std::size_t large_bodies = 0;
  bool is_accepting = false;
  bool accept_failed = false;  // and that was said
  bool is_draining = false;
};

// A connection: the handshake, then request by request. Every step has its time; when that is over the connection ends.
class Server::State::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, State& state)
      : state_(state),
        context_(state.context),
        stream_(std::move(socket), *context_),
        place_(state.sessions.insert(state.sessions.end(), this)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() {
    release_large();
    state_.ended(place_);
  }

  void start() {
    socket().expires_after(state_.limits.handshake);
    stream_.async_handshake(asio::ssl::stream_base::server, [self = this->shared_from_this()](Code error) {
      if (!error) return self->wait();
      debug(fmt::format("no TLS: {}", error.message()));
    });
  }

  [[nodiscard]] bool is_idle() const { return is_idle_; }
  [[nodiscard]] bool is_busy_for(std::chrono::seconds time) const {
    return !is_idle_ && !is_ending_ && std::chrono::steady_clock::now() - since_ >= time;
  }
  [[nodiscard]] bool holds_large() const { return holds_large_; }
  void end() {
    is_ending_ = true;
    is_idle_ = false;
    release_large();
    socket().close();
  }

 private:
  beast::tcp_stream& socket() { return beast::get_lowest_layer(stream_); }

  void begin(bool idle) {
    is_idle_ = idle;
    since_ = std::chrono::steady_clock::now();
    state_.sessions.splice(state_.sessions.end(), state_.sessions, place_);
  }

  // For the first byte of a request.
  void wait() {
    if (buffer_.size() > 0) return read();
    begin(true);
    socket().expires_after(state_.limits.idle);
    constexpr std::size_t piece = 4096;
    stream_.async_read_some(buffer_.prepare(piece), [self = this->shared_from_this()](Code error, std::size_t size) {
      if (error) return;
      self->buffer_.commit(size);
      self->read();
    });
  }

  void read() {
    begin(false);
    parser_.emplace();
    parser_->body_limit(state_.limits.body);
    parser_->header_limit(static_cast<std::uint32_t>(state_.limits.header));
    socket().expires_after(state_.limits.request);
    http::async_read_header(stream_, buffer_, *parser_, [self = this->shared_from_this()](Code error, std::size_t) {
      error ? self->refuse(error) : self->read_body();
    });
  }

  void read_body() {
    const auto size = parser_->content_length();
    if (!parser_->is_done() && (!size || *size > state_.limits.small_body) && !take_large())
      return refuse(http::status::service_unavailable, too_many_large);
    if (!parser_->is_done() && is_asked_to_continue()) return say_continue();
    read_rest();
  }

  [[nodiscard]] bool is_asked_to_continue() const {
    const auto& request = parser_->get();
    return request.version() >= version && beast::iequals(request[http::field::expect], "100-continue");
  }

  void say_continue() {
    static constexpr std::string_view answer = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(answer), [self = this->shared_from_this()](Code error, std::size_t) {
      if (!error) self->read_rest();
    });
  }

  void read_rest() {
    http::async_read(stream_, buffer_, *parser_, [self = this->shared_from_this()](Code error, std::size_t) {
      error ? self->refuse(error) : self->respond();
    });
  }

  void respond() {
    const auto& request = parser_->get();
    const std::string_view target = view(request.target());
    Response response = state_.service.answer({.method = view(request.method_string()),
                                               .path = target.substr(0, target.find('?')),
                                               .content_type = view(request[http::field::content_type]),
                                               .body = request.body()},
                                              state_.sessions.size());
    const bool keeps = request.keep_alive() && !state_.is_draining;
    // An answer waits in memory until its reader takes it.
    if (response.body.size() <= state_.limits.small_body) {
      release_large();
    } else if (!take_large()) {
      return refuse(http::status::service_unavailable, too_many_large);
    }
    write(std::move(response), keeps);
  }

  // What is too large, or no request, gets an answer. Who is gone, or too slow, gets none.
  void refuse(Code error) {
    if (error == http::error::body_limit) {
      refuse(http::status::payload_too_large, fmt::format("expected at most {} bytes\n", state_.limits.body));
    } else if (error == http::error::header_limit) {
      refuse(http::status::request_header_fields_too_large,
             fmt::format("expected at most {} bytes\n", state_.limits.header));
    } else if (error.category() == make_error_code(http::error::bad_method).category() &&
               error != http::error::end_of_stream && error != http::error::partial_message) {
      refuse(http::status::bad_request, error.message() + "\n");
    }
  }

  void refuse(http::status status, std::string text) {
    release_large();
    state_.service.count_refused(static_cast<unsigned>(status));
    write({static_cast<unsigned>(status), {}, std::move(text)}, false);
  }

  void write(Response response, bool keeps) {
    const bool has_body = !parser_ || parser_->get().method() != http::verb::head;
    answer_.emplace(static_cast<http::status>(response.status), version);
    const std::string_view type = response.content_type.empty() ? Response{}.content_type : response.content_type;
    answer_->set(http::field::content_type, beast::string_view(type.data(), type.size()));
    if (!response.allow.empty())
      answer_->set(http::field::allow, beast::string_view(response.allow.data(), response.allow.size()));
    answer_->body() = std::move(response.body);
    answer_->keep_alive(keeps);
    answer_->prepare_payload();
    if (!has_body) answer_->body().clear();  // its length stays
    parser_.reset();
    socket().expires_after(state_.limits.request);
    http::async_write(stream_, *answer_, [self = this->shared_from_this(), keeps](Code error, std::size_t) {
      self->answer_.reset();
      self->release_large();
      if (error) return;
      keeps ? self->wait() : self->shut_down();
    });
  }

  void shut_down() {
    socket().expires_after(std::chrono::seconds(1));
    stream_.async_shutdown([self = this->shared_from_this()](Code) {});
  }

  // Of the few places for large requests and answers; false: there is none.
  bool take_large() {
    if (holds_large_) return true;
    if (state_.large_bodies == state_.limits.large_bodies && !state_.make_large_room()) return false;
    ++state_.large_bodies;
    return holds_large_ = true;
  }
  void release_large() {
    if (std::exchange(holds_large_, false)) --state_.large_bodies;
  }

  State& state_;
  Context context_;  // lives as long as the stream that is made with it
  beast::ssl_stream<beast::tcp_stream> stream_;
  Sessions::iterator place_;
  beast::flat_buffer buffer_{largest_buffer};
  std::optional<http::request_parser<http::string_body>> parser_;
  std::optional<http::response<http::string_body>> answer_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  bool is_idle_ = false;
  bool is_ending_ = false;
  bool holds_large_ = false;
};

void Server::State::listen(const std::string& address, std::uint16_t port) {
  Code error;
  tcp::endpoint endpoint(asio::ip::make_address(address, error), port);
  if (error)
    throw Error(ExitCode::usage, fmt::format("cannot listen on '{}': expected an IP address", excerpt(address)));
  try {
    acceptor.open(endpoint.protocol(), error);
    // All addresses are those of IPv4 where the kernel has no IPv6.
    if (error == asio::error::address_family_not_supported && endpoint.address() == asio::ip::address_v6::any()) {
      endpoint.address(asio::ip::address_v4::any());
      acceptor.open(endpoint.protocol(), error);
    }
    if (error) throw boost::system::system_error(error);
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    if (endpoint.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false));
    // Of each connection that it accepts: else the kernel keeps megabytes of what a client sends, or does not read.
    acceptor.set_option(asio::socket_base::receive_buffer_size(socket_buffer));
    acceptor.set_option(asio::socket_base::send_buffer_size(socket_buffer));
    acceptor.bind(endpoint);
    acceptor.listen();
  } catch (const boost::system::system_error& failed) {
    throw Error(ExitCode::usage,
                fmt::format("cannot listen on {} port {}: {}", address, port, failed.code().message()));
  }
}

void Server::State::accept() {
  if (is_accepting || !acceptor.is_open()) return;
  if (sessions.size() >= limits.connections && !make_room()) return accept_later();  // or when one ends
  is_accepting = true;
  acceptor.async_accept([this](Code error, tcp::socket socket) {
    is_accepting = false;
    if (error == asio::error::operation_aborted) return;
    if (error) {
      // No descriptors are left: one may be later.
      if (!std::exchange(accept_failed, true)) warn(fmt::format("cannot accept a connection: {}", error.message()));
      make_room();
      return accept_later();
    }
    accept_failed = false;
    Code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    std::make_shared<Session>(std::move(socket), *this)->start();
    accept();
  });
}

void Server::State::accept_later() {
  again.expires_after(try_again);
  again.async_wait([this](Code error) {
    if (!error) accept();
  });
}

// Ends the connection that is idle longest, else the one that takes longest for its handshake or its request.
bool Server::State::make_room() {
  auto found = std::ranges::find_if(sessions, [](const Session* session) { return session->is_idle(); });
  if (found == sessions.end())
    found = std::ranges::find_if(sessions, [&](const Session* session) { return session->is_busy_for(limits.busy); });
  if (found == sessions.end()) return false;
  (*found)->end();
  return true;
}

// The same of the places for what is large.
bool Server::State::make_large_room() {
  const auto found = std::ranges::find_if(
      sessions, [&](const Session* session) { return session->holds_large() && session->is_busy_for(limits.busy); });
  if (found == sessions.end()) return false;
  (*found)->end();
  return true;
}

void Server::State::ended(Sessions::iterator session) {
  sessions.erase(session);
  if (is_over) return;
  if (is_draining && !acceptor.is_open() && sessions.empty()) deadline.cancel();
  accept();
}

// Who was told of this server before Kubernetes was told that it ends still comes for a while.
void Server::State::drain() {
  if (std::exchange(is_draining, true)) return;
  service.not_ready();
  deadline.expires_after(limits.still_accepting);
  deadline.async_wait([this](Code) { close(); });
}

void Server::State::close() {
  Code ignored;
  acceptor.close(ignored);
  again.cancel();
  for (Session* session : sessions) {
    if (session->is_idle()) session->end();
  }
  if (sessions.empty()) return;
  deadline.expires_after(limits.draining);
  deadline.async_wait([this](Code error) {
    if (!error) io.stop();
  });
}

Server::Server(Service& service, const std::string& address, std::uint16_t port, Context context, const Limits& limits)
    : state_(std::make_unique<State>(service, std::move(context), limits)) {
  state_->listen(address, port);
}

Server::~Server() = default;

void Server::run() {
  state_->accept();
  state_->io.run();
}

void Server::use(Context context) {
  asio::post(state_->io, [state = state_.get(), context = std::move(context)] {
    state->context = context;
    state->service.metrics().count_reload(true);
  });
}

void Server::count_failed_reload() {
  asio::post(state_->io, [state = state_.get()] { state->service.metrics().count_reload(false); });
}

void Server::drain() {
  asio::post(state_->io, [state = state_.get()] { state->drain(); });
}

std::uint16_t Server::port() const { return state_->acceptor.local_endpoint().port(); }

}  // namespace sidetrack::injector
