// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/xt/plain_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/netfilter/xt_CHECKSUM.h>
#include <linux/netfilter/xt_CLASSIFY.h>
#include <linux/netfilter/xt_CT.h>
#include <linux/netfilter/xt_DSCP.h>
#include <linux/netfilter/xt_LOG.h>
#include <linux/netfilter/xt_NFLOG.h>
#include <linux/netfilter/xt_NFQUEUE.h>
#include <linux/netfilter/xt_TCPMSS.h>
#include <linux/netfilter/xt_cgroup.h>
#include <linux/netfilter/xt_connbytes.h>
#include <linux/netfilter/xt_connlabel.h>
#include <linux/netfilter/xt_connlimit.h>
#include <linux/netfilter/xt_cpu.h>
#include <linux/netfilter/xt_dscp.h>
#include <linux/netfilter/xt_ecn.h>
#include <linux/netfilter/xt_helper.h>
#include <linux/netfilter/xt_length.h>
#include <linux/netfilter/xt_limit.h>
#include <linux/netfilter/xt_mac.h>
#include <linux/netfilter/xt_physdev.h>
#include <linux/netfilter/xt_pkttype.h>
#include <linux/netfilter/xt_quota.h>
#include <linux/netfilter/xt_recent.h>
#include <linux/netfilter/xt_rpfilter.h>
#include <linux/netfilter/xt_socket.h>
#include <linux/netfilter/xt_statistic.h>
#include <linux/netfilter/xt_string.h>
#include <linux/netfilter/xt_tcpmss.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "rule/words.h"
#include "rule/xt/long_words.h"
#include "rule/xt/word_parts.h"

