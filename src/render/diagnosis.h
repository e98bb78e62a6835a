// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <string>

#include "doctor/doctor.h"

namespace sidetrack {

// A table that a person reads at a glance; the whole as indented JSON.
[[nodiscard]] std::string diagnosis_text(const Diagnosis& diagnosis, bool color);
[[nodiscard]] std::string diagnosis_json(const Diagnosis& diagnosis);

}  // namespace sidetrack
