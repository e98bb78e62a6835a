// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/pasted_lines.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "model/scan.h"

namespace sidetrack {
namespace {

struct Typographic {
  std::string_view text;
  std::string_view plain;
};
constexpr Typographic typographic[] = {
    {"\u201c", "\""}, {"\u201d", "\""}, {"\u201e", "\""}, {"\u2018", "'"}, {"\u2019", "'"}, {"\u00a0", " "},
    {"\u200b", ""},   {"\ufeff", ""},   {"\t", " "},      {"\r", ""},      {"\u2212", "-"},
};
constexpr std::string_view en_dash = "\u2013", em_dash = "\u2014";

bool is_dash(std::string_view text) { return text.starts_with(en_dash) || text.starts_with(em_dash); }

// A word processor makes one dash of "--", and of "-" before a single letter.
std::string_view plain_dash(std::string_view before, std::string_view after) {
  const bool begins_word = before.empty() || before.ends_with(' ');
  return begins_word && !is_dash(after) && after.size() > 1 && after[1] != ' ' ? "--" : "-";
}

// \x1b[1;32m
std::size_t size_of_escape(std::string_view text) {
  if (!text.starts_with("\x1b[")) return 0;
  const auto end = std::ranges::find_if(text.substr(2), [](char c) { return c >= '@' && c <= '~'; });
  return static_cast<std::size_t>(end - text.begin()) + (end != text.end() ? 1 : 0);
}

std::string plain(std::string_view line) {
  std::string text;
  while (!line.empty()) {
    const auto* other = std::ranges::find_if(line, [](char c) { return c < ' ' || c > '~'; });
    text.append(line.begin(), other);
    line.remove_prefix(static_cast<std::size_t>(other - line.begin()));
    if (line.empty()) break;
    if (const std::size_t escape = size_of_escape(line); escape > 0) {
      line.remove_prefix(escape);
      continue;
    }
    if (is_dash(line)) {
      line.remove_prefix(en_dash.size());
      text += plain_dash(text, line);
      continue;
    }
    const auto* found =
        std::ranges::find_if(typographic, [&](const Typographic& each) { return line.starts_with(each.text); });
    if (found != std::end(typographic)) {
      text += found->plain;
      line.remove_prefix(found->text.size());
    } else {
      text += line.front();
      line.remove_prefix(1);
    }
  }
  return text;
}

std::string_view without_margin(std::string_view line) {
  const auto first = line.find_first_not_of("> ");
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(' ') - first + 1);
}

struct Comment {
  std::string_view opens, closes;
};
constexpr Comment comments[] = {{"--comment \"", "\""}, {"/* ", " */"}};
constexpr std::size_t longest_comment = 256;  // XT_MAX_COMMENT_LEN

// Returns how many lines follow that belong to a comment of iptables, which goes on to where it is closed.
std::size_t lines_of_comment(std::span<const std::string_view> lines) {
  for (const Comment& each : comments) {
    const auto opened = lines.front().rfind(each.opens);
    if (opened == std::string_view::npos) continue;
    std::string_view line = lines.front().substr(opened + each.opens.size());
    std::size_t size = 0;
    for (std::size_t more = 0; size <= longest_comment; line = lines[more]) {
      auto closed = line.find(each.closes);
      while (closed != std::string_view::npos && closed > 0 && line[closed - 1] == '\\')
        closed = line.find(each.closes, closed + 1);
      if (closed != std::string_view::npos) return more;
      size += line.size() + 1;
      if (++more == lines.size()) break;
    }
  }
  return 0;
}

// How logs call what a program printed: of zap and logrus, of Docker's files, of Kubernetes' collectors.
constexpr const char* message_keys[] = {"msg", "message", "log", "textPayload"};

// Returns the message of a log in JSON: {"level":"info","msg":"Running iptables-restore …:\n* nat\n…"}; else nothing.
std::string message_of_json(std::string_view line) {
  const auto start = line.find("{\"");  // behind a time or the name of a pod
  if (start == std::string_view::npos) return {};
  const auto entry = nlohmann::json::parse(line.substr(start), nullptr, false);
  for (const char* key : message_keys) {
    const auto message = entry.is_object() ? entry.find(key) : entry.end();
    if (entry.is_object() && message != entry.end() && message->is_string()) return message->get<std::string>();
  }
  return {};
}

// Returns the message of a log in logfmt: time="…" level=info msg="*nat\n:PREROUTING ACCEPT [0:0]\n…"; else nothing.
std::string message_of_logfmt(std::string_view line) {
  constexpr std::string_view opens = " msg=\"";
  const auto start = line.find(opens);
  if (start == std::string_view::npos) return {};
  std::size_t end = start + opens.size();
  while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
  const auto quoted = line.substr(start + opens.size() - 1, end + 2 - start - opens.size());
  const auto message = nlohmann::json::parse(quoted, nullptr, false);
  return message.is_string() ? message.get<std::string>() : "";
}

std::string message_of_log(std::string_view line) {
  std::string message = message_of_json(line);
  return !message.empty() ? message : message_of_logfmt(line);
}

}  // namespace

bool contains_any(std::string_view line, std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return line.find(word) != std::string_view::npos; });
}

bool stands_for_lines(std::string_view line) {
  constexpr std::string_view words[] = {"snip", "snipped", "cut", "more", "etc"};
  constexpr std::string_view parts[] = {"omitted", "snipped", "truncated", "removed"};
  constexpr std::size_t most_words = 5;  // more are a sentence
  line.remove_prefix(std::min(line.find_first_not_of("#/;> "), line.size()));
  if (line.starts_with("-A")) return false;
  std::string letters;
  for (const char c : line) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0)
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (letters.empty()) return line.find("...") != std::string_view::npos || line.find("…") != std::string_view::npos;
  return std::ranges::find(words, letters) != std::end(words) ||
         (split(line, " ").size() <= most_words &&
          std::ranges::any_of(parts, [&](std::string_view part) { return letters.ends_with(part); }));
}

std::vector<PastedLine> pasted_lines(std::string_view text) {
  std::vector<PastedLine> lines;
  std::size_t number = 0;
  bool is_continued = false;  // by the next one, as a shell's
  const std::vector<std::string_view> all = split_at_each(text, '\n');
  while (number < all.size()) {
    const std::size_t more = lines_of_comment(std::span(all).subspan(number));
    const std::string_view last = all[number + more];
    const std::string_view raw(all[number].data(),
                               static_cast<std::size_t>(last.data() + last.size() - all[number].data()));
    const std::size_t first = number + 1;
    number += more + 1;
    const std::string line = plain(raw);
    const std::string_view content = without_margin(line);
    if (content.empty() || content.starts_with("```") || content.starts_with("~~~")) continue;
    if (const std::string message = message_of_log(content); !message.empty()) {
      for (PastedLine& each : pasted_lines(message)) lines.emplace_back(std::move(each)).number = first;
      is_continued = false;
      continue;
    }
    if (is_continued) {
      lines.back().text.back() = ' ';  // in the place of the backslash
      lines.back().text += content;
    } else {
      lines.push_back({first, std::string(content)});
      lines.back().margin = static_cast<std::size_t>(content.data() - line.data());
    }
    lines.back().ends_blank = line.ends_with(' ');
    lines.back().ends_text = raw.data() + raw.size() == text.data() + text.size();
    is_continued = content.ends_with(" \\");
  }
  return lines;
}

}  // namespace sidetrack
