// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/nft_listing.h"

#include <fmt/format.h>
#include <linux/netfilter.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "kernel/nft/names.h"
#include "kernel/nft/nf_tables.h"
#include "model/address.h"
#include "model/scan.h"
#include "rule/words.h"

namespace sidetrack {
namespace {

using Texts = std::span<const std::string_view>;

constexpr int deepest = 32;

// ---- Tokens.

}  // namespace

NftTokens nft_tokens(std::string_view line) {
  constexpr std::string_view single = "{};,()";
  NftTokens tokens;
  bool spaced = true;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ') {
      spaced = true;
      ++i;
      continue;
    }
    std::size_t end = i + 1;
    const bool quoted = line[i] == '"';
    if (quoted) {
      end = std::min(line.find('"', i + 1), line.size());
      tokens.push_back({std::string(line.substr(i + 1, end - i - 1)), true, spaced});
      end = std::min(end + 1, line.size());
    } else {
      const bool raw = line[i] == '@' && line.substr(i).size() > 3 && line[i + 3] == ',';  // @th,16,16
      const bool key_follows = line.substr(i).starts_with(":") && end < line.size() &&
                               std::isalpha(static_cast<unsigned char>(line[end])) != 0;  // redirect to :tcp dport map
      if (single.find(line[i]) == std::string_view::npos && !key_follows)
        end = std::min(line.find_first_of(raw ? " {};()\"" : " {};,()\"", i), line.size());
      tokens.push_back({std::string(line.substr(i, end - i)), false, spaced});
    }
    tokens.back().apart = line.substr(0, i).ends_with("  ");
    spaced = false;
    i = end;
  }
  // `# handle 3` of nft -a, `# progname nft` of a table that has an owner
  const auto has_note = [&] {
    const std::size_t size = tokens.size();
    return size >= 3 && !tokens[size - 3].quoted && tokens[size - 3].text == "#" &&
           (tokens[size - 2].text == "handle" || tokens[size - 2].text == "progname");
  };
  while (has_note()) {
    const bool apart = tokens[tokens.size() - 3].apart;
    tokens.resize(tokens.size() - 3);
    if (!tokens.empty()) tokens.back().ends_blank = apart;
  }
  return tokens;
}

std::string nft_words(std::span<const NftToken> tokens) {
  std::string words;
  for (const NftToken& each : tokens) {
    if (!words.empty() && each.spaced) words += ' ';
    words += each.quoted ? fmt::format("\"{}\"", each.text) : each.text;
  }
  return words;
}

namespace {

// ---- Statements.

constexpr std::string_view verdicts[] = {"accept", "drop", "continue", "return"};
constexpr std::string_view nat_statements[] = {"redirect", "masquerade", "dnat", "snat"};
constexpr std::string_view nat_words[] = {"random", "fully-random", "persistent"};
// What begins a statement, and no key.
constexpr std::string_view beginnings[] = {
    "accept",   "drop", "continue", "return", "jump",  "goto",       "counter",  "limit",   "log",   "reject",
    "redirect", "dnat", "snat",     "tproxy", "quota", "masquerade", "notrack",  "comment", "queue", "xt",
    "dup",      "fwd",  "add",      "update", "flow",  "last",       "synproxy", "delete"};
// Keys that stand without "meta".
constexpr std::string_view bare_meta[] = {"mark",     "iif",      "iifname", "iiftype", "oif",       "oifname",
                                          "oiftype",  "skuid",    "skgid",   "nftrace", "rtclassid", "cpu",
                                          "iifgroup", "oifgroup", "cgroup",  "pkttype"};
constexpr std::string_view headers[] = {"ip",   "ip6",  "tcp",     "udp", "th", "icmp", "icmpv6", "igmp",
                                        "sctp", "dccp", "udplite", "esp", "ah", "comp", "ether",  "arp"};
constexpr std::string_view comparisons[] = {"==", "!=", "<", ">", "<=", ">=", "!"};

// What begins a condition, if no more of it is known; # one of iptables.
constexpr std::string_view conditions[] = {"osf", "rt",  "ipsec", "exthdr", "frag", "hbh",     "dst",   "mh", "vlan",
                                           "srh", "tcp", "ip",    "ip6",    "sctp", "symhash", "jhash", "#"};
// What ends a rule: nft lets nothing that decides stand before it. After those up to synproxy it refuses all but a
// comment: if more follows, the line breaks of the text are lost.
constexpr std::string_view deciding[] = {"accept",     "drop",  "continue", "return",   "jump", "goto",
                                         "vmap",       "queue", "reject",   "redirect", "dnat", "snat",
                                         "masquerade", "fwd",   "synproxy", "tproxy",   "xt",   ""};
constexpr Texts lasts = Texts(deciding).first(15);
constexpr std::string_view after_lasts[] = {"comment", "#", ",", "}"};  // the last two in a map
// What comes before the conditions and after them.
constexpr std::string_view limits[] = {"match", "limit", "quota", "ct count"};

// Words that say what a bit operation is, the weakest first.
struct BitOperation {
  std::string_view sign, word;
};
constexpr BitOperation bit_operations[] = {{"|", "or"}, {"^", "xor"}, {"&", "and"}};

class StatementReader {
 public:
  using Read = std::optional<NftNode>;  // nothing: not understood

