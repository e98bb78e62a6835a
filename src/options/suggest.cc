// SPDX-License-Identifier: GPL-2.0-or-later
#include "options/suggest.h"

#include <algorithm>
#include <numeric>

namespace sidetrack::options {
namespace {

// Edit distance in which a swap of neighbours counts once (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_above(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(two_above, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  std::optional<std::string_view> best;
  constexpr std::size_t longest_word = 64;  // the cost grows with the length, and no option is so long
  if (word.size() > longest_word) return best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 4) + 1;  // a word further away is another word
  for (const auto candidate : candidates) {
    const std::size_t changes = distance(word, candidate);
    if (changes >= least || changes >= std::max(word.size(), candidate.size())) continue;
    least = changes;
    best = candidate;
  }
  if (best) return best;

  const auto begun = [&](std::string_view candidate) { return candidate.starts_with(word); };
  if (std::ranges::count_if(candidates, begun) == 1) best = *std::ranges::find_if(candidates, begun);
  return best;
}

}  // namespace sidetrack::options
