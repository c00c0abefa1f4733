// SPDX-License-Identifier: Apache-2.0
#pragma once
// The worst cut or family of a levelled cluster, found in its quotients and told in words.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/units_text.hpp>
#include <topocoll/plan/detail/bound_flow.hpp>
#include <topocoll/plan/detail/gather_cut.hpp>
#include <topocoll/plan/detail/quotient_levels.hpp>
#include <topocoll/plan/levelled_bound.hpp>

namespace topocoll { inline namespace v0 { namespace plan {
namespace detail {

class level_search {
 public:
  level_search(const levelled_cluster& c, collective_kind kind) : c_(c), kind_(kind), builder_(c) {}

  template <class = void>
  [[nodiscard]] result<levelled_bound> run() {
    if (auto sound = builder_.prepare(); !sound) return sound.error();
    auto base = builder_.quotient({});
    if (!base) return base.error();
    base_ = std::move(*base);
    places_ = builder_.places();
    all_ = base_.classes[0].gpus;
    found_.ranks = all_;
    found_.exact = builder_.rates().exact;
    if (all_ < 2) {
      found_.cut = "one GPU has nobody to talk to";
      return found_;
    }
    auto done = find();
    if (!done) return done.error();
    return found_;
  }

 private:
  using place = std::vector<std::uint32_t>;

  template <class = void>
  [[nodiscard]] result<void> find() {
    switch (kind_) {
      case collective_kind::all_reduce: return reduce();
      case collective_kind::all_to_all: return exchange();
      case collective_kind::broadcast: return gather(demand::from_root, false);
      case collective_kind::reduce: return gather(demand::from_root, true);
      case collective_kind::gather: return gather(demand::to_root, false);
      case collective_kind::scatter: return gather(demand::to_root, true);
      case collective_kind::all_gather: return gather(demand::to_all, false);
      case collective_kind::reduce_scatter: return gather(demand::to_all, true);
    }
    return fail(errc::unsupported, "there is no bound for " + std::string(to_string(kind_)));
  }
  /// Who must get what: all the shards of all, all what the first GPU has, the first GPU the shards of all.
  enum class demand : std::uint8_t { to_all, from_root, to_root };

  /// A family of whole units of a quotient: which classes are sets, what crosses them all together.
  struct family {
    std::vector<bool> is_set{};
    int128 sets = 0, out = 0, in = 0;

    [[nodiscard]] int128 narrow() const { return out < in ? out : in; }
  };

  [[nodiscard]] static failure too_long() { return fail(errc::unsupported, "the figures of the bound do not fit"); }
  [[nodiscard]] static failure no_path() {
    return fail(errc::unavailable, "the cluster has no path from some GPU to another");
  }

  /// Where the first unit of a class is.
  template <class = void>
  [[nodiscard]] static place place_of(const level_quotient& q, std::uint32_t at) {
    place p(q.classes[at].level);
    for (std::uint32_t k = at; q.classes[k].level > 0; k = q.classes[k].parent)
      p[q.classes[k].level - 1] = q.classes[k].first;
    return p;
  }
  [[nodiscard]] bool is_gpu(const unit_class& u) const { return u.level == builder_.depth(); }

  /// "GPU 2 of box 3 of pod 0".
  template <class = void>
  [[nodiscard]] std::string name_of(const place& p, std::uint32_t level) const {
    std::string text;
    for (std::uint32_t k = level; k > 0; --k) {
      if (k == 1 && builder_.depth() > 2 && c_.tiers[0].units == 1) break;  // the only one
      const std::uint32_t above = builder_.depth() - k;
      const std::string word = above == 0 ? "GPU" : (above == 1 ? "box" : (above == 2 ? "pod" : "group"));
      text += (text.empty() ? "" : " of ") + word + ' ' + std::to_string(p[k - 1]);
    }
    return text.empty() ? "the cluster" : text;
  }

  /// amount / per of the array must cross `units`.
  void set_ratio(int128 amount, int128 per, int128 units) {
    const rational unit = builder_.rates().unit;
    found_.share = static_cast<double>(amount) / static_cast<double>(per);
    found_.crossing = {static_cast<double>(units) * unit.to_double()};
    const int128 common = common_divisor_128(amount, units);  // lowest terms before 64 bits
    amount /= common;
    units /= common;
    const bool fits = amount <= INT64_MAX && units <= INT64_MAX && per <= INT64_MAX;
    found_.seconds_per_byte = fits ? rational{static_cast<std::int64_t>(amount), static_cast<std::int64_t>(per)} /
                                         (rational{static_cast<std::int64_t>(units)} * unit)
                                   : rational{1, 0};
  }