  explicit StatementReader(std::span<const NftToken> tokens) : tokens_(tokens) {}

  // `of_iptables`: has its conditions before the counter. `lacks_end`: may be several, without what parts them.
  NftRule read(bool of_iptables, bool lacks_end) && {
    bool acts = false;
    while (!ends()) {
      const std::size_t start = at_;
      Read made = statement();
      if (!made) {
        at_ = start;
        made = not_understood();
      }
      const bool is_late =
          made->word == "match" && tokens_[start].text != "#" && ((of_iptables && counts_) || (lacks_end && acts));
      const bool is_comment = made->word == "comment";
      const bool is_last =
          is_comment || is_one_of(made->word, lasts) || (made->word == "xt" && made->text(0) == "target");
      const bool is_followed = is_last && !ends() && (is_comment || text() != "comment");
      const bool is_script_comment = text() == "#" && text(1) != "handle";
      if (is_late || is_joined_ || (is_followed && !is_script_comment)) return opaque_nft_rule(nft_words(tokens_));
      counts_ = counts_ || made->word == "counter";
      acts = acts || !is_one_of(made->word, limits);
      if (is_comment) {
        rule_.comment = made->text(0);
      } else {
        rule_.statements.push_back({*std::move(made), nft_words(tokens_.subspan(start, at_ - start))});
      }
      if (is_followed) break;
    }
    doubt();
    return std::move(rule_);
  }

  // { 80, 443 }
  Read set() {
    if (!accept("{") || ++depth_ > deepest) return {};
    NftNode set("set");
    while (!accept("}")) {
      Read element = this->element();
      if (!element || (!accept(",") && text() != "}")) return {};
      set.parts.push_back(*std::move(element));
    }
    --depth_;
    return set;
  }

 private:
  [[nodiscard]] std::string_view text(std::size_t ahead = 0) const {
    return at_ + ahead < tokens_.size() && !tokens_[at_ + ahead].quoted ? std::string_view(tokens_[at_ + ahead].text)
                                                                        : std::string_view();
  }
  [[nodiscard]] bool ends() const { return at_ >= tokens_.size(); }
  bool accept(std::string_view word) {
    if (text() != word) return false;
    ++at_;
    return true;
  }
  Read next() {
    if (ends()) return {};
    return NftNode(tokens_[at_++].text);
  }
  // Skips them; false if there are fewer.
  bool skip(std::size_t count) {
    at_ += count;
    return at_ <= tokens_.size();
  }
  // Up to the brace that closes the next one.
  bool skip_braces() {
    if (text() != "{") return false;
    for (int depth = 0; !ends(); ++at_) {
      if (text() == "{") ++depth;
      if (text() == "}" && --depth == 0) return skip(1);
    }
    return false;
  }
  // Made of parts that are all understood.
  static Read node(std::string_view word, std::initializer_list<Read> parts) {
    NftNode made(word);
    for (const Read& each : parts) {
      if (!each) return {};
      made.parts.push_back(*each);
    }
    return made;
  }
  // Skips what is left of it.
  Read taken(std::string_view word, std::size_t left, std::initializer_list<Read> parts = {}) {
    return skip(left) ? node(word, parts) : Read();
  }

