// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/refusal.h"

#include <fmt/format.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <vector>

#include "kernel/netlink/attributes.h"
#include "rule/iptables.h"
#include "rule/xt/rule_extensions.h"

namespace sidetrack::nft {
namespace {

using netlink::Attributes;

// What brings an expression into the kernel. Those that are not here are part of nf_tables itself.
struct Provider {
  std::string_view expression;
  std::string_view module;
  std::string_view config;
};
constexpr Provider providers[] = {
    {"ct", "nft_ct", "CONFIG_NFT_CT"},
    {"redir", "nft_redir", "CONFIG_NFT_REDIR"},
    {"tproxy", "nft_tproxy", "CONFIG_NFT_TPROXY"},
    {"match", "nft_compat", "CONFIG_NFT_COMPAT"},
    {"target", "nft_compat", "CONFIG_NFT_COMPAT"},
    {"counter", "nft_counter", "CONFIG_NFT_COUNTER"},  // a part of nf_tables since Linux 5.17
};

// An expression of a refused rule, and the extension of iptables that it carries, if it is one.
struct Part {
  std::string expression;
  std::string extension;

  [[nodiscard]] bool match() const { return expression == "match"; }
  [[nodiscard]] std::string words() const {
    if (!extension.empty()) return fmt::format("{} '{}'", expression, extension);
    return fmt::format("expression '{}'", expression);
  }
  // "modprobe nft_redir (CONFIG_NFT_REDIR)"; empty for what nf_tables always has.
  [[nodiscard]] std::string remedy() const {
    std::string modules;
    std::string configs;
    const auto add = [&](std::string_view module, std::string_view config) {
      if (module.empty()) return;
      modules += fmt::format(" {}", module);
      configs += fmt::format("{}{}", configs.empty() ? "" : ", ", config);
    };
    const auto* provider = std::ranges::find(providers, expression, &Provider::expression);
    if (provider != std::end(providers)) add(provider->module, provider->config);
    if (!extension.empty()) {
      const auto kind = match() ? xt::ExtensionKind::match : xt::ExtensionKind::target;
      const xt::Source source = xt::source_of(kind, extension);
      add(source.module, source.config);
    }
    return modules.empty() ? "" : fmt::format("modprobe -a{} ({})", modules, configs);
  }
};

std::string text_of(const nlattr* attribute) { return attribute == nullptr ? "" : netlink::string(attribute); }

Part part_of(const nlattr* element) {
  Part part;
  const Attributes attributes(element);
  part.expression = text_of(attributes.find(NFTA_EXPR_NAME));
  const nlattr* data = attributes.find(NFTA_EXPR_DATA);
  if (data != nullptr && part.match()) part.extension = text_of(Attributes(data).find(NFTA_MATCH_NAME));
  if (data != nullptr && part.expression == "target") part.extension = text_of(Attributes(data).find(NFTA_TARGET_NAME));
  return part;
}

// The expression at fault; where the kernel did not say which, all that a kernel may lack.
std::vector<Part> parts_at_fault(const Refused& refused) {
  std::vector<Part> suspects;
  const nlattr* list = Attributes(refused.message, sizeof(nfgenmsg)).find(NFTA_RULE_EXPRESSIONS);
  if (list == nullptr) return suspects;
  for (const nlattr* element : Attributes(list)) {
    const auto start = reinterpret_cast<const char*>(element) - reinterpret_cast<const char*>(refused.message);
    const Part part = part_of(element);
    if (refused.offset) {
      if (*refused.offset >= start && *refused.offset < start + element->nla_len) return {part};
    } else if (!part.remedy().empty() && part.expression != "counter") {
      suspects.push_back(part);
    }
  }
  return suspects;
}

bool lacking(int error) {
  return error == ENOENT || error == EOPNOTSUPP || error == EPROTONOSUPPORT || error == EAFNOSUPPORT;
}

std::string joined(const std::vector<Part>& parts, std::string (Part::*text)() const) {
  std::vector<std::string> texts;
  for (const Part& part : parts) {
    std::string each = (part.*text)();
    if (!each.empty() && std::ranges::find(texts, each) == texts.end()) texts.push_back(std::move(each));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string families(Families of) {
  std::vector<std::string_view> names;
  for (const Family family : of.list()) names.push_back(title(family));
  return fmt::format("{}", fmt::join(names, " and "));
}

Error refused_rule(const Refused& refused) {
  const Rule& rule = *refused.rule;
  const std::vector<Part> parts = parts_at_fault(refused);
  const std::string what = joined(parts, &Part::words);
  std::string message = fmt::format("{}: the kernel {} the rule '-t {} {}' ({})", name(refused.backend),
                                    lacking(refused.error) ? "does not support" : "refuses", name(rule.table),
                                    iptables_words(rule), families(rule.families));
  if (!what.empty()) message += ": " + what;
  if (!refused.flag.empty()) message += ", from " + refused.flag;
  if (lacking(refused.error)) {
    const std::string remedy = joined(parts, &Part::remedy);
    return system_error(refused.error, message, ExitCode::kernel_lacks,
                        remedy.empty() ? "a newer kernel is needed" : "load it on the node: " + remedy)
        .as_of_one_backend();
  }
  // The native `skuid` takes the same id.
  const bool owner = std::ranges::any_of(parts, [](const Part& part) { return part.extension == "owner"; });
  if (owner && refused.error == EINVAL) {
    return system_error(refused.error, message, ExitCode::failed,
                        "the id may not be mapped in this user namespace: see /proc/self/uid_map")
        .as_of_one_backend();
  }
  return system_error(refused.error, message);
}

}  // namespace

Error nft_refusal(const Refused& refused) {
  // A right that is missing is met before the first message.
  if (refused.error == EPERM) {
    return Error(ExitCode::failed,
                 fmt::format("{}: the kernel refuses {}: another process owns the table (flags owner)",
                             name(refused.backend), refused.step),
                 "'nft list ruleset' shows the table and its owner; it goes when that process ends")
        .as_of_one_backend();
  }
  if (refused.rule != nullptr) return refused_rule(refused);
  // No other writer: a commit is of the generation that was read, or it is refused as a whole (ERESTART).
  if (refused.error == EBUSY) {
    return {ExitCode::failed,
            fmt::format("{}: the kernel refuses {}: something of another program leads to it: {}",
                        name(refused.backend), refused.step, errno_words(EBUSY)),
            "'nft list ruleset' shows what leads there; delete that first"};
  }
  const std::string message = fmt::format("{}: the kernel refuses {}", name(refused.backend), refused.step);
  if (!lacking(refused.error)) return system_error(refused.error, message);
  return system_error(
             refused.error, message, ExitCode::kernel_lacks,
             "load it on the node: modprobe -a nf_tables nft_chain_nat (CONFIG_NF_TABLES, CONFIG_NF_TABLES_INET, "
             "CONFIG_NF_TABLES_IPV4, CONFIG_NF_TABLES_IPV6, CONFIG_NFT_NAT); nat in an inet table needs Linux 5.2")
      .as_of_one_backend();
}

}  // namespace sidetrack::nft
