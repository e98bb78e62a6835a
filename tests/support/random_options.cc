// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/random_options.h"

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>
#include <vector>

#include "pod/ztunnel.h"
#include "support/traffic.h"

namespace sidetrack::netns {
namespace {

std::string both(std::string_view Addresses::*which) {
  return fmt::format("{},{}", addresses(Family::ipv4).*which, addresses(Family::ipv6).*which);
}

}  // namespace

std::string random_options(Dice& dice) {
  const std::string ranges4 = std::string(addresses(Family::ipv4).service_range);
  const std::string ranges6 = std::string(addresses(Family::ipv6).service_range);
  std::vector<std::string> words;
  const auto add = [&](const std::string& flag, const std::string& value) {
    if (!value.empty()) words.push_back(flag + " " + value);
  };
  if (dice.percent(30)) {
    add("-m", "TPROXY");
    if (dice.percent(40)) add("--capture-udp", dice.one_of(std::vector<std::string>{"443", "53,5000-9000"}));
  }
  if (dice.percent(60)) {
    add("-b", "*");
    add("-d", dice.some_of({"8081", "15020", "15021", "15090", "15000-15100"}));
  } else {
    add("-b", dice.some_of({"80", "8080", "8081", "15020", "9", "8000-8080"}));
  }
  if (dice.percent(50)) {
    add("-i", "*");
  } else {
    add("-i", dice.some_of({ranges4, ranges6, "10.97.0.10/32", "fd00:97::10/128", "192.0.2.0/25", "10.1.0.0/16",
                            dice.percent(20) ? "127.1.2.0/24" : "10.2.0.0/16"}));
  }
  add("-x", dice.some_of({both(&Addresses::excluded_range), "10.97.0.0/16", "fd00:96::10/128", "10.96.0.53/32"}));
  if (dice.percent(40)) add("-q", dice.some_of({"443", "9443", "9", "80-443"}));
  if (dice.percent(40)) add("-o", dice.some_of({"8080", "443", "53", "8000-9000"}));
  if (dice.percent(12)) {
    add("-c", dice.percent(50) ? "net1" : "net+");
  } else if (dice.percent(15)) {
    add("-k", dice.percent(50) ? "net1" : "net+");
  }
  if (dice.percent(25)) {
    add("--exclude-inbound-ranges",
        dice.some_of({both(&Addresses::service_range), "10.96.0.10/32", "fd00:2::/64", "10.2.0.0/24", "10.1.0.1/32"}));
  }
  if (dice.percent(20)) {
    add("--include-inbound-ranges",
        dice.some_of({both(&Addresses::service_range), "10.0.0.0/8", "fd00::/8", "10.2.0.1/32"}));
  }
  if (dice.percent(20)) add("-u", dice.one_of(std::vector<std::string>{"1337,3000", "2000,1337", "1337"}));
  if (dice.percent(20)) add("-g", dice.one_of(std::vector<std::string>{"3000", "888,1337"}));
  if (dice.percent(15))
    add("--exclude-uids", dice.one_of(std::vector<std::string>{"1000", "2000-3000", "888,1000-1999"}));
  if (dice.percent(10)) add("--exclude-gids", dice.one_of(std::vector<std::string>{"1000", "888-1336,3000"}));
  if (dice.percent(15)) {
    add("--exclude-uid-ports",
        dice.one_of(std::vector<std::string>{"1000:443", "1000-3000:53,8000-9500", "2000:80,1000:53-442"}));
  }
  if (dice.percent(45)) {
    words.emplace_back("--redirect-dns");
    if (dice.percent(35)) {
      words.emplace_back("--capture-all-dns");
    } else {
      add("--dns-server", dice.percent(70) ? both(&Addresses::dns) : std::string(addresses(Family::ipv4).dns));
    }
  }
  if (dice.percent(25)) words.emplace_back("--drop-invalid");
  if (dice.percent(15)) add("-p", "16001");
  if (dice.percent(15)) add("-z", "16006");
  if (dice.percent(15)) add("-e", "8081");
  if (dice.percent(15)) words.emplace_back("ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR=127.0.0.0/8");
  if (dice.percent(12)) {
    words.emplace_back("ISTIO_OUTBOUND_OWNER_GROUPS=1000,3000");
  } else if (dice.percent(15)) {
    words.emplace_back("ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE=888,3000");
  }
  add("--ip-families", dice.percent(85) ? "ipv4,ipv6" : "ipv4");
  std::string options;
  for (const std::string& word : words) options += (options.empty() ? "" : " ") + word;
  return options;
}

std::string random_ambient_options(Dice& dice) {
  std::string options = "--dataplane ambient";
  const auto add = [&](unsigned chance, const char* words) {
    if (dice.percent(chance)) options += std::string(" ") + words;
  };
  add(30, "--ingress");
  add(50, "--redirect-dns");
  add(40, "-k net1");
  add(25, "-p 16001");
  add(25, "-z 16006");
  add(25, "-e 8081");
  // Of a host that sends and is sent to.
  add(40, "--probe-address 10.1.0.1 --probe-address6 fd00:1::1");
  options += dice.percent(85) ? " --ip-families ipv4,ipv6" : " --ip-families ipv4";
  return options;
}

PodOf::PodOf(const std::string& options)
    : pod_(Pod::Options{.transparent_proxy = options.find("TPROXY") != std::string::npos,
                        .ztunnel = options.find("ambient") != std::string::npos}) {
  const bool ztunnel = options.find("ambient") != std::string::npos;
  Actor inbound = ztunnel ? as_ztunnel : as_proxy;
  inbound.identity.keep_capabilities = true;
  const unsigned mark = ztunnel ? ztunnel_mark : 0;
  Ports captured{.tcp = {16006}, .udp = {16006}, .transparent = !ztunnel, .mark = mark};
  if (ztunnel) captured.udp.clear();
  pod_.listen(inbound, Role::proxy_inbound, captured);
  pod_.listen(ztunnel ? inbound : as_proxy, Role::proxy_outbound, {.tcp = {16001}, .udp = {}, .mark = mark});
}

void PodOf::apply(const char* backend, const std::string& options) const {
  std::vector<std::string> words{program_under_test(), "apply", "--backend", backend};
  std::vector<std::string> environment;
  std::istringstream split(options);
  for (std::string word; split >> word;) (word.starts_with("ISTIO_") ? environment : words).push_back(word);
  const Output output = pod_.ns().program(words, {}, environment);
  if (output.exit_code != 0) throw std::runtime_error("apply " + options + ":\n" + output.err);
}

}  // namespace sidetrack::netns
