// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which nodes of several fragments are one device, and the key that it gets in all of them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/sequence.hpp>
#include <topocoll/topo/detail/identify.hpp>

namespace topocoll { inline namespace v0 { namespace topo { namespace detail {

template <class = void>
class device_matcher {
 public:
  explicit device_matcher(copied_parts& c) : c_(c) {
    for (std::uint32_t g = 0; g < c_.size(); ++g) {
      up_.push_back(g);
      next_.push_back(g);
    }
  }

  /// Gives a device one key in all parts. Adapters of one part that are one card become one node.
  void run() {
    for (std::size_t first = 0, last = 0; first < c_.identities.size(); first = last) {
      const identity& of = c_.identities[first];
      for (last = first; last < c_.identities.size() && c_.identities[last].fact == of.fact &&
                         *c_.identities[last].value == *of.value;
           ++last)
        if (last > first) unite(of.node, c_.identities[last].node);
    }
    join_interfaces();
    join_switches();
    join_keys();
    join_assumed_ports();
    number_gpus();
    join_adapters_of_ports();
    join_adapters_of_names();
    rename();
  }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  using pair = std::pair<std::uint32_t, std::uint32_t>;
  using called = std::pair<std::string, std::uint32_t>;  // a name and a node

  [[nodiscard]] std::uint32_t top(std::uint32_t g) {
    while (up_[g] != g) g = up_[g] = up_[up_[g]];
    return g;
  }
  [[nodiscard]] bool alone(std::uint32_t g) const { return next_[g] == g; }
  /// Of keys of one rank, those of nodes that are told before assumed ones, those from inside the host before others.
  [[nodiscard]] bool better(std::uint32_t a, std::uint32_t b) const {
    const std::uint32_t x = key_rank(c_.at(a)), y = key_rank(c_.at(b));
    if (x != y) return x < y;
    const bool assumed_a = c_.at(a).how == trust::assumed, assumed_b = c_.at(b).how == trust::assumed;
    if (assumed_a != assumed_b) return assumed_b;
    if (c_.local[a] != c_.local[b]) return c_.local[a] > c_.local[b];
    return c_.at(a).key < c_.at(b).key;
  }
  [[nodiscard]] std::uint32_t best_of(std::uint32_t g) const {
    std::uint32_t best = g;
    for (std::uint32_t m = next_[g]; m != g; m = next_[m])
      if (better(m, best)) best = m;
    return best;
  }

  void join(std::uint32_t a, std::uint32_t b) {
    a = top(a);
    b = top(b);
    if (a == b) return;
    if (b < a) std::swap(a, b);
    up_[b] = a;
    std::swap(next_[a], next_[b]);
  }
  /// Makes two nodes one device, unless that makes two nodes of one part one.
  bool unite(std::uint32_t a, std::uint32_t b) {
    if (top(a) == top(b)) return true;
    for (std::uint32_t x = a;;) {
      for (std::uint32_t y = b;;) {
        if (c_.part_of[x] == c_.part_of[y]) return false;
        if ((y = next_[y]) == b) break;
      }
      if ((x = next_[x]) == a) break;
    }
    join(a, b);
    return true;
  }

