// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

constexpr const char* no_process = "what comes in was sent by no process here";
constexpr const char* usage_example = "for example: sidetrack explain out tcp 10.96.0.10:443 --uid 1000";

[[noreturn]] void refuse(const std::string& what, const std::string& value, const std::string& expected,
                         const std::string& hint = usage_example) {
  throw Error(ExitCode::usage, fmt::format("{} '{}': expected {}", what, excerpt(value), expected), hint);
}

template <typename Number>
std::optional<Number> number(std::string_view text) {
  if (text.size() > 1 && text.front() == '0') return {};  // elsewhere a sign of base 8
  return to_number<Number>(text);
}

// A word of a fixed list, or an error that shows the list.
template <typename Value, std::size_t N>
Value one_of(const std::pair<std::string_view, Value> (&choices)[N], const std::string& what, const std::string& word) {
  std::string list;
  for (const auto& [name, value] : choices) {
    if (name == word) return value;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
  }
  refuse(what, word, fmt::format("one of {}", list));
}

struct AddressAndPort {
  std::optional<Address> address;
  std::optional<std::uint16_t> port;
};

// "10.0.0.1:80", "[fd00::1]:80", ":80", "10.0.0.1", "[fd00::1]", "fd00::1"
AddressAndPort address_and_port(const std::string& what, const std::string& text, const char* expected) {
  std::string_view address = text;
  std::optional<std::string_view> port;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string::npos) refuse(what, text, expected);
    address = std::string_view(text).substr(1, close - 1);
    const std::string_view rest = std::string_view(text).substr(close + 1);
    if (!rest.empty() && rest.front() != ':') refuse(what, text, expected);
    if (!rest.empty()) port = rest.substr(1);
    const auto parsed = Address::parse(address);
    if (!parsed || parsed->family != Family::ipv6) refuse(what, text, expected);
  } else if (std::ranges::count(text, ':') == 1) {
    const auto colon = text.find(':');
    address = std::string_view(text).substr(0, colon);
    port = std::string_view(text).substr(colon + 1);
  }
  AddressAndPort result;
  if (!address.empty()) {
    result.address = Address::parse(address);
    if (!result.address) refuse(what, text, expected, "an address, not a name; IPv6 with a port: [fd00::1]:443");
  }
  if (port) {
    result.port = number<std::uint16_t>(*port);
    if (!result.port || *result.port == 0) refuse(what, text, "a port from 1 to 65535 after the colon");
  }
  if (!result.address && !result.port) refuse(what, text, expected);
  return result;
}

[[noreturn]] void refuse_direction(const std::string& option, const std::string& value, const char* allowed,
                                   const std::string& hint) {
  throw Error(ExitCode::usage, fmt::format("{} '{}': only valid with {}", option, excerpt(value), allowed), hint);
}

// What has no meaning for the packet's direction is refused, not ignored.
void check_direction(const PacketOptions& options, Direction direction) {
  if (direction == Direction::in) {
    if (options.uid) refuse_direction("--uid", fmt::format("{}", *options.uid), "'out' or 'lo'", no_process);
    if (options.gid) refuse_direction("--gid", fmt::format("{}", *options.gid), "'out' or 'lo'", no_process);
    if (options.cgroup) refuse_direction("--cgroup", *options.cgroup, "'out' or 'lo'", no_process);
  }
  if (direction != Direction::in && !options.in_interface.empty()) {
    refuse_direction("--in-interface", options.in_interface, "'in'",
                     "a packet that is sent here has no input interface");
  }
  if (direction != Direction::out && !options.out_interface.empty()) {
    refuse_direction("--out-interface", options.out_interface, "'out'", "'lo' goes out by lo, 'in' comes in");
  }
}

}  // namespace

std::string Endpoint::text() const {
  if (!port) return address.text();
  return address.family == Family::ipv6 ? fmt::format("[{}]:{}", address.text(), *port)
                                        : fmt::format("{}:{}", address.text(), *port);
}

