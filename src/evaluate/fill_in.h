// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "model/packet.h"
#include "model/pod.h"

namespace sidetrack {

class Observer;

// The packet with everything filled in that the kernel, or the network, would have chosen. Throws usage for what cannot
// be: an interface that the pod has not, an address that is not its own for `lo`.
[[nodiscard]] Packet filled_in(Packet packet, const PodView& pod, Observer* observer = nullptr);

}  // namespace sidetrack
