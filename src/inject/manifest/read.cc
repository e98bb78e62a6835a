// SPDX-License-Identifier: GPL-2.0-or-later
#include "inject/manifest/read.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "model/error.h"
#include "model/printable.h"
#include "system/read_write.h"

namespace sidetrack::manifest {
namespace {

constexpr std::string_view standard_input = "standard input";

bool begins_as_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

}  // namespace

std::string place(std::string_view name, std::size_t line) {
  return line == 0 ? excerpt(name) : fmt::format("{}, line {}", excerpt(name), line);
}

bool Documents::empty() const {
  return std::ranges::all_of(list,
                             [](const Document& document) { return document.root.is_null() && !document.problem; });
}

Documents parse_each_document(std::string text, std::string name, const Limits& limits) {
  // libyaml takes it, but kubectl does not, and what is written is UTF-8.
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    throw Error(ExitCode::usage, fmt::format("{}: UTF-16: expected UTF-8", excerpt(name)),
                "iconv -f UTF-16 -t UTF-8 converts it");
  Documents made{std::move(name), Form::yaml, std::move(text), {}};
  if (!begins_as_json(made.text)) {
    made.list = parse_yaml(made.text, made.name, limits);
    return made;
  }
  try {
    made.list = parse_json(made.text, made.name, limits);
    made.form = Form::json;
  } catch (const Error&) {
    // YAML has braces, too, and says in which line something is wrong.
    made.list = parse_yaml(made.text, made.name, limits);
  }
  return made;
}

Documents parse_documents(std::string text, std::string name, const Limits& limits) {
  Documents made = parse_each_document(std::move(text), std::move(name), limits);
  for (const Document& document : made.list) {
    if (document.problem) throw *document.problem;
  }
  return made;
}

Text read_text(const std::string& file) {
  const bool is_standard_input = file == "-";
  const std::string name = is_standard_input ? std::string(standard_input) : file;
  static std::string of_standard_input;  // it can be read once, and a manifest may be asked for more than its options
  std::string text;
  if (const int error = read_named(file, largest_document, text); error != 0)
    throw Error(ExitCode::usage, fmt::format("{}: cannot be read: {}", excerpt(name), errno_words(error)),
                error == EFBIG ? fmt::format("at most {} MiB are read", largest_document >> 20U) : "");
  if (is_standard_input) text = of_standard_input += text;
  return {name, std::move(text)};
}

Documents read_documents(const std::string& file) { return parse_documents(read_text(file)); }

Documents parse_documents(Text of) { return parse_documents(std::move(of.text), std::move(of.name)); }

}  // namespace sidetrack::manifest
