// SPDX-License-Identifier: Apache-2.0
#pragma once
// Classes of nodes that look alike from everywhere: found by hashing, checked by adding up, used to shrink networks.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/plan/detail/exact_network.hpp>
#include <topocoll/plan/detail/gather_cut.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// A partition of nodes into classes numbered from 0 in the order of their first nodes.
struct node_classes {
  std::vector<std::uint32_t> class_of{};  ///< per node
  std::uint32_t count = 0;
};

/// Numbers 64-bit keys 0, 1, 2, … in the order in which they first appear. Cost: O(keys).
template <class = void>
[[nodiscard]] node_classes number_keys(const std::vector<std::uint64_t>& keys) {
  std::size_t size = 16;
  while (size < 2 * keys.size()) size *= 2;
  std::vector<std::uint64_t> key(size);
  std::vector<std::uint32_t> number(size, UINT32_MAX);
  node_classes c;
  c.class_of.resize(keys.size());
  for (std::size_t v = 0; v < keys.size(); ++v) {
    std::size_t at = static_cast<std::size_t>((keys[v] * 0x9e3779b97f4a7c15U) >> 20U) & (size - 1);
    while (number[at] != UINT32_MAX && key[at] != keys[v]) at = (at + 1) & (size - 1);
    if (number[at] == UINT32_MAX) {
      key[at] = keys[v];
      number[at] = c.count++;
    }
    c.class_of[v] = number[at];
  }
  return c;
}

/// A bijection of 64-bit numbers that spreads them (the finalizer of MurmurHash3).
[[nodiscard]] constexpr std::uint64_t spread_bits(std::uint64_t x) {
  x ^= x >> 33U;
  x *= 0xff51afd7ed558ccdU;
  x ^= x >> 33U;
  x *= 0xc4ceb9fe1a85ec53U;
  return x ^ x >> 33U;
}

/// Splits classes until the nodes of each send as much to, and receive as much from, every class; `colours` are the
/// classes to begin with. Colour refinement in rounds: a round hashes what each node exchanges with each class. Two
/// different sums may get one hash, so the answer is only as good as `is_equitable` says. Cost: O(links x rounds); rounds
/// are about as many as the network is wide.
template <class = void>
[[nodiscard]] node_classes refine(const exact_network& net, std::span<const std::uint64_t> colours,
                                  std::uint64_t seed = 0) {
  std::vector<std::uint64_t> key(colours.begin(), colours.end());
  node_classes c = number_keys(key);
  while (true) {
    for (std::uint32_t v = 0; v < net.nodes; ++v) key[v] = 0;
    // Linear in the capacities: only what a node exchanges with a class in all counts.
    for (const exact_network::arc& a : net.arcs) {
      const auto units = static_cast<std::uint64_t>(a.units);
      key[a.from] += units * (spread_bits(seed + 2 * std::uint64_t{c.class_of[a.to]} + 1) | 1U);
      key[a.to] += units * (spread_bits(~seed - 2 * std::uint64_t{c.class_of[a.from]}) | 1U);
    }
    for (std::uint32_t v = 0; v < net.nodes; ++v) key[v] = spread_bits(key[v] ^ spread_bits(seed + c.class_of[v]));
    const std::uint32_t before = c.count;
    c = number_keys(key);
    if (c.count == before) return c;
  }
}

/// True when all nodes of a class have equal weights, send as much to every class and receive as much from it. Exact.
/// Cost: O(nodes + links).
template <class = void>
[[nodiscard]] bool is_equitable(const exact_network& net, std::span<const std::int64_t> weight, const node_classes& c) {
  std::vector<std::uint32_t> first(c.count, UINT32_MAX);
  for (std::uint32_t v = 0; v < net.nodes; ++v) {
    if (first[c.class_of[v]] == UINT32_MAX) first[c.class_of[v]] = v;
    if (weight[v] != weight[first[c.class_of[v]]]) return false;
  }
  struct sum {
    std::uint32_t other;
    std::int64_t units;
  };
  for (const bool turned : {false, true}) {
    // Arcs by node, nodes by class.
    std::vector<std::uint32_t> start(net.nodes + 1, 0), at(net.nodes);
    for (const exact_network::arc& a : net.arcs) ++start[(turned ? a.to : a.from) + 1];
    for (std::uint32_t v = 0; v < net.nodes; ++v) start[v + 1] += start[v];
    for (std::uint32_t v = 0; v < net.nodes; ++v) at[v] = start[v];
    std::vector<sum> arcs(net.arcs.size());
    for (const exact_network::arc& a : net.arcs)
      arcs[at[turned ? a.to : a.from]++] = {c.class_of[turned ? a.from : a.to], a.units};
    std::vector<std::uint32_t> members(net.nodes), next(c.count + 1, 0);
    for (const std::uint32_t k : c.class_of) ++next[k + 1];
    for (std::uint32_t k = 0; k < c.count; ++k) next[k + 1] += next[k];
    for (std::uint32_t v = 0; v < net.nodes; ++v) members[next[c.class_of[v]]++] = v;
    std::vector<int128> wanted(c.count, 0), got(c.count, 0);
    std::uint32_t current = UINT32_MAX;
    for (const std::uint32_t v : members) {
      const std::uint32_t model = first[c.class_of[v]];
      if (current != c.class_of[v]) {
        if (current != UINT32_MAX)
          for (std::uint32_t k = start[first[current]]; k < start[first[current] + 1]; ++k) wanted[arcs[k].other] = 0;
        current = c.class_of[v];
        for (std::uint32_t k = start[model]; k < start[model + 1]; ++k) wanted[arcs[k].other] += arcs[k].units;
      }
      for (std::uint32_t k = start[v]; k < start[v + 1]; ++k) got[arcs[k].other] += arcs[k].units;
      bool equal = true;
      for (std::uint32_t k = start[v]; k < start[v + 1]; ++k)
        equal = equal && got[arcs[k].other] == wanted[arcs[k].other];
      for (std::uint32_t k = start[model]; k < start[model + 1]; ++k)
        equal = equal && got[arcs[k].other] == wanted[arcs[k].other];
      for (std::uint32_t k = start[v]; k < start[v + 1]; ++k) got[arcs[k].other] = 0;
      if (!equal) return false;
    }
  }
  return true;
}