  /// The worst cut around one GPU of each class, or around the first.
  template <class = void>
  [[nodiscard]] result<void> gather(demand what, bool turned) {
    const bool rooted = what == demand::from_root;
    const place root(builder_.depth(), 0);
    level_quotient start = base_;
    if (what != demand::to_all) {
      auto with_root = builder_.quotient(std::vector<place>{root});
      if (!with_root) return with_root.error();
      start = std::move(*with_root);
    }
    weighted_cut worst;
    std::string side;
    std::uint64_t size = 0;
    for (std::uint32_t k = 0; k < start.classes.size(); ++k) {
      if (!is_gpu(start.classes[k])) continue;
      if (what != demand::to_all && (k == start.apart[0]) == rooted) continue;
      std::vector<place> apart{place_of(start, k)};
      if (rooted) apart.push_back(root);
      auto q = builder_.quotient(apart);
      if (!q) return q.error();
      const std::uint32_t sink = q->classes[q->apart[0]].node;
      if (rooted) {
        q->weight.assign(q->net.nodes, 0);
        q->weight[q->classes[q->apart[1]].node] = 1;
      }
      auto cut = worst_gather_cut(
          q->net, q->weight, {.receivers = {&sink, 1}, .start = worst.weight > 0 ? &worst : nullptr, .turned = turned});
      if (!cut) return cut.error().code == errc::unavailable ? no_path() : cut.error();
      if (worst.weight > 0 && !cut->tighter_than(worst)) continue;
      worst = std::move(*cut);
      std::vector<bool> outside = worst.inside;
      outside.flip();
      side = side_in_words(*q, q->apart[0], outside, size);
    }
    set_ratio(worst.weight, rooted ? 1 : static_cast<int128>(all_), worst.exit);
    found_.method = bound_method::best_cut;
    found_.parts = 1;
    found_.side = size;
    std::string amount = "everything";
    if (!rooted)
      amount = (kind_ == collective_kind::reduce_scatter ? "sums for " : "") + std::to_string(worst.weight) + " of " +
               std::to_string(all_) + " shards";
    found_.cut = amount + (turned ? " must leave " : " must reach ") + side + " through " + to_string(found_.crossing);
    return {};
  }

  /// The GPUs of a side of a cut around a GPU that was set apart.
  template <class = void>
  [[nodiscard]] std::string side_in_words(const level_quotient& q, std::uint32_t gpu, const std::vector<bool>& in,
                                          std::uint64_t& size) const {
    size = 0;
    for (const unit_class& u : q.classes)
      if (is_gpu(u) && in[u.node]) size += u.count;
    const place p = place_of(q, gpu);
    std::uint32_t unit = gpu;  // the largest unit around the GPU that is inside as a whole
    for (std::uint32_t k = q.classes[gpu].parent; k != unit_class::none; k = q.classes[k].parent)
      if (q.classes[k].gpus <= size) unit = k;
    bool whole = q.classes[unit].gpus == size;
    for (std::uint32_t k = 0; k < q.classes.size() && whole; ++k) {
      if (!is_gpu(q.classes[k]) || !in[q.classes[k].node]) continue;
      std::uint32_t above = k;
      while (above != unit_class::none && above != unit) above = q.classes[above].parent;
      whole = above == unit;
    }
    const std::uint32_t level = q.classes[unit].level;
    if (!whole) return std::to_string(size) + " GPUs around " + name_of(p, builder_.depth());
    return name_of(p, level) + (size > 1 ? " (" + std::to_string(size) + " GPUs)" : "");
  }

  /// The family of least sum of (b * crossing - a) among those of whole units; larger sets win ties. Its sum.
  template <class = void>
  int128 choose(const level_quotient& q, int128 a, int128 b, bool inward, family& f) const {
    const auto crossing = [&](const unit_class& u) { return inward ? u.in : u.out; };
    std::vector<int128> below(q.classes.size(), 0), best(q.classes.size(), 0);
    for (std::size_t k = q.classes.size(); k-- > 1;) {
      const unit_class& u = q.classes[k];
      const int128 own = b * crossing(u) - a;
      best[k] = is_gpu(u) || own <= below[k] ? own : below[k];
      below[u.parent] += best[k] * static_cast<int128>(u.in_parent);
    }
    f = family{std::vector<bool>(q.classes.size(), false)};
    std::vector<bool> open(q.classes.size(), false);  // no set so far on the way from the cluster
    open[0] = true;
    for (std::size_t k = 1; k < q.classes.size(); ++k) {
      const unit_class& u = q.classes[k];
      if (!open[u.parent]) continue;
      if (is_gpu(u) || b * crossing(u) - a <= below[k]) {
        f.is_set[k] = true;
        const auto count = static_cast<int128>(u.count);
        f.sets += count;
        f.out += count * u.out;
        f.in += count * u.in;
      } else {
        open[k] = true;
      }
    }
    return below[0];
  }

