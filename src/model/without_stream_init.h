// SPDX-License-Identifier: GPL-2.0-or-later
// Stands before a library's header that includes <iostream>. Each program in which that is included sets up eight
// streams when it starts, eleven page faults and a tenth of the time in which this one prints its version; nothing here
// uses them. So libstdc++'s header counts as read, and what it declares is declared.
#pragma once

#include <istream>
#include <ostream>

#ifdef __GLIBCXX__
#define _GLIBCXX_IOSTREAM 1  // NOLINT: the guard of libstdc++'s <iostream>
namespace std {              // NOLINT: as that header has them
extern istream cin;
extern ostream cout;
extern ostream cerr;
extern ostream clog;
}  // namespace std
#endif
