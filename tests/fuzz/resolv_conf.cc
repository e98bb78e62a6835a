// SPDX-License-Identifier: GPL-2.0-or-later
// The text of a resolv.conf: its name servers, written again, are the same ones.
#include "fuzz.h"
#include "host/host.h"

using namespace sidetrack;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> warnings;
  const auto servers = name_servers(fuzz::text_of(data, size), "/etc/resolv.conf", warnings);
  for (const std::string& warning : warnings) fuzz::require(printable(warning) == warning, warning);

  std::string text;
  for (const Address& server : servers) text += "nameserver " + server.text() + "\n";
  std::vector<std::string> none;
  fuzz::require(name_servers(text, "again", none) == servers, text);
  fuzz::require(none.empty(), text);
  return 0;
}
