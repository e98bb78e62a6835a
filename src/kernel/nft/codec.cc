// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/nft/codec.h"

#include <libnftnl/udata.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/nf_tables.h>

#include <cstdlib>
#include <cstring>

namespace sidetrack::nft {
namespace {

constexpr std::uint32_t reg = NFT_REG_1;  // the one register that values pass through

// ---- Writing.

class Encoder {
 public:
  explicit Encoder(const char* name) : made_(allocated(nftnl_expr_alloc(name))) {}
  Encoder& u16(std::uint16_t attribute, std::uint16_t value) {
    nftnl_expr_set_u16(made_.get(), attribute, value);
    return *this;
  }
  Encoder& u32(std::uint16_t attribute, std::uint32_t value) {
    nftnl_expr_set_u32(made_.get(), attribute, value);
    return *this;
  }
  Encoder& u64(std::uint16_t attribute, std::uint64_t value) {
    nftnl_expr_set_u64(made_.get(), attribute, value);
    return *this;
  }
  Encoder& data(std::uint16_t attribute, const Data& value) {
    nftnl_expr_set(made_.get(), attribute, value.bytes.data(), value.size);
    return *this;
  }
  Encoder& text(std::uint16_t attribute, const std::string& value) {
    require_copied(nftnl_expr_set_str(made_.get(), attribute, value.c_str()));
    return *this;
  }
  // An extension's struct; libnftnl takes ownership of the copy and frees it.
  Encoder& info(std::uint16_t attribute, const std::vector<std::byte>& value) {
    std::unique_ptr<void, Free<std::free>> copy(allocated(std::malloc(value.size())));
    std::memcpy(copy.get(), value.data(), value.size());
    require_copied(nftnl_expr_set(made_.get(), attribute, copy.get(), static_cast<std::uint32_t>(value.size())));
    copy.release();
    return *this;
  }
  operator NftnlExpression() { return std::move(made_); }  // NOLINT: the end of a chain of calls