  template <class = void>
  [[nodiscard]] result<void> reduce() {
    family best;
    bool proved = true;
    for (const bool inward : {false, true}) {
      // From each GPU alone (a rate so large that no set is worth joining) downwards.
      family f;
      int128 a = 0, b = 1;
      for (const unit_class& u : base_.classes) a += static_cast<int128>(u.count) * (u.out + u.in);
      (void)choose(base_, a * static_cast<int128>(all_) + 1, 1, inward, f);
      if (f.sets < 2) return too_long();
      while (true) {
        const int128 crossing = inward ? f.in : f.out;
        if (crossing == 0) return no_path();
        a = crossing;
        b = f.sets - 1;
        if (!reduce_fraction(a, b)) return too_long();
        family next;
        const int128 sum = choose(base_, a, b, inward, next);
        if (next.sets >= 2 && sum + a <= 0) f = next;
        if (sum + a >= 0) break;
      }
      const auto shown = is_best(a, b, inward);
      if (!shown) return shown.error();
      proved = proved && *shown;
      if (best.sets == 0 || (f.sets - 1) * best.narrow() > (best.sets - 1) * f.narrow()) best = f;
    }
    set_ratio(2 * (best.sets - 1), 1, best.narrow());
    found_.method = proved ? bound_method::best_partition : bound_method::level_partitions;
    found_.parts = static_cast<std::uint64_t>(best.sets);
    std::uint32_t first = 0;
    while (!best.is_set[first]) ++first;
    found_.side = base_.classes[first].gpus;
    found_.cut = "each byte crosses " + std::to_string(2 * (found_.parts - 1)) + " times between " +
                 std::to_string(found_.parts) + " sets (" +
                 name_of(place_of(base_, first), base_.classes[first].level) + ", and so on); " +
                 to_string(found_.crossing) + (best.in < best.out ? " lead into" : " leave") + " them together";
    if (builder_.both_ways_alike()) return {};
    // Where more enters than leaves, or less, a single cut can ask for more than the two sets that it makes.
    levelled_bound family_bound = std::move(found_);
    for (const bool turned : {false, true}) {
      found_ = family_bound;
      if (auto done = gather(demand::from_root, turned); !done) return done;
      if (found_.share * family_bound.crossing.value > family_bound.share * found_.crossing.value)
        family_bound = found_;
    }
    found_ = std::move(family_bound);
    if (!proved && found_.parts == 1) found_.method = bound_method::level_cuts;  // a family may ask for more
    return {};
  }
  [[nodiscard]] static bool reduce_fraction(int128& a, int128& b) {
    const int128 common = common_divisor_128(a, b);
    a /= common;
    b /= common;
    return a < (int128{1} << 60U) && b < (int128{1} << 60U);
  }

