// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/address.h"
#include "model/protocol.h"
#include "model/range.h"

namespace sidetrack {

struct AddressTypeMatch;
struct ConnectionMatch;

enum class InterfaceDirection : std::uint8_t { in, out };
enum class OwnerKind : std::uint8_t { uid, gid };

// Hears what a match asks of a packet, negated or not: which values of which field. A match that asks for a field that
// no other asks for has a function here, and the compiler names all that work with whole sets of packets.
class Asked {
 public:
  Asked() = default;
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  virtual ~Asked() = default;

  virtual void interface(InterfaceDirection direction, const std::string& name) = 0;  // eth0, eth+
  virtual void addresses(End end, const std::vector<AddressRange>& ranges) = 0;
  virtual void address_type(const AddressTypeMatch& match) = 0;  // see AddressTypeMatch::answers
  virtual void ends(const ConnectionMatch& match) = 0;           // see ConnectionMatch::questions
  virtual void protocol(Protocol protocol) = 0;
  virtual void ports(End end, const std::vector<PortRange>& ports) = 0;
  virtual void ids(OwnerKind kind, const std::vector<IdRange>& ids) = 0;
  virtual void socket() = 0;                                           // whether a process of this namespace sends it
  virtual void cgroup(const std::string& path) = 0;                    // empty: one whose path is not known
  virtual void mark(std::uint32_t value, std::uint32_t mask) = 0;      // host byte order
  virtual void connmark(std::uint32_t value, std::uint32_t mask) = 0;  // the same, of the connection
  virtual void connection() = 0;                                       // its state or direction
};

}  // namespace sidetrack
