// SPDX-License-Identifier: GPL-2.0-or-later
// What joins namespaces.
#pragma once

#include <string>

#include "support/namespace.h"

namespace sidetrack::netns {

// Runs lines of `ip -batch` inside.
void ip(const Namespace& where, const std::string& lines);

// A veth pair from one namespace to another, both ends up and carrying packets.
void join(const Namespace& here, const std::string& name, const Namespace& there, const std::string& other_name);

// For instance set_sysctl(pod, "ipv4/ip_forward", "1"): of net/.
void set_sysctl(const Namespace& where, const std::string& name, const std::string& value);

// No duplicate address detection: an IPv6 address, link-local ones too, could not be used for its first second. What
// is left of it happens in the background still: wait_for_addresses returns when every address can be used.
void trust_addresses(const Namespace& where);
void wait_for_addresses(const Namespace& where);

}  // namespace sidetrack::netns
