// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include "model/printable.h"
#include "render/json_parts.h"
#include "render/layout.h"
#include "render/render.h"

namespace sidetrack {

std::string lint_text(const lint::Findings& findings, bool color) {
  if (findings.empty()) return "no findings\n";
  std::string text;
  for (const lint::Finding& one : findings) {
    const lint::CodeInfo& code = info(one.code);
    text += fmt::format("{} {}: {}\n", styled(std::string(code.name), Style::bold, color), code.title,
                        styled(printable(one.subject), Style::bold, color));
    text += fmt::format("  why      {}\n", printable(one.message));
    if (!one.witness.empty())
      text += fmt::format("  witness  sidetrack explain {}\n           -> {}\n", one.witness, one.ending);
    text += fmt::format("  remedy   {}\n", printable(one.remedy));
    if (one.more > 0) text += fmt::format("  more     {} like this one are not listed\n", grouped(one.more));
  }
  return text;
}

std::string lint_json(const lint::Findings& findings) {
  Json list = array_of(findings, [](const lint::Finding& one) -> Json {
    const lint::CodeInfo& code = info(one.code);
    return object({{"code", code.name},
                   {"title", code.title},
                   {"subject", one.subject},
                   {"message", one.message},
                   {"witness", one.witness},
                   {"ending", one.ending},
                   {"remedy", one.remedy},
                   {"more", one.more}});
  });
  return dumped(object({{"findings", std::move(list)}}));
}

}  // namespace sidetrack
