// SPDX-License-Identifier: GPL-2.0-or-later
#include <sidetrack/rules.h>

#include <utility>

#include "kernel/nft/script.h"
#include "library/packets.h"
#include "library/planning.h"
#include "library/values.h"
#include "mesh/istio_rules.h"
#include "render/render.h"
#include "rule/iptables.h"

namespace sidetrack {

Rules::Rules(const Options& options) {
  Values values{options.values_->config, options.values_->applying, {}};
  values.plan = plan_for(values.config, options.values_->names, nullptr, true);
  values_ = std::make_shared<const Values>(std::move(values));
}

std::string Rules::iptables_restore() const { return sidetrack::iptables_restore(values_->plan.ruleset, Family::ipv4); }
std::string Rules::ip6tables_restore() const {
  return sidetrack::iptables_restore(values_->plan.ruleset, Family::ipv6);
}
std::string Rules::nft() const { return nft_script(values_->plan.ruleset, istio_rules); }
std::string Rules::json() const { return sidetrack::json(values_->plan, values_->config); }
std::string Rules::svg() const { return sidetrack::svg(values_->plan, values_->config, Families::both()); }

const std::vector<std::string>& Rules::warnings() const noexcept { return values_->plan.warnings; }

Explanation Rules::explain(const std::vector<std::string>& packet) const {
  return explanation(explain_planned(packet_of_words(packet), values_->applying, values_->plan, {}));
}

}  // namespace sidetrack
