// SPDX-License-Identifier: GPL-2.0-or-later
// The words of extensions that have many options, or a program; see plain_words.h.
#pragma once

#include <linux/netfilter/xt_bpf.h>
#include <linux/netfilter/xt_hashlimit.h>
#include <linux/netfilter/xt_time.h>
#include <linux/netfilter/xt_u32.h>

#include <optional>
#include <string>

namespace sidetrack::xt {

[[nodiscard]] std::optional<std::string> hashlimit_words(const xt_hashlimit_mtinfo3& info);
[[nodiscard]] std::optional<std::string> time_words(const xt_time_info& info);
[[nodiscard]] std::optional<std::string> u32_words(const xt_u32& info);
[[nodiscard]] std::optional<std::string> bpf_words(const xt_bpf_info_v1& info);

}  // namespace sidetrack::xt
