// SPDX-License-Identifier: GPL-2.0-or-later
#include "lint/list_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/iptables.h"
#include "model/list_text.h"

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

struct OfMatch {
  Field field;

  std::vector<ListValue> operator()(const PortMatch& match) const {
    const Field own = match.end == End::destination ? Field::destination_port : Field::source_port;
    return own == field && !match.negated ? each_value(match.ports) : std::vector<ListValue>{};
  }
  std::vector<ListValue> operator()(const AddressMatch& match) const {
    const Field own = match.end == End::destination ? Field::destination : Field::source;
    return own == field && !match.negated ? each_value(match.ranges) : std::vector<ListValue>{};
  }
  std::vector<ListValue> operator()(const OwnerMatch& match) const {
    const Field own = match.kind == OwnerKind::uid ? Field::uid : Field::gid;
    return own == field && !match.negated ? each_value(match.ids) : std::vector<ListValue>{};
  }
  // In no list of an option.
  std::vector<ListValue> operator()(const InterfaceMatch&) const { return {}; }
  std::vector<ListValue> operator()(const ProtocolMatch&) const { return {}; }
  std::vector<ListValue> operator()(const ConntrackStateMatch&) const { return {}; }
  std::vector<ListValue> operator()(const ConntrackDirectionMatch&) const { return {}; }
  std::vector<ListValue> operator()(const MarkMatch&) const { return {}; }
  std::vector<ListValue> operator()(const ConnmarkMatch&) const { return {}; }
  std::vector<ListValue> operator()(const SocketMatch&) const { return {}; }
  std::vector<ListValue> operator()(const SetMatch&) const { return {}; }
  std::vector<ListValue> operator()(const CgroupMatch&) const { return {}; }
  std::vector<ListValue> operator()(const CommentMatch&) const { return {}; }
  std::vector<ListValue> operator()(const UnknownMatch&) const { return {}; }
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
  std::vector<ListValue> all;
  for (const Match& match : rule.matches) std::ranges::move(std::visit(OfMatch{field}, match), std::back_inserter(all));
  return all;
}

std::string joined(const std::vector<ListValue>& values) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), shown); ++i) text += (i == 0 ? "" : ",") + values[i].text;
  return values.size() > shown ? fmt::format("{},… ({} values)", text, values.size()) : text;
}

}  // namespace sidetrack::lint
