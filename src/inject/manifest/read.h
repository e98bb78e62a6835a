// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inject/manifest/node.h"
#include "model/error.h"

namespace sidetrack::manifest {

struct Document {
  Node root;
  std::size_t number = 1;          // of those of the file, from 1
  std::size_t begin = 0;           // the byte of its directives or its "---", or where it begins without
  bool marked = false;             // it begins with "---"
  std::optional<Error> problem{};  // why it is not understood; its root is null then
};

enum class Form : std::uint8_t { yaml, json };

struct Documents {
  std::string name;  // of the file, for messages
  Form form = Form::yaml;
  std::string text;            // of all
  std::vector<Document> list;  // empty ones, which are null, too

  [[nodiscard]] bool empty() const;  // nothing but comments
};

// A file of which nothing is understood yet.
struct Text {
  std::string name;  // of the file, for messages
  std::string text;
};

// The file, or standard input of "-". Throws Error (usage) for what cannot be read or is too large.
[[nodiscard]] Text read_text(const std::string& file);

// The same, understood. Throws Error (usage) that names the file and the line for what is neither YAML nor JSON, too.
[[nodiscard]] Documents read_documents(const std::string& file);

// The same of a text, as kubectl reads it: JSON if it begins as JSON does, else YAML. Anchors, aliases and merge keys
// are resolved; a key that is there twice, or that is a list or mapping, is refused.
[[nodiscard]] Documents parse_documents(std::string text, std::string name, const Limits& limits = {});
[[nodiscard]] Documents parse_documents(Text of);
// The same, but that documents may have a problem: those after them are read all the same.
[[nodiscard]] Documents parse_each_document(std::string text, std::string name, const Limits& limits = {});

// "web.yaml", "web.yaml, line 12": where a message points to.
[[nodiscard]] std::string place(std::string_view name, std::size_t line);

// The two forms, each of one document or several. A document of YAML may have a problem; JSON that is wrong throws.
[[nodiscard]] std::vector<Document> parse_yaml(std::string_view text, std::string_view name, const Limits& limits = {});
[[nodiscard]] std::vector<Document> parse_json(std::string_view text, std::string_view name, const Limits& limits = {});

}  // namespace sidetrack::manifest
