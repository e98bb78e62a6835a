// SPDX-License-Identifier: GPL-2.0-or-later
// What a CNI runtime writes to the plugin, and the files of the runtime that the plugin's entry is put into: with it
// and without it nothing else changes.
#include "fuzz.h"
#include "node/call.h"
#include "node/cni_error.h"
#include "node/conflist.h"
#include "node/network_configuration.h"
#include "options/options.h"

using namespace sidetrack;
using namespace sidetrack::cni;

namespace {

constexpr std::string_view entry = R"({"type": "sidetrack-cni", "uid": 1337})";

void read_call_of(std::string_view text) {
  for (const Keys keys : {Keys::protocol, Keys::all}) {
    try {
      const NetworkConfiguration configuration = read_configuration(text, keys);
      if (keys != Keys::all) continue;
      static_cast<void>(parse_apply(configuration.options));
      if (!configuration.annotations) continue;
      const Interception asked = interception(*configuration.annotations);
      if (asked.left_alone.empty()) static_cast<void>(parse_apply(asked.options));
    } catch (const CniError& error) {
      fuzz::require(printable(error.what()) == error.what(), error.what());
      fuzz::require(json(error, version_to_answer_in(text)).ends_with("}\n"), json(error, "1.0.0"));
    } catch (const Error& error) {
      fuzz::require_readable(error);
    }
  }
  try {
    static_cast<void>(version_answer(text));
  } catch (const CniError&) {
  }
}

void put_entry(const std::string& text, Form form) {
  Conflist list;
  try {
    list = read_conflist("10-net", text, form);
  } catch (const Error& error) {
    fuzz::require_readable(error);
    return;
  }
  Ordered without;
  try {
    without = without_entry("10-net", list);
  } catch (const Error& error) {
    fuzz::require_readable(error);
    return;
  }
  if (!list.has_entry()) fuzz::require(without == list.document, without.dump());
  std::string with;
  try {
    with = file_text(with_entry("10-net", list, entry));
  } catch (const Error& error) {
    fuzz::require_readable(error);
    return;
  }
  const Conflist again = read_conflist("10-net", with, Form::list);
  fuzz::require(again.entry_at_end() == Ordered::parse(entry), with);
  fuzz::require(without_entry("10-net", again) == without, with);
  fuzz::require(file_text(with_entry("10-net", again, entry)) == with, with);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  read_call_of(text);
  put_entry(std::string(text), Form::list);
  put_entry(std::string(text), Form::single);

  // The arguments of a call stand in the environment.
  try {
    static_cast<void>(read_call([&](std::string_view name) -> std::optional<std::string_view> {
      if (name == "CNI_COMMAND") return "ADD";
      if (name == "CNI_ARGS") return text;
      if (name == "CNI_CONTAINERID") return text.substr(0, text.size() / 2);
      return text;
    }));
  } catch (const CniError& error) {
    fuzz::require(printable(error.what()) == error.what(), error.what());
  }
  return 0;
}
