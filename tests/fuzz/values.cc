// SPDX-License-Identifier: GPL-2.0-or-later
// Addresses, ranges, ports, marks, ids, durations, names of interfaces: the first letter says which, the rest is the
// value. One that is accepted reads the same again once it is printed; an error names the one that is not.
#include "options/values.h"

#include <fmt/format.h>

#include "fuzz.h"

using namespace sidetrack;

namespace {

const Flag& flag = flag_named("envoy-port");

std::string printed(std::uint16_t number) { return fmt::format("{}", number); }
std::string printed(std::uint32_t number) { return fmt::format("{}", number); }
std::string printed(std::chrono::nanoseconds time) { return fmt::format("{}ns", time.count()); }
std::string printed(const Address& address) { return address.text(); }
std::string printed(const AddressRange& range) { return range.text(); }
std::string printed(const std::string& name) { return name; }

template <typename Parse>
void check(std::string_view text, Parse parse) {
  const auto parsed = [&](std::string_view value) {
    const Given given{flag, value, {}};
    return parse(options::Item{given, value});
  };
  try {
    const auto value = parsed(text);
    fuzz::require(parsed(printed(value)) == value, printed(value));
  } catch (const Error& error) {
    fuzz::require_readable(error);
    fuzz::require(error.code() == ExitCode::usage, error.what());
    fuzz::require(text.empty() || std::string_view(error.what()).find(excerpt(text)) != std::string_view::npos,
                  error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto text = fuzz::text_of(data, size).substr(1);
  switch (data[0]) {
    case 'p':
      check(text, options::port);
      break;
    case 'm':
      check(text, options::mark);
      break;
    case 't':
      check(text, options::route_table);
      break;
    case 'u':
      check(text, options::id);
      break;
    case 'c':
      check(text, options::process_id);
      break;
    case 'a':
      check(text, options::address);
      break;
    case 'r':
      check(text, options::range);
      break;
    case 'l':
      check(text, options::loopback_prefix);
      break;
    case 'i':
      check(text, options::interface);
      break;
    case 'n':
      check(text, options::namespace_name);
      break;
    case 'd':
      check(text, options::duration);
      break;
    default:
      break;
  }
  return 0;
}
