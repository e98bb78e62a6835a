// SPDX-License-Identifier: GPL-2.0-or-later
#include "node/cni_error.h"

#include "render/json_parts.h"

namespace sidetrack::cni {

CniError::CniError(const Error& error)
    : CniError(error.code() == ExitCode::busy
                   ? Code::try_again
                   : static_cast<Code>(static_cast<unsigned>(Code::own) + static_cast<unsigned>(error.code())),
               error.what(), error.code() == ExitCode::not_permitted ? std::string(missing_rights) : error.hint()) {}

std::string json(const CniError& error, std::string_view cni_version) {
  Json document =
      object({{"cniVersion", cni_version}, {"code", static_cast<unsigned>(error.code())}, {"msg", error.what()}});
  if (!error.details().empty()) document["details"] = error.details();
  return dumped(std::move(document));
}

}  // namespace sidetrack::cni