  /// A switch that a list knows by name alone is the one of that name that a fabric knows by GUID.
  void join_switches() {
    std::vector<called> all;
    for (std::uint32_t g = 0; g < c_.size(); ++g) {
      const node& n = c_.at(g);
      const bool fabric = n.kind == node_kind::leaf || n.kind == node_kind::spine || n.kind == node_kind::core_switch;
      if (fabric && n.host.empty() && !n.name.empty() && n.key.rfind("switch:", 0) == 0) all.emplace_back(n.name, g);
    }
    join_called(all, [&](std::uint32_t a, std::uint32_t b) { static_cast<void>(unite(a, b)); });
  }
  /// An interface has one name in its host, whether it is the port's own or that of its network device.
  void join_interfaces() {
    std::vector<called> all;
    for (std::uint32_t g = 0; g < c_.size(); ++g) {
      const node& n = c_.at(g);
      if (n.kind != node_kind::nic_port || n.host.empty()) continue;
      const std::string_view place = place_of(n);
      if (const std::string* named = fact_of(n, "interface"))
        all.emplace_back(n.host + "/" + *named, g);
      else if (place.size() > 2 && place.substr(place.size() - 2) == "/0" && !name_in_place(place).empty())
        all.emplace_back(n.host + "/" + std::string(name_in_place(place)), g);
    }
    join_called(all, [&](std::uint32_t a, std::uint32_t b) { static_cast<void>(unite(a, b)); });
  }
  /// A port whose number was only assumed is the port of the same device in other parts, where that has just one.
  void join_assumed_ports() {
    std::vector<called> all;
    for (std::uint32_t g = 0; g < c_.size(); ++g)
      if (c_.at(g).kind == node_kind::nic_port && !c_.at(g).host.empty())
        if (const std::string_view name = name_in_place(place_of(c_.at(g))); !name.empty())
          all.emplace_back(c_.at(g).host + "/" + std::string(name), g);
    seq::sort(all);
    for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
      std::uint32_t told = none;
      std::vector<std::uint32_t> assumed;
      for (last = first; last < all.size() && all[last].first == all[first].first;) {
        const std::uint32_t g = all[last].second;
        const std::size_t begin = last;
        while (last < all.size() && all[last].first == all[first].first &&
               c_.part_of[all[last].second] == c_.part_of[g])
          ++last;
        if (last - begin > 1) continue;
        if (c_.at(g).how == trust::assumed)
          assumed.push_back(g);
        else if (told == none)
          told = g;
      }
      for (const std::uint32_t g : assumed)
        if (told != none) static_cast<void>(unite(told, g));
    }
  }
  /// Joins those of one name, when each part has only one of that name.
  template <class Join>
  void join_called(std::vector<called>& all, const Join& join_two) {
    seq::sort(all);
    for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
      bool unique = true;
      for (last = first; last < all.size() && all[last].first == all[first].first; ++last)
        unique = unique && (last == first || c_.part_of[all[last].second] != c_.part_of[all[last - 1].second]);
      for (std::size_t i = first + 1; unique && i < last; ++i) join_two(all[first].second, all[i].second);
    }
  }

  /// Nodes of one key are one device, unless devices that name themselves say otherwise.
  void join_keys() {
    std::vector<std::uint32_t> order;
    for (std::uint32_t g = 0; g < c_.size(); ++g) order.push_back(g);
    seq::sort_by(order, [&](std::uint32_t g) -> const std::string& { return c_.at(g).key; });
    for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
      bool plain = alone(order[first]);  // nobody is one with others yet, and each is of a part of its own
      for (last = first + 1; last < order.size() && c_.at(order[last]).key == c_.at(order[first]).key; ++last)
        plain = plain && alone(order[last]) && c_.part_of[order[last]] != c_.part_of[order[last - 1]];
      for (std::size_t i = first + 1; i < last; ++i) {
        if (plain)
          join(order[first], order[i]);
        else
          static_cast<void>(unite(order[first], order[i]));
      }
    }
  }

  /// What one part knows of the GPUs of one host: a range of gpus_, by index.
  struct gpu_set {
    std::size_t first, last;
    bool numbered = false;  ///< some are known by number alone
    bool placed = true;     ///< all are known by PCI address
    bool counted = true;    ///< all have an index, and no two the same
  };