  // numgen random mod 2 vmap { 0 : accept, 1 : drop }: one of the elements
  Read unknown_vmap() {
    while (!ends() && text() != "vmap" && !is_one_of(text(), beginnings)) ++at_;
    return accept("vmap") ? node("vmap", {NftNode(), looked_up()}) : Read();
  }

  // A condition goes on to where another statement begins; what may decide or change something, to the end.
  NftNode not_understood() {
    const std::size_t start = at_;
    if (Read vmap = unknown_vmap()) return *std::move(vmap);
    at_ = start;
    const bool is_target = counts_ && text() == "#";  // of iptables, whose target follows the counter
    bool decides = false;
    for (; !ends() && !is_one_of(text(), beginnings); ++at_)
      decides = decides || text() == "vmap" || text() == "map" || text() == "set";
    if (!is_target && !decides && at_ > start) return NftNode("match");
    at_ = tokens_.size();
    is_joined_ = has_next_rule(tokens_.subspan(start));
    return {};
  }

  // Tells whether another statement follows what ends a rule, or more follows a verdict.
  static bool has_next_rule(std::span<const NftToken> tokens) {
    const bool ends_rule = is_one_of(tokens[0].text, lasts);
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      const std::string_view word = tokens[i].text;
      if (tokens[i].quoted || word == "comment") continue;
      if (ends_rule && (word == "vmap" || word == "set" || is_one_of(word, beginnings))) return true;
      const bool jumps = word == "jump" || word == "goto";
      const std::size_t next = i + (jumps ? 2 : 1);
      if ((jumps || is_one_of(word, verdicts)) && next < tokens.size() && !is_one_of(tokens[next].text, after_lasts))
        return true;
    }
    return false;
  }

  // What is not understood may decide, where nothing behind it does.
  void doubt() {
    const auto may_decide = [](const NftStatement& each) {
      const std::string_view words = each.words;
      return each.word == "match" && each.parts.empty() && !is_one_of(words.substr(0, words.find(' ')), conditions);
    };
    const auto found = std::ranges::find_if(rule_.statements, may_decide);
    if (found != rule_.statements.end() && !is_one_of(rule_.statements.back().word, deciding)) found->word.clear();
  }

  Read statement() {
    const std::string_view word = text();
    if (is_one_of(word, verdicts)) return next();
    if (is_one_of(word, nat_statements)) return nat();
    using Take = Read (StatementReader::*)();
    struct Known {
      std::string_view word;
      Take take;
    };
    static constexpr Known kinds[] = {
        {"jump", &StatementReader::jump},       {"goto", &StatementReader::jump},
        {"counter", &StatementReader::counter}, {"limit", &StatementReader::limit},
        {"quota", &StatementReader::quota},     {"last", &StatementReader::last},
        {"log", &StatementReader::log},         {"reject", &StatementReader::reject},
        {"tproxy", &StatementReader::nat},      {"xt", &StatementReader::xt},
        {"add", &StatementReader::set_change},  {"update", &StatementReader::set_change},
        {"flow", &StatementReader::flow},       {"delete", &StatementReader::set_change},
        {"notrack", &StatementReader::next},    {"comment", &StatementReader::jump},
        {"ct", &StatementReader::ct},           {"dup", &StatementReader::dup},
    };
    const auto* kind = std::ranges::find(kinds, word, &Known::word);
    return kind != std::end(kinds) ? (this->*kind->take)() : expression_statement();
  }

