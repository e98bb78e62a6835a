// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "cni/network_configuration.h"
#include "cni/plugin.h"

namespace sidetrack::cni {

// Whether ADD could succeed: by what the kernel and the permissions allow in a network namespace that is made for it
// (this process stays in it), and by the plugin's place in the conflist of the runtime. Throws CniError (not_available)
// with the reason.
void require_available(const NetworkConfiguration& configuration, const Confine& confine);

}  // namespace sidetrack::cni