  /// GPUs that a source only numbers are those with the same numbers in another source of the host, if both see as many.
  void number_gpus() {
    for (std::uint32_t g = 0; g < c_.size(); ++g)
      if (c_.at(g).kind == node_kind::gpu && !c_.at(g).host.empty() && !is_stand_in(c_.at(g))) gpus_.push_back(g);
    const auto host = [&](std::size_t i) -> const std::string& { return c_.at(gpus_[i]).host; };
    seq::sort(gpus_, [&](std::uint32_t a, std::uint32_t b) {
      const node& x = c_.at(a);
      const node& y = c_.at(b);
      if (x.host != y.host) return x.host < y.host;
      if (c_.part_of[a] != c_.part_of[b]) return c_.part_of[a] < c_.part_of[b];
      return x.index != y.index ? x.index < y.index : a < b;
    });
    std::vector<gpu_set> sets;
    for (std::size_t first = 0, last = 0; first < gpus_.size();) {
      sets.clear();
      const std::size_t begin = first;
      for (; first < gpus_.size() && host(first) == host(begin); first = last) {
        gpu_set s{first, first};
        for (last = first;
             last < gpus_.size() && host(last) == host(begin) && c_.part_of[gpus_[last]] == c_.part_of[gpus_[first]];
             ++last) {
          const node& n = c_.at(gpus_[last]);
          const std::uint32_t rank = key_rank(c_.at(best_of(gpus_[last])));
          s.numbered = s.numbered || rank == 2;
          s.placed = s.placed && rank == 0;
          s.counted = s.counted && n.index && (last == first || c_.at(gpus_[last - 1]).index != n.index);
        }
        s.last = last;
        sets.push_back(s);
      }
      for (const gpu_set& s : sets)
        if (s.numbered) match_gpus(s, sets);
    }
  }
  void match_gpus(const gpu_set& s, const std::vector<gpu_set>& all) {
    const std::size_t count = s.last - s.first;
    bool open = false;  // sets that were looked at before may have settled it by now
    for (std::size_t i = s.first; i < s.last; ++i) open = open || key_rank(c_.at(best_of(gpus_[i]))) == 2;
    if (!open) return;
    const gpu_set* other = nullptr;
    std::string why;
    for (const gpu_set& t : all) {
      if (!t.placed) continue;
      const std::size_t seen = t.last - t.first;
      bool same = s.counted && t.counted && seen == count;
      for (std::size_t i = 0; same && i < count; ++i)
        same = c_.at(gpus_[s.first + i]).index == c_.at(gpus_[t.first + i]).index;
      if (same) {
        other = &t;
        break;
      }
      if (!why.empty()) continue;
      other = nullptr;
      why = c_.source_of(gpus_[s.first]) + " has " + std::to_string(count) + ", " + c_.source_of(gpus_[t.first]) +
            " has " + std::to_string(seen);
      if (seen == count) why += !t.counted ? ", which it does not number" : ", with other numbers";
    }
    const std::string& host = c_.at(gpus_[s.first]).host;
    if (other == nullptr) {
      if (!why.empty())
        c_.tell(severity::warning, host,
                "GPUs that a source only numbers cannot be told to be those of another source, so both are kept", why,
                "name a source that tells UUIDs or PCI addresses beside the numbers, and see CUDA_VISIBLE_DEVICES");
      return;
    }
    bool all_fit = true;
    for (std::size_t i = 0; i < count; ++i) all_fit = unite(gpus_[other->first + i], gpus_[s.first + i]) && all_fit;
    c_.tell(all_fit ? severity::note : severity::warning, host,
            all_fit ? "GPUs are matched by number" : "GPUs are matched by number, but UUIDs or addresses contradict",
            c_.source_of(gpus_[s.first]) + " and " + c_.source_of(gpus_[other->first]) + ": " + std::to_string(count) +
                " GPUs with the same numbers");
  }

  /// Makes two adapters one. Functions of one card are one adapter; other PCI addresses are two.
  bool join_adapters(std::uint32_t a, std::uint32_t b) {
    const node& x = c_.at(best_of(a));
    const node& y = c_.at(best_of(b));
    if (key_rank(x) == 0 && key_rank(y) == 0 && x.key.substr(0, x.key.rfind('.')) != y.key.substr(0, y.key.rfind('.')))
      return false;
    join(a, b);
    return true;
  }
  /// Adapters that hold the same port are one.
  void join_adapters_of_ports() {
    std::vector<pair> held;
    for (std::uint32_t p = 0; p < c_.parts.size(); ++p)
      for (const link& l : c_.parts[p].links)
        if (l.kind == link_kind::internal && c_.parts[p].nodes[l.from.value].kind == node_kind::nic &&
            c_.parts[p].nodes[l.to.value].kind == node_kind::nic_port)
          held.emplace_back(top(c_.number(p, l.to)), c_.number(p, l.from));
    seq::sort(held);
    for (std::size_t first = 0, last = 0; first < held.size(); first = last) {
      std::uint32_t centre = held[first].second;
      for (last = first; last < held.size() && held[last].first == held[first].first; ++last)
        if (better(best_of(held[last].second), best_of(centre))) centre = held[last].second;
      for (std::size_t i = first; i < last; ++i) {
        const std::uint32_t other = held[i].second;
        if (top(other) == top(centre) || c_.part_of[other] == c_.part_of[centre]) continue;
        if (!join_adapters(centre, other))
          c_.tell(severity::warning, c_.at(best_of(held[first].first)).key,
                  "sources disagree on the adapter that a port belongs to",
                  c_.source_of(centre) + ": '" + c_.at(centre).key + "'; " + c_.source_of(other) + ": '" +
                      c_.at(other).key + "'",
                  "find out which source is right; the port has both until then");
      }
    }
  }
  /// Adapters without an address are those of the same name.
  void join_adapters_of_names() {
    std::vector<called> all;
    for (std::uint32_t g = 0; g < c_.size(); ++g) {
      const node& n = c_.at(g);
      if (n.kind != node_kind::nic || n.host.empty() || is_stand_in(n)) continue;
      std::string_view name = name_in_place(place_of(n));
      const bool plain = n.name.find_first_of(" :") == std::string::npos && !all_digits(n.name);
      if (name.empty() && plain) name = n.name;
      if (!name.empty()) all.emplace_back(n.host + "/" + std::string(name), g);
    }
    join_called(all, [&](std::uint32_t a, std::uint32_t b) { static_cast<void>(join_adapters(a, b)); });
  }