  // A word and what follows it.
  Read jump() {
    const std::string word = tokens_[at_++].text;
    return node(word, {next()});
  }
  Read counter() {
    skip(1);
    if (accept("name")) return node("counter", {next()});
    const NftNode none("0");
    if (text() != "packets" || text(2) != "bytes") return node("counter", {none, none});
    return taken("counter", 4, {NftNode(text(1)), NftNode(text(3))});
  }
  // limit rate over 5 mbytes/second burst 6 kbytes; limit name "slow"
  Read limit() {
    skip(1);
    if (accept("name")) return taken("limit", 1);
    if (!accept("rate")) return {};
    accept("over");
    if (text().find('/') == std::string_view::npos) skip(1);
    skip(1);
    return taken("limit", accept("burst") ? 2 : 0);
  }
  Read quota() {
    skip(1);
    if (accept("name")) return taken("quota", 1);
    if (!accept("over")) accept("until");
    skip(2);
    return taken("quota", accept("used") ? 2 : 0);
  }
  Read last() {
    skip(1);
    if (accept("used")) skip(1);
    accept("ago");
    return taken("last", 0);
  }
  // dup to 10.0.0.1 device "eth0"
  Read dup() {
    skip(accept("dup") && accept("to") ? 1 : tokens_.size());
    return taken("dup", accept("device") ? 1 : 0);
  }
  Read log() {
    static constexpr std::string_view options[] = {"prefix", "level", "group", "snaplen", "queue-threshold"};
    skip(1);
    while (!ends()) {
      if (is_one_of(text(), options)) {
        skip(2);
      } else if (accept("flags")) {
        if (!accept("tcp")) accept("ip");
        do {
          skip(1);
        } while (accept(","));
      } else {
        break;
      }
    }
    return taken("log", 0);
  }
  Read reject() {
    skip(1);
    if (accept("with")) {
      skip(1);
      accept("type");
      skip(1);
    }
    return taken("reject", 0);
  }
  Read set_change() { return skip(2) && skip_braces() ? taken("set", 0) : Read(); }
  Read flow() { return taken("flow", 3); }
  Read ct() {
    if (text(1) == "count") return taken("ct count", text(2) == "over" ? 4 : 3);
    const bool is_object =
        text(2) == "set" && (text(1) == "helper" || text(1) == "timeout" || text(1) == "expectation");
    if (is_object) return taken("ct helper", 4);
    if (text(1) != "event" || text(2) != "set") return expression_statement();
    skip(3);
    do {  // new,destroy
      skip(1);
    } while (accept(","));
    return taken("ct helper", 0);
  }
  // xt target "REDIRECT": an extension of iptables of which nft says no more
  Read xt() {
    skip(1);
    return node("xt", {next(), next()});
  }

  // dnat ip to 10.0.0.1:80 random,persistent; dnat 10.0.0.1; redirect to :15001; tproxy to :15006
  Read nat() {
    const std::string word = tokens_[at_++].text;
    if (!accept("ip")) accept("ip6");
    const bool is_network = accept("prefix");
    const bool may_lack = word == "redirect" || word == "masquerade";
    const bool has_destination = accept("to") || !may_lack;
    if (ends() && !may_lack) return {};
    const bool is_plain = text() != ":" && text().find_first_of(".:[") != std::string_view::npos;  // nothing looked up
    accept(":");
    Read made = node(word, {!has_destination ? NftNode() : is_plain ? next() : value()});
    const bool goes_on = !ends() && !is_one_of(text(), nat_words) && text() != "comment";
    if (is_plain && goes_on && word != "tproxy") return {};  // other statements follow that one alone
    while (made && is_one_of(text(), nat_words)) {
      made->parts.push_back(*next());
      accept(",");
    }
    if (made && is_network) made->parts.emplace_back("netmap");  // as nft's JSON has it
    return made;
  }

  // meta mark 1; ip daddr . tcp dport vmap { … }; ct mark set meta mark
  Read expression_statement() {
    Read left = joined(".", "concat", true);
    if (!left) return {};
    if (accept("vmap")) return node("vmap", {left, looked_up()});
    if (accept("set")) return node("mangle", {left, value()});
    const std::string_view operation = is_one_of(text(), comparisons) ? std::string_view(tokens_[at_++].text) : "";
    const Read right = compared();
    if (accept("/"))
      return node("match", {NftNode(operation.empty() ? "==" : operation), node("&", {left, compared()}), right});
    return node("match", {NftNode(operation.empty() ? "in" : operation), left, right});  // in: any of the bits
  }

  // What a map or a set is called, or holds.
  Read looked_up() { return text().starts_with('@') ? next() : set(); }
  Read compared() {
    if (text().starts_with('@') || text() == "{") return looked_up();
    return joined(",", "list", false);
  }
  // What a statement sets: a value, or what a map has for a key.
  Read value() {
    const Read key = joined(".", "concat", true);
    return accept("map") ? node("map", {key, looked_up()}) : key;
  }

  // Several, one after the other.
  Read joined(std::string_view by, std::string_view word, bool of_keys) {
    Read first = bits(0, of_keys);
    if (!first || text() != by) return first;
    Read list = node(word, {first});
    while (accept(by)) {
      Read more = bits(0, of_keys);
      if (!more) return {};
      list->parts.push_back(*std::move(more));
    }
    return list;
  }

