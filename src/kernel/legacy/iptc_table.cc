// SPDX-License-Identifier: GPL-2.0-or-later
#include "kernel/legacy/iptc_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <libiptc/libiptc.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

extern "C" {  // unlike libiptc.h, this header does not say so
#include <libiptc/libip6tc.h>
}

#include "kernel/legacy/refusal.h"
#include "model/error.h"
#include "model/scan.h"
#include "rule/xt/entry.h"
#include "system/known_file.h"

namespace sidetrack::legacy {
namespace {

// Declares the functions of one of the two libraries, which are the same code over two structs.
#define LIBIPTC_FUNCTIONS(prefix)                             \
  static constexpr auto init = prefix##_init;                 \
  static constexpr auto free = prefix##_free;                 \
  static constexpr auto first_chain = prefix##_first_chain;   \
  static constexpr auto next_chain = prefix##_next_chain;     \
  static constexpr auto first_rule = prefix##_first_rule;     \
  static constexpr auto next_rule = prefix##_next_rule;       \
  static constexpr auto get_target = prefix##_get_target;     \
  static constexpr auto create_chain = prefix##_create_chain; \
  static constexpr auto delete_chain = prefix##_delete_chain; \
  static constexpr auto flush = prefix##_flush_entries;       \
  static constexpr auto insert = prefix##_insert_entry;       \
  static constexpr auto erase = prefix##_delete_num_entry;    \
  static constexpr auto get_policy = prefix##_get_policy;     \
  static constexpr auto set_policy = prefix##_set_policy;     \
  static constexpr auto commit = prefix##_commit;             \
  static constexpr auto strerror = prefix##_strerror

struct Ipv4 {
  static constexpr Family family = Family::ipv4;
  using Entry = ipt_entry;
  LIBIPTC_FUNCTIONS(iptc);
};
struct Ipv6 {
  static constexpr Family family = Family::ipv6;
  using Entry = ip6t_entry;
  LIBIPTC_FUNCTIONS(ip6tc);
};

template <typename F>
class TableOf : public IptcTable {
 public:
  TableOf(Table table, xtc_handle* handle) : table_(table), handle_(handle) {}

  [[nodiscard]] Family family() const override { return F::family; }
  [[nodiscard]] Table table() const override { return table_; }

  [[nodiscard]] std::vector<LiveChain> read() const override {
    std::vector<LiveChain> chains;
    for (const char* name = F::first_chain(handle_.get()); name != nullptr; name = F::next_chain(handle_.get())) {
      LiveChain& chain = chains.emplace_back(LiveChain{F::family, table_, name, false, {}, Verdict::accept, {}, {}});
      chain.hook = builtin_hook(table_, chain.name);
      chain.table_name = sidetrack::name(table_);
      xt_counters counters{};
      const char* policy = F::get_policy(name, &counters, handle_.get());  // null for a chain that is not built in
      if (policy != nullptr && std::string_view(policy) == "DROP") chain.policy = Verdict::drop;
      for_each_rule(name, [&](const Entry& entry, const char* label) {
        auto [matches, target] = xt::decode_entry(bytes_of(entry), label, F::family);
        Rule rule{F::family, table_, chain.name, std::move(matches), std::move(target), {}, {}};
        chain.rules.push_back({std::move(rule), {entry.counters.pcnt, entry.counters.bcnt}, false, 0});
      });
    }
    return chains;
  }

  [[nodiscard]] std::vector<ChainEdit> inverse(const std::vector<ChainEdit>& edits) const override {
    std::vector<ChainEdit> result;
    for (const ChainEdit& edit : edits) {
      ChainEdit back{edit.chain, edit.remove, edit.create, {}};
      if (!edit.create) {
        std::size_t place = 0;  // in the edited chain; kept rules are in their order in both
        for_each_rule(edit.chain.c_str(), [&](const Entry& entry, const char* label) {
          const std::size_t before = back.rules.size();
          std::size_t next = place;
          while (next < edit.rules.size() && !edit.rules[next].kept) ++next;
          if (next < edit.rules.size() && edit.rules[next].kept == before) {
            back.rules.push_back({next, {}});
            place = next + 1;
          } else {
            back.rules.push_back({std::nullopt, xt::copy_entry(bytes_of(entry), label, F::family)});
            place = next;
          }
        });
      }
      result.push_back(std::move(back));
    }
    return result;
  }

  void edit(const std::vector<ChainEdit>& edits) override {
    for (const ChainEdit& edit : edits) {
      if (edit.create) require(F::create_chain(edit.chain.c_str(), handle_.get()), "create chain " + edit.chain);
    }
    for (const ChainEdit& edit : edits) {
      edit_rules(edit);
    }
    for (const ChainEdit& edit : edits) {
      if (edit.remove) require(F::delete_chain(edit.chain.c_str(), handle_.get()), "delete chain " + edit.chain);
    }
  }

  [[nodiscard]] int commit() override {
    keep_policy_counters();
    errno = 0;
    if (F::commit(handle_.get()) != 0) return 0;
    return errno != 0 ? errno : EINVAL;
  }

 private:
  using Entry = typename F::Entry;
  struct Free {
    void operator()(xtc_handle* handle) const { F::free(handle); }
  };

  static std::span<const std::byte> bytes_of(const Entry& entry) {
    return {reinterpret_cast<const std::byte*>(&entry), entry.next_offset};
  }

