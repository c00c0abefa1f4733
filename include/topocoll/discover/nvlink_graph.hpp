// SPDX-License-Identifier: Apache-2.0
#pragma once
// Turns what `nvidia-smi nvlink` prints into a fragment, and says which GPUs have lost links.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/finding.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/discover/detail/tally.hpp>
#include <topocoll/discover/link_rates.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/read/nvidia_smi_nvlink.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// The NVLinks of one GPU beside those of its peers: GPUs of the same model in the same listing.
struct nvlink_health {
  std::uint32_t gpu = 0;                   ///< printed index
  std::size_t links = 0;                   ///< listed
  std::size_t active = 0;                  ///< with a rate
  std::vector<std::uint32_t> inactive;     ///< numbers of the links without
  bytes_per_second total{};                ///< of the active links, one direction
  std::optional<std::uint32_t> best_peer;  ///< index of the first peer with the most active links; itself counts
  std::size_t expected = 0;                ///< active links of that peer
  double share = 1;                        ///< active / expected; 1 when nothing is expected

  /// Fewer active links than a GPU of the same model.
  [[nodiscard]] bool degraded() const { return active < expected; }
};

/// Compares the GPUs of a listing of `nvidia-smi nvlink -s`. GPUs without a status (listings of -c and -e) are left out.
/// Cost: O(n^2) for n GPUs.
template <class = void>
[[nodiscard]] std::vector<nvlink_health> nvlink_health_of(const read::nvidia_smi_nvlink& listing);

/// Nodes and links of one listing.
///
/// A gpu for each GPU that is listed ("host/gpu:3", by the printed number). The far ends of the links are not told, so all
/// active links of a GPU become one link to one assumed nvswitch; `nominal` counts all links that the best GPU of the model
/// has, `current` those that are active. A GPU with fewer than its peers is a fault that names the links; links that are
/// down on all GPUs alike are a note. Error counters above zero are warnings. A listing of abilities or counters alone gives
/// GPUs without links.
/// @param file  name for failures, findings and `fragment::source`
template <class = void>
[[nodiscard]] result<topo::fragment> fragment_of(const read::nvidia_smi_nvlink& listing,
                                                 const discover_options& options, const std::string& file);

/// Payload of one NVLink that prints this line rate.
///
/// The signalling rate tells the generation: 20 GB/s is NVLink 1, 25 to 25.8 are 2 and 3, 26.6 is 4, 53.1 is 5 (8 lanes of 20
/// and 25.8 Gbit/s, 4 of 50, 2 of 106.25, 2 of 212.5). Payloads are those of `nvlink_rate`; of other rates three quarters,
/// the share that is common to all of them.
[[nodiscard]] constexpr bytes_per_second nvlink_payload(bytes_per_second line) {
  const double gb = line.value / 1e9;
  if (gb >= 50 && gb < 54) return nvlink_rate(100).payload;
  if (gb >= 26 && gb < 27) return nvlink_rate(90).payload;
  if (gb >= 25 && gb < 26) return nvlink_rate(70).payload;
  if (gb >= 19.5 && gb < 20.5) return nvlink_rate(60).payload;
  return line * 0.75;
}

namespace detail {

[[nodiscard]] inline std::string list_text(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (const std::uint32_t n : numbers) text += (text.empty() ? "" : ", ") + std::to_string(n);
  return text;
}

/// Findings about links that are down, slower than others, or have seen errors.
template <class = void>
void judge_nvlinks(const read::nvidia_smi_nvlink& listing, const std::vector<nvlink_health>& health, tally& tally,
                   const std::string& where, std::vector<finding>& out) {
  for (const nvlink_health& h : health) {
    const std::string who = "GPU " + std::to_string(h.gpu);
    if (h.degraded()) {
      finding f;
      f.level = severity::fault;
      f.where = where;
      f.what =
          who + " has " + std::to_string(h.active) + " of " + std::to_string(h.expected) + " NVLinks active" +
          (h.inactive.empty() ? "; the others are not listed one by one" : "; inactive: link " + list_text(h.inactive));
      f.evidence = "GPU " + std::to_string(*h.best_peer) + " of the same model has " + std::to_string(h.expected) +
                   "; share " + std::to_string(h.share).substr(0, 5);
      f.next_step = "read nvidia-smi nvlink -e and dmesg for the links; reset or replace the GPU or its board";
      out.push_back(std::move(f));
    } else if (!h.inactive.empty()) {
      tally.add(severity::note, "NVLinks are inactive on all GPUs of a model alike: no bridge, or not wired",
                who + ": link " + list_text(h.inactive), "compare with hosts of the same kind");
    }
  }
  for (const read::nvlink_gpu& g : listing.gpus) {
    const std::string who = "GPU " + std::to_string(g.index);
    bytes_per_second best{};
    for (const read::nvlink_state& l : g.links)
      if (l.rate && best < *l.rate) best = *l.rate;
    for (const read::nvlink_state& l : g.links) {
      if (l.rate && *l.rate < best)
        tally.add(
            severity::warning, "an NVLink is slower than others of the same GPU",
            who + " link " + std::to_string(l.number) + " (" + to_string(*l.rate) + " of " + to_string(best) + ")",
            "read nvidia-smi nvlink -e");
      for (const auto& [counter, count] : l.counters)
        if (count > 0)
          tally.add(severity::warning, "an NVLink has counted errors since the driver was loaded",
                    who + " link " + std::to_string(l.number) + ": " + std::to_string(count) + " " + counter,
                    "look again under load: only a count that grows is a fault");
    }
    for (const std::string& remark : g.remarks)
      tally.add(severity::note, "a line below a GPU is not a link", who + ": " + remark);
  }
}

}  // namespace detail

