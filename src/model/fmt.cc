// SPDX-License-Identifier: GPL-2.0-or-later
// Compiles fmt's implementation once: as headers alone it is in each of the program's forty units, and takes two
// seconds of each.
#include <fmt/format-inl.h>

// fmt declares these as made elsewhere, in its library.
FMT_BEGIN_NAMESPACE
namespace detail {
template auto dragonbox::to_decimal(float value) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double value) noexcept -> dragonbox::decimal_fp<double>;
template auto thousands_sep_impl(locale_ref locale) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref locale) -> char;
}  // namespace detail
FMT_END_NAMESPACE