  // Operations on bits, those of one strength from left to right.
  Read bits(std::size_t weakest, bool of_keys) {
    if (weakest == std::size(bit_operations)) return operand(of_keys);
    Read left = bits(weakest + 1, of_keys);
    const auto& [sign, word] = bit_operations[weakest];
    while (left && (accept(sign) || accept(word))) {
      if (++operations_ > deepest) return {};
      left = node(sign, {left, bits(weakest + 1, false)});
    }
    return left;
  }

  Read operand(bool of_keys) {
    if (ends() || text().starts_with('$')) return {};  // a variable of a script
    if (accept("(")) {
      if (++depth_ > deepest) return {};
      Read inner = bits(0, false);
      --depth_;
      return accept(")") ? inner : Read();
    }
    if (of_keys) {
      if (Read key = this->key()) return key;
      if (!read_number<std::uint64_t>(text()) && !Address::parse(text())) return {};
    }
    const bool is_status = text() == "dnat" || text() == "snat";  // ct status dnat
    if ((is_one_of(text(), beginnings) && !is_status) || text() == "}" || text() == "{") return {};
    Read value = next();
    if (text() == "-" && !tokens_[at_].spaced && skip(1) && !ends())
      value->word += "-" + next()->word;  // "08:00"-"17:00"
    return value;
  }

  Read key() {
    const NftNode word(text()), second(text(1));
    if (is_one_of(word.word, bare_meta)) return taken("meta", 1, {word, NftNode("bare")});
    if (second.word.empty()) return {};
    if (word.word == "meta") return taken("meta", 2, {second});
    if (word.word == "socket") return taken("socket", second.word == "cgroupv2" ? 4 : 2, {second});
    if (is_one_of(word.word, headers) && second.word != "option") return taken("payload", 2, {word, second});
    if (word.word == "numgen") {  // numgen random mod 2 offset 5
      const bool has_offset = text(4) == "offset";
      return taken("numgen", has_offset ? 6 : 4, {second, NftNode(text(3)), NftNode(has_offset ? text(5) : "0")});
    }
    if (word.word == "ct") {
      const bool has_direction = second.word == "original" || second.word == "reply";
      if (!has_direction) return taken("ct", 2, {second});
      const bool of_family = text(2) == "ip" || text(2) == "ip6";
      const NftNode field(of_family ? fmt::format("{} {}", text(2), text(3)) : std::string(text(2)));
      return taken("ct", of_family ? 4 : 3, {field, second});
    }
    if (word.word == "fib") {
      NftNode fib("fib", {NftNode(), second});
      std::size_t at = 1;
      for (; text(at + 1) == "."; at += 2) fib.parts.emplace_back(text(at + 2));
      fib.parts[0].word = text(at + 1);
      return skip(at + 2) ? Read(fib) : Read();
    }
    return word.word.size() > 3 && word.word[0] == '@' && word.word[3] == ',' ? taken("raw", 1) : Read();
  }

  // 80; 10.0.0.1 . 53; 22 : jump web; 10.0.0.1 timeout 1m expires 50s
  Read element() {
    Read value = joined(".", "concat", false);
    bool counts_alone = true;
    while (value && !ends() && text() != "," && text() != "}" && text() != ":") {
      const bool counts = text() == "counter";
      if (counts || text() == "comment") {
        skip(counts && text(1) == "packets" ? 5 : counts ? 1 : 2);
      } else {
        counts_alone = false;
        ++at_;
      }
    }
    if (!counts_alone) value = node("elem", {value});
    if (!accept(":")) return value;
    const bool jumps = text() == "jump" || text() == "goto";
    return node(":", {value, jumps ? jump() : is_one_of(text(), verdicts) ? next() : joined(".", "concat", false)});
  }

  std::span<const NftToken> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int operations_ = 0;
  bool counts_ = false;
  bool is_joined_ = false;  // with the next rule
  NftRule rule_;
};

// ---- Chains and sets.

