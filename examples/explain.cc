// SPDX-License-Identifier: GPL-2.0-or-later
// Which rules do Istio's usual options make, and what becomes of a packet under them?
//
//   explain [PACKET…]      for instance: explain out tcp 10.96.0.10:443 --uid 1000
#include <sidetrack/error.h>
#include <sidetrack/options.h>
#include <sidetrack/rules.h>
#include <sidetrack/version.h>

#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  std::vector<std::string> packet(argv + 1, argv + argc);
  if (packet.empty()) packet = {"out", "tcp", "10.96.0.10:443", "--uid", "1000"};
  try {
    const auto options =
        sidetrack::Options::parse({"-u", "1337", "-i", "*", "-b", "*", "-d", "15090,15021", "--ip-families", "ipv4"});
    const sidetrack::Rules rules(options);
    const sidetrack::Explanation explanation = rules.explain(packet);
    std::cout << "# sidetrack " << sidetrack::version << '\n'
              << rules.iptables_restore() << '\n'
              << explanation.text << '\n'
              << explanation.sentence << '\n';
    return explanation.result == sidetrack::Explanation::Result::unknown ? 1 : 0;
  } catch (const sidetrack::Error& error) {
    std::cerr << "explain: " << error.what() << (error.hint().empty() ? "" : "; ") << error.hint() << '\n';
    return static_cast<int>(error.code());
  }
}
