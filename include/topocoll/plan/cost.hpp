// SPDX-License-Identifier: Apache-2.0
#pragma once
// What it costs to move and to reduce bytes: the concept CostModel and the latency-and-bandwidth model.
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <topocoll/core/units.hpp>
#include <topocoll/plan/detail/model_parameters.hpp>
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

/// What a cost model may say of switches that add up and multiply what passes them. Without it they do so at the rate of
/// their links and at once.
///
/// Laws: `rate_in_switch` is positive where `rate` is, and never above it; `switch_start` is linear in the members.
template <class M>
concept SwitchPrices = requires(const M& m, const topo::link& l, bool sums, std::uint32_t members) {
  {
    m.rate_in_switch(l, sums)
    } -> std::same_as<bytes_per_second>;                 // payload of a link when its switch adds, or multiplies
  { m.switch_start(members) } -> std::same_as<seconds>;  // each time such a switch serves a group
};

/// Price of one kind of link.
struct link_price {
  seconds latency{};      ///< paid by every message for crossing one such link
  double efficiency = 1;  ///< payload per nominal line rate, 0 to 1
};

/// Latency plus bytes by bandwidth, per link. All figures may be replaced by measured ones.
///
/// A link carries min(capacity, nominal * efficiency): a capacity that was measured, or that a source has already reduced
/// to payload, is not reduced again. Efficiencies of NVLink and XGMI and the latencies of GPU links and networks are those
/// of the library model (`model_parameters`), so both change together when it is calibrated: see `from`.
struct alpha_beta {
  /// In the order of `topo::link_kind`. Latencies are of small messages in the low-latency protocol, and add up over a
  /// path: GPU to GPU through NVSwitch crosses two NVLinks, PCIe devices of two switches four PCIe links, a network two
  /// PCIe links, two adapters and two cables or more.
  std::array<link_price, 9> kinds = kinds_of(model_constants{});
  /// NVLink by generation 1 to 5; 0, also where the generation is not told, takes the efficiency of its kind.
  std::array<double, 6> nvlink_efficiency = nvlink_of(model_constants{});
  /// Five million messages per second: about what one thread hands to a NIC or writes to peers; assumed, not measured.
  seconds post_time{0.2e-6};
  /// A NIC takes up at most 200 million messages in a second (ConnectX-6's data sheet: 215; ConnectX-7's: 330). Small
  /// messages of many ranks that share a NIC meet it before its bandwidth: 50 GB/s are 250 bytes a message.
  seconds message_time{1 / 200e6};
  seconds launch_time{fact_of(model_parameter::launch).value * 1e-6};
  /// What links to NVSwitches that add up or multiply (NVLS) carry of their line rate; what switches of generation 5 add up.
  double switch_efficiency = fact_of(model_parameter::nvls_link).value;
  double switch5_sums = fact_of(model_parameter::nvls5_switch).value;
  /// The library model books the start of an all_reduce, half for either way.
  seconds switch_start_time{fact_of(model_parameter::nvls_start).value * 0.5e-6};
  seconds switch_member_time{fact_of(model_parameter::nvls_per_gpu).value * 0.5e-6};
  /// A GPU reads two operands and writes one: a third of 3.35 TB/s, the memory rate of an H100. Reduction overlaps transfer.
  bytes_per_second reduce_rate{1.1e12};

