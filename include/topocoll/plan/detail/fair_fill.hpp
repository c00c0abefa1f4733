// SPDX-License-Identifier: Apache-2.0
#pragma once
// How fair_share fills places: which ways to fill again, progressive filling, and who lost his bottleneck.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>
#include <topocoll/plan/fair_share.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

namespace detail {

/// Rates and loads that differ by less than this share are equal: sums of some thousand doubles are off by 1e-13.
inline constexpr double fair_slack = 1e-9;

}  // namespace detail

template <class T>
std::uint32_t fair_share<T>::add_place(double bytes_per_second) {
  place_state p;
  p.capacity = bytes_per_second;
  places_.push_back(std::move(p));
  return static_cast<std::uint32_t>(places_.size() - 1);
}

template <class T>
std::uint32_t fair_share<T>::add_way(std::span<const fair_use> uses) {
  way_state w;
  w.first_use = uses_.size();
  uses_.insert(uses_.end(), uses.begin(), uses.end());
  slot_.resize(uses_.size(), none);
  w.last_use = uses_.size();
  ways_.push_back(w);
  return static_cast<std::uint32_t>(ways_.size() - 1);
}

template <class T>
void fair_share<T>::start(std::uint32_t w) {
  way_state& x = ways_[w];
  if (x.flows++ == 0)
    for (std::size_t u = x.first_use; u < x.last_use; ++u) {
      std::vector<member>& all = places_[uses_[u].place].members;
      slot_[u] = static_cast<std::uint32_t>(all.size());
      all.push_back({w, static_cast<std::uint32_t>(u)});
    }
  if (!x.touched) touched_.push_back(w);
  x.touched = true;
}

template <class T>
void fair_share<T>::stop(std::uint32_t w) {
  way_state& x = ways_[w];
  if (--x.flows == 0)
    for (std::size_t u = x.first_use; u < x.last_use; ++u) {
      std::vector<member>& all = places_[uses_[u].place].members;
      all[slot_[u]] = all.back();
      slot_[all.back().use] = slot_[u];
      all.pop_back();
    }
  if (!x.touched) touched_.push_back(w);
  x.touched = true;
}

template <class T>
void fair_share<T>::see(std::uint32_t p) {
  if (!places_[p].seen) seen_.push_back(p);
  places_[p].seen = true;
}

template <class T>
void fair_share<T>::choose_way(std::uint32_t w) {
  way_state& x = ways_[w];
  if (x.chosen) return;
  x.chosen = true;
  chosen_.push_back(w);
  before_.push_back(x.rate);
  for (std::size_t u = x.first_use; u < x.last_use; ++u) see(uses_[u].place);
}

/// The ways that changed, and those that meet them where it is full: most of these get another rate.
template <class T>
void fair_share<T>::choose_first() {
  for (const std::uint32_t w : touched_) {
    way_state& x = ways_[w];
    if (x.flows != 0) choose_way(w);
    for (std::size_t u = x.first_use; u < x.last_use; ++u) see(uses_[u].place);
  }
  const std::size_t places = seen_.size();
  for (std::size_t i = 0; i < places; ++i)
    for (const member& m : places_[seen_[i]].members)
      if (ways_[m.way].bottleneck == seen_[i]) choose_way(m.way);
}