struct NamedPriority {
  std::string_view name;
  std::int32_t number, of_bridge;
};
constexpr NamedPriority priorities[] = {{"raw", -300, -300}, {"mangle", -150, -150}, {"dstnat", -100, -300},
                                        {"filter", 0, -200}, {"security", 50, 50},   {"srcnat", 100, 300},
                                        {"out", 100, 100}};

// filter - 5, -100
std::optional<std::int32_t> priority_of(std::span<const NftToken> tokens, bool of_bridge) {
  if (tokens.empty()) return {};
  const auto* named = std::ranges::find(priorities, tokens[0].text, &NamedPriority::name);
  if (named == std::end(priorities)) return to_number<std::int32_t>(tokens[0].text);
  const std::int32_t number = of_bridge ? named->of_bridge : named->number;
  if (tokens.size() < 3 || (tokens[1].text != "+" && tokens[1].text != "-")) return number;
  const auto more = to_number<std::int16_t>(tokens[2].text);
  if (!more) return {};
  return tokens[1].text == "+" ? number + *more : number - *more;
}

// Returns whether nft 1.0.6 has omitted the target: its blank is there.
bool lacks_target(const NftRule& rule, const NftTokens& tokens) {
  static constexpr std::string_view before_targets[] = {"match", "counter", "limit", "quota", "ct count"};
  return tokens.back().ends_blank && std::ranges::all_of(rule.statements, [](const NftStatement& each) {
           return is_one_of(each.word, before_targets) || (each.word == "xt" && each.text(0) == "match");
         });
}
// Returns whether it may have omitted a match: blanks surround it, or it comes before what iptables never has first.
bool may_lack_match(const NftTokens& tokens) {
  static constexpr std::string_view firsts[] = {"ip", "ip6", "iifname", "oifname", "tcp", "udp", "xt"};
  const bool is_first = is_one_of(tokens[0].text, firsts) || (tokens.size() > 1 && tokens[1].text == "l4proto");
  return !is_first || std::ranges::any_of(std::span(tokens).subspan(1), &NftToken::apart);
}

class TableReader {
 public:
  explicit TableReader(std::span<const PastedLine>& lines) : lines_(lines) {}

  NftTable read() && {
    const NftTokens head = line();
    const auto table = std::ranges::find(head, "table", &NftToken::text);
    const auto before = static_cast<std::size_t>(table - head.begin());
    prefix_.assign(head.begin(), table);
    if (!prefix_.empty() && (prefix_.back().text == "add" || prefix_.back().text == "create")) prefix_.pop_back();
    made_.has_end = false;
    made_.key = {*nft::family_named(head.size() == before + 4 ? std::string_view(head[before + 1].text) : "ip"),
                 head[head.size() - 2].text};
    while (!lines_.empty() && !opens_nft_table(lines_.front().text)) {
      const NftTokens tokens = line();
      made_.has_end = is_end(tokens);
      if (made_.has_end) break;
      read_object(tokens);
    }
    if (!made_.has_end) leave_open(made_, "[the text ends before the table]");
    if (made_.omits_at != 0 || has_unknown_base_) leave_open(made_, "[lines are omitted]");
    return std::move(made_);
  }

 private:
  static bool is_end(const NftTokens& tokens) { return !tokens.empty() && !tokens[0].quoted && tokens[0].text == "}"; }

