// SPDX-License-Identifier: GPL-2.0-or-later
// How a CNI plugin fails: a code, a sentence and what to do, as JSON on standard output.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "model/error.h"

namespace sidetrack::cni {

// The codes of the CNI specification 1.1. From 100 on they are the plugin's own: 100 and the exit code of the program.
enum class Code : unsigned {
  incompatible_version = 1,
  environment = 4,
  input_output = 5,
  decoding = 6,
  configuration = 7,
  try_again = 11,
  not_available = 50,
  own = 100,
};

// What to do about them.
inline constexpr std::string_view missing_rights =
    "the plugin needs CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW: the runtime must run as root on the node";

class CniError : public std::runtime_error {
 public:
  CniError(Code code, const std::string& message, std::string details = {})
      : std::runtime_error(message), code_(code), details_(std::move(details)) {}
  // Busy becomes try_again, everything else a code of our own. Where rights are missing they are the plugin's, not, as
  // for an init container, the pod's.
  explicit CniError(const Error& error);

  [[nodiscard]] Code code() const noexcept { return code_; }
  [[nodiscard]] const std::string& details() const noexcept { return details_; }

 private:
  Code code_;
  std::string details_;
};

// {"cniVersion": …, "code": …, "msg": …, "details": …}
[[nodiscard]] std::string json(const CniError& error, std::string_view cni_version);

}  // namespace sidetrack::cni
