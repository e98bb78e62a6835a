// SPDX-License-Identifier: GPL-2.0-or-later
#include "rule/xt/long_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <climits>

#include "rule/xt/word_parts.h"

namespace sidetrack::xt {
namespace {

// "1,2,5": the numbers of the bits that are set, or their names.
std::string list_of_bits(unsigned bits, unsigned last, const char* const* names) {
  std::string list;
  for (unsigned bit = 1; bit <= last; ++bit) {
    if ((bits >> bit & 1) == 0) continue;
    if (!list.empty()) list += ',';
    list += names != nullptr ? names[bit - 1] : std::to_string(bit);
  }
  return list;
}

std::string clock(unsigned seconds) {
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

}  // namespace

Words hashlimit_words(const xt_hashlimit_mtinfo3& info) {
  const hashlimit_cfg3& given = info.cfg;
  constexpr unsigned known = XT_HASHLIMIT_HASH_DIP | XT_HASHLIMIT_HASH_DPT | XT_HASHLIMIT_HASH_SIP |
                             XT_HASHLIMIT_HASH_SPT | XT_HASHLIMIT_INVERT | XT_HASHLIMIT_RATE_MATCH;
  constexpr std::uint32_t usual_interval = 1000;                // milliseconds
  if ((given.mode & ~known) != 0 || given.avg == 0) return {};  // bytes are counted otherwise
  const Rate limit = rate(given.avg, XT_HASHLIMIT_SCALE_v2);
  std::string words =
      fmt::format(" --hashlimit-{} {} --hashlimit-burst {}", (given.mode & XT_HASHLIMIT_INVERT) != 0 ? "above" : "upto",
                  limit.words, std::uint64_t{given.burst});
  std::string keys;
  const auto add_key = [&](unsigned bit, const char* name) {
    if ((given.mode & bit) != 0) keys += std::string(keys.empty() ? "" : ",") + name;
  };
  add_key(XT_HASHLIMIT_HASH_SIP, "srcip");
  add_key(XT_HASHLIMIT_HASH_SPT, "srcport");
  add_key(XT_HASHLIMIT_HASH_DIP, "dstip");
  add_key(XT_HASHLIMIT_HASH_DPT, "dstport");
  if (!keys.empty()) words += " --hashlimit-mode " + keys;
  words += " --hashlimit-name " + word(text_of(info.name));
  const auto add = [&](std::uint32_t value, std::uint64_t usual, const char* option) {
    if (value != usual) words += fmt::format(" --hashlimit-{} {}", option, value);
  };
  add(given.size, 0, "htable-size");
  add(given.max, 0, "htable-max");
  add(given.gc_interval, usual_interval, "htable-gcinterval");
  add(given.expire, limit.seconds * 1000, "htable-expire");
  // A whole address has as many bits as its family's, and the larger of both tells which that is.
  const unsigned whole = std::max(given.srcmask, given.dstmask) > 32 ? 128 : 32;
  add(given.srcmask, whole, "srcmask");
  add(given.dstmask, whole, "dstmask");
  if ((given.mode & XT_HASHLIMIT_RATE_MATCH) == 0) return words;
  words += " --hashlimit-rate-match";
  add(given.interval, 1, "rate-interval");
  return words;
}

Words time_words(const xt_time_info& info) {
  constexpr const char* days[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
  constexpr unsigned a_day = 24 * 60 * 60;
  constexpr NamedBit flags[] = {{XT_TIME_LOCAL_TZ, "--kerneltz"}, {XT_TIME_CONTIGUOUS, "--contiguous"}};
  const Words options = options_of(info.flags, flags);
  if (!options) return {};
  std::string words;
  if (info.daytime_start != XT_TIME_MIN_DAYTIME || info.daytime_stop != XT_TIME_MAX_DAYTIME)
    words += fmt::format(" --timestart {} --timestop {}", clock(info.daytime_start), clock(info.daytime_stop));
  if (info.monthdays_match != XT_TIME_ALL_MONTHDAYS)
    words += " --monthdays " + list_of_bits(info.monthdays_match, 31, nullptr);
  if (info.weekdays_match != XT_TIME_ALL_WEEKDAYS) words += " --weekdays " + list_of_bits(info.weekdays_match, 7, days);
  const auto add_date = [&](const char* option, unsigned date) {
    // Not gmtime, which reads the file of a time zone.
    const std::chrono::sys_days day{std::chrono::days(date / a_day)};
    const std::chrono::year_month_day at{day};
    words += fmt::format(" --{} {:04}-{:02}-{:02}T{}", option, static_cast<int>(at.year()),
                         static_cast<unsigned>(at.month()), static_cast<unsigned>(at.day()), clock(date % a_day));
  };
  if (info.date_start != 0) add_date("datestart", info.date_start);
  if (info.date_stop != INT_MAX) add_date("datestop", info.date_stop);
  return words + *options;
}

Words u32_words(const xt_u32& info) {
  constexpr const char* operations[] = {"&", "<<", ">>", "@"};
  if (info.ntests > std::size(info.tests) || info.invert > 1) return {};
  std::string words;
  for (const xt_u32_test& test : std::span(info.tests).first(info.ntests)) {
    if (test.nnums == 0 || test.nnums > std::size(test.location) || test.nvalues > std::size(test.value)) return {};
    if (!words.empty()) words += "&&";
    words += fmt::format("{:#x}", test.location[0].number);
    for (const xt_u32_location_element& next : std::span(test.location).first(test.nnums).subspan(1)) {
      if (next.nextop >= std::size(operations)) return {};
      words += fmt::format("{}{:#x}", operations[next.nextop], next.number);
    }
    const char* before = "=";
    for (const xt_u32_value_element& value : std::span(test.value).first(test.nvalues)) {
      words += fmt::format("{}{:#x}", before, value.min);
      if (value.min != value.max) words += fmt::format(":{:#x}", value.max);
      before = ",";
    }
  }
  return fmt::format("{} --u32 \"{}\"", info.invert != 0 ? " !" : "", words);
}

Words bpf_words(const xt_bpf_info_v1& info) {
  if (info.mode == XT_BPF_MODE_PATH_PINNED) return " --object-pinned " + word(text_of(info.path));
  if (info.mode != XT_BPF_MODE_BYTECODE || info.bpf_program_num_elem > std::size(info.bpf_program)) return {};
  std::string words = fmt::format("{}", info.bpf_program_num_elem);
  for (const sock_filter& each : std::span(info.bpf_program).first(info.bpf_program_num_elem))
    words += fmt::format(",{} {} {} {}", each.code, each.jt, each.jf, each.k);
  return fmt::format(" --bytecode \"{}\"", words);
}

}  // namespace sidetrack::xt