Packet parse_packet(const PacketOptions& options) {
  static constexpr std::pair<std::string_view, Direction> directions[] = {
      {"out", Direction::out}, {"in", Direction::in}, {"lo", Direction::lo}};
  static constexpr std::pair<std::string_view, Protocol> protocols[] = {
      {"tcp", Protocol::tcp}, {"udp", Protocol::udp}, {"icmp", Protocol::icmp}};

  const std::vector<std::string>& words = options.words;
  if (words.size() != 3) {
    std::string given;
    for (const std::string& word : words) given += (given.empty() ? "" : " ") + word;
    refuse("the packet", given, "three words: out, in or lo; tcp, udp or icmp; ADDRESS:PORT, :PORT or ADDRESS");
  }
  Packet packet;
  packet.direction = one_of(directions, "the packet's direction", words[0]);
  packet.protocol = one_of(protocols, "the packet's protocol", words[1]);
  check_direction(options, packet.direction);

  const bool has_ports = packet.protocol != Protocol::icmp;
  const char* expected = has_ports ? "ADDRESS:PORT, [ADDRESS]:PORT or :PORT" : "an address";
  const AddressAndPort to = address_and_port("the packet's destination", words[2], expected);
  if (has_ports && !to.port) refuse("the packet's destination", words[2], expected, "IPv6 with a port: [fd00::1]:443");
  if (!has_ports && to.port) refuse("the packet's destination", words[2], "no port: icmp has none");
  if (packet.direction == Direction::out && !to.address) {
    refuse("the packet's destination", words[2], "an address before the port: 'out' goes to another host");
  }
  if (options.from && to.address && options.from->family != to.address->family) {
    refuse("--from", options.from->text(),
           fmt::format("an {} address, as the destination is", name(to.address->family)));
  }
  const bool mapped = (to.address && to.address->unmapped()) || (options.from && options.from->unmapped());
  if (mapped && packet.direction == Direction::in) {
    refuse("the packet's addresses", words[2], "none of ::ffff:0:0/96: no host sends to or from those",
           "IPv6 sockets name IPv4 addresses so: give the IPv4 address");
  }
  const auto as_sent = [](const std::optional<Address>& address) {
    return address && address->unmapped() ? address->unmapped() : address;  // an IPv6 socket sends it as IPv4
  };
  packet.destination = as_sent(to.address);
  packet.destination_port = to.port;
  packet.source = as_sent(options.from);
  if (packet.source && *packet.source == Address::any(packet.source->family)) {
    if (packet.direction == Direction::in)
      refuse("--from", options.from->text(), "the address of a host: no packet comes from the unspecified address");
    packet.source.reset();  // a socket that is bound to none has the one that the kernel chooses
  }
  if (options.from_port && !has_ports)
    refuse("--from-port", fmt::format("{}", *options.from_port), "no port: icmp has none");
  packet.source_port = options.from_port;
  packet.interface = packet.direction == Direction::in ? options.in_interface : options.out_interface;
  packet.mark = options.mark;
  packet.state = options.state;
  if (packet.direction != Direction::in) {
    const std::uint32_t uid = options.uid.value_or(0);  // an app's container runs as root unless told otherwise
    packet.owner = Owner{uid, options.gid.value_or(uid)};
    packet.cgroup = options.cgroup;
  }
  return packet;
}

namespace {

// What `explain` is asked by: what it has no words for is left out.
PacketOptions options_of(const Packet& packet) {
  const auto protocol = packet.protocol == Protocol::icmpv6 ? Protocol::icmp : packet.protocol;
  PacketOptions options;
  const std::string to = packet.destination        ? Endpoint{*packet.destination, packet.destination_port}.text()
                         : packet.destination_port ? fmt::format(":{}", *packet.destination_port)
                                                   : "";
  options.words = {std::string(name(packet.direction)), std::string(name(protocol)), to};
  options.from = packet.source;
  options.from_port = packet.source_port;
  if (packet.owner) {
    options.uid = packet.owner->uid;
    options.gid = packet.owner->gid;
  }
  options.cgroup = packet.cgroup;
  (packet.direction == Direction::in ? options.in_interface : options.out_interface) = packet.interface;
  options.mark = packet.mark;
  options.state = packet.state;
  return options;
}

}  // namespace

std::optional<Packet> as_asked(const Packet& packet) {
  try {
    Packet asked = parse_packet(options_of(packet));
    if (packet.protocol == Protocol::icmpv6 && asked.protocol == Protocol::icmp) asked.protocol = packet.protocol;
    return asked;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string explain_words(const Packet& packet) {
  const PacketOptions options = options_of(packet);
  std::string text = fmt::format("{}", fmt::join(options.words, " "));
  if (options.from) text += fmt::format(" --from {}", options.from->text());
  if (options.from_port) text += fmt::format(" --from-port {}", *options.from_port);
  if (options.uid) text += fmt::format(" --uid {} --gid {}", *options.uid, *options.gid);
  if (options.cgroup) text += fmt::format(" --cgroup /{}", *options.cgroup);
  if (!options.in_interface.empty()) text += fmt::format(" --in-interface {}", options.in_interface);
  if (!options.out_interface.empty()) text += fmt::format(" --out-interface {}", options.out_interface);
  if (options.mark != 0) text += fmt::format(" --mark {}", options.mark);
  constexpr std::string_view states[] = {"new", "established", "reply", "invalid"};
  if (options.state != ConnectionState::new_)
    text += fmt::format(" --state {}", states[static_cast<std::size_t>(options.state)]);
  return text;
}

}  // namespace sidetrack
