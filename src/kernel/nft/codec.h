// SPDX-License-Identifier: GPL-2.0-or-later
// Between libnftnl's objects and ours.
#pragma once

#include <libnftnl/chain.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernel/nft/native.h"
#include "rule/nft/expression.h"

namespace sidetrack::nft {

template <auto free>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};
using NftnlTable = std::unique_ptr<nftnl_table, Free<nftnl_table_free>>;
using NftnlChain = std::unique_ptr<nftnl_chain, Free<nftnl_chain_free>>;
using NftnlRule = std::unique_ptr<nftnl_rule, Free<nftnl_rule_free>>;
using NftnlSet = std::unique_ptr<nftnl_set, Free<nftnl_set_free>>;
using NftnlElement = std::unique_ptr<nftnl_set_elem, Free<nftnl_set_elem_free>>;
using NftnlExpression = std::unique_ptr<nftnl_expr, Free<nftnl_expr_free>>;

// libnftnl allocates and fails only for want of memory.
template <typename T>
T* allocated(T* object) {
  if (object == nullptr) throw std::bad_alloc();
  return object;
}

// What its functions say that copy a text or bytes. Without a name, a message is about more than was meant.
inline void require_copied(int result) {
  if (result < 0) throw std::bad_alloc();
}

// For the kernel; the caller gives it to a rule, which owns it then.
[[nodiscard]] NftnlExpression encode(const Expression& expression);

// The comment of a rule, as nft stores and shows it; empty if there is none.
void set_comment(nftnl_rule* rule, const std::string& comment);
[[nodiscard]] std::string comment_of(std::span<const std::byte> user_data);

}  // namespace sidetrack::nft