/// The classes as nodes, with what they exchange in all; arcs inside a class are left out.
struct quotient_network {
  exact_network net{};
  std::vector<std::int64_t> weight{};
};
/// @return `unsupported` when the capacity between two classes, or the weight of one, does not fit into 63 bits
/// Precondition: the classes are equitable. Cost: O(links) plus O(k^2) for k classes when k is small, else O(links).
template <class = void>
[[nodiscard]] result<quotient_network> quotient_of(const exact_network& net, std::span<const std::int64_t> weight,
                                                   const node_classes& c) {
  quotient_network q;
  q.net.nodes = c.count;
  q.net.unit = net.unit;
  q.net.exact = net.exact;
  q.weight.assign(c.count, 0);
  const failure too_long = fail(errc::unsupported, "what classes of nodes exchange does not fit into 63 bits");
  for (std::uint32_t v = 0; v < net.nodes; ++v) {
    if (weight[v] > INT64_MAX - q.weight[c.class_of[v]]) return too_long;
    q.weight[c.class_of[v]] += weight[v];
  }
  // What one node of a class sends, times the size of the class.
  std::vector<std::uint32_t> first(c.count, UINT32_MAX), size(c.count, 0);
  for (std::uint32_t v = 0; v < net.nodes; ++v) {
    if (first[c.class_of[v]] == UINT32_MAX) first[c.class_of[v]] = v;
    ++size[c.class_of[v]];
  }
  struct sum {
    std::uint32_t from, to;
    int128 units;
  };
  std::vector<std::vector<sum>> sums(c.count);
  for (const exact_network::arc& a : net.arcs) {
    const std::uint32_t from = c.class_of[a.from], to = c.class_of[a.to];
    if (from == to || a.from != first[from]) continue;
    auto it = seq::find_by(sums[from], to, &sum::to);
    if (it == sums[from].end())
      sums[from].push_back({from, to, a.units});
    else
      it->units += a.units;
  }
  for (const auto& list : sums)
    for (const sum& s : list) {
      const int128 units = s.units * size[s.from];
      if (units > INT64_MAX) return too_long;
      q.net.arcs.push_back({s.from, s.to, static_cast<std::int64_t>(units)});
    }
  return q;
}

/// True when `image` is a permutation of the nodes that keeps weights and all capacities. Exact. Cost: O(links log links).
template <class = void>
[[nodiscard]] bool is_automorphism(const exact_network& net, std::span<const std::int64_t> weight,
                                   std::span<const std::uint32_t> image) {
  if (image.size() != net.nodes) return false;
  std::vector<bool> hit(net.nodes, false);
  for (std::uint32_t v = 0; v < net.nodes; ++v) {
    if (image[v] >= net.nodes || hit[image[v]] || weight[image[v]] != weight[v]) return false;
    hit[image[v]] = true;
  }
  // Arcs of a node and of its image, the former carried over, must cancel out.
  std::vector<std::uint32_t> start(net.nodes + 1, 0), at(net.nodes);
  for (const exact_network::arc& a : net.arcs) ++start[a.from + 1];
  for (std::uint32_t v = 0; v < net.nodes; ++v) start[v + 1] += start[v];
  for (std::uint32_t v = 0; v < net.nodes; ++v) at[v] = start[v];
  std::vector<std::uint32_t> arcs(net.arcs.size());
  for (std::uint32_t k = 0; k < net.arcs.size(); ++k) arcs[at[net.arcs[k].from]++] = k;
  std::vector<int128> balance(net.nodes, 0);
  for (std::uint32_t v = 0; v < net.nodes; ++v) {
    const std::uint32_t w = image[v];
    for (std::uint32_t k = start[v]; k < start[v + 1]; ++k)
      balance[image[net.arcs[arcs[k]].to]] += net.arcs[arcs[k]].units;
    for (std::uint32_t k = start[w]; k < start[w + 1]; ++k) balance[net.arcs[arcs[k]].to] -= net.arcs[arcs[k]].units;
    bool equal = true;
    for (std::uint32_t k = start[v]; k < start[v + 1]; ++k) {
      int128& b = balance[image[net.arcs[arcs[k]].to]];
      equal = equal && b == 0;
      b = 0;
    }
    for (std::uint32_t k = start[w]; k < start[w + 1]; ++k) {
      int128& b = balance[net.arcs[arcs[k]].to];
      equal = equal && b == 0;
      b = 0;
    }
    if (!equal) return false;
  }
  return true;
}

