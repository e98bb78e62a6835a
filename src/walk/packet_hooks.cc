// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "walk/observer.h"
#include "walk/packet_walk.h"

namespace sidetrack {
namespace {

std::string name_of(const Call& call) {
  switch (call.kind) {
    case Call::Kind::conntrack:
      return "conntrack";
    case Call::Kind::nat:
      return "nat";
    case Call::Kind::rules:
      break;
  }
  return fmt::format("{} ({})", call.base.name(), name(call.base.live->backend));
}

}  // namespace

bool PacketWalk::calls(Hook at, const std::string& device) {
  const auto one = [&](const Call& call) {
    switch (call.kind) {
      case Call::Kind::conntrack:
        conntrack();
        return ChainResult::on;
      case Call::Kind::nat:
        return nat(at) && checkpoint(at, &call) ? ChainResult::on : ChainResult::gone;
      case Call::Kind::rules: {
        const ChainResult passed = rules(call, at);
        return passed == ChainResult::gone || checkpoint(at, &call) ? passed : ChainResult::gone;
      }
    }
    return ChainResult::on;
  };
  const std::vector<Call>& all = rules_.at(at, device);
  const bool asks = std::ranges::any_of(all, [](const Call& call) { return call.kind != Call::Kind::conntrack; });
  if (asks && !checkpoint(at)) return false;
  return in_order(all, one) != ChainResult::gone;
}

ChainResult PacketWalk::rules(const Call& call, Hook at) {
  const MarkBefore before = watch_mark();
  const ChainResult passed = ask(call.base);
  if (passed == ChainResult::gone || at != Hook::output) return passed;
  const bool is_marked = packet_.mark_restored || !packet_.marked.empty();
  if (call.base.chain->hook->type != ChainType::route || !is_marked) return passed;
  // For all packets at once it is asked whether the mark is another one only where that makes a difference.
  if (observer() != nullptr && look_up("lo", asked_.interface) == way_) return passed;
  if (has_mark_of(before)) return passed;
  return reroute(fmt::format("the mark is now {}", packet_.now.mark)) ? passed : ChainResult::gone;
}

template <typename One>
ChainResult PacketWalk::in_order(const std::vector<Call>& all, const One& one) {
  ChainResult passed = ChainResult::on;
  for (auto first = all.begin(); passed == ChainResult::on && first != all.end();) {
    const auto end = std::find_if(first, all.end(), [&](const Call& call) { return call.priority != first->priority; });
    passed = end - first == 1 ? one(*first) : in_any_order({first, end}, one);
    first = end;
  }
  return passed;
}

template <typename One>
ChainResult PacketWalk::in_any_order(std::vector<Call> equal, const One& one) {
  const std::vector<const void*> outer = packet_.to_come;
  ChainResult passed = ChainResult::on;
  while (passed == ChainResult::on && !equal.empty()) {
    const auto next = next_of(equal);
    if (!next) return ChainResult::gone;
    const Call call = equal[*next];
    equal.erase(equal.begin() + static_cast<std::ptrdiff_t>(*next));
    packet_.to_come = outer;
    for (const Call& rest : equal) packet_.to_come.push_back(rest.base.chain);
    passed = one(call);
  }
  packet_.to_come = outer;
  return passed;
}

std::optional<std::size_t> PacketWalk::next_of(const std::vector<Call>& equal) {
  if (equal.size() == 1) return 0;
  Fork fork{"chains of equal priority", "which is asked first of", {}, packet_.trace.steps.size(), 0};
  ChoiceState choice_state{{}, packet_};
  for (const Call& call : equal) {
    const std::string words = name_of(call);
    fork.what += fmt::format("{} {}", fork.options.empty() ? "" : " and", words);
    fork.options.push_back(fmt::format("if {}", words));
    choice_state.place.push_back(call.base.chain);
  }
  fork.what += fmt::format(" (all at priority {})", equal.front().priority);
  const auto next = context_.forks.choose(std::move(fork), std::move(choice_state));
  packet_.seen = !next;
  return next;
}

bool PacketWalk::nat(Hook at) {
  const bool of_destination = at == Hook::output || at == Hook::prerouting;
  const Endpoint before = packet_.now.destination;
  if (!packet_.now.tracked) return not_asked(at, "an untracked packet is not translated");
  if (packet_.now.state == ConnectionState::new_) {
    bool& decided = of_destination ? packet_.destination_decided : packet_.source_decided;
    if (decided) return not_asked(at, "nat has already decided about this connection in OUTPUT");
    decided = true;
    const auto chain = [&](const Call& call) { return ask(call.base); };
    const MarkBefore unmarked = watch_mark();
    const bool gone = in_order(rules_.of_nat(at), chain) == ChainResult::gone;
    // Where a rule translates, connections are tracked; here one may do something else.
    if (rules_.tracking() == FamilyRules::Tracking::unknown && !packet_.seen && (gone || !has_mark_of(unmarked))) {
      packet_.not_known(
          "whether the kernel tracks connections: it asks nat only then, and no rule that is understood needs it",
          "whether connections are tracked");
      return false;
    }
    if (gone) return false;
  } else {
    not_asked(at, "only the first packet of a connection passes nat");
    packet_.now.state == ConnectionState::reply ? translate_answer(of_destination) : translate(of_destination);
  }
  if (at != Hook::output) return true;
  const Endpoint& after = packet_.now.destination;
  if (observer() != nullptr && after.address_origin != before.address_origin) {
    const AddressRange ranges[] = {AddressRange::single(before.address), AddressRange::single(after.address)};
    observer()->address(before.address, {&ranges[1], 1});
    observer()->address(after.address, {&ranges[0], 1});
  }
  if (after.address == before.address) return true;
  return reroute("the destination changed");
}

bool PacketWalk::not_asked(Hook at, const char* because) {
  if (has_rules_of_nat(at)) packet_.kernel([&] { return fmt::format("nat {} is skipped: {}", name(at), because); });
  return true;
}

ChainResult PacketWalk::ask(const BaseChain& base) {
  return walk_chain(packet_, pod_, base, rules_.chains(*base.live), context_.forks);
}

PacketWalk::MarkBefore PacketWalk::watch_mark() {
  packet_.marked.clear();
  packet_.mark_restored = false;
  return {packet_.now.mark, packet_.now.own_bits};
}

bool PacketWalk::has_mark_of(const MarkBefore& before) {
  std::uint32_t asked = 0;
  const bool is_each_of_its_own = std::ranges::all_of(
      packet_.marked, [&](const SetMark& set) { return (std::exchange(asked, asked | set.mask) & set.mask) == 0; });
  if (observer() != nullptr && (packet_.mark_restored || !is_each_of_its_own)) {
    observer()->mark();
  } else if (observer() != nullptr) {
    for (const SetMark& set : packet_.marked)
      observer()->mark(before.mark, before.own_bits, set.mark & set.mask, set.mask);
  }
  return packet_.now.mark == before.mark;
}

}  // namespace sidetrack