namespace sidetrack::xt {
namespace {

template <std::size_t size>
Words named(const char* const (&names)[size], std::size_t number) {
  if (number >= size) return {};
  return names[number];
}

// Returns " --length 4", or " ! --length 4".
Words invertible(std::uint32_t inverted, const std::string& option) {
  if (inverted > 1) return {};
  return (inverted != 0 ? " ! " : " ") + option;
}

// ---- Matches

constexpr NamedBit socket_flags[] = {{XT_SOCKET_TRANSPARENT, "--transparent"},
                                     {XT_SOCKET_NOWILDCARD, "--nowildcard"},
                                     {XT_SOCKET_RESTORESKMARK, "--restore-skmark"}};
Words socket_words(const xt_socket_mtinfo1& info) { return options_of(info.flags, socket_flags); }

Words limit_words(const xt_rateinfo& info) {
  constexpr std::uint32_t usual_burst = 5;
  if (info.avg == 0) return {};
  std::string words = fmt::format(" --limit {}", rate(info.avg, XT_LIMIT_SCALE).words);
  if (info.burst != usual_burst) words += fmt::format(" --limit-burst {}", info.burst);
  return words;
}

Words quota_words(const xt_quota_info& info) {
  return invertible(info.flags, fmt::format("--quota {}", std::uint64_t{info.quota}));
}

Words connlimit_words(const xt_connlimit_info& info) {
  if ((info.flags & ~unsigned{XT_CONNLIMIT_INVERT | XT_CONNLIMIT_DADDR}) != 0) return {};
  int prefix = 0;
  for (const std::uint32_t part : info.v6_mask) prefix += std::popcount(part);
  return fmt::format(" --connlimit-{} {} --connlimit-mask {} --connlimit-{}addr",
                     (info.flags & XT_CONNLIMIT_INVERT) != 0 ? "upto" : "above", info.limit, prefix,
                     (info.flags & XT_CONNLIMIT_DADDR) != 0 ? 'd' : 's');
}

Words length_words(const xt_length_info& info) {
  return invertible(info.invert, "--length " + interval(info.min, info.max));
}

// ipt_ttl_info and ip6t_hl_info: a comparison and a number.
struct HopInfo {
  std::uint8_t mode, hops;
};
Words hop_words(const HopInfo& info, const char* option) {
  constexpr const char* modes[] = {"eq", "eq", "lt", "gt"};  // the second inverted
  const Words mode = named(modes, info.mode);
  if (!mode) return {};
  return invertible(info.mode == 1 ? 1 : 0, fmt::format("--{}-{} {}", option, *mode, info.hops));
}
Words ttl_words(const HopInfo& info) { return hop_words(info, "ttl"); }
Words hl_words(const HopInfo& info) { return hop_words(info, "hl"); }

Words packet_type_words(const xt_pkttype_info& info) {
  constexpr const char* names[] = {"unicast", "broadcast", "multicast"};
  const Words name = named(names, static_cast<std::size_t>(info.pkttype));
  if (!name) return {};
  return invertible(static_cast<std::uint32_t>(info.invert), "--pkt-type " + *name);
}

Words dscp_words(const xt_dscp_info& info) {
  return invertible(info.invert, fmt::format("--dscp 0x{:02x}", info.dscp));
}

Words tos_words(const xt_tos_match_info& info) {
  return invertible(info.invert, fmt::format("--tos 0x{:02x}/0x{:02x}", info.tos_value, info.tos_mask));
}

Words ecn_words(const xt_ecn_info& info) {
  std::string words;
  const auto add = [&](unsigned bit, const std::string& option) {
    if ((info.operation & bit) != 0) words += ((info.invert & bit) != 0 ? " ! --ecn-" : " --ecn-") + option;
  };
  add(XT_ECN_OP_MATCH_ECE, "tcp-ece");
  add(XT_ECN_OP_MATCH_CWR, "tcp-cwr");
  add(XT_ECN_OP_MATCH_IP, fmt::format("ip-ect {}", info.ip_ect));
  return words;
}

Words mac_words(const xt_mac_info& info) {
  return invertible(static_cast<std::uint32_t>(info.invert),
                    fmt::format("--mac-source {:02x}", fmt::join(info.srcaddr, ":")));
}

Words statistic_words(const xt_statistic_info& info) {
  if ((info.flags & ~unsigned{XT_STATISTIC_MASK}) != 0) return {};
  const char* inverted = info.flags != 0 ? " !" : "";
  if (info.mode == XT_STATISTIC_MODE_RANDOM) {
    constexpr double all = 2147483648.0;  // the kernel compares 31 random bits
    return fmt::format(" --mode random{} --probability {:.11f}", inverted, info.u.random.probability / all);
  }
  if (info.mode != XT_STATISTIC_MODE_NTH) return {};
  return fmt::format(" --mode nth{} --every {} --packet {}", inverted, std::uint64_t{info.u.nth.every} + 1,
                     info.u.nth.packet);
}

// An interface, or the beginning of its name: as many bytes as the mask has.
Words interface_words(const char (&name)[IFNAMSIZ], const char (&mask)[IFNAMSIZ]) {
  const std::string text = text_of(name);
  const std::size_t compared = text_of(mask).size();
  if (compared == text.size() + 1) return word(text);
  if (compared == text.size()) return word(text + "+");
  return {};
}

Words physdev_words(const xt_physdev_info& info) {
  constexpr unsigned all = XT_PHYSDEV_OP_MASK;
  if ((info.bitmask & ~all) != 0) return {};
  std::string words;
  const auto add = [&](unsigned bit, const std::string& option) {
    if ((info.bitmask & bit) != 0) words += ((info.invert & bit) != 0 ? " ! --physdev-" : " --physdev-") + option;
  };
  const Words in = interface_words(info.physindev, info.in_mask);
  const Words out = interface_words(info.physoutdev, info.out_mask);
  if (((info.bitmask & XT_PHYSDEV_OP_IN) != 0 && !in) || ((info.bitmask & XT_PHYSDEV_OP_OUT) != 0 && !out)) return {};
  add(XT_PHYSDEV_OP_ISIN, "is-in");
  add(XT_PHYSDEV_OP_IN, "in " + in.value_or(""));
  add(XT_PHYSDEV_OP_ISOUT, "is-out");
  add(XT_PHYSDEV_OP_OUT, "out " + out.value_or(""));
  add(XT_PHYSDEV_OP_BRIDGED, "is-bridged");
  return words;
}

Words helper_words(const xt_helper_info& info) {
  return invertible(static_cast<std::uint32_t>(info.invert), "--helper " + word(text_of(info.name)));
}

Words cpu_words(const xt_cpu_info& info) { return invertible(info.invert, fmt::format("--cpu {}", info.cpu)); }

Words tcpmss_words(const xt_tcpmss_match_info& info) {
  return invertible(info.invert, "--mss " + interval(info.mss_min, info.mss_max));
}

Words string_words(const xt_string_info& info) {
  const unsigned flags = info.u.v1.flags;
  if ((flags & ~unsigned{XT_STRING_FLAG_INVERT | XT_STRING_FLAG_IGNORECASE}) != 0 ||
      info.patlen > XT_STRING_MAX_PATTERN_SIZE)
    return {};
  const std::string_view pattern(info.pattern, info.patlen);
  const bool printable = std::ranges::all_of(pattern, [](char c) { return c > ' ' && c <= '~' && c != '|'; });
  std::string words = (flags & XT_STRING_FLAG_INVERT) != 0 ? " !" : "";
  words += printable ? " --string " + in_quotes(pattern) : fmt::format(" --hex-string \"|{}|\"", hex(pattern));
  words += " --algo " + word(text_of(info.algo));
  if (info.from_offset != 0) words += fmt::format(" --from {}", info.from_offset);
  if (info.to_offset != 0) words += fmt::format(" --to {}", info.to_offset);
  if ((flags & XT_STRING_FLAG_IGNORECASE) != 0) words += " --icase";
  return words;
}

Words class_words(const xt_cgroup_info_v0& info) {
  return invertible(info.invert, fmt::format("--cgroup {}", info.id));
}

// A path has a kind of its own, but for that of the root.
Words cgroup_words(const xt_cgroup_info_v2& info) {
  const bool asks_class = info.has_path == 0 && info.has_classid == 1 && info.invert_path == 0;
  if (asks_class) return class_words({info.classid, info.invert_classid});
  const bool asks_root = info.has_path == 1 && info.has_classid == 0 && info.invert_classid == 0 &&
                         text_of(info.path) == "/" && std::ranges::count(info.path, '\0') == sizeof info.path - 1;
  if (!asks_root) return {};
  return invertible(info.invert_path, "--path \"/\"");
}

Words connbytes_words(const xt_connbytes_info& info) {
  constexpr const char* modes[] = {"packets", "bytes", "avgpkt"};
  constexpr const char* directions[] = {"original", "reply", "both"};
  const Words mode = named(modes, info.what);
  const Words direction = named(directions, info.direction);
  if (!mode || !direction) return {};
  // An interval that ends before it begins is an inverted one.
  const bool inverted = info.count.from > info.count.to;
  const std::uint64_t first = inverted ? info.count.to : info.count.from;
  const std::uint64_t last = inverted ? info.count.from : info.count.to;
  const std::string end = last == 0xffffffff ? "" : fmt::format("{}", last);
  return invertible(
      inverted, fmt::format("--connbytes {}:{} --connbytes-mode {} --connbytes-dir {}", first, end, *mode, *direction));
}

Words connlabel_words(const xt_connlabel_mtinfo& info) {
  if ((info.options & ~unsigned{XT_CONNLABEL_OP_INVERT | XT_CONNLABEL_OP_SET}) != 0) return {};
  return fmt::format("{} --label \"{}\"{}", (info.options & XT_CONNLABEL_OP_INVERT) != 0 ? " !" : "", info.bit,
                     (info.options & XT_CONNLABEL_OP_SET) != 0 ? " --set" : "");
}

constexpr NamedBit rpfilter_flags[] = {{XT_RPFILTER_LOOSE, "--loose"},
                                       {XT_RPFILTER_VALID_MARK, "--validmark"},
                                       {XT_RPFILTER_ACCEPT_LOCAL, "--accept-local"},
                                       {XT_RPFILTER_INVERT, "--invert"}};
Words rpfilter_words(const xt_rpfilter_info& info) { return options_of(info.flags, rpfilter_flags); }

Words recent_words(const xt_recent_mtinfo_v1& info) {
  constexpr NamedBit actions[] = {{XT_RECENT_SET, "--set"},
                                  {XT_RECENT_CHECK, "--rcheck"},
                                  {XT_RECENT_UPDATE, "--update"},
                                  {XT_RECENT_REMOVE, "--remove"}};
  const Words action = options_of(info.check_set & ~unsigned{XT_RECENT_MODIFIERS}, actions);
  if (!action || info.invert > 1 || info.side > XT_RECENT_DEST) return {};
  std::string words = (info.invert != 0 ? " !" : "") + *action;
  if (info.seconds != 0) words += fmt::format(" --seconds {}", info.seconds);
  if ((info.check_set & XT_RECENT_REAP) != 0) words += " --reap";
  if (info.hit_count != 0) words += fmt::format(" --hitcount {}", info.hit_count);
  if ((info.check_set & XT_RECENT_TTL) != 0) words += " --rttl";
  words += fmt::format(" --name {}", word(text_of(info.name)));
  std::string mask;
  for (const std::uint32_t part : info.mask.all) mask += fmt::format("{:08x}", part);
  if (mask != std::string(32, 'f')) words += " --mask " + mask;
  return words + (info.side == XT_RECENT_DEST ? " --rdest" : " --rsource");
}

// ipt_icmp and ip6t_icmp
struct IcmpInfo {
  std::uint8_t type, first_code, last_code, inverted;
};
Words icmp_words(const IcmpInfo& info, const char* option) {
  const bool any_code = info.first_code == 0 && info.last_code == 0xff;
  if (!any_code && info.first_code != info.last_code) return {};
  const std::string code = any_code ? "" : fmt::format("/{}", info.first_code);
  return invertible(info.inverted, fmt::format("--{}-type {}{}", option, info.type, code));
}
Words icmpv4_words(const IcmpInfo& info) {
  if (info.type == 0xff && info.first_code == 0 && info.last_code == 0xff && info.inverted == 0)
    return " --icmp-type any";
  return icmp_words(info, "icmp");
}
Words icmpv6_words(const IcmpInfo& info) { return icmp_words(info, "icmpv6"); }

// ---- Targets

Words nflog_words(const xt_nflog_info& info) {
  if ((info.flags & ~unsigned{XT_NFLOG_MASK}) != 0) return {};
  std::string words;
  const std::string prefix = text_of(info.prefix);
  if (!prefix.empty()) words += " --nflog-prefix " + word(prefix);
  if (info.group != 0) words += fmt::format(" --nflog-group {}", info.group);
  if ((info.flags & XT_NFLOG_F_COPY_LEN) != 0) words += fmt::format(" --nflog-size {}", info.len);
  if ((info.flags & XT_NFLOG_F_COPY_LEN) == 0 && info.len != 0) words += fmt::format(" --nflog-range {}", info.len);
  if (info.threshold != XT_NFLOG_DEFAULT_THRESHOLD) words += fmt::format(" --nflog-threshold {}", info.threshold);
  return words;
}

Words log_words(const xt_log_info& info) {
  constexpr NamedBit flags[] = {{XT_LOG_TCPSEQ, "--log-tcp-sequence"},
                                {XT_LOG_TCPOPT, "--log-tcp-options"},
                                {XT_LOG_IPOPT, "--log-ip-options"},
                                {XT_LOG_UID, "--log-uid"},
                                {XT_LOG_MACDECODE, "--log-macdecode"}};
  constexpr unsigned warning = 4;  // what LOG uses unless told
  const Words options = options_of(info.logflags, flags);
  if (!options) return {};
  std::string words;
  const std::string prefix = text_of(info.prefix);
  if (!prefix.empty()) words += " --log-prefix " + word(prefix);
  if (info.level != warning) words += fmt::format(" --log-level {}", info.level);
  return words + *options;
}

Words classify_words(const xt_classify_target_info& info) {
  return fmt::format(" --set-class {:x}:{:x}", info.priority >> 16, info.priority & 0xffff);
}

Words set_mss_words(const xt_tcpmss_info& info) {
  if (info.mss == XT_TCPMSS_CLAMP_PMTU) return " --clamp-mss-to-pmtu";
  return fmt::format(" --set-mss {}", info.mss);
}

Words set_dscp_words(const xt_DSCP_info& info) { return fmt::format(" --set-dscp 0x{:02x}", info.dscp); }
Words set_tos_words(const xt_tos_target_info& info) {
  return fmt::format(" --set-tos 0x{:02x}/0x{:02x}", info.tos_value, info.tos_mask);
}

Words set_hop_words(const HopInfo& info, const char* option) {
  constexpr const char* modes[] = {"set", "inc", "dec"};
  const Words mode = named(modes, info.mode);
  if (!mode) return {};
  return fmt::format(" --{}-{} {}", option, *mode, info.hops);
}
Words set_ttl_words(const HopInfo& info) { return set_hop_words(info, "ttl"); }
Words set_hl_words(const HopInfo& info) { return set_hop_words(info, "hl"); }

Words queue_words(const xt_NFQ_info_v3& info) {
  constexpr NamedBit flags[] = {{NFQ_FLAG_BYPASS, "--queue-bypass"}, {NFQ_FLAG_CPU_FANOUT, "--queue-cpu-fanout"}};
  const Words options = options_of(info.flags, flags);
  if (!options) return {};
  const unsigned last = info.queuenum + info.queues_total - 1U;
  if (info.queues_total > 1) return fmt::format(" --queue-balance {}:{}{}", info.queuenum, last, *options);
  return fmt::format(" --queue-num {}{}", info.queuenum, *options);
}

Words checksum_words(const xt_CHECKSUM_info& info) {
  if (info.operation != XT_CHECKSUM_OP_FILL) return {};
  return " --checksum-fill";
}

// " --ctevents new,mark"
Words events(const char* option, std::uint32_t bits) {
  constexpr std::string_view kinds[] = {"new",       "related", "destroy", "reply",      "assured",
                                        "protoinfo", "helper",  "mark",    "natseqinfo", "secmark"};
  const Words names = bit_names(bits, kinds);
  return names && !names->empty() ? fmt::format(" {} {}", option, *names) : names;
}

// Writes what CtZone is not.
Words ct_words(const xt_ct_target_info_v1& info) {
  constexpr unsigned of_zone = XT_CT_ZONE_DIR_ORIG | XT_CT_ZONE_DIR_REPL;
  const Words of_connection = events("--ctevents", info.ct_events),
              of_expectation = events("--expevents", info.exp_events);
  const bool by_mark = (info.flags & XT_CT_ZONE_MARK) != 0;
  if ((info.flags & ~unsigned{XT_CT_NOTRACK | XT_CT_ZONE_MARK | of_zone}) != 0 || !of_connection || !of_expectation)
    return {};
  std::string words = (info.flags & XT_CT_NOTRACK) != 0 ? " --notrack" : "";
  if (info.helper[0] != '\0') words += " --helper " + word(text_of(info.helper));
  if (info.timeout[0] != '\0') words += " --timeout " + word(text_of(info.timeout));
  words += *of_connection + *of_expectation;
  if (info.zone == 0 && !by_mark) return words;
  const bool is_original = (info.flags & XT_CT_ZONE_DIR_ORIG) != 0, is_reply = (info.flags & XT_CT_ZONE_DIR_REPL) != 0;
  return words + fmt::format(" --zone{} {}",
                             is_original == is_reply ? ""
                             : is_reply              ? "-reply"
                                                     : "-orig",
                             by_mark ? "mark" : std::to_string(info.zone));
}

struct Nothing {};
Words no_words(const Nothing&) { return ""; }

// ---- The table

template <typename Info, Words words(const Info&)>
Words read(std::span<const std::byte> data) {
  if constexpr (std::is_empty_v<Info>) {
    return words({});
  } else {
    Info info;
    if (data.size() != sizeof info && data.size() != ((sizeof info + 7) & ~std::size_t{7})) return {};
    std::memcpy(&info, data.data(), sizeof info);
    return words(info);
  }
}

struct Row {
  ExtensionKind kind;
  std::string_view name;
  std::uint8_t first, last;  // revisions
  Words (*words)(std::span<const std::byte> data);
};
constexpr ExtensionKind match = ExtensionKind::match;
constexpr ExtensionKind target = ExtensionKind::target;
constexpr Row rows[] = {
    {match, "socket", 1, 3, read<xt_socket_mtinfo1, socket_words>},
    {match, "limit", 0, 0, read<xt_rateinfo, limit_words>},
    {match, "quota", 0, 0, read<xt_quota_info, quota_words>},
    {match, "connlimit", 1, 1, read<xt_connlimit_info, connlimit_words>},
    {match, "length", 0, 0, read<xt_length_info, length_words>},
    {match, "ttl", 0, 0, read<HopInfo, ttl_words>},
    {match, "hl", 0, 0, read<HopInfo, hl_words>},
    {match, "pkttype", 0, 0, read<xt_pkttype_info, packet_type_words>},
    {match, "dscp", 0, 0, read<xt_dscp_info, dscp_words>},
    {match, "tos", 1, 1, read<xt_tos_match_info, tos_words>},
    {match, "ecn", 0, 0, read<xt_ecn_info, ecn_words>},
    {match, "mac", 0, 0, read<xt_mac_info, mac_words>},
    {match, "statistic", 0, 0, read<xt_statistic_info, statistic_words>},
    {match, "physdev", 0, 0, read<xt_physdev_info, physdev_words>},
    {match, "helper", 0, 0, read<xt_helper_info, helper_words>},
    {match, "cpu", 0, 0, read<xt_cpu_info, cpu_words>},
    {match, "tcpmss", 0, 0, read<xt_tcpmss_match_info, tcpmss_words>},
    {match, "string", 1, 1, read<xt_string_info, string_words>},
    {match, "recent", 1, 1, read<xt_recent_mtinfo_v1, recent_words>},
    {match, "icmp", 0, 0, read<IcmpInfo, icmpv4_words>},
    {match, "icmp6", 0, 0, read<IcmpInfo, icmpv6_words>},
    {match, "hashlimit", 3, 3, read<xt_hashlimit_mtinfo3, hashlimit_words>},
    {match, "time", 0, 0, read<xt_time_info, time_words>},
    {match, "u32", 0, 0, read<xt_u32, u32_words>},
    {match, "bpf", 1, 1, read<xt_bpf_info_v1, bpf_words>},
    {match, "cgroup", 0, 0, read<xt_cgroup_info_v0, class_words>},
    {match, "cgroup", 2, 2, read<xt_cgroup_info_v2, cgroup_words>},
    {match, "connbytes", 0, 0, read<xt_connbytes_info, connbytes_words>},
    {match, "connlabel", 0, 0, read<xt_connlabel_mtinfo, connlabel_words>},
    {match, "rpfilter", 0, 0, read<xt_rpfilter_info, rpfilter_words>},
    {target, "NFLOG", 0, 0, read<xt_nflog_info, nflog_words>},
    {target, "LOG", 0, 0, read<xt_log_info, log_words>},
    {target, "TRACE", 0, 0, read<Nothing, no_words>},
    {target, "CLASSIFY", 0, 0, read<xt_classify_target_info, classify_words>},
    {target, "TCPMSS", 0, 0, read<xt_tcpmss_info, set_mss_words>},
    {target, "DSCP", 0, 0, read<xt_DSCP_info, set_dscp_words>},
    {target, "TOS", 1, 1, read<xt_tos_target_info, set_tos_words>},
    {target, "TTL", 0, 0, read<HopInfo, set_ttl_words>},
    {target, "HL", 0, 0, read<HopInfo, set_hl_words>},
    {target, "NFQUEUE", 3, 3, read<xt_NFQ_info_v3, queue_words>},
    {target, "CT", 1, 2, read<xt_ct_target_info_v1, ct_words>},
    {target, "CHECKSUM", 0, 0, read<xt_CHECKSUM_info, checksum_words>},
};

}  // namespace

std::optional<std::string> plain_words(ExtensionKind kind, const ExtensionView& extension) {
  const auto* row = std::ranges::find_if(rows, [&](const Row& each) {
    return each.kind == kind && each.name == extension.name && each.first <= extension.revision &&
           extension.revision <= each.last;
  });
  if (row == std::end(rows)) return {};
  const Words options = row->words(extension.data);
  if (!options) return {};
  return fmt::format("{} {}{}", kind == ExtensionKind::match ? "-m" : "-j", extension.name, *options);
}

}  // namespace sidetrack::xt
