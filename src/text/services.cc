// SPDX-License-Identifier: GPL-2.0-or-later
#include "text/services.h"

#include <algorithm>

namespace sidetrack {
namespace {

struct Service {
  std::string_view name;
  std::uint16_t port;
};
constexpr Service services[] = {
    {"ftp-data", 20},      {"ftp", 21},           {"ssh", 22},     {"telnet", 23},
    {"smtp", 25},          {"domain", 53},        {"bootps", 67},  {"bootpc", 68},
    {"tftp", 69},          {"http", 80},          {"www", 80},     {"kerberos", 88},
    {"pop3", 110},         {"sunrpc", 111},       {"ntp", 123},    {"netbios-ns", 137},
    {"imap2", 143},        {"snmp", 161},         {"bgp", 179},    {"ldap", 389},
    {"https", 443},        {"microsoft-ds", 445}, {"isakmp", 500}, {"syslog", 514},
    {"submission", 587},   {"ipp", 631},          {"ldaps", 636},  {"domain-s", 853},
    {"imaps", 993},        {"pop3s", 995},        {"socks", 1080}, {"openvpn", 1194},
    {"ms-sql-s", 1433},    {"nfs", 2049},         {"mysql", 3306}, {"ms-wbt-server", 3389},
    {"ipsec-nat-t", 4500}, {"sip", 5060},         {"mdns", 5353},  {"postgresql", 5432},
    {"amqps", 5671},       {"amqp", 5672},        {"redis", 6379}, {"http-alt", 8080},
    {"webcache", 8080},    {"tproxy", 8081},      {"git", 9418},   {"zabbix-agent", 10050},
};

}  // namespace

std::optional<std::uint16_t> port_of_service(std::string_view name) {
  const auto* found = std::ranges::find(services, name, &Service::name);
  if (found == std::end(services)) return {};
  return found->port;
}

std::string with_port_numbers(std::string_view ports) {
  constexpr std::string_view separators = ",:";
  std::string made = ports.starts_with(':') ? "0" : "";
  while (!ports.empty()) {
    const std::string_view name = ports.substr(0, ports.find_first_of(separators));
    const auto port = port_of_service(name);
    made += port ? std::to_string(*port) : name;
    ports.remove_prefix(name.size());
    if (ports.empty()) break;
    made += ports.front();
    ports.remove_prefix(1);
  }
  if (made.ends_with(':')) made += "65535";
  return made;
}

}  // namespace sidetrack
