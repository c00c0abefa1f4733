// SPDX-License-Identifier: Apache-2.0
#pragma once
// What it costs to move and to reduce bytes: the concept CostModel and the latency-and-bandwidth model.
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <topocoll/core/units.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 { namespace plan {

/// Prices a plan. Implemented by `alpha_beta` and by models that a user calibrates.
///
/// Laws that the compiler cannot check: every answer is finite and not negative for a link that is alive; `transfer(l, b)`
/// is `b / rate(l)`, so it is linear in b and leaves latency out; `rate(l)` is never above `l.capacity`, so that a bound
/// on the graph is a bound on the price; answers do not change while a plan is priced.
template <class M>
concept CostModel = requires(const M& m, const topo::link& l, bytes b) {
  { m.rate(l) } -> std::same_as<bytes_per_second>;  // payload that the link carries per second
  { m.transfer(l, b) } -> std::same_as<seconds>;    // bytes alone
  { m.latency(l) } -> std::same_as<seconds>;        // what one message pays for crossing the link
  { m.post() } -> std::same_as<seconds>;            // each further message that a rank sends or receives in one round
  { m.launch() } -> std::same_as<seconds>;          // once per collective, whatever the plan
  { m.reduce(b) } -> std::same_as<seconds>;         // one rank reduces b incoming bytes into b bytes of its own
};

/// Says in words what keeps `M` from being a `CostModel`.
template <class M>
constexpr void require_cost_model() {
  static_assert(
      requires(const M& m, const topo::link& l) {
        { m.rate(l) } -> std::same_as<bytes_per_second>;
      },
      "a CostModel has rate(const topo::link&) const returning bytes_per_second");
  static_assert(
      requires(const M& m, const topo::link& l, bytes b) {
        { m.transfer(l, b) } -> std::same_as<seconds>;
      },
      "a CostModel has transfer(const topo::link&, bytes) const returning seconds");
  static_assert(
      requires(const M& m, const topo::link& l) {
        { m.latency(l) } -> std::same_as<seconds>;
      },
      "a CostModel has latency(const topo::link&) const returning seconds");
  static_assert(
      requires(const M& m) {
        { m.post() } -> std::same_as<seconds>;
      },
      "a CostModel has post() const returning seconds");
  static_assert(
      requires(const M& m) {
        { m.launch() } -> std::same_as<seconds>;
      },
      "a CostModel has launch() const returning seconds");
  static_assert(
      requires(const M& m, bytes b) {
        { m.reduce(b) } -> std::same_as<seconds>;
      },
      "a CostModel has reduce(bytes) const returning seconds");
  static_assert(CostModel<M>);
}

/// Price of one kind of link.
struct link_price {
  seconds latency{};      ///< paid by every message for crossing one such link
  double efficiency = 1;  ///< payload per nominal line rate, 0 to 1
};

/// Latency plus bytes by bandwidth, per link. All figures may be replaced by measured ones.
///
/// A link carries min(capacity, nominal * efficiency): a capacity that was measured, or that a source has already reduced
/// to payload, is not reduced again.
struct alpha_beta {
  /// In the order of `topo::link_kind`. Latencies are set so that a whole path sums to what NCCL's tuning model books for
  /// a message of its low-latency protocol in a ring (us): GPU to GPU through NVSwitch (two NVLinks) 0.6; between PCIe
  /// devices 1.0 (four hops); network 2.7 plus the NIC. Source: NCCL 2.28, src/graph/tuning.cc, hardware latencies.
  std::array<link_price, 9> kinds{{
      // pcie: 256 bytes per packet with 24 of header and framing, less 5 % for acknowledgements and credits
      {{0.25e-6}, 0.86},
      // nvlink: 20.6 GB/s is the payload of a Hopper link of 25 GB/s in NCCL's model; rings measure 0.80 to 0.82
      {{0.30e-6}, 20.6 / 25.0},
      // xgmi: 47.7 of 64 GB/s measured by two MI300X over one link
      {{0.30e-6}, 0.75},
      // c2c: no public figure for payload; taken at its capacity
      {{0.30e-6}, 1},
      // cpu: sources give payload figures already (NCCL: 6 to 40 GB/s)
      {{0.25e-6}, 1},
      // memory: a load or store that misses all caches
      {{0.10e-6}, 1},
      // internal: each NIC handles each message; 2.7 us end to end in the ring model, less the rest
      {{1.00e-6}, 1},
      // infiniband: ib_write_bw reaches 390.98 Gb/s on a 400 Gb/s port; about 0.13 us from port to port of a switch
      {{0.15e-6}, 390.98 / 400},
      // ethernet: RDMA write reaches 369 Gb/s on a 400 Gb/s RoCE port; a switch stores and forwards a small frame
      {{0.30e-6}, 369.0 / 400},
  }};
  /// Five million messages per second: about what one thread hands to a NIC or writes to peers; assumed, not measured.
  seconds post_time{0.2e-6};
  /// Base latency of a ring in NCCL's model, low-latency protocol (us): 6.6.
  seconds launch_time{6.6e-6};
  /// A GPU reads two operands and writes one: a third of 3.35 TB/s, the memory rate of an H100. Reduction overlaps transfer.
  bytes_per_second reduce_rate{1.1e12};

  [[nodiscard]] constexpr const link_price& price(topo::link_kind k) const {
    return kinds[static_cast<std::size_t>(k)];
  }
  [[nodiscard]] constexpr link_price& price(topo::link_kind k) { return kinds[static_cast<std::size_t>(k)]; }

  [[nodiscard]] bytes_per_second rate(const topo::link& l) const {
    if (l.how == trust::measured || !l.nominal) return l.capacity;
    const bytes_per_second payload = *l.nominal * price(l.kind).efficiency;
    return payload < l.capacity ? payload : l.capacity;
  }
  [[nodiscard]] seconds transfer(const topo::link& l, bytes b) const { return b.value == 0 ? seconds{} : b / rate(l); }
  [[nodiscard]] seconds latency(const topo::link& l) const { return price(l.kind).latency; }
  [[nodiscard]] seconds post() const { return post_time; }
  [[nodiscard]] seconds launch() const { return launch_time; }
  [[nodiscard]] seconds reduce(bytes b) const { return b / reduce_rate; }

  /// Ranks that are processes on CPUs and exchange data in shared memory.
  ///
  /// One core adds two arrays that lie in memory at about 13 GB/s and hands a cache line over in 0.2 us; a message between
  /// two processes took 0.5 us. Measured on a two-core AMD EPYC virtual machine; set your own figures where they matter.
  [[nodiscard]] static constexpr alpha_beta host() {
    alpha_beta m;
    m.price(topo::link_kind::memory).latency = {0.2e-6};
    m.price(topo::link_kind::cpu).latency = {0.1e-6};
    m.post_time = {0.2e-6};
    m.launch_time = {0.5e-6};
    m.reduce_rate = {13e9};
    return m;
  }

  /// Bytes only: no latency anywhere and every link at its capacity. What cut bounds are stated in.
  [[nodiscard]] static constexpr alpha_beta ideal() {
    alpha_beta m;
    for (link_price& k : m.kinds) k = {};
    m.post_time = {};
    m.launch_time = {};
    m.reduce_rate = {1e300};
    return m;
  }
};
static_assert(CostModel<alpha_beta>);

}}}  // namespace topocoll::v0::plan