  // The next one, with the rest of its rule where a warning of nft stands in between: # Warning: XT target CT not found
  NftTokens line() {
    NftTokens tokens = pasted_line();
    for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
      if (tokens[i].text != "#" || tokens[i + 1].text != "Warning:") continue;
      tokens.resize(i--);
      if (!lines_.empty()) std::ranges::move(pasted_line(), std::back_inserter(tokens));
    }
    for (std::size_t i = 0; i + 4 < tokens.size(); ++i) name_left_out(tokens, i);
    return tokens;
  }
  // Makes `xt match "owner"` of what nft 1.0.6 says: XT match owner not found. After a match the line breaks.
  void name_left_out(NftTokens& tokens, std::size_t at) {
    const auto is = [&](std::size_t i, std::string_view text) {
      return !tokens[at + i].quoted && tokens[at + i].text == text;
    };
    const bool is_match = is(1, "match");
    if (!is(0, "XT") || (!is_match && !is(1, "target")) || !is(3, "not") || !is(4, "found")) return;
    tokens[at].text = "xt";
    const auto name_end = tokens.begin() + static_cast<std::ptrdiff_t>(at + 3);
    tokens.erase(name_end, name_end + 2);
    if (is_match && tokens.size() == at + 3 && !lines_.empty())
      std::ranges::move(pasted_line(), std::back_inserter(tokens));
  }
  // Without the time or the name that a log has before each.
  NftTokens pasted_line() {
    NftTokens tokens = nft_tokens(lines_.front().text);
    if (!tokens.empty()) tokens.back().ends_blank = tokens.back().ends_blank || lines_.front().ends_blank;
    is_cut_ = lines_.front().ends_text;
    lacks_end_ = lines_.front().lacks_end;
    const std::size_t number = lines_.front().number;
    lines_ = lines_.subspan(1);
    const auto is_digit = [](const NftToken& token) {
      return !token.text.empty() && std::isdigit(static_cast<unsigned char>(token.text[0])) != 0;
    };
    if (!prefix_.empty() && tokens.size() >= prefix_.size() &&
        (tokens[0].text == prefix_[0].text || (is_digit(tokens[0]) && is_digit(prefix_[0]))))
      tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(prefix_.size()));
    is_gap_ = stands_for_lines(nft_words(tokens));
    if (is_gap_ && made_.omits_at == 0) made_.omits_at = number;
    return tokens;
  }
  // The rest of what is open between braces, too.
  void complete(NftTokens& tokens) {
    std::ptrdiff_t depth = 0;
    for (std::size_t seen = 0;;) {
      for (; seen < tokens.size(); ++seen) {
        if (!tokens[seen].quoted) depth += tokens[seen].text == "{" ? 1 : tokens[seen].text == "}" ? -1 : 0;
      }
      if (depth <= 0) return;
      if (lines_.empty() || opens_nft_table(lines_.front().text)) {
        is_cut_ = true;
        return;
      }
      std::ranges::move(line(), std::back_inserter(tokens));
    }
  }

  void read_object(NftTokens tokens) {
    if (tokens.empty()) return;
    if (tokens[0].text == "flags")
      made_.dormant = std::ranges::find(tokens, "dormant", &NftToken::text) != tokens.end();
    if (tokens.back().quoted || tokens.back().text != "{" || tokens.size() < 3) return;
    // What is before may be the table's: flags dormant chain c {
    const std::string& kind = tokens[tokens.size() - 3].text;
    const std::string& name = tokens[tokens.size() - 2].text;
    if (kind == "chain") return read_chain(name);
    if (kind == "set" || kind == "map" || kind == "meter") return read_set(name);
    ++made_.other_objects;
    complete(tokens);
  }

  void read_chain(const std::string& name) {
    NftChain& chain = made_.chains.emplace_back();
    chain.name = name;
    while (!lines_.empty() && !opens_nft_table(lines_.front().text)) {
      NftTokens tokens = line();
      if (is_end(tokens)) return;
      if (is_gap_) continue;
      complete(tokens);
      const bool is_warning = tokens.size() > 1 && tokens[0].text == "#" &&
                              (tokens[1].text == "Warning:" || !nft::is_of_iptables(made_.key));
      if (tokens.empty() || is_warning) continue;
      if (tokens.size() > 2 && tokens[0].text == "comment" && tokens[1].quoted)  // the chain's
        tokens.erase(tokens.begin(), tokens.begin() + 2);
      const bool breaks_off = !tokens.back().quoted && tokens.back().text.ends_with("...");
      const bool is_base = tokens[0].text == "type" && tokens.size() > 3 && tokens[2].text == "hook";
      if (is_base) {
        if (!read_nft_base(tokens, made_.key.family == NFPROTO_BRIDGE, chain)) has_unknown_base_ = true;
      } else if (tokens[0].text == "policy" && tokens.size() > 1) {
        chain.drops = tokens[1].text == "drop";
      } else if (!is_cut_ && tokens[0].text != "comment") {
        chain.rules.push_back(breaks_off ? opaque_nft_rule(nft_words(tokens) + " [cut off]") : rule_of(tokens));
      }
      if (is_cut_) return chain.rules.push_back(opaque_nft_rule(nft_words(tokens) + " [cut off]"));
    }
    chain.rules.push_back(opaque_nft_rule("[cut off]"));
  }

  [[nodiscard]] NftRule rule_of(const NftTokens& tokens) const {
    const bool of_iptables = nft::is_of_iptables(made_.key);
    NftRule rule = StatementReader(tokens).read(of_iptables, lacks_end_);
    if (!of_iptables) return rule;
    rule.lacks_target = lacks_target(rule, tokens);
    rule.may_lack_match = may_lack_match(tokens);
    return rule;
  }

  void read_set(const std::string& name) {
    NftSet& set = made_.sets.emplace_back();
    set.name = name;
    while (!lines_.empty() && !opens_nft_table(lines_.front().text)) {
      NftTokens tokens = line();
      if (is_end(tokens)) break;
      complete(tokens);
      if (tokens.empty()) continue;
      read_nft_set(tokens, set);
    }
  }

  std::span<const PastedLine>& lines_;
  std::vector<NftToken> prefix_;
  bool is_cut_ = false;     // the text, in what was read last
  bool lacks_end_ = false;  // what was read last
  bool is_gap_ = false;     // what was read last stands for other lines: "..."
  bool has_unknown_base_ = false;
  NftTable made_;
};

}  // namespace

