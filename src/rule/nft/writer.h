// SPDX-License-Identifier: GPL-2.0-or-later
// A rule as nf_tables holds it natively: for each statement what `nft` prints and what the kernel takes, side by side.
// The kinds of match and target write themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rule/nft/expression.h"
#include "rule/rule.h"

namespace sidetrack::nft {

// tcp dport 80: meta load l4proto, cmp, payload load, cmp
struct Statement {
  std::string text;
  std::vector<Expression> expressions;
};

// What a set can hold: nft's name for it, a literal; the number by which nft knows it (its src/datatype.c; part of its
// format in the kernel since the beginning); its size in bytes; its byte order.
struct KeyType {
  const char* name;
  std::uint32_t number;
  std::uint32_t size;
  bool host_order;
};

// A set of values, first and last included. A short one is anonymous and stands in its rule; a long one has a name, and
// rules with the same list share it.
struct Set {
  explicit Set(const KeyType& of) : type(of) {}

  std::string name;  // "__set%d" for an anonymous one: the kernel gives it a number
  std::uint32_t id = 0;
  KeyType type;
  bool anonymous = true;
  bool interval = false;  // holds a value that is not single
  std::vector<std::pair<Data, Data>> values;
  std::function<std::vector<std::string>()> texts;  // of the values; as long as the rule lives
};

// The sets of all rules of a table.
class Sets {
 public:
  // The set of these values: "{ 15020, 15090 }" or "@excluded-ranges-ipv4". `name` is that of a new one.
  std::pair<std::string, Lookup> holding(Set set, bool negated, const std::string& name);
  [[nodiscard]] std::vector<Set> take() { return std::move(all_); }

 private:
  std::string unused(const std::string& name);

  std::vector<Set> all_;
  std::set<std::string> names_;
};

// A value or a range of values that is compared: its ends in the byte order of the comparison.
struct EncodedRange {
  Data first;
  Data last;
};

[[nodiscard]] inline const char* not_equal(bool negated) { return negated ? "!= " : ""; }
[[nodiscard]] Compare equal(bool negated, const Data& value);

// nat-ISTIO_OUTPUT: raw, mangle and nat share one table.
[[nodiscard]] std::string chain_name(Table table, const std::string& chain);

class RuleWriter {
 public:
  // `arriving` are the families of the packets that come to the rule's chain. The set of its values is called after its
  // chain, or as `set_name` says, which may be nullptr. All outlive the writer, and `rule` what it writes.
  RuleWriter(const Rule& rule, Families arriving, Sets& sets, const char* set_name);

  [[nodiscard]] const Rule& rule() const { return rule_; }
  [[nodiscard]] const std::vector<Statement>& statements() const { return statements_; }
  [[nodiscard]] std::vector<Statement> take() { return std::move(statements_); }

  void add(std::string text, std::vector<Expression> expressions) {
    statements_.push_back({std::move(text), std::move(expressions)});
  }
  // The family that the rule is for, where it says so; nothing: the family of its chain.
  [[nodiscard]] std::optional<Family> only_family() const;
  // tcp or udp, which the match of a port needs.
  [[nodiscard]] Protocol protocol_of_ports() const;
  [[nodiscard]] bool has_port() const { return has_port_; }
  // What comes before a look into the network header of an inet table: meta load nfproto, cmp eq ipv4
  void require_family(Family family, std::vector<Expression>& expressions);
  // What comes before a look into the transport header: meta load l4proto, cmp eq tcp
  void require_protocol(std::vector<Expression>& expressions);

  // Compares what register 1 holds with a list of values, of which `encode` makes an EncodedRange of each and `text`
  // what nft prints. Returns that text.
  template <typename List, typename Encode, typename Text>
  std::string compare_list(const List& list, const KeyType& type, bool negated, const std::string& suffix,
                           std::vector<Expression>& expressions, const Encode& encode, const Text& text) {
    if (list.size() == 1) {
      compare(encode(list.front()), negated, expressions);
      return text(list.front());
    }
    Set set(type);
    for (const auto& each : list) {
      const EncodedRange range = encode(each);
      set.interval = set.interval || range.first != range.last;
      set.values.emplace_back(range.first, range.last);
    }
    // Made when they are asked for: what is sent to the kernel needs none.
    set.texts = [&list, text] {
      std::vector<std::string> texts;
      for (const auto& each : list) texts.push_back(text(each));
      return texts;
    };
    return look_up(std::move(set), negated, suffix, expressions);
  }

  // A rule that is not understood, or that nf_tables has no words for. Throws failed.
  [[noreturn]] void refuse() const;

  // cmp eq A; or cmp gte A, cmp lte B; or range neq A B
  static void compare(const EncodedRange& value, bool negated, std::vector<Expression>& expressions);

 private:
  std::string look_up(Set set, bool negated, const std::string& suffix, std::vector<Expression>& expressions);
  [[nodiscard]] std::string name_of_set(const std::string& suffix) const;

  const Rule& rule_;
  Sets& sets_;
  const char* set_name_;
  std::vector<Statement> statements_;
  std::optional<Protocol> protocol_;
  std::optional<Family> only_family_;
  bool has_address_ = false;
  bool has_port_ = false;
  bool family_required_ = false;
  bool protocol_required_ = false;
};

}  // namespace sidetrack::nft
