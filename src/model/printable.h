// SPDX-License-Identifier: GPL-2.0-or-later
// Text from outside: names and comments of the kernel's rules, files of a pod, values of the command line.
// A terminal must not obey it, and it must not pretend to be a line of ours.
#pragma once

#include <string>
#include <string_view>

namespace sidetrack {

// The text with everything that is not plainly visible as an escape: control characters of ASCII and of C1, marks that
// change the direction of writing, invisible characters and what is no UTF-8 ("\x1b", "\u202e", "\xff"). A backslash
// stays as it is: a second call changes nothing.
[[nodiscard]] std::string printable(std::string_view text);

// The same of a text of several lines: line feeds and tabs stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

// The same of a page for a terminal: what styled() writes stays, too.
[[nodiscard]] std::string printable_page(std::string_view text);

// A value in a message: printable, and of a long one the first 80 characters and its size.
[[nodiscard]] std::string excerpt(std::string_view value);

// For JSON, whose text is UTF-8: only what is none is escaped; and a document's text with the rest as JSON writes it,
// which loses nothing: "\u202e".
[[nodiscard]] std::string valid_utf8(std::string_view text);
[[nodiscard]] std::string printable_json(std::string_view document);

}  // namespace sidetrack
