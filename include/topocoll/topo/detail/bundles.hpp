// SPDX-License-Identifier: Apache-2.0
#pragma once
// Links between two nodes as one, two such bundles compared, and their figures in words.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/topo/detail/shape.hpp>
#include <topocoll/topo/difference.hpp>
#include <topocoll/topo/graph.hpp>
#include <topocoll/topo/words.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail { namespace sameness {

/// What leaves a node, sorted by the other end and the kind.
template <class = void>
[[nodiscard]] std::vector<bundle> bundles_from(const graph& g, node_id v) {
  std::vector<bundle> all;
  for (const link_id e : g.out_links(v)) {
    const link& l = g.at(e);
    bundle one{l.from, l.to, l.kind, 1, l.generation, l.lanes, l.nominal, l.current, l.capacity, l.how};
    if (!one.current) one.current = one.nominal;
    all.push_back(one);
  }
  if (all.size() > 1)
    seq::sort(all, [](const bundle& x, const bundle& y) { return x.to != y.to ? x.to < y.to : x.kind < y.kind; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (kept == 0 || all[kept - 1].to != all[i].to || all[kept - 1].kind != all[i].kind) {
      all[kept++] = all[i];
      continue;
    }
    bundle& sum = all[kept - 1];
    const bundle& more = all[i];
    ++sum.links;
    sum.generation = std::min(sum.generation, more.generation);
    sum.lanes = sum.lanes == 0 || more.lanes == 0 ? 0 : sum.lanes + more.lanes;
    const auto add = [](std::optional<bytes_per_second>& x, const std::optional<bytes_per_second>& y) {
      if (x && y)
        x = *x + *y;
      else
        x.reset();
    };
    add(sum.nominal, more.nominal);
    add(sum.current, more.current);
    sum.capacity = sum.capacity + more.capacity;
    sum.how = std::max(sum.how, more.how);
  }
  all.resize(kept);
  return all;
}

/// "PCIe link", "cable", …: what a link of a kind is called in a sentence.
[[nodiscard]] constexpr const char* link_word(link_kind k) {
  constexpr const char* words[] = {"PCIe link",
                                   "NVLink connection",
                                   "XGMI connection",
                                   "chip-to-chip link",
                                   "inter-socket link",
                                   "memory link",
                                   "internal link",
                                   "cable",
                                   "cable"};
  return words[static_cast<std::size_t>(k)];
}

/// The rate by which people know a bundle: the line rate if it is told, else what models use.
[[nodiscard]] inline bytes_per_second rate_of(const bundle& x) {
  return x.capacity.value > 0 && x.current && x.how != trust::assumed ? *x.current : x.capacity;
}

/// "Gen5 x16, 63.0 GB/s", "18 x NVLink4, 450 GB/s", "2 cables of 400 Gb/s", "nothing".
template <class = void>
[[nodiscard]] std::string figures_text(const bundle& x) {
  if (x.capacity.value <= 0) return "nothing";
  const bytes_per_second rate = rate_of(x);
  if (is_cable(x.kind)) {
    const std::string each = bits_text({rate.value / x.links});
    return x.links == 1 ? each : std::to_string(x.links) + " cables of " + each;
  }
  std::string text;
  if (x.kind == link_kind::pcie || x.kind == link_kind::nvlink || x.kind == link_kind::xgmi) {
    link one;
    one.kind = x.kind;
    one.generation = x.generation;
    one.lanes = x.lanes;
    text = make_of(one) + ", ";
  }
  return text + to_string(rate);
}

enum class relation : std::uint8_t { same, slower, faster, other, unknown };

[[nodiscard]] inline bool close(double a, double b, double tolerance) {
  return (a > b ? a - b : b - a) <= tolerance * (a > b ? a : b);
}

/// How `b` relates to `a`. What one side only assumes is never called slower, but for a width that both sides tell.
template <class = void>
[[nodiscard]] relation relate(const bundle& a, const bundle& b, double tolerance) {
  if ((a.capacity.value > 0) != (b.capacity.value > 0))
    return b.capacity.value > 0 ? relation::faster : relation::slower;
  if (a.capacity.value <= 0) return relation::same;
  // 2.5 GT/s x1 is what emulators write; whoever assumes something else does not believe it either.
  const auto told_width = [](const bundle& x) {
    return x.lanes != 0 && (x.how != trust::assumed || x.generation > 1 || x.lanes > 1);
  };
  const bool other_width = told_width(a) && told_width(b) && a.lanes != b.lanes;
  const bool told = a.how != trust::assumed && b.how != trust::assumed;
  if (!told) {
    if (other_width && a.kind == link_kind::pcie) return b.lanes < a.lanes ? relation::slower : relation::faster;
    return close(a.capacity.value, b.capacity.value, tolerance) ? relation::same : relation::unknown;
  }
  const bool other_make =
      other_width || a.links != b.links || (a.generation != 0 && b.generation != 0 && a.generation != b.generation);
  if (a.current && b.current) {
    if (!close(a.current->value, b.current->value, tolerance))
      return *b.current < *a.current ? relation::slower : relation::faster;
    const bool other_best = a.nominal && b.nominal && !close(a.nominal->value, b.nominal->value, tolerance);
    return other_make || other_best ? relation::other : relation::same;
  }
  if (close(a.capacity.value, b.capacity.value, a.how == trust::measured ? 0.1 : tolerance))
    return other_make ? relation::other : relation::same;
  // A payload and a line rate are not the same thing: figures of different origin do not blame anybody.
  if (a.how != b.how || a.current.has_value() != b.current.has_value())
    return other_make ? relation::other : relation::unknown;
  return b.capacity < a.capacity ? relation::slower : relation::faster;
}

}}}}}  // namespace topocoll::v0::topo::detail::sameness