template <class>
std::vector<nvlink_health> nvlink_health_of(const read::nvidia_smi_nvlink& listing) {
  std::vector<nvlink_health> all;
  std::vector<std::size_t> of;
  for (std::size_t i = 0; i < listing.gpus.size(); ++i) {
    const read::nvlink_gpu& g = listing.gpus[i];
    nvlink_health h;
    h.gpu = g.index;
    h.links = g.links.size();
    for (const read::nvlink_state& l : g.links) {
      if (l.inactive) h.inactive.push_back(l.number);
      if (!l.rate) continue;
      ++h.active;
      h.total += *l.rate;
    }
    if (h.active + h.inactive.size() == 0 && !g.all_inactive) continue;
    all.push_back(std::move(h));
    of.push_back(i);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < all.size(); ++k)
      if (listing.gpus[of[i]].model == listing.gpus[of[k]].model &&
          (!all[i].best_peer || all[k].active > all[i].expected)) {
        all[i].best_peer = all[k].gpu;
        all[i].expected = all[k].active;
      }
    if (all[i].expected > 0) all[i].share = static_cast<double>(all[i].active) / static_cast<double>(all[i].expected);
  }
  return all;
}

template <class>
result<topo::fragment> fragment_of(const read::nvidia_smi_nvlink& listing, const discover_options& options,
                                   const std::string& file) {
  topo::fragment out;
  detail::tally tally;
  out.source = "nvidia-smi-nvlink " + file;
  out.findings = listing.findings;
  const std::vector<nvlink_health> health = nvlink_health_of(listing);
  std::optional<node_id> plane;
  const bool linked = seq::any_of(health, [](const nvlink_health& h) { return h.active > 0; });
  if (linked) {
    topo::node n;
    n.kind = topo::node_kind::nvswitch;
    n.key = options.host + "/nvswitch";
    n.name = "unknown ends of NVLinks";
    n.host = options.host;
    n.how = trust::assumed;
    n.reason = "nvidia-smi nvlink -s does not tell where links lead; all are taken to meet in one plane";
    n.facts.emplace_back("stand_in", "nvswitch");
    plane = out.add(std::move(n));
    tally.add(severity::note, "the listing does not tell where NVLinks lead; they are taken to meet in one plane",
              std::to_string(health.size()) + " GPUs", "nvidia-smi topo -m tells who is connected");
  }
  std::uint32_t last = 0;
  for (const read::nvlink_gpu& g : listing.gpus) last = std::max(last, g.index);
  std::vector<std::uint32_t> absent;
  for (std::uint32_t i = 0; i < last && absent.size() < 64; ++i)
    if (seq::none_of(listing.gpus, [&](const auto& g) { return g.index == i; })) absent.push_back(i);
  if (!absent.empty())
    out.findings.push_back({severity::note,
                            file,
                            "GPUs are missing from the listing: " + detail::list_text(absent),
                            {},
                            "look for them with nvidia-smi -L",
                            1});
  for (const read::nvlink_gpu& g : listing.gpus) {
    topo::node n;
    n.kind = topo::node_kind::gpu;
    n.key = options.host + "/gpu:" + std::to_string(g.index);
    n.name = "GPU " + std::to_string(g.index);
    n.host = options.host;
    n.index = g.index;
    if (!g.model.empty()) n.facts.emplace_back("model", g.model);
    std::size_t able = 0;
    for (const read::nvlink_state& l : g.links)
      for (const auto& [ability, answer] : l.abilities) able += ability == "P2P is supported" && answer ? 1U : 0U;
    if (able > 0) n.facts.emplace_back("nvlinks_with_p2p", std::to_string(able));
    if (!g.uuid.empty()) n.facts.emplace_back("uuid", g.uuid);
    const auto h = seq::find_if(health, [&](const auto& x) { return x.gpu == g.index; });
    if (h != health.end() && h->links > 0)
      n.facts.emplace_back("nvlinks", std::to_string(h->active) + " of " + std::to_string(h->links) + " active");
    if (h != health.end() && !h->inactive.empty()) n.facts.emplace_back("nvlinks_down", detail::list_text(h->inactive));
    seq::sort(n.facts);
    const node_id id = out.add(std::move(n));
    if (h == health.end() || h->active == 0) continue;
    topo::link l;
    l.from = id;
    l.to = *plane;
    l.kind = topo::link_kind::nvlink;
    l.lanes = static_cast<std::uint32_t>(h->active);
    l.current = h->total;
    bytes_per_second best{};
    for (const read::nvlink_state& s : g.links) {
      if (!s.rate) continue;
      best = std::max(best, *s.rate);
      l.capacity += nvlink_payload(*s.rate);
    }
    l.nominal = std::max(h->total, best * static_cast<double>(std::max(h->expected, h->active)));
    l.how = trust::derived;
    l.reason = std::to_string(h->active) + " × NVLink of " + to_string(best) + ", payload as in NCCL's model";
    if (h->degraded()) l.reason += "; its peers have " + std::to_string(h->expected);
    out.join(l);
  }
  detail::judge_nvlinks(listing, health, tally, file, out.findings);
  tally.report(file, out.findings);
  return out;
}

}}  // namespace topocoll::v0