  /// Numbers y, alike for GPUs that nothing tells apart, that show that no family has a smaller rate than a / b: see
  /// `family_search::shown_by_even_shares`, of which this is the form for classes. False: not shown.
  template <class = void>
  [[nodiscard]] result<bool> is_best(int128 a, int128 b, bool inward) {
    family f;
    (void)choose(base_, a, b, inward, f);
    const std::size_t n = base_.classes.size();
    // What the way into one GPU asks for, the others being open.
    std::vector<int128> y(n, 0);
    for (std::uint32_t k = 0; k < n; ++k) {
      if (!is_gpu(base_.classes[k])) continue;
      auto q = builder_.quotient(std::vector<place>{place_of(base_, k)});
      if (!q) return q.error();
      sink_flow<int128> flow(q->net, !inward);
      if (!flow.scale(b, a)) return false;
      for (const unit_class& u : q->classes)
        if (is_gpu(u)) flow.open(u.node);
      const std::uint32_t sink = q->classes[q->apart[0]].node;
      flow.feed(sink, 0);
      const int128 value = flow.flow_into(sink, a);
      y[k] = value < a ? value - a : int128{0};
    }
    // What is left of the share of a set goes to the GPUs whose ways in ask for nothing.
    std::vector<int128> left(n, 0);
    std::vector<std::uint64_t> takers(n, 0);
    std::vector<std::uint32_t> set(n, unit_class::none);
    for (std::uint32_t k = 1; k < n; ++k) {
      const unit_class& u = base_.classes[k];
      set[k] = f.is_set[k] ? k : set[u.parent];
      if (f.is_set[k]) left[k] = a - b * (inward ? u.in : u.out);
      if (!is_gpu(u) || set[k] == unit_class::none) continue;
      const std::uint64_t in_set = u.count / base_.classes[set[k]].count;
      left[set[k]] += y[k] * static_cast<int128>(in_set);
      if (y[k] == 0) takers[set[k]] += in_set;
    }
    std::int64_t whole = 1;
    for (std::uint32_t k = 0; k < n; ++k) {
      if (left[k] < 0 && takers[k] == 0) return false;
      if (takers[k] == 0) continue;
      const auto size = static_cast<std::int64_t>(takers[k]);
      whole = whole / common_divisor(whole, size) * size;
      if (whole > 1'000'000'000) return false;
    }
    const int128 wanted = a * whole;
    if (wanted > (int128{1} << 92U)) return false;
    for (std::uint32_t k = 0; k < n; ++k)
      if (is_gpu(base_.classes[k]))
        y[k] = y[k] < 0 ? y[k] * whole : -left[set[k]] * (whole / static_cast<std::int64_t>(takers[set[k]]));
    for (std::uint32_t k = 0; k < n; ++k) {
      if (!is_gpu(base_.classes[k])) continue;
      auto q = builder_.quotient(std::vector<place>{place_of(base_, k)});
      if (!q) return q.error();
      sink_flow<int128> flow(q->net, !inward);
      if (!flow.scale(b * whole, wanted)) return false;
      const std::vector<std::uint32_t> like = base_classes(*q);
      for (std::uint32_t i = 0; i < q->classes.size(); ++i) {
        const unit_class& u = q->classes[i];
        if (is_gpu(u) && y[like[i]] < 0) flow.feed(u.node, -y[like[i]] * static_cast<int128>(u.count));
      }
      for (std::uint32_t i = 0; i < q->classes.size(); ++i) {
        const unit_class& u = q->classes[i];
        if (is_gpu(u) && y[like[i]] > 0 && !flow.drain(u.node, y[like[i]] * static_cast<int128>(u.count))) return false;
      }
      if (flow.flow_into(q->classes[q->apart[0]].node, wanted) < wanted) return false;
    }
    return true;
  }

  /// For each class of a quotient with more set apart, the class of the first quotient that it is part of.
  template <class = void>
  [[nodiscard]] std::vector<std::uint32_t> base_classes(const level_quotient& q) const {
    std::vector<std::uint32_t> like(q.classes.size(), 0);
    for (std::uint32_t k = 1; k < q.classes.size(); ++k) {
      const unit_class& u = q.classes[k];
      const std::uint32_t parent = like[u.parent], first = is_gpu(u) ? places_[u.first] : u.first;
      std::uint32_t others = 0;
      for (std::uint32_t i = parent + 1; i < base_.classes.size(); ++i) {
        if (base_.classes[i].parent != parent) continue;
        if (base_.classes[i].first == first && (is_gpu(u) || base_.classes[i].named)) like[k] = i;
        if (!base_.classes[i].named) others = i;
      }
      if (like[k] == 0) like[k] = others;
    }
    return like;
  }

  /// The worst of the cuts around one unit.
  template <class = void>
  [[nodiscard]] result<void> exchange() {
    int128 amount = 0, units = 1;
    std::uint32_t worst = 0;
    bool inward = false;
    for (std::uint32_t k = 1; k < base_.classes.size(); ++k) {
      const unit_class& u = base_.classes[k];
      const int128 pairs = static_cast<int128>(u.gpus) * static_cast<int128>(all_ - u.gpus);
      if (pairs == 0) continue;
      for (const bool into : {false, true}) {
        const int128 crossing = into ? u.in : u.out;
        if (crossing == 0) return no_path();
        if (pairs * units <= amount * crossing) continue;
        amount = pairs;
        units = crossing;
        worst = k;
        inward = into;
      }
    }
    set_ratio(amount, static_cast<int128>(all_), units);
    found_.method = bound_method::level_cuts;
    found_.parts = 1;
    found_.side = base_.classes[worst].gpus;
    found_.cut = (inward ? "what others send must reach " : "what goes to others must leave ") +
                 name_of(place_of(base_, worst), base_.classes[worst].level) + " through " + to_string(found_.crossing);
    return {};
  }

  const levelled_cluster& c_;
  collective_kind kind_;
  level_builder builder_;
  level_quotient base_{};
  std::vector<std::uint32_t> places_{};
  std::uint64_t all_ = 0;
  levelled_bound found_{};
};

}  // namespace detail

template <class>
result<levelled_bound> lower_bound(const levelled_cluster& cluster, collective_kind collective) {
  return detail::level_search(cluster, collective).run();
}

}}}  // namespace topocoll::v0::plan
