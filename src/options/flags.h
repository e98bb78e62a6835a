// SPDX-License-Identifier: GPL-2.0-or-later
// Every option as data: what parsing, the environment, the help, shell completion and the manual page are made from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/address.h"
#include "model/error.h"
#include "model/packet.h"
#include "options/options.h"

namespace sidetrack {

enum class Kind : std::uint8_t {
  boolean,  // --flag, --flag=true|false|1|0|t|f
  scalar,   // one number, address or duration; never empty
  choice,   // one of `choices`
  text,     // one string; may be empty
  list,     // comma-separated, may be repeated, @FILE reads a list; may be empty
};

enum class Group : std::uint8_t {
  traffic,      // which traffic is intercepted
  run,          // how a command goes about it
  packet,       // the packet that explain is asked about
  place,        // where it works
  output,       // what is printed
  istio,        // taken as istio-iptables takes it
  log,          // logging
  environment,  // variables that have no option
  ambient,      // whose rules a pod gets, and what only those of ambient pods have
  former,       // taken by older releases of istio-iptables: its description says what became of it
};

// Whether its options make the rules.
[[nodiscard]] constexpr bool makes_rules(Group group) { return group == Group::traffic || group == Group::ambient; }

struct CommandInfo {
  Command command;
  std::string_view name;
  std::string_view arguments;             // "[options]"
  std::array<std::string_view, 2> words;  // the choices of its first words, "a|b|c"; empty: any, or none
  std::string_view summary;
  std::string_view example;
};
[[nodiscard]] std::span<const CommandInfo> commands();
[[nodiscard]] const CommandInfo& info(Command command);
[[nodiscard]] const CommandInfo* find_command(std::string_view name);  // nullptr: none

// The commands that take a flag.
class CommandSet {
 public:
  constexpr CommandSet() = default;
  constexpr CommandSet(Command command) : bits_(1U << static_cast<unsigned>(command)) {}  // NOLINT: a set of one
  [[nodiscard]] constexpr bool contains(Command command) const { return (bits_ & CommandSet(command).bits_) != 0; }
  friend constexpr CommandSet operator|(CommandSet a, CommandSet b) {
    a.bits_ |= b.bits_;
    return a;
  }

 private:
  unsigned bits_ = 0;
};

struct Flag;

// A value as it was given: on the command line, or by an environment variable.
struct Given {
  const Flag& flag;
  std::string_view text;
  std::string_view variable;  // empty: the command line
};

// An option's value in a configuration, as a plan's JSON has it.
using OptionValue = std::variant<bool, std::uint32_t, std::string, std::vector<std::uint32_t>, std::vector<std::string>,
                                 std::vector<AddressRange>, std::vector<PortRange>, std::vector<IdRange>>;

// What each value of a list speaks of: the packets that have it in a field, and what becomes of them. `lint` proves it.
struct ListMeaning {
  enum class Role : std::uint8_t {
    none,        // nothing that could be asked of one value alone
    captures,    // they go to the proxy
    leaves_out,  // they do not
    narrows,     // of what another option captures they alone go to the proxy
    is_proxy,    // they are the proxy's own: of several values each may be the one
  };
  Role role = Role::none;
  PacketField field{};
  std::span<const Direction> ways{};
  std::string_view narrowed{};  // the flag that captures what this one narrows
  Protocol protocol = Protocol::tcp;
};

// Where the values of a flag go.
struct Setter {
  using Set = void (*)(CommandLine& line, const Given& given);
  using Get = OptionValue (*)(const Flag& flag, const Config& config);
  using Reset = void (*)(Config& config);
  using Erase = void (*)(Config& config, std::size_t which);
  constexpr Setter(Set set_, Get get_ = nullptr, Reset reset_ = nullptr,
                   Erase erase_ = nullptr)  // NOLINT: a flag may have the first alone
      : set(set_), get(get_), reset(reset_), erase(erase_) {}
  Set set;  // checks and stores; adds to a list. Throws Error (usage)
  // Of a member of Config: what it holds, and as if the flag were not given.
  Get get;
  Reset reset;
  Erase erase;  // of a list: one value
  ListMeaning meaning{};

  // The same with what its list means.
  [[nodiscard]] constexpr Setter captures(PacketField field, std::span<const Direction> ways,
                                          Protocol protocol = Protocol::tcp) const {
    return with({ListMeaning::Role::captures, field, ways, {}, protocol});
  }
  [[nodiscard]] constexpr Setter leaves_out(PacketField field, std::span<const Direction> ways) const {
    return with({ListMeaning::Role::leaves_out, field, ways});
  }
  [[nodiscard]] constexpr Setter narrows(std::string_view flag, PacketField field,
                                         std::span<const Direction> ways) const {
    return with({ListMeaning::Role::narrows, field, ways, flag});
  }
  [[nodiscard]] constexpr Setter is_proxy(PacketField field, std::span<const Direction> ways) const {
    return with({ListMeaning::Role::is_proxy, field, ways});
  }

 private:
  [[nodiscard]] constexpr Setter with(ListMeaning meaning_) const {
    Setter made = *this;
    made.meaning = meaning_;
    return made;
  }
};

struct Flag {
  std::string_view name;                      // without dashes; empty: an environment variable alone
  char letter;                                // of the short form; '\0': none
  std::array<std::string_view, 2> variables;  // of two that are set the second wins
  Kind kind;
  std::string_view value;    // "PORT", as the help names the value; empty for a boolean
  std::string_view choices;  // "a|b|c"
  std::string_view preset;   // the default, as text
  std::string_view description;
  Group group;
  CommandSet commands;
  Setter value_of;

  void set(CommandLine& line, const Given& given) const { value_of.set(line, given); }
  // Whether it shapes the plan by a member of Config, whatever the host says.
  [[nodiscard]] bool is_of_plan() const {
    return value_of.get != nullptr && (makes_rules(group) || group == Group::environment);
  }
};

[[nodiscard]] std::span<const Flag> flags();

// That of this name, which there is.
[[nodiscard]] const Flag& flag_named(std::string_view name);

// The one that a word names, "-p" or "--envoy-port", of those that the command takes, or of all; nullptr: none.
[[nodiscard]] const Flag* flag_of(std::string_view word, std::optional<Command> command = {});

// The one that no word names, but this environment variable; nullptr: none.
[[nodiscard]] const Flag* flag_of_variable(std::string_view name);

struct ExitMeaning {
  ExitCode code;
  std::string_view brief;
  std::string_view in_full;
};
[[nodiscard]] std::span<const ExitMeaning> exit_codes();

// "a|b|c" one by one; none of an empty text.
[[nodiscard]] std::vector<std::string_view> each_choice(std::string_view choices);

// "-p", "--netns", "ENVOY_USER"
[[nodiscard]] std::string short_name(const Flag& flag);

// "-p, --envoy-port", "--netns", "ENVOY_USER"
[[nodiscard]] std::string spelled(const Flag& flag);

}  // namespace sidetrack