  void rename() {
    std::vector<std::uint32_t> touched(c_.parts.size());
    for (std::uint32_t g = 0; g < c_.size(); ++g) {
      if (c_.at(g).key != c_.original_key(g)) touched[c_.part_of[g]] = 1;
      if (top(g) != g || alone(g)) continue;
      bool differ = false;
      for (std::uint32_t m = next_[g]; m != g; m = next_[m])
        differ = differ || c_.at(m).key != c_.at(g).key || is_stand_in(c_.at(m)) != is_stand_in(c_.at(g));
      if (!differ) continue;
      const std::uint32_t best = best_of(g);
      const std::string key = c_.at(best).key, host = c_.at(best).host;
      const bool real = !is_stand_in(c_.at(best));
      drop_second_guids(g, best);
      std::uint32_t m = g;
      do {
        node& n = c_.at(m);
        if (n.key != key) {
          touched[c_.part_of[m]] = 1;
          n.key = key;
          n.host = host;
        }
        if (!real || !is_stand_in(n)) continue;
        n.facts.erase(seq::find_by(n.facts, stand_in_fact, &std::pair<std::string, std::string>::first));
        if (n.kind == node_kind::nic) c_.into[m] = copied_parts::gone;
      } while ((m = next_[m]) != g);
    }
    for (std::uint32_t p = 0; p < c_.parts.size(); ++p)
      if (touched[p] != 0) make_unique(p);
  }
  /// Each function of a card has a GUID of its own; that of the node that names the card counts.
  void drop_second_guids(std::uint32_t g, std::uint32_t best) {
    if (c_.at(g).kind != node_kind::nic) return;
    const std::string* own = fact_of(c_.at(best), "node_guid");
    if (own == nullptr) return;
    const std::string guid = *own;
    std::uint32_t m = g;
    do {
      node& n = c_.at(m);
      const std::string* other = fact_of(n, "node_guid");
      if (other != nullptr && *other != guid)
        n.facts.erase(seq::find_by(n.facts, "node_guid", &std::pair<std::string, std::string>::first));
    } while ((m = next_[m]) != g);
  }
  /// Folds nodes of one part that have become one card, and gives other nodes that met their old keys back.
  void make_unique(std::uint32_t p) {
    std::vector<std::uint32_t> order;
    for (std::uint32_t g = c_.first[p]; g < c_.first[p + 1]; ++g)
      if (c_.into[g] == g) order.push_back(g);
    for (bool again = true; again;) {
      again = false;
      seq::sort(order, [&](std::uint32_t a, std::uint32_t b) {
        return c_.at(a).key != c_.at(b).key ? c_.at(a).key < c_.at(b).key : c_.original_key(a) < c_.original_key(b);
      });
      for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
        bool one = c_.at(order[first]).kind == node_kind::nic;
        for (last = first; last < order.size() && c_.at(order[last]).key == c_.at(order[first]).key; ++last)
          one = one && top(order[last]) == top(order[first]);
        if (last == first + 1) continue;
        const std::string key = c_.at(order[first]).key;
        for (std::size_t i = first; i < last; ++i) {
          const std::uint32_t g = order[i];
          if (one && i > first && c_.into[g] == g) fold(c_, g, order[first]);
          if (one || c_.original_key(g) == key) continue;
          again = true;
          c_.tell(severity::warning, c_.original_key(g),
                  "a node would be '" + key + "', but its source knows another node of that key; it keeps its own",
                  c_.source_of(g), "find out which source is right");
          const node& was = c_.originals[p]->nodes[g - c_.first[p]];
          c_.at(g).key = was.key;
          c_.at(g).host = was.host;
        }
      }
    }
  }

  copied_parts& c_;
  std::vector<std::uint32_t> up_, next_;  ///< of each node: towards the one that stands for all; round through all
  std::vector<std::uint32_t> gpus_;       ///< by host, part and index
};

}}}}  // namespace topocoll::v0::topo::detail
