// SPDX-License-Identifier: Apache-2.0
#pragma once
// The coarsest equitable partition of ranks, connections and links: what is alike and stays so.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include <topocoll/plan/detail/flow_model.hpp>

namespace topocoll { inline namespace v0 { namespace plan { namespace detail {

/// Two independent hashes of a multiset: sums of the mixed elements.
struct flow_signature {
  std::uint64_t a = 0, b = 0;

  void add(std::uint64_t x) {
    a += mixed(x);
    b += mixed(x ^ 0x6a09e667f3bcc908U);  // first digits of the square root of 2: any other start will do
  }
  friend bool operator==(const flow_signature&, const flow_signature&) = default;
};

/// Numbers signatures in the order of their first appearance. Open addressing.
class flow_numbering {
 public:
  explicit flow_numbering(std::size_t most) {
    std::size_t size = 16;
    while (size < most * 2) size *= 2;
    slots_.assign(size, flow_none);
  }
  [[nodiscard]] std::uint32_t number(const flow_signature& s) {
    std::size_t i = static_cast<std::size_t>(mixed(s.a ^ s.b)) & (slots_.size() - 1);
    while (slots_[i] != flow_none && !(known_[slots_[i]] == s)) i = (i + 1) & (slots_.size() - 1);
    if (slots_[i] == flow_none) {
      slots_[i] = static_cast<std::uint32_t>(known_.size());
      known_.push_back(s);
    }
    return slots_[i];
  }
  [[nodiscard]] std::size_t count() const { return known_.size(); }

 private:
  std::vector<std::uint32_t> slots_;
  std::vector<flow_signature> known_;
};

/// Colour refinement in rounds: two of a kind stay in one class while their neighbours are of equal classes, counted with
/// multiplicity. Cost: O(connections * links of their routes) per round; as many rounds as differences need to spread.
template <class = void>
class flow_classes {
 public:
  flow_classes(flow_model& m, const std::vector<std::uint64_t>& marks, const flow_prices& prices)
      : m_(m), marks_(marks), prices_(prices) {}

  /// Fills the classes and their examples. Without `group`, and when differences spread for too long, all stand alone.
  void run(bool group) {
    find_links();
    if (!group || !refine()) stand_alone();
    examples(m_.rank_class, m_.rank_of);
    examples(m_.connection_class, m_.connection_of);
    link_classes();
    m_.class_size.assign(m_.rank_of.size(), 0);
    for (const std::uint32_t c : m_.rank_class) ++m_.class_size[c];
  }

 private:
  /// Far more than a fabric of any diameter needs; long chains of ranks that all differ are not worth the time.
  static constexpr int most_rounds = 100;

  void find_links() {
    slot_.assign(prices_.rate.size(), flow_none);
    for (const flow_route& r : m_.routes)
      for (const flow_route::part& x : r.parts)
        if (slot_[x.link] == flow_none) {
          slot_[x.link] = static_cast<std::uint32_t>(links_.size());
          links_.push_back(x.link);
        }
  }
  [[nodiscard]] static std::uint64_t bits(double x) {
    std::uint64_t y = 0;
    static_assert(sizeof x == sizeof y);
    __builtin_memcpy(&y, &x, sizeof y);
    return y;
  }

  [[nodiscard]] bool refine() {
    const std::size_t ranks = marks_.size(), lines = m_.connections.size();
    std::vector<std::uint32_t> rank(ranks, 0), line(lines, 0), link(links_.size(), 0);
    std::size_t classes = 0;
    for (int round = 0; round < most_rounds; ++round) {
      std::vector<flow_signature> of_rank(ranks), of_line(lines), of_link(links_.size()), of_route(m_.routes.size());
      if (round == 0) {
        for (std::size_t r = 0; r < ranks; ++r) of_rank[r].add(marks_[r]);
        for (std::size_t c = 0; c < lines; ++c) {
          const flow_connection& x = m_.connections[c];
          of_line[c].add(mixed(x.send_mark) ^ x.receive_mark);
          of_line[c].add(mixed(std::uint64_t{x.sends} << 32U | x.receives) + x.channel);
        }
        for (std::size_t l = 0; l < links_.size(); ++l)
          of_link[l].add(mixed(bits(prices_.rate[links_[l]])) ^ bits(prices_.latency[links_[l]]));
      } else {
        for (std::size_t i = 0; i < m_.routes.size(); ++i)
          for (const flow_route::part& x : m_.routes[i].parts)
            of_route[i].add(mixed(bits(x.share)) + link[slot_[x.link]]);
        for (std::size_t c = 0; c < lines; ++c) {
          const flow_connection& x = m_.connections[c];
          of_line[c] = of_route[x.route];
          of_line[c].add(mixed(std::uint64_t{rank[x.from]} << 32U | rank[x.to]) ^ std::uint64_t{line[c]} << 1U);
          of_rank[x.from].add(mixed(line[c]) + 1);
          of_rank[x.to].add(mixed(line[c]) + 2);
          for (const flow_route::part& p : m_.routes[x.route].parts)
            of_link[slot_[p.link]].add(mixed(bits(p.share)) ^ mixed(line[c]));
        }
        for (std::size_t r = 0; r < ranks; ++r) of_rank[r].add(~std::uint64_t{rank[r]});
        for (std::size_t l = 0; l < links_.size(); ++l) of_link[l].add(~std::uint64_t{link[l]});
      }
      const std::size_t now = renumber(of_rank, rank) + renumber(of_line, line) + renumber(of_link, link);
      if (now == classes) {
        m_.rank_class = std::move(rank);
        m_.connection_class = std::move(line);
        links_in_ = std::move(link);
        return true;
      }
      classes = now;
    }
    return false;
  }
  static std::size_t renumber(const std::vector<flow_signature>& of, std::vector<std::uint32_t>& colour) {
    flow_numbering numbers(of.size());
    for (std::size_t i = 0; i < of.size(); ++i) colour[i] = numbers.number(of[i]);
    return numbers.count();
  }

  void stand_alone() {
    const auto all = [](std::vector<std::uint32_t>& of, std::size_t n) {
      of.resize(n);
      for (std::size_t i = 0; i < n; ++i) of[i] = static_cast<std::uint32_t>(i);
    };
    all(m_.rank_class, marks_.size());
    all(m_.connection_class, m_.connections.size());
    all(links_in_, links_.size());
  }
  static void examples(const std::vector<std::uint32_t>& class_of, std::vector<std::uint32_t>& first) {
    first.clear();
    for (std::uint32_t i = 0; i < class_of.size(); ++i)
      if (class_of[i] == first.size()) first.push_back(i);
  }
  void link_classes() {
    m_.link_class.assign(prices_.rate.size(), flow_none);
    for (std::size_t l = 0; l < links_.size(); ++l) {
      m_.link_class[links_[l]] = links_in_[l];
      if (links_in_[l] == m_.link_of.size()) m_.link_of.push_back(links_[l]);
    }
  }

  flow_model& m_;
  const std::vector<std::uint64_t>& marks_;
  const flow_prices& prices_;
  std::vector<std::uint32_t> slot_, links_, links_in_;  // per link of the graph; used links and their classes
};

}}}}  // namespace topocoll::v0::plan::detail