/// Raises the rates of all chosen ways together and freezes those that pass a place when it is full. Others keep theirs.
template <class T>
void fair_share<T>::fill() {
  heap_.clear();
  filled_ += chosen_.size();
  for (const std::uint32_t w : chosen_) {
    way_state& x = ways_[w];
    x.open = x.first_use != x.last_use;
    x.rate = x.open ? 0 : std::numeric_limits<double>::infinity();
    x.bottleneck = none;
  }
  for (const std::uint32_t p : seen_) {
    place_state& at = places_[p];
    at.rest = at.capacity;
    at.wanted = 0;
    for (const member& m : at.members) {
      const way_state& x = ways_[m.way];
      const double load = uses_[m.use].share * x.flows;
      if (x.chosen)
        at.wanted += load;
      else
        at.rest -= load * x.rate;
    }
    // What others leave by rounding alone is nothing.
    if (at.rest < at.capacity * detail::fair_slack) at.rest = 0;
    if (at.wanted > 0) heap_.push_back({at.rest / at.wanted, p});
  }
  const auto later = [](const auto& a, const auto& b) { return a > b; };
  std::make_heap(heap_.begin(), heap_.end(), later);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const auto [told, p] = heap_.back();
    heap_.pop_back();
    place_state& at = places_[p];
    // What no open way uses any more may keep a trace of `wanted` from subtracting.
    if (!(at.wanted > 0)) continue;
    const double level = std::max(0.0, at.rest / at.wanted);
    if (level > told * (1 + 1e-12)) {  // somebody was frozen elsewhere since: a place only fills later by that
      heap_.push_back({level, p});
      std::push_heap(heap_.begin(), heap_.end(), later);
      continue;
    }
    for (const member& m : at.members) {
      way_state& x = ways_[m.way];
      if (!x.open) continue;
      x.open = false;
      x.rate = level;
      x.bottleneck = p;
      for (std::size_t u = x.first_use; u < x.last_use; ++u) {
        place_state& other = places_[uses_[u].place];
        const double load = uses_[u].share * x.flows;
        other.rest -= load * level;
        other.wanted -= load;
        if (other.wanted < load * 1e-9) {  // nobody left, or only a trace of rounding: count again
          other.wanted = 0;
          for (const member& o : other.members)
            if (ways_[o.way].open) other.wanted += uses_[o.use].share * ways_[o.way].flows;
        }
      }
    }
  }
}

/// Adds ways that are no longer right next to the new rates; false when there are none.
template <class T>
bool fair_share<T>::choose_more() {
  const std::size_t before = chosen_.size(), places = seen_.size();
  for (std::size_t i = 0; i < places; ++i) {
    const std::uint32_t p = seen_[i];
    place_state& at = places_[p];
    double load = 0, fastest = 0;
    bool frozen_here = false;
    double frozen = 0;
    for (const member& m : at.members) {
      const way_state& x = ways_[m.way];
      load += uses_[m.use].share * x.flows * x.rate;
      fastest = std::max(fastest, x.rate);
      if (x.chosen && x.bottleneck == p && (!frozen_here || x.rate < frozen)) {
        frozen = x.rate;
        frozen_here = true;
      }
    }
    const bool full = load >= at.capacity * (1 - detail::fair_slack);
    for (const member& m : at.members) {
      const way_state& x = ways_[m.way];
      if (x.chosen) continue;
      const bool takes_too_much = frozen_here && x.rate > frozen * (1 + detail::fair_slack);
      const bool gets_too_little = x.bottleneck == p && (!full || x.rate < fastest * (1 - detail::fair_slack));
      if (takes_too_much || gets_too_little) choose_way(m.way);
    }
  }
  return chosen_.size() != before;
}

template <class T>
std::span<const std::uint32_t> fair_share<T>::settle() {
  changed_.clear();
  if (touched_.empty()) return {};
  choose_first();
  do fill();
  while (choose_more());
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    way_state& x = ways_[chosen_[i]];
    x.chosen = false;
    if (x.rate != before_[i] || x.touched) changed_.push_back(chosen_[i]);
  }
  for (const std::uint32_t w : touched_) {
    way_state& x = ways_[w];
    x.touched = false;
    if (x.flows == 0) {
      x.rate = 0;
      x.bottleneck = none;
    }
  }
  for (const std::uint32_t p : seen_) places_[p].seen = false;
  touched_.clear();
  chosen_.clear();
  before_.clear();
  seen_.clear();
  return changed_;
}

}}}  // namespace topocoll::v0::plan
