// SPDX-License-Identifier: GPL-2.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "mesh/other_meshes.h"
#include "model/printable.h"
#include "render/layout.h"
#include "render/render.h"
#include "walk/explain.h"

namespace sidetrack {
namespace {

constexpr std::size_t widest_step = 72;  // longer ones are not aligned with
constexpr std::size_t longest_passed_run =
    6;  // of rules that do not match for the same reason, before they become one line

std::string packet_line(const Packet& packet) {
  static constexpr const char* states[] = {"the first packet of a connection", "a later packet of a connection",
                                           "an answer", "a packet of an unknown connection"};
  const auto end = [](const Address& address, std::optional<std::uint16_t> port) {
    return Endpoint{address, port}.text();
  };
  std::string line = fmt::format("{} from {} to {}", name(packet.protocol), end(*packet.source, packet.source_port),
                                 end(*packet.destination, packet.destination_port));
  if (packet.owner) line += fmt::format(", sent by uid {} gid {}", packet.owner->uid, packet.owner->gid);
  if (packet.cgroup) line += fmt::format(", cgroup /{}", *packet.cgroup);
  if (!packet.owner && packet.direction != Direction::in) line += ", sent by the kernel";
  if (packet.mark != 0) line += fmt::format(", mark {}", packet.mark);
  return line + ", " + states[static_cast<std::size_t>(packet.state)];
}

bool is_rule(const Step& step) { return step.kind >= Step::Kind::passed; }

// Steps of the same chain of the same table are under one heading.
bool same_chain(const Step& a, const Step& b) {
  return is_rule(a) && is_rule(b) && a.backend == b.backend && a.table == b.table && a.chain == b.chain &&
         a.depth == b.depth;
}

class Text {
 public:
  Text(const Trace& trace, const TextOptions& options) : trace_(trace), options_(options) {
    for (const Step& step : trace.steps) {
      const std::size_t length = indent(step) + step.rule.size();
      if (is_rule(step) && length <= widest_step) width_ = std::max(width_, length);
      several_ = several_ || (is_rule(step) && step.backend != first_backend());
    }
  }

  std::string all() {
    text_ = packet_line(trace_.packet) + "\n\n";
    const auto& steps = trace_.steps;
    for (std::size_t i = 0; i < steps.size();) {
      const std::size_t run = run_from(i);
      if (!is_rule(steps[i])) {
        event(steps[i]);
      } else {
        if (i == 0 || !same_chain(steps[i - 1], steps[i])) heading(steps[i]);
        run > longest_passed_run && !options_.all ? passed_run(i, run) : rule(steps[i]);
      }
      i += run > longest_passed_run && !options_.all ? run : 1;
    }
    if (!trace_.steps.empty()) text_ += "\n";
    end();
    return std::move(text_);
  }

 private:
  static std::size_t indent(const Step& step) { return 2 + 2 * static_cast<std::size_t>(step.depth); }
  [[nodiscard]] std::string color(std::string_view text, Style style) const {
    return styled(text, style, options_.color);
  }

  [[nodiscard]] BackendKind first_backend() const {
    const auto found = std::ranges::find_if(trace_.steps, is_rule);
    return found == trace_.steps.end() ? BackendKind::iptables_legacy : found->backend;
  }

  // How many steps from `i` on are rules of one chain that were passed for the same reason.
  [[nodiscard]] std::size_t run_from(std::size_t i) const {
    const Step& first = trace_.steps[i];
    std::size_t end = i + 1;
    while (end < trace_.steps.size() && first.kind == Step::Kind::passed && same_chain(first, trace_.steps[end]) &&
           trace_.steps[end].kind == Step::Kind::passed && trace_.steps[end].text == first.text) {
      ++end;
    }
    return end - i;
  }

  void event(const Step& step) {
    if (step.kind == Step::Kind::hook) {
      text_ += color(step.text, Style::bold) + "\n";
    } else {
      text_ += fmt::format("  {}\n", color(step.text, Style::dim));
    }
  }

