// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/nft_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kernel/nft/names.h"
#include "model/error.h"
#include "model/printable.h"
#include "model/scan.h"

namespace sidetrack {
namespace {

using nlohmann::json;

constexpr int deepest_json = 64;
constexpr const char* ask_for_json = "ask for the output of: nft -j list ruleset";

[[noreturn]] void refuse_json(const std::string& what) { throw Error(ExitCode::usage, what, ask_for_json); }

// One of the strings or numbers that nft always writes; that of a list of one, too.
std::string text_in(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// "dormant", ["dormant", "owner"]
bool has_flag(const json& object, std::string_view flag) {
  const auto flags = object.find("flags");
  if (flags == object.end()) return false;
  return flags->is_array() ? std::ranges::find(*flags, json(flag)) != flags->end() : *flags == json(flag);
}

// ---- Nodes.

NftNode node_of(const json& value);

// The members of those names; a node without a word for one that is not there.
NftNode with_members(std::string_view word, const json& object, std::initializer_list<const char*> names) {
  NftNode node(word);
  for (const char* name : names) {
    const auto found = object.find(name);
    node.parts.push_back(found != object.end() ? node_of(*found) : NftNode());
  }
  return node;
}

NftNode with_elements(std::string_view word, const json& list) {
  NftNode node(word);
  for (const json& each : list) node.parts.push_back(node_of(each));
  return node;
}

// Each element of a map is a list of two.
void make_map(NftNode& set) {
  for (NftNode& each : set.parts) {
    if (each.word == "list" && each.parts.size() == 2) each.word = ":";
  }
}
NftNode look_up_node(std::string_view word, const json& value) {
  NftNode node = with_members(word, value, {"key", "data"});
  make_map(node.parts.back());
  return node;
}

// Adds the values of a list, or what stands alone in its place.
NftNode with_list(NftNode node, const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return node;
  const NftNode list = node_of(*found);
  if (list.word != "list") node.parts.push_back(list);
  node.parts.insert(node.parts.end(), list.parts.begin(), list.parts.end());
  return node;
}

// {"payload": {"protocol": "tcp", "field": "dport"}}
NftNode node_of(std::string_view word, const json& value) {
  if (word == "numgen") return with_members(word, value, {"mode", "mod", "offset"});
  if (word == "prefix" || word == "range") {
    const NftNode ends = word == "range" ? with_elements(word, value) : with_members(word, value, {"addr", "len"});
    return NftNode(ends.text(0) + (word == "range" ? "-" : "/") + ends.text(1));
  }
  if (word == "payload") return with_members(word, value, {"protocol", "field"});
  if (word == "meta" || word == "socket") return with_members(word, value, {"key"});
  if (word == "ct") return with_members(word, value, {"key", "dir"});
  if (word == "map") return look_up_node(word, value);
  if (word == "fib") return with_list(with_members(word, value, {"result"}), value, "flags");
  if (word == "jump" || word == "goto") return with_members(word, value, {"target"});
  if (word == "set" || word == "concat" || word == "|" || word == "&" || word == "^") return with_elements(word, value);
  if (word != "elem" || !value.is_object()) return NftNode(word);
  const bool plain = std::ranges::all_of(value.items(), [](const auto& each) {
    return each.key() == "val" || each.key() == "counter" || each.key() == "comment";
  });
  NftNode element = with_members(word, value, {"val"});
  return plain ? NftNode(element.parts.front()) : element;
}

NftNode node_of(const json& value) {
  if (value.is_string()) return NftNode(value.get<std::string>());
  if (value.is_number() || value.is_boolean()) return NftNode(value.dump());
  if (value.is_array()) return with_elements("list", value);
  if (value.is_object() && value.size() == 1) return node_of(value.begin().key(), value.front());
  return {};
}

// "addr" and "port" as one text: [fd00::1]:80; a port that is looked up, alone
NftNode destination_node(std::string_view word, const json& value) {
  NftNode made = with_members(word, value, {"addr"});
  NftNode& to = made.parts.front();
  const NftNode port = value.contains("port") ? node_of(value.at("port")) : NftNode();
  if (!port.parts.empty()) {
    to = to.word.empty() ? port : NftNode("?");
  } else if (!port.word.empty() && to.parts.empty()) {
    if (to.word.find(':') != std::string::npos) to.word = fmt::format("[{}]", to.word);
    to.word += ":" + port.word;
  }
  return with_list(std::move(made), value, "flags");
}

NftNode statement_node(std::string_view word, const json& value) {
  static constexpr std::string_view with_destination[] = {"dnat", "snat", "redirect", "masquerade", "tproxy"};
  if (std::ranges::find(with_destination, word) != std::end(with_destination)) return destination_node(word, value);
  if (word == "match") return with_members(word, value, {"op", "left", "right"});
  if (word == "set" || (word == "map" && value.contains("op"))) return NftNode("set");
  if (word == "vmap") return look_up_node(word, value);
  if (word == "mangle") return with_members(word, value, {"key", "value"});
  if (word == "xt") return with_members(word, value, {"type", "name"});
  if (word != "counter") return node_of(word, value);
  return value.is_object() ? with_members(word, value, {"packets", "bytes"}) : NftNode(word, {node_of(value)});
}

// ---- Words.

// Gives the text that nft prints without -j. A | separates the parts; a part with a missing member is omitted, and one
// with a member that is there but has a ! here, or that has a ? here and is false or 0.
struct Written {
  std::string_view word, form;
};
constexpr Written written[] = {
    {"match", "{left}| {op}| {right}"},
    {"payload", "{protocol} {field}|@{base},{offset},{len}"},
    {"meta", "meta {key}"},
    {"ct", "ct| {dir}| {key}"},
    {"rt", "rt {key}"},
    {"socket", "socket {key}"},
    {"fib", "fib {flags} {result}"},
    {"ipsec", "ipsec {dir}| spnum {?spnum}| {family}| {key}"},
    {"exthdr", "exthdr {name}| {field}"},
    {"tcp option", "tcp option {name}| {field}"},
    {"numgen", "numgen {mode} mod {mod}| offset {offset}"},
    {"jhash", "jhash {expr} mod {mod}"},
    {"symhash", "symhash mod {mod}"},
    {"prefix", "{addr}/{len}"},
    {"elem", "{val}"},
    {"map", "{key} map {data}|{op} {map} {elem}"},
    {"set", "{op} {set} {elem}"},
    {"vmap", "{key} vmap {data}"},
    {"mangle", "{key} set {value}"},
    {"limit",
     "limit rate| over{?inv}| {rate}| {rate_unit}|/{per}| burst {burst}{!burst_unit} packets| burst {burst} "
     "{burst_unit}"},
    {"quota", "quota| over{?inv}| {val} {val_unit}"},
    {"ct count", "ct count| over{?inv}| {val}"},
    {"log", "log| prefix \"{prefix}\"| level {level}| group {group}"},
    {"reject", "reject| with {type}| type {expr}"},
    {"queue", "queue| flags {flags}| to {num}"},
    {"redirect", "redirect| to :{port}"},
    {"dnat", "dnat| {family}| to {addr}|:{port}| {flags}"},
    {"snat", "snat| {family}| to {addr}|:{port}| {flags}"},
    {"dup", "dup to {addr}| device {dev}"},
    {"tproxy", "tproxy| {family}| to| {addr}|:{port}"},
};

std::string words_of(const json& value);

std::string joined(const json& list, std::string_view between) {
  std::string words;
  for (const json& each : list) words += (words.empty() ? "" : std::string(between)) + words_of(each);
  return words;
}

// Tells whether nft omits the operation: not behind one on bits, ip frag-off & 8191 == 0.
bool is_implied(const json& object, const json& operation) {
  if (operation == "in") return true;
  const auto left = operation == "==" ? object.find("left") : object.end();
  const bool is_simple = left == object.end() || !left->is_object();
  return operation == "==" && (is_simple || !(left->contains("&") || left->contains("|") || left->contains("^")));
}

// Fills in the members. Returns an empty string if the object lacks one.
std::string filled_part(std::string_view form, const json& object) {
  std::string words;
  while (!form.empty()) {
    const auto open = std::min(form.find('{'), form.size()), close = std::min(form.find('}', open), form.size());
    words += form.substr(0, open);
    if (open == form.size()) break;
    std::string_view name = form.substr(open + 1, close - open - 1);
    const bool must_lack = name.starts_with('!'), must_hold = name.starts_with('?');
    if (must_lack || must_hold) name.remove_prefix(1);
    const auto found = object.find(name);
    if (must_lack != (found == object.end()) || (name == "op" && is_implied(object, *found))) return {};
    const std::string value = must_lack ? "" : words_of(*found);
    if (must_hold && (value == "missing" || value == "0")) return {};
    if (!must_hold || value != "exists") words += value;
    form.remove_prefix(std::min(close + 1, form.size()));
  }
  return words;
}

std::string words_of(const std::string& word, const json& value) {
  if (value.is_null()) return word;
  if (word == "range") return joined(value, "-");
  if (word == "concat") return joined(value, " . ");
  if (word == "&" || word == "|" || word == "^") return joined(value, fmt::format(" {} ", word));
  if (word == "set" && value.is_array()) {
    std::string elements;
    for (const json& each : value)
      elements += (elements.empty() ? "" : ", ") + (each.is_array() ? joined(each, " : ") : words_of(each));
    return fmt::format("{{ {} }}", elements);
  }
  const auto* found = std::ranges::find(written, word, &Written::word);
  if (!value.is_object() || found == std::end(written)) return fmt::format("{} {}", word, words_of(value));
  std::string words;
  for (const std::string_view part : split_at_each(found->form, '|')) words += filled_part(part, value);
  return words;
}

std::string words_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value == true ? "exists" : "missing";  // tcp option maxseg exists
  if (value.is_array()) return joined(value, ",");
  if (value.is_object() && value.size() == 1) return words_of(value.begin().key(), value.front());
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

// ---- Tables.

class JsonReader {
 public:
  std::vector<NftTable> read(const json& document, const std::string& source) && {
    const auto objects = document.find("nftables");
    if (objects == document.end() || !objects->is_array())
      refuse_json("the JSON of nft: 'nftables' is no list of objects");
    for (const json& object : *objects) {
      if (!object.is_object() || object.size() != 1 || !object.front().is_object()) refuse_object(object);
      take(object.begin().key(), object.front(), source);
    }
    return std::move(tables_);
  }

 private:
  [[noreturn]] static void refuse_object(const json& object) {
    refuse_json(fmt::format("the JSON of nft: '{}' is no table, chain, rule or set",
                            excerpt(object.dump(-1, ' ', false, json::error_handler_t::replace))));
  }

  void take(const std::string& kind, const json& object, const std::string& source) {
    if (kind == "metainfo") return;
    const auto family = nft::family_named(text_in(object, "family"));
    const std::string name = text_in(object, "name");
    if (!family) return refuse_object({{kind, object}});
    NftTable& table = in_table({*family, kind == "table" ? name : text_in(object, "table")}, source);
    if (kind == "table") {
      table.dormant = has_flag(object, "dormant");
      table.lost_flags = has_flag(object, name);  // nft 1.0.6 writes the table's name for them
    } else if (kind == "chain") {
      table.chains.push_back(chain_of(object, name));
    } else if (kind == "rule") {
      const auto chain = std::ranges::find(table.chains, text_in(object, "chain"), &NftChain::name);
      if (chain == table.chains.end()) refuse_object({{kind, object}});
      chain->rules.push_back(rule_of(object));
    } else if (kind == "set" || kind == "map" || kind == "meter") {
      NftSet& set = table.sets.emplace_back();
      set.name = name;
      set.changes =
          kind == "meter" || object.contains("timeout") || has_flag(object, "timeout") || has_flag(object, "dynamic");
      if (const auto elements = object.find("elem"); elements != object.end())
        set.elements = with_elements("set", *elements);
      if (kind == "map") make_map(*set.elements);
    } else {
      ++table.other_objects;
    }
  }

  NftTable& in_table(nft::TableKey key, const std::string& source) {
    const auto found = std::ranges::find(tables_, key, &NftTable::key);
    if (found != tables_.end()) return *found;
    NftTable& table = tables_.emplace_back();
    table.key = std::move(key);
    table.source = source;
    return table;
  }

  static NftChain chain_of(const json& object, const std::string& name) {
    NftChain chain{name, text_in(object, "type"), text_in(object, "hook")};
    if (const auto priority = object.find("prio"); priority != object.end() && priority->is_number_integer())
      chain.priority = priority->get<std::int32_t>();
    chain.drops = text_in(object, "policy") == "drop";
    const auto devices = object.find("dev");
    if (devices == object.end()) return chain;
    for (const json& each : devices->is_array() ? *devices : json::array({*devices})) {
      if (each.is_string()) chain.devices.push_back(each.get<std::string>());
    }
    return chain;
  }

  static NftRule rule_of(const json& object) {
    NftRule rule{{}, text_in(object, "comment")};
    const auto statements = object.find("expr");
    if (statements == object.end() || !statements->is_array()) return rule;
    for (const json& each : *statements) {
      NftStatement& made = rule.statements.emplace_back();
      made.words = words_of(each);
      if (each.is_object() && each.size() == 1)
        static_cast<NftNode&>(made) = statement_node(each.begin().key(), each.front());
    }
    return rule;
  }

  std::vector<NftTable> tables_;
};

}  // namespace

bool opens_nft_json(std::span<const PastedLine> lines) {
  const std::string& line = lines.front().text;
  const auto brace = line.find('{');
  if (brace == std::string::npos) return false;
  std::string start = line.substr(brace + 1);
  if (lines.size() > 1 && start.empty()) start = lines[1].text;
  return start.substr(std::min(start.find_first_not_of(' '), start.size())).starts_with("\"nftables\"");
}

std::vector<NftTable> take_nft_json(std::span<const PastedLine>& lines) {
  std::string text;
  int depth = 0;
  bool quoted = false;
  std::size_t at = lines.front().text.find('{');
  while (!lines.empty()) {
    const std::string& line = lines.front().text;
    const std::size_t start = at;
    for (; at < line.size() && (depth > 0 || at == start); ++at) {
      const char c = line[at];
      if (quoted && c == '\\') {
        ++at;
      } else if (c == '"') {
        quoted = !quoted;
      } else if (!quoted && (c == '{' || c == '[')) {
        if (++depth > deepest_json) refuse_json(fmt::format("the JSON nests deeper than {} levels", deepest_json));
      } else if (!quoted && (c == '}' || c == ']')) {
        --depth;
      }
    }
    text += line.substr(start, std::min(at, line.size()) - start);
    text += '\n';
    lines = lines.subspan(1);
    at = 0;
    if (depth == 0) break;
  }
  if (depth > 0) refuse_json("the JSON of nft has no end: a part of it is missing");
  try {
    return JsonReader().read(json::parse(text), "");
  } catch (const json::exception& error) {
    refuse_json(fmt::format("the JSON of nft: {}", printable(error.what())));
  }
}

}  // namespace sidetrack
