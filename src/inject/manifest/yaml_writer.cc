// SPDX-License-Identifier: GPL-2.0-or-later
#include <yaml.h>

#include <new>
#include <stdexcept>

#include "inject/manifest/scalar.h"
#include "inject/manifest/write.h"
#include "model/error.h"

namespace sidetrack::manifest {
namespace {

// Block scalars that libyaml does not write as it reads them (blanks at odd places) become quoted ones.
enum class Blocks : bool { kept, quoted };

yaml_scalar_style_t style_of(Node::Style style, bool is_string, Blocks blocks) {
  switch (style) {
    case Node::Style::single_quoted:
      return YAML_SINGLE_QUOTED_SCALAR_STYLE;
    case Node::Style::literal:
    case Node::Style::folded:
      return blocks == Blocks::kept ? YAML_LITERAL_SCALAR_STYLE : YAML_DOUBLE_QUOTED_SCALAR_STYLE;
    case Node::Style::plain:
      return is_string && blocks == Blocks::quoted ? YAML_DOUBLE_QUOTED_SCALAR_STYLE : YAML_PLAIN_SCALAR_STYLE;
    case Node::Style::double_quoted:
      break;
  }
  return YAML_DOUBLE_QUOTED_SCALAR_STYLE;
}

class Writer {
 public:
  explicit Writer(Blocks blocks) : blocks_(blocks) {
    if (yaml_emitter_initialize(&emitter_) == 0) throw std::bad_alloc();
    yaml_emitter_set_output(&emitter_, append, &text_);
    yaml_emitter_set_unicode(&emitter_, 1);
    yaml_emitter_set_width(&emitter_, -1);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { yaml_emitter_delete(&emitter_); }

  std::string written(const Node& root) {
    yaml_event_t event;
    emit(event, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
    emit(event, yaml_document_start_event_initialize(&event, nullptr, nullptr, nullptr, 1));
    write(root);
    emit(event, yaml_document_end_event_initialize(&event, 1));
    emit(event, yaml_stream_end_event_initialize(&event));
    return std::move(text_);
  }

 private:
  static int append(void* text, unsigned char* bytes, std::size_t size) {
    static_cast<std::string*>(text)->append(reinterpret_cast<const char*>(bytes), size);
    return 1;
  }

  // The emitter owns the event from then on.
  void emit(yaml_event_t& event, int made) {
    if (made == 0) throw std::bad_alloc();
    if (yaml_emitter_emit(&emitter_, &event) == 0)
      throw std::runtime_error(std::string("libyaml: ") + (emitter_.problem == nullptr ? "" : emitter_.problem));
  }

  void scalar(const std::string& text, Node::Style style, bool is_string) {
    yaml_event_t event;
    emit(event,
         yaml_scalar_event_initialize(&event, nullptr, nullptr, reinterpret_cast<const unsigned char*>(text.data()),
                                      static_cast<int>(text.size()), 1, 1, style_of(style, is_string, blocks_)));
  }

  void write(const Node& node) {
    yaml_event_t event;
    switch (node.type) {
      case Node::Type::list:
        emit(event, yaml_sequence_start_event_initialize(
                        &event, nullptr, nullptr, 1, node.flow ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE));
        for (const Node& item : node.items) write(item);
        emit(event, yaml_sequence_end_event_initialize(&event));
        break;
      case Node::Type::mapping:
        emit(event, yaml_mapping_start_event_initialize(
                        &event, nullptr, nullptr, 1, node.flow ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE));
        for (const Entry& entry : node.entries) {
          scalar(entry.key, entry.style, true);
          write(entry.value);
        }
        emit(event, yaml_mapping_end_event_initialize(&event));
        break;
      default:
        // An empty plain scalar is null to some readers only.
        scalar(node.is_null() && node.text.empty() ? "null" : node.text, node.style, node.type == Node::Type::string);
    }
  }

  yaml_emitter_t emitter_{};
  std::string text_;
  Blocks blocks_;
};

bool reads_back(const std::string& text, const Node& root) {
  try {
    const auto documents = parse_yaml(text, "");
    return documents.size() == 1 && !documents[0].problem && documents[0].root == root;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::string yaml_text(const Node& root) {
  for (const Blocks blocks : {Blocks::kept, Blocks::quoted}) {
    std::string text = Writer(blocks).written(root);
    if (reads_back(text, root)) return text;
  }
  throw std::runtime_error("a document cannot be written as YAML that reads back as it");
}

}  // namespace sidetrack::manifest