  /// Prices of links by the constants of the library model.
  [[nodiscard]] static constexpr std::array<link_price, 9> kinds_of(const model_constants& k) {
    using p = model_parameter;
    const auto us = [](double t) { return seconds{t * 1e-6}; };
    // What cables do not explain of a hop over the network is spent in the two adapters.
    const double pcie = k[p::pcie_hop] / 4, infiniband = 0.15, ethernet = 0.3;
    const double adapter = (k[p::infiniband_hop] - 2 * pcie - 2 * infiniband) / 2;
    const double more = (k[p::roce_hop] - k[p::infiniband_hop]) / 2;  // Ethernet's share, booked on its cables
    return {{
        // 256 bytes per packet with 24 of header and framing, less 5 % for acknowledgements and credits
        {us(pcie), 0.86},
        // a generation that nobody tells: 20.6 of 25 GB/s, NCCL's payload of a Hopper link
        {us(k[p::nvlink_hop] / 2), 20.6 / 25.0},
        // XGMI joins GPUs directly
        {us(k[p::nvlink_hop] / 2), k[p::xgmi]},
        // c2c: no public figure for payload; taken at its capacity
        {us(0.30), 1},
        // cpu: sources give payload figures already (NCCL: 6 to 40 GB/s)
        {us(0.25), 1},
        // memory: a load or store that misses all caches
        {us(0.10), 1},
        // internal: each NIC handles each message
        {us(adapter > 0.5 ? adapter : 0.5), 1},
        // infiniband: ib_write_bw reaches 390.98 Gb/s on a 400 Gb/s port; about 0.13 us from port to port of a switch
        {us(infiniband), 390.98 / 400},
        // ethernet: rings reach `roce` of the line rate; a switch stores and forwards a small frame
        {us(ethernet + (more > 0 ? more : 0)), k[p::roce]},
    }};
  }
  [[nodiscard]] static constexpr std::array<double, 6> nvlink_of(const model_constants& k) {
    using p = model_parameter;
    return {0, k[p::nvlink1], k[p::nvlink2], k[p::nvlink3], k[p::nvlink4], k[p::nvlink5]};
  }
  /// Prices by a calibrated model.
  [[nodiscard]] static constexpr alpha_beta from(const model_constants& k) {
    alpha_beta m;
    m.kinds = kinds_of(k);
    m.nvlink_efficiency = nvlink_of(k);
    m.launch_time = {k[model_parameter::launch] * 1e-6};
    m.switch_efficiency = k[model_parameter::nvls_link];
    m.switch5_sums = k[model_parameter::nvls5_switch];
    m.switch_start_time = {k[model_parameter::nvls_start] * 0.5e-6};
    m.switch_member_time = {k[model_parameter::nvls_per_gpu] * 0.5e-6};
    return m;
  }
  /// The same prices with the overheads of one of NCCL's protocols: LL moves flags with every word, LL128 waits longer for
  /// less of them, Simple synchronises whole pieces. Without it latencies are LL's and bandwidths Simple's, which is what
  /// the best protocol comes near at either end.
  [[nodiscard]] constexpr alpha_beta with(library_protocol protocol, const model_constants& k = {}) const {
    using p = model_parameter;
    alpha_beta m = *this;
    const bool ll = protocol == library_protocol::ll, ll128 = protocol == library_protocol::ll128;
    const auto apply = [&](topo::link_kind kind, double share, double hop) {
      m.price(kind).efficiency *= share;
      m.price(kind).latency = m.price(kind).latency * hop;
    };
    const double share = ll ? k[p::ll_share] : ll128 ? k[p::ll128_share] : 1;
    const double net_share = ll ? k[p::ll_net_share] : share;
    const double hop = ll ? 1 : k[ll128 ? p::ll128_hop : p::simple_hop];
    const double net_hop = ll ? 1 : k[ll128 ? p::ll128_net_hop : p::simple_net_hop];
    for (const topo::link_kind kind : {topo::link_kind::nvlink, topo::link_kind::xgmi}) apply(kind, share, hop);
    for (double& e : m.nvlink_efficiency) e *= share;
    for (const topo::link_kind kind :
         {topo::link_kind::infiniband, topo::link_kind::ethernet, topo::link_kind::internal})
      apply(kind, net_share, net_hop);
    return m;
  }

  /// Payload of a link whose NVSwitch adds up (`sums`) or multiplies what passes. Of generation 5 the switches add up less
  /// than the links carry.
  [[nodiscard]] bytes_per_second rate_in_switch(const topo::link& l, bool sums) const {
    const double share =
        sums && l.generation >= 5 && switch5_sums < switch_efficiency ? switch5_sums : switch_efficiency;
    const double plain = efficiency(l);
    return share < plain ? rate(l) * (share / plain) : rate(l);
  }
  [[nodiscard]] seconds switch_start(std::uint32_t members) const {
    return switch_start_time + static_cast<double>(members) * switch_member_time;
  }

  [[nodiscard]] constexpr const link_price& price(topo::link_kind k) const {
    return kinds[static_cast<std::size_t>(k)];
  }
  [[nodiscard]] constexpr link_price& price(topo::link_kind k) { return kinds[static_cast<std::size_t>(k)]; }

  /// Payload per nominal line rate.
  [[nodiscard]] double efficiency(const topo::link& l) const {
    if (l.kind == topo::link_kind::nvlink && l.generation < nvlink_efficiency.size() &&
        nvlink_efficiency[l.generation] > 0)
      return nvlink_efficiency[l.generation];
    return price(l.kind).efficiency;
  }
  [[nodiscard]] bytes_per_second rate(const topo::link& l) const {
    if (l.how == trust::measured || !l.nominal) return l.capacity;
    const bytes_per_second payload = *l.nominal * efficiency(l);
    return payload < l.capacity ? payload : l.capacity;
  }
  [[nodiscard]] seconds transfer(const topo::link& l, bytes b) const { return b.value == 0 ? seconds{} : b / rate(l); }
  [[nodiscard]] seconds latency(const topo::link& l) const { return price(l.kind).latency; }
  [[nodiscard]] seconds post() const { return post_time; }
  /// What a link spends on each message whatever its length: NICs do, wires do not.
  [[nodiscard]] seconds message(const topo::link& l) const {
    return l.kind == topo::link_kind::internal ? message_time : seconds{};
  }
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
    m.nvlink_efficiency = {};
    m.post_time = {};
    m.message_time = {};
    m.launch_time = {};
    m.switch_efficiency = m.switch5_sums = 1;
    m.switch_start_time = m.switch_member_time = {};
    m.reduce_rate = {1e300};
    return m;
  }
};
static_assert(CostModel<alpha_beta>);

}}}  // namespace topocoll::v0::plan