  template <typename Visit>
  void for_each_rule(const char* chain, Visit visit) const {
    xtc_handle* handle = handle_.get();
    for (const Entry* entry = F::first_rule(chain, handle); entry != nullptr; entry = F::next_rule(entry, handle)) {
      visit(*entry, F::get_target(entry, handle));
    }
  }

  void edit_rules(const ChainEdit& edit) {
    const bool keeps = std::ranges::any_of(edit.rules, [](const EntrySlot& slot) { return slot.kept.has_value(); });
    const char* chain = edit.chain.c_str();
    if (!keeps && !edit.create) require(F::flush(chain, handle_.get()), "flush chain " + edit.chain);
    std::size_t old_size = 0;
    if (keeps) for_each_rule(chain, [&](const Entry&, const char*) { ++old_size; });

    std::size_t old = 0;    // the rule of the snapshot that is next
    unsigned position = 0;  // where that one stands by now
    const auto erase_until = [&](std::size_t kept) {
      for (; old < kept; ++old) require(F::erase(chain, position, handle_.get()), "delete a rule of " + edit.chain);
    };
    for (const EntrySlot& slot : edit.rules) {
      if (slot.kept) {
        erase_until(*slot.kept);
        ++old;
      } else {
        const auto* entry = reinterpret_cast<const Entry*>(slot.fresh.data());
        require(F::insert(chain, entry, position, handle_.get()), "add a rule to " + edit.chain);
      }
      ++position;
    }
    erase_until(old_size);
  }

  // libiptc keeps the counters of untouched rules, but sets those of the policies to zero, unless they are given.
  void keep_policy_counters() {
    xtc_handle* handle = handle_.get();
    for (const char* name = F::first_chain(handle); name != nullptr; name = F::next_chain(handle)) {
      xt_counters counters{};
      const char* policy = F::get_policy(name, &counters, handle);  // null for a chain that is not built in
      if (policy != nullptr)
        require(F::set_policy(name, policy, &counters, handle), std::string("keep the policy of ") + name);
    }
  }

  void require(int done, const std::string& what) const {
    if (done != 0) return;
    const int error = errno;
    throw Error(ExitCode::failed, fmt::format("{}: cannot {}: {}", place(F::family, table_), what, F::strerror(error)));
  }

  Table table_;
  std::unique_ptr<xtc_handle, Free> handle_;
};

// libiptc calls abort() where a seccomp filter around the program keeps it from setting this on its socket.
void require_close_on_exec() {
  if (fcntl(-1, F_SETFD, FD_CLOEXEC) == 0 || errno == EBADF) return;
  throw system_error(errno, "iptables-legacy: fcntl(F_SETFD) is refused", ExitCode::failed,
                     "a seccomp filter around the program refuses it: allow fcntl, or choose --backend nftables");
}

template <typename F>
std::unique_ptr<IptcTable> open(Table table) {
  require_close_on_exec();
  xtc_handle* handle = F::init(std::string(name(table)).c_str());
  if (handle == nullptr) throw cannot_open(errno, F::family, table);
  return std::make_unique<TableOf<F>>(table, handle);
}

}  // namespace

std::unique_ptr<IptcTable> open_table(Family family, Table table) {
  return family == Family::ipv4 ? open<Ipv4>(table) : open<Ipv6>(table);
}

namespace {

// The names cannot be read. Returns if there are none.
void require_none(int error, KnownFile names, Family family) {
  constexpr auto of_every_namespace = "/proc/thread-self/net/dev";
  if (error == ENOENT) {
    // /proc is there, and the file is not: without legacy iptables in the kernel there is none.
    if (access(of_every_namespace, F_OK) == 0 || !kernel_has_tables(family)) return;
    throw Error(ExitCode::not_permitted,
                fmt::format("iptables-legacy: cannot list the tables: {}: {}", path_of(names), errno_words(error)),
                "mount /proc: mount -t proc proc /proc");
  }
  if (error == EACCES || error == EPERM) require_capabilities();
  const char* hint =
      "the kernel shows it to root alone: run as root, in a user namespace whose ids were mapped before the "
      "network namespace was made";
  throw system_error(error, std::string("iptables-legacy: cannot read ") + path_of(names), ExitCode::failed,
                     error == EACCES ? hint : "");
}

}  // namespace

std::vector<std::string> table_names(Family family) {
  const KnownFile file = family == Family::ipv4 ? KnownFile::ip_tables_names : KnownFile::ip6_tables_names;
  const KnownText listed = read_known_file(file);
  if (listed.error != 0) require_none(listed.error, file, family);
  const auto lines = split_lines(listed.text);
  return {lines.begin(), lines.end()};
}

std::vector<Table> existing_tables(Family family) {
  static constexpr Table known[] = {Table::raw, Table::mangle, Table::nat, Table::filter, Table::security};
  const std::vector<std::string> names = table_names(family);
  std::vector<Table> alive;
  std::ranges::copy_if(known, std::back_inserter(alive),
                       [&](Table table) { return std::ranges::find(names, name(table)) != names.end(); });
  return alive;
}

std::string place(Family family, Table table) {
  return fmt::format("iptables-legacy, table {} ({})", name(table), name(family));
}

}  // namespace sidetrack::legacy
