// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "inject/manifest/report.h"
#include "lint/lint.h"
#include "options/options.h"

namespace sidetrack::manifest {

// The files of --values in their order, then --set, as Helm does, over what profiles set. `warnings` gets what counts
// and is not taken into account. Throws Error (usage) for values that no pod could be injected with.
[[nodiscard]] HelmValues helm_values(const ManifestOptions& options, std::vector<std::string>& warnings);

// Called once all files are read, before anything of them is understood.
using AllIsRead = std::function<void()>;

// Returns what the pods of the files ask for. `warnings` gets what a reader of the result should know, `errors` what is
// wrong with files, documents and pods, which are skipped.
[[nodiscard]] std::vector<PodArguments> arguments(
    const ManifestOptions& options, std::vector<std::string>& warnings, std::vector<std::string>& errors,
    const AllIsRead& all_is_read = [] {});

// The files with the template put into their pods, one after the other; `notes` gets why some are left as they are.
// Throws Error (usage) before anything is returned.
[[nodiscard]] std::string injected(
    const ManifestOptions& options, std::vector<std::string>& notes, std::vector<std::string>& warnings,
    const AllIsRead& all_is_read = [] {});

// The options that the one pod of --pod stands for. Throws Error (usage) if the file has none or several, or if it is
// not injected.
[[nodiscard]] OptionsOfPod options_of_pod(const ManifestOptions& options);
// What else that file says of it. Throws in the same way.
[[nodiscard]] lint::PodFacts facts_of_pod(const ManifestOptions& options);

}  // namespace sidetrack::manifest
