// SPDX-License-Identifier: GPL-2.0-or-later
#include "lint/list_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/list_text.h"
#include "rule/iptables.h"

namespace sidetrack::lint {
namespace {

using space::Field;

template <typename Number>
ListValue one_value(const Range<Number>& range) {
  return {text(range), {}, {range.first, range.last}};
}
ListValue one_value(std::uint32_t number) { return one_value(IdRange{number, number}); }
ListValue one_value(const AddressRange& range) {
  return {range.text(), range.family(), {space::value_of(range.first), space::value_of(range.last)}};
}

template <typename List>
std::vector<ListValue> each_value(const List& list) {
  std::vector<ListValue> all;
  std::ranges::transform(list, std::back_inserter(all), [](const auto& one) { return one_value(one); });
  return all;
}

// Those that a match asks for in one field.
class ValuesOf : public sidetrack::Asked {
 public:
  explicit ValuesOf(Field field) : field_(field) {}
  std::vector<ListValue> take() { return std::move(values_); }

  void addresses(End end, const std::vector<AddressRange>& ranges) override {
    add(end == End::destination ? Field::destination : Field::source, ranges);
  }
  void ports(End end, const std::vector<PortRange>& ports) override {
    add(end == End::destination ? Field::destination_port : Field::source_port, ports);
  }
  void ids(OwnerKind kind, const std::vector<IdRange>& ids) override {
    add(kind == OwnerKind::uid ? Field::uid : Field::gid, ids);
  }
  // In no list of an option.
  void interface(InterfaceDirection, const std::string&) override {}
  void address_type(const AddressTypeMatch&) override {}
  void ends(const ConnectionMatch&) override {}
  void protocol(Protocol) override {}
  void socket() override {}
  void cgroup(const std::string&) override {}
  void mark(std::uint32_t, std::uint32_t) override {}
  void connmark(std::uint32_t, std::uint32_t) override {}
  void connection() override {}

 private:
  template <typename List>
  void add(Field field, const List& list) {
    if (field == field_) std::ranges::move(each_value(list), std::back_inserter(values_));
  }

  Field field_;
  std::vector<ListValue> values_;
};

}  // namespace

std::vector<ListValue> values_of(const Flag& flag, const Config& config) {
  const OptionValue value = flag.value_of.get(flag, config);
  if (const auto* ranges = std::get_if<std::vector<AddressRange>>(&value)) return each_value(*ranges);
  if (const auto* ports = std::get_if<std::vector<PortRange>>(&value)) return each_value(*ports);
  if (const auto* ids = std::get_if<std::vector<IdRange>>(&value)) return each_value(*ids);
  const auto* numbers = std::get_if<std::vector<std::uint32_t>>(&value);
  return numbers == nullptr ? std::vector<ListValue>() : each_value(*numbers);
}

std::vector<std::string> names_of(const Flag& flag, const Config& config) {
  const OptionValue value = flag.value_of.get(flag, config);
  const auto* names = std::get_if<std::vector<std::string>>(&value);
  return names == nullptr ? std::vector<std::string>() : *names;
}

std::vector<ListValue> values_of(const Rule& rule, Field field) {
  ValuesOf asked(field);
  for (const Match& match : rule.matches) {
    if (!is_negated(match)) ask(match, asked);
  }
  return asked.take();
}

std::string joined(const std::vector<ListValue>& values) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), shown); ++i) text += (i == 0 ? "" : ",") + values[i].text;
  return values.size() > shown ? fmt::format("{},… ({} values)", text, values.size()) : text;
}

}  // namespace sidetrack::lint
