// SPDX-License-Identifier: GPL-2.0-or-later
#include "support/network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <stdexcept>

namespace sidetrack::netns {
namespace {

void wait_until(const auto& condition, const std::string& what) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("waited in vain until " + what);
    std::this_thread::yield();
  }
}

// The carrier comes up in the background; until then packets are dropped, and IPv6 addresses wait.
void wait_for_carrier(const Namespace& where, const std::string& interface) {
  where.run([&] {
    const FileDescriptor socket(check(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
    ifreq request{};
    std::strncpy(request.ifr_name, interface.c_str(), IFNAMSIZ - 1);
    const auto running = [&] {
      check(ioctl(socket.get(), SIOCGIFFLAGS, &request), "look at " + interface);
      return (request.ifr_flags & IFF_RUNNING) != 0;
    };
    wait_until(running, interface + " is running");
  });
}

// Of the calling thread's namespace. A line of if_inet6(5): address, index, prefix, scope, flags, all hexadecimal;
// name.
bool all_addresses_usable() {
  std::ifstream lines("/proc/thread-self/net/if_inet6");
  std::string address, index, prefix, scope, flags, interface;
  while (lines >> address >> index >> prefix >> scope >> flags >> interface)
    if ((std::stoul(flags, nullptr, 16) & IFA_F_TENTATIVE) != 0) return false;
  return true;
}

}  // namespace

void ip(const Namespace& where, const std::string& lines) { where.must({"ip", "-batch", "-"}, lines); }

// Each end has an interface index that no other has: for an end whose index is its peer's, too, the kernel thinks
// itself in no hurry to notice the carrier, and takes up to a second (linkwatch_urgent_event, as of 6.18).
void join(const Namespace& here, const std::string& name, const Namespace& there, const std::string& other_name) {
  static std::atomic<int> index = 100;
  ip(here, fmt::format("link add {} index {} up type veth peer name {} index {} netns /proc/{}/fd/{}\n", name, ++index,
                       other_name, ++index, getpid(), there.fd()));
  ip(there, "link set " + other_name + " up\n");
  wait_for_carrier(here, name);
  wait_for_carrier(there, other_name);
}

void set_sysctl(const Namespace& where, const std::string& name, const std::string& value) {
  where.run([&] {
    const std::string path = "/proc/sys/net/" + name;  // shows the namespace of the thread that opens it
    const FileDescriptor file(check(open(path.c_str(), O_WRONLY | O_CLOEXEC), "open " + path));
    check(write(file.get(), value.data(), value.size()), "write to " + path);
  });
}

void trust_addresses(const Namespace& where) {
  set_sysctl(where, "ipv6/conf/all/accept_dad", "0");
  set_sysctl(where, "ipv6/conf/default/accept_dad", "0");
}

void wait_for_addresses(const Namespace& where) {
  where.run([] { wait_until(all_addresses_usable, "every IPv6 address can be used"); });
}

}  // namespace sidetrack::netns
