// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

namespace sidetrack::cli {

// Before anything is opened: descriptors 0 to 2 that are closed become ones that can neither be read nor written
// (EBADF), so that none of them is ever a socket or a file of ours. A reader who goes away no longer ends the process:
// in the middle of apply that would leave half of the work; the write fails with EPIPE instead, and with EFBIG where
// files may be no larger (ulimit -f).
void prepare_standard_streams();

// Ends the process as the closed pipe would have without prepare_standard_streams(): by SIGPIPE. Returns if the signal
// was ignored from the beginning.
void end_by_closed_pipe();

}  // namespace sidetrack::cli