 private:
  NftnlExpression made_;
};

struct Encode {
  NftnlExpression operator()(const MetaLoad& e) const {
    return Encoder("meta").u32(NFTNL_EXPR_META_KEY, e.key).u32(NFTNL_EXPR_META_DREG, reg);
  }
  NftnlExpression operator()(const MetaStore& e) const {
    return Encoder("meta").u32(NFTNL_EXPR_META_KEY, e.key).u32(NFTNL_EXPR_META_SREG, reg);
  }
  NftnlExpression operator()(const CtLoad& e) const {
    return Encoder("ct").u32(NFTNL_EXPR_CT_KEY, e.key).u32(NFTNL_EXPR_CT_DREG, reg);
  }
  NftnlExpression operator()(const CtStore& e) const {
    return Encoder("ct").u32(NFTNL_EXPR_CT_KEY, e.key).u32(NFTNL_EXPR_CT_SREG, reg);
  }
  NftnlExpression operator()(const PayloadLoad& e) const {
    return Encoder("payload")
        .u32(NFTNL_EXPR_PAYLOAD_DREG, reg)
        .u32(NFTNL_EXPR_PAYLOAD_BASE, e.base)
        .u32(NFTNL_EXPR_PAYLOAD_OFFSET, e.offset)
        .u32(NFTNL_EXPR_PAYLOAD_LEN, e.size);
  }
  NftnlExpression operator()(const CgroupLoad& e) const {
    return Encoder("socket")
        .u32(NFTNL_EXPR_SOCKET_KEY, NFT_SOCKET_CGROUPV2)
        .u32(NFTNL_EXPR_SOCKET_DREG, reg)
        .u32(NFTNL_EXPR_SOCKET_LEVEL, e.level);
  }
  NftnlExpression operator()(const Bitwise& e) const {
    return Encoder("bitwise")
        .u32(NFTNL_EXPR_BITWISE_SREG, reg)
        .u32(NFTNL_EXPR_BITWISE_DREG, reg)
        .u32(NFTNL_EXPR_BITWISE_OP, NFT_BITWISE_BOOL)
        .u32(NFTNL_EXPR_BITWISE_LEN, e.mask.size)
        .data(NFTNL_EXPR_BITWISE_MASK, e.mask)
        .data(NFTNL_EXPR_BITWISE_XOR, e.xor_value);
  }
  NftnlExpression operator()(const ToNetworkOrder&) const {
    return Encoder("byteorder")
        .u32(NFTNL_EXPR_BYTEORDER_SREG, reg)
        .u32(NFTNL_EXPR_BYTEORDER_DREG, reg)
        .u32(NFTNL_EXPR_BYTEORDER_OP, NFT_BYTEORDER_HTON)
        .u32(NFTNL_EXPR_BYTEORDER_LEN, 4)
        .u32(NFTNL_EXPR_BYTEORDER_SIZE, 4);
  }
  NftnlExpression operator()(const Compare& e) const {
    return Encoder("cmp")
        .u32(NFTNL_EXPR_CMP_SREG, reg)
        .u32(NFTNL_EXPR_CMP_OP, e.operation)
        .data(NFTNL_EXPR_CMP_DATA, e.with);
  }
  NftnlExpression operator()(const CompareRange& e) const {
    return Encoder("range")
        .u32(NFTNL_EXPR_RANGE_SREG, reg)
        .u32(NFTNL_EXPR_RANGE_OP, e.negated ? NFT_RANGE_NEQ : NFT_RANGE_EQ)
        .data(NFTNL_EXPR_RANGE_FROM_DATA, e.first)
        .data(NFTNL_EXPR_RANGE_TO_DATA, e.last);
  }
  NftnlExpression operator()(const Lookup& e) const {
    return Encoder("lookup")
        .u32(NFTNL_EXPR_LOOKUP_SREG, reg)
        .text(NFTNL_EXPR_LOOKUP_SET, e.set)
        .u32(NFTNL_EXPR_LOOKUP_SET_ID, e.id)
        .u32(NFTNL_EXPR_LOOKUP_FLAGS, e.negated ? std::uint32_t{NFT_LOOKUP_F_INV} : 0);
  }
  NftnlExpression operator()(const Load& e) const {
    return Encoder("immediate").u32(NFTNL_EXPR_IMM_DREG, reg).data(NFTNL_EXPR_IMM_DATA, e.value);
  }
  NftnlExpression operator()(const Decide& e) const {
    Encoder encoder("immediate");
    encoder.u32(NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT)
        .u32(NFTNL_EXPR_IMM_VERDICT, static_cast<std::uint32_t>(e.verdict));
    if (!e.chain.empty()) encoder.text(NFTNL_EXPR_IMM_CHAIN, e.chain);
    return encoder;
  }
  NftnlExpression operator()(const Count& e) const {
    return Encoder("counter").u64(NFTNL_EXPR_CTR_PACKETS, e.packets).u64(NFTNL_EXPR_CTR_BYTES, e.bytes);
  }
  NftnlExpression operator()(const RedirectTo&) const {
    return Encoder("redir")
        .u32(NFTNL_EXPR_REDIR_REG_PROTO_MIN, reg)
        .u32(NFTNL_EXPR_REDIR_FLAGS, NF_NAT_RANGE_PROTO_SPECIFIED);
  }
  NftnlExpression operator()(const SnatTo& e) const {
    return Encoder("nat")
        .u32(NFTNL_EXPR_NAT_TYPE, NFT_NAT_SNAT)
        .u32(NFTNL_EXPR_NAT_FAMILY, e.family)
        .u32(NFTNL_EXPR_NAT_REG_ADDR_MIN, reg);
  }
  NftnlExpression operator()(const TproxyTo& e) const {
    return Encoder("tproxy").u32(NFTNL_EXPR_TPROXY_FAMILY, e.family).u32(NFTNL_EXPR_TPROXY_REG_PORT, reg);
  }
  NftnlExpression operator()(const XtMatch& e) const {
    return Encoder("match")
        .text(NFTNL_EXPR_MT_NAME, e.extension.name)
        .u32(NFTNL_EXPR_MT_REV, e.extension.revision)
        .info(NFTNL_EXPR_MT_INFO, e.extension.data);
  }
  NftnlExpression operator()(const XtTarget& e) const {
    return Encoder("target")
        .text(NFTNL_EXPR_TG_NAME, e.extension.name)
        .u32(NFTNL_EXPR_TG_REV, e.extension.revision)
        .info(NFTNL_EXPR_TG_INFO, e.extension.data);
  }
};

}  // namespace

NftnlExpression encode(const Expression& expression) { return std::visit(Encode{}, expression); }

void set_comment(nftnl_rule* rule, const std::string& comment) {
  if (comment.empty()) return;
  const std::unique_ptr<nftnl_udata_buf, Free<nftnl_udata_buf_free>> data(allocated(nftnl_udata_buf_alloc(256)));
  nftnl_udata_put_strz(data.get(), NFTNL_UDATA_RULE_COMMENT, comment.c_str());
  require_copied(nftnl_rule_set_data(rule, NFTNL_RULE_USERDATA, nftnl_udata_buf_data(data.get()),
                                     nftnl_udata_buf_len(data.get())));
}

// The kernel keeps these bytes for whoever made the rule, and looks at none of them: libnftnl's own reader would follow
// a length that leads out of them.
std::string comment_of(std::span<const std::byte> user_data) {
  std::string comment;
  while (user_data.size() >= 2) {  // one byte each: type, length
    const auto type = std::to_integer<std::uint8_t>(user_data[0]);
    const auto length = std::to_integer<std::size_t>(user_data[1]);
    user_data = user_data.subspan(2);
    if (length > user_data.size()) break;
    const auto* text = reinterpret_cast<const char*>(user_data.data());
    if (type == NFTNL_UDATA_RULE_COMMENT) comment.assign(text, strnlen(text, length));
    user_data = user_data.subspan(length);
  }
  return comment;
}

}  // namespace sidetrack::nft