/// How a cut was found with classes.
struct class_search {
  std::uint32_t classes = 0;  ///< classes of nodes, nothing set apart
  std::uint32_t asked = 0;    ///< receivers around which a cut was sought in a quotient
  bool orbits = false;  ///< generators show that these stand for all receivers; otherwise all were asked one by one
};

/// `worst_gather_cut` with one receiver for each class of nodes that look alike.
///
/// The minimum cut between the source and a receiver that is a class of its own is the same in the quotient by an
/// equitable partition: averaged over classes, a cut given by potentials costs no more, by convexity. Whether one receiver
/// can stand for its class is another question: looking alike is not being alike (two triangles look like a hexagon).
/// `generators` are permutations of the nodes; those that are automorphisms say which receivers are alike. Where they do
/// not cover a class, all receivers are asked in the network itself, beginning with the rate found here: the answer is
/// always proved. Cost: for k classes k x O(links x rounds); with all receivers as `worst_gather_cut`.
template <class = void>
[[nodiscard]] result<weighted_cut> worst_gather_cut_by_classes(
    const exact_network& net, std::span<const std::int64_t> weight,
    std::span<const std::vector<std::uint32_t>> generators = {}, class_search* how = nullptr) {
  std::vector<std::uint64_t> colours(net.nodes);
  for (std::uint32_t v = 0; v < net.nodes; ++v) colours[v] = static_cast<std::uint64_t>(weight[v]);
  const node_classes base = refine(net, colours);
  std::vector<std::uint32_t> orbit(net.nodes);
  for (std::uint32_t v = 0; v < net.nodes; ++v) orbit[v] = v;
  const auto find = [&](std::uint32_t i) {
    while (orbit[i] != i) i = orbit[i] = orbit[orbit[i]];
    return i;
  };
  for (const auto& image : generators)
    if (is_automorphism(net, weight, image))
      for (std::uint32_t v = 0; v < net.nodes; ++v) orbit[find(v)] = find(image[v]);

  class_search told;
  told.classes = base.count;
  told.orbits = true;
  std::vector<std::uint32_t> chosen(base.count, UINT32_MAX);
  for (std::uint32_t v = 0; v < net.nodes; ++v) {
    if (weight[v] == 0) continue;
    std::uint32_t& first = chosen[base.class_of[v]];
    if (first == UINT32_MAX) first = v;
    told.orbits = told.orbits && find(v) == find(first);
  }
  weighted_cut worst;
  for (const std::uint32_t v : chosen) {
    if (v == UINT32_MAX) continue;
    ++told.asked;
    for (std::uint32_t k = 0; k < net.nodes; ++k) colours[k] = base.class_of[k];
    colours[v] = base.count;
    node_classes apart = refine(net, colours);
    for (std::uint64_t seed = 1; seed <= 3 && !is_equitable(net, weight, apart); ++seed)
      apart = refine(net, colours, seed);
    if (!is_equitable(net, weight, apart)) {  // three collisions in a row: classes are of no use here
      told.orbits = false;
      break;
    }
    auto q = quotient_of(net, weight, apart);
    if (!q) return q.error();
    const std::uint32_t receiver = apart.class_of[v];
    // A cut of another quotient only gives the rate.
    auto cut = worst_gather_cut(q->net, q->weight,
                                {.receivers = {&receiver, 1}, .start = worst.weight > 0 ? &worst : nullptr});
    if (!cut) return cut;
    if (worst.weight > 0 && !cut->tighter_than(worst)) continue;
    worst = *cut;
    worst.inside.resize(net.nodes);
    for (std::uint32_t k = 0; k < net.nodes; ++k) worst.inside[k] = cut->inside[apart.class_of[k]];
  }
  if (how != nullptr) *how = told;
  if (told.orbits && worst.weight > 0) return worst;
  return worst_gather_cut(net, weight, {.start = worst.weight > 0 ? &worst : nullptr});
}

}}}}  // namespace topocoll::v0::plan::detail
