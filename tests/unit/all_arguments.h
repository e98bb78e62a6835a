// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>
#include <vector>

#include "inject/manifest/arguments.h"
#include "model/error.h"

namespace sidetrack::testing {

// What `args` prints of files without errors. Throws the first error.
inline std::vector<manifest::PodArguments> all_arguments(
    const ManifestOptions& options, std::vector<std::string>& warnings,
    const manifest::AllIsRead& all_is_read = [] {}) {
  std::vector<std::string> errors;
  auto made = manifest::arguments(options, warnings, errors, all_is_read);
  if (!errors.empty()) throw Error(ExitCode::usage, errors.front());
  return made;
}

}  // namespace sidetrack::testing