bool read_nft_base(std::span<const NftToken> tokens, bool of_bridge, NftChain& chain) {
  bool is_known = true;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i].quoted) continue;
    const std::string& word = tokens[i].text;
    const std::string& value = tokens[i + 1].text;
    if (word == "type") chain.type = value;
    if (word == "hook") chain.hook = value;
    if (word == "priority") {
      const auto priority = priority_of(tokens.subspan(i + 1), of_bridge);
      is_known = is_known && priority;
      chain.priority = priority.value_or(0);
    }
    if (word == "policy") {
      is_known = is_known && (value == "drop" || value == "accept");
      chain.drops = value == "drop";
    }
    if (word == "device") chain.devices.push_back(value);
    if (word == "devices") {
      for (std::size_t j = i + 2; j < tokens.size() && tokens[j].text != "}"; ++j) {
        if (tokens[j].text != "{" && tokens[j].text != ",") chain.devices.push_back(tokens[j].text);
      }
    }
    if (word == "type" || word == "hook" || word == "policy" || word == "device") ++i;
  }
  return is_known;
}

void read_nft_set(std::span<const NftToken> tokens, NftSet& set) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view word = tokens[i].quoted ? "" : std::string_view(tokens[i].text);
    if (word == "timeout" || word == "dynamic") set.changes = true;
    if (word != "elements") continue;
    if (i + 2 < tokens.size()) set.elements = read_nft_elements(tokens.subspan(i + 2));
    break;
  }
}

std::optional<NftNode> read_nft_elements(std::span<const NftToken> tokens) { return StatementReader(tokens).set(); }

bool begins_nft_statement(std::string_view word) {
  return word == "meta" || is_one_of(word, beginnings) || is_one_of(word, bare_meta) || is_one_of(word, headers);
}

NftRule read_nft_rule(std::span<const NftToken> tokens) { return StatementReader(tokens).read(false, false); }

bool opens_nft_table(std::string_view line) {
  if (line.find("table") == std::string_view::npos) return false;
  const NftTokens tokens = nft_tokens(line);
  const std::size_t size = tokens.size();
  if (size < 3 || tokens[size - 1].quoted || tokens[size - 1].text != "{") return false;
  if (size >= 4 && tokens[size - 4].text == "table") return nft::family_named(tokens[size - 3].text).has_value();
  return size == 3 && tokens[0].text == "table";
}

void leave_open(NftTable& table, std::string_view why) {
  const std::uint8_t family = table.key.family;
  const bool is_followed = family == NFPROTO_IPV4 || family == NFPROTO_IPV6 || family == NFPROTO_INET;
  if (!is_followed || std::ranges::any_of(table.chains, &NftChain::is_cut_off)) return;
  for (const std::string_view hook : {"prerouting", "input", "forward", "output", "postrouting"}) {
    NftChain& chain = table.chains.emplace_back();
    chain.hook = hook;
    chain.name = chain.hook + " [cut off]";
    chain.type = "filter";
    chain.rules.push_back(opaque_nft_rule(std::string(why)));
  }
}

NftTable take_nft_table(std::span<const PastedLine>& lines) { return TableReader(lines).read(); }

}  // namespace sidetrack