  void heading(const Step& step) {
    std::string what = fmt::format("{} {}", step.table, step.chain);
    if (const std::string_view mesh = mesh_of_chain(step.chain); !mesh.empty()) what += fmt::format(" [{}]", mesh);
    if (several_) what += fmt::format(" ({})", name(step.backend));
    text_ += fmt::format("{:{}}{}\n", "", indent(step), what);
  }

  void line(const Step& step, const std::string& numbers, std::string_view rule, std::string_view answer,
            const std::string& said, Style style) {
    const std::size_t left = indent(step);
    const std::string padded =
        fmt::format("{:{}}{:>5}  {:{}}", "", left, numbers, rule, width_ - std::min(width_, left));
    text_ += fmt::format("{}  {}\n", style == Style::dim ? color(padded, style) : padded,
                         color(fmt::format("{:<3} {}", answer, said), style));
  }

  void rule(const Step& step) {
    const std::string number = step.number == 0 ? "policy" : fmt::format("{}", step.number);
    if (step.kind == Step::Kind::unknown) return line(step, number, step.rule, "?:", step.text, Style::yellow);
    if (step.kind == Step::Kind::passed) return line(step, number, step.rule, "no:", step.text, Style::dim);
    const std::string because = reason_words(step.reason);
    line(step, number, step.rule, "yes:", because.empty() ? step.text : fmt::format("{}: {}", step.text, because),
         step.kind == Step::Kind::decided ? Style::green : Style::plain);
  }

  void passed_run(std::size_t from, std::size_t count) {
    const Step& first = trace_.steps[from];
    const Step& last = trace_.steps[from + count - 1];
    line(first, fmt::format("{}-{}", first.number, last.number), fmt::format("{} rules", grouped(count)),
         "no:", first.text, Style::dim);
  }

  void end() {
    const bool lost = trace_.outcome.kind == Outcome::Kind::dropped || trace_.outcome.kind == Outcome::Kind::unroutable;
    const bool not_known = trace_.outcome.kind == Outcome::Kind::unknown;
    text_ += color(sentence(trace_.outcome), lost ? Style::red : not_known ? Style::yellow : Style::bold) + "\n";
    std::size_t width = 0;
    for (std::size_t place : trace_.decisive) width = std::max(width, where(trace_.steps[place]).size());
    for (std::size_t place : trace_.decisive) {
      const Step& step = trace_.steps[place];
      const std::string because = reason_words(step.reason);
      text_ += fmt::format("  by {:{}}  {}\n", where(step), width, because.empty() ? step.rule : because);
    }
    if (trace_.decisive.empty() && !not_known) text_ += "  no rule says anything else\n";
    for (const std::string& doubt : trace_.doubts)
      text_ += fmt::format("{} {}\n", color("not certain:", Style::yellow), doubt);
  }

  static std::string where(const Step& step) {
    const std::string which = step.number == 0 ? "policy" : fmt::format("{}", step.number);
    return fmt::format("{} {} {}", step.table, step.chain, which);
  }

  const Trace& trace_;
  const TextOptions& options_;
  std::size_t width_ = 20;
  bool several_ = false;  // backends
  std::string text_;
};

// Chains and interfaces have names that any program may have chosen, and rules are full of them.
Trace with_printable_names(Trace trace) {
  for (Step& step : trace.steps) {
    for (std::string* text :
         {&step.text, &step.table, &step.chain, &step.rule, &step.reason.flag, &step.reason.sentence})
      *text = printable(*text);
  }
  for (std::string& doubt : trace.doubts) doubt = printable(doubt);
  return trace;
}

}  // namespace

std::string trace_text(const Trace& trace, const TextOptions& options) {
  const Trace shown = with_printable_names(trace);
  return Text(shown, options).all();
}

}  // namespace sidetrack
