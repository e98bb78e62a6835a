// SPDX-License-Identifier: GPL-2.0-or-later
// A pod, the program under test, and where connections land.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "support/kernel_test.h"
#include "support/pod.h"

namespace sidetrack::netns {

// What the injected init container passes. `-x` has its value left out.
inline constexpr std::string_view injected = "-p 15001 -z 15006 -u 1337 -m REDIRECT -i * -x -b * -d 15090,15021,15020";

inline constexpr std::uint16_t status_ports[] = {15090, 15021, 15020};  // its `-d`: for the kubelet and Prometheus

// The program that was built with these tests, or the one that $SIDETRACK_PROGRAM names, for instance an installed one.
[[nodiscard]] std::string program_under_test();

using Setting = std::tuple<const char*, Family>;  // the backend, and which family the connections are of

inline constexpr const char* backends[] = {"iptables-legacy", "iptables-nft", "nftables"};

// "iptables_nft": INSTANTIATE_TEST_SUITE_P(, Suite, ::testing::ValuesIn(backends), backend_name).
[[nodiscard]] std::string backend_name(const ::testing::TestParamInfo<const char*>& backend);

// Every backend with every family: INSTANTIATE_TEST_SUITE_P(, Suite, settings(), setting_name).
inline auto settings(Families families = Families::both()) {
  return ::testing::Combine(::testing::ValuesIn(backends), ::testing::ValuesIn(families.list()));
}
[[nodiscard]] std::string setting_name(const ::testing::TestParamInfo<Setting>& setting);

class Traffic : public KernelTest, public ::testing::WithParamInterface<Setting> {
 protected:
  Traffic() = default;
  explicit Traffic(Pod::Options options) : options_(options) {}
  void SetUp() override;

  // Runs `sidetrack apply` in the pod, for both families, with these options, separated by blanks (there is no
  // shell: `*` is a star). Throws with its messages if it fails.
  void apply(std::string_view options, const std::vector<std::string>& environment = {}) const;

  // Where a connection lands; where a datagram lands. The client's address and the answer's are compared, too.
  [[nodiscard]] Landing connect(const Actor& actor, const Endpoint& to) const;
  [[nodiscard]] Landing send(const Actor& actor, const Endpoint& to) const;

  // As the proxy, from the address that it keeps for connections to its app: 127.0.0.6, or ::6, which apply adds to lo.
  [[nodiscard]] Landing connect_from_inbound_source(const Endpoint& to) const;

  [[nodiscard]] Family family() const { return std::get<Family>(GetParam()); }
  [[nodiscard]] const Addresses& at() const { return addresses(family()); }
  [[nodiscard]] Endpoint pod(std::uint16_t port) const { return {at().pod, port}; }
  [[nodiscard]] Endpoint loopback(std::uint16_t port) const { return {at().any_loopback, port}; }
  [[nodiscard]] Endpoint service(std::uint16_t port) const { return {at().service, port}; }
  [[nodiscard]] Endpoint other_service(std::uint16_t port) const { return {at().other_service, port}; }
  [[nodiscard]] Endpoint excluded(std::uint16_t port) const { return {at().excluded, port}; }

  // The two families' values of an option that takes both: "10.96.0.0/16,fd00:96::/32".
  [[nodiscard]] static std::string both(std::string_view Addresses::*which);

  std::optional<Pod> pod_;

 private:
  Pod::Options options_;
};

}  // namespace sidetrack::netns
