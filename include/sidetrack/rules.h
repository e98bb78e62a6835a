// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <sidetrack/options.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sidetrack {

// What becomes of one packet, and why: a value that refers to nothing. All text is safe to print: what a terminal would
// obey is escaped.
struct Explanation {
  enum class Result : std::uint8_t {
    lands,       // in this pod, at address:port
    leaves,      // the pod, for address:port
    forwarded,   // is not for this pod; goes on to address:port if the pod forwards
    dropped,     // by a rule or a policy
    unroutable,  // never sent: there is no route
    unknown,     // cannot be known
  };
  Result result = Result::unknown;
  std::string address;     // "127.0.0.1", "fd00::1"; empty unless it lands, leaves or is forwarded
  std::uint16_t port = 0;  // host byte order; 0: none (icmp), or not known

  std::string sentence;             // "lands on 127.0.0.1:15001 (Envoy outbound); original destination 10.96.0.10:443"
  std::vector<std::string> doubts;  // what was taken for granted, a sentence each
  std::string text;                 // the whole way with each rule, for people
  std::string json;                 // the same as the document of `sidetrack explain --json`
};

// The rules that the options ask for, in every form that `sidetrack render` prints. Nothing is touched, no privilege is
// needed. A value that never changes: copies are cheap, and any number of threads may use one.
class Rules {
 public:
  // Makes the rules, from copies of the options. What they leave open is read from this host: /etc/passwd, /etc/group,
  // /etc/resolv.conf, the addresses of the calling thread's network namespace. Throws Error: usage if a user or a group
  // is unknown, else failed or not_permitted if something cannot be read.
  explicit Rules(const Options& options);

  // Returns what iptables-restore --noflush takes; empty if there is no rule of IPv4.
  [[nodiscard]] std::string iptables_restore() const;
  // Returns what ip6tables-restore --noflush takes; empty if there is no rule of IPv6.
  [[nodiscard]] std::string ip6tables_restore() const;
  // Returns what nft -f takes: the table `inet sidetrack` in the place of the one that may be there.
  [[nodiscard]] std::string nft() const;
  // Returns every rule with its flag and its reason, policy routing, and the configuration. Marks are numbers as `ip
  // rule` and iptables take them, in host byte order.
  [[nodiscard]] std::string json() const;
  // Returns a drawing of connections and of the chains, both families.
  [[nodiscard]] std::string svg() const;

  // Returns what should be looked at, a sentence each: "no name server in /etc/resolv.conf: DNS is not captured". They
  // live as long as these rules or a copy of them.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept;

  // Returns what would become of a packet under these rules alone, in a pod with addresses of documentation (192.0.2.2,
  // 2001:db8::2). The words are those after `sidetrack explain`: {"out", "tcp", "10.96.0.10:443", "--uid", "1000"}.
  // Throws Error (usage).
  [[nodiscard]] Explanation explain(const std::vector<std::string>& packet) const;

 private:
  struct Values;
  std::shared_ptr<const Values> values_;
};

}  // namespace sidetrack
