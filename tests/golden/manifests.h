// SPDX-License-Identifier: GPL-2.0-or-later
// The manifests of tests/golden/manifests: NAME.yaml, with further options of `sidetrack args` in NAME.options.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace sidetrack {

struct Manifest {
  std::string name;
  std::filesystem::path file;                            // the manifest
  [[nodiscard]] std::filesystem::path expected() const;  // what `args` says of it
};

// All of them, by name.
[[nodiscard]] const std::vector<Manifest>& manifests();

// What `args` prints, then what it prints with --why.
[[nodiscard]] std::string said_of(const Manifest& manifest);

}  // namespace sidetrack
