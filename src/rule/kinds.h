// SPDX-License-Identifier: GPL-2.0-or-later
// Lists the kinds of match and target. A new one has its file in rule/match or rule/target, and its name here and in
// match.h or target.h, which say what each kind has to know of itself.
#pragma once

#include <variant>

namespace sidetrack {

struct InterfaceMatch;
struct AddressMatch;
struct AddressTypeMatch;
struct ProtocolMatch;
struct PortMatch;
struct EitherPortMatch;
struct TcpFlagsMatch;
struct OwnerMatch;
struct ConntrackStateMatch;
struct ConntrackDirectionMatch;
struct ConnectionMatch;
struct MarkMatch;
struct ConnmarkMatch;
struct SocketMatch;
struct SetMatch;
struct CgroupMatch;
struct CommentMatch;
struct UnknownMatch;

// In the order in which the kernel asks: xtables keeps interface, address and protocol in the header of a rule.
using Match =
    std::variant<InterfaceMatch, AddressMatch, ProtocolMatch, PortMatch, EitherPortMatch, TcpFlagsMatch, OwnerMatch,
                 ConntrackStateMatch, ConntrackDirectionMatch, ConnectionMatch, MarkMatch, ConnmarkMatch, SocketMatch,
                 SetMatch, AddressTypeMatch, CgroupMatch, CommentMatch, UnknownMatch>;

struct Verdict;
struct Jump;
struct Redirect;
struct Tproxy;
struct SetMark;
struct Connmark;
struct CtZone;
struct NonTerminating;
struct SetConnmark;
struct Notrack;
struct Reject;
struct Nat;
struct UnknownTarget;

// In the order in which they are asked for words: a chain may have any name.
using Target = std::variant<Verdict, Redirect, Tproxy, SetMark, Connmark, CtZone, NonTerminating, SetConnmark, Notrack,
                            Reject, Nat, Jump, UnknownTarget>;

}  // namespace sidetrack
