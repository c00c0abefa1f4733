// SPDX-License-Identifier: Apache-2.0
#pragma once
// Walks a live InfiniBand fabric with libibnetdisc, in a process of its own that can be ended when time is up.
#if !__has_include(<infiniband/ibnetdisc.h>)
#error "topocoll/backend/ibnetdisc.hpp needs libibnetdisc: on Debian install libibnetdisc-dev, link topocoll::ibnetdisc"
#endif
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/discover/ib_fabric_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/read/detail/ib_cables.hpp>
#include <topocoll/read/ib_codes.hpp>
#include <topocoll/read/ib_fabric.hpp>
#include <topocoll/read/number.hpp>
#include <topocoll/topo/graph.hpp>
#include <infiniband/ibnetdisc.h>

namespace topocoll { inline namespace v0 {

/// The InfiniBand fabric around this machine: `discover({}, ibnetdisc{})`. Needs the rights to use /dev/infiniband/umad*.
///
/// libibnetdisc waits for every device that does not answer, without a limit on the whole, and ends the process on some
/// errors. It therefore runs in a forked child, which is killed at the deadline. The child only calls libibnetdisc, and
/// never returns into the program.
struct ibnetdisc {
  std::string adapter;  ///< "mlx5_0"; empty: the first with an active port
  int port = 0;         ///< 0: the first active one
  seconds answer{0.5};  ///< how long to wait for one device, each of `1 + retries` times
  std::uint32_t retries = 2;
  std::uint32_t max_hops = 0;   ///< how far to walk from here; 0: everywhere
  std::uint32_t in_flight = 4;  ///< requests under way at a time; more is faster and loads the subnet management agents

  [[nodiscard]] static std::string_view name() { return "ibnetdisc"; }

  /// Devices and cables as the fabric tells them.
  /// @return `timed_out` when the walk has not ended by `until`; `unavailable` with the library's own words when it can not
  ///         begin (no adapter, no rights); `system` when no process or pipe can be had
  template <class = void>
  [[nodiscard]] result<read::ib_fabric> fabric(deadline until) const;

  /// As `fabric`, then as `fragment_of`.
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const {
    const auto told = fabric(options.until);
    if (!told) return told.error();
    return fragment_of(*told, options, "ibnetdisc");
  }
};
static_assert(TopologySource<ibnetdisc>);

namespace detail {

/// What the child writes: for each node this, then its ports, and after the last node one with `kind` 0.
struct ibnetdisc_node {
  std::uint64_t guid, system_image;
  std::uint32_t kind, port_count, ports, vendor, product, lid;
  char description[IB_SMP_DATA_SIZE + 1];
};
/// Codes and masks are those of PortInfo.
struct ibnetdisc_port {
  std::uint64_t guid, far_guid;
  std::uint32_t number, far_port, lid, lmc, state, physical;
  std::uint32_t width, speed, extended, fdr10;
  std::uint32_t widths, speeds, extendeds, fdr10s;
};

template <class = void>
[[nodiscard]] bool write_whole(int to, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(to, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Runs in the child.
template <class = void>
[[nodiscard]] bool write_fabric(const ibnd_fabric_t& fabric, int to) {
  const auto field = [](const std::uint8_t* info, MAD_FIELDS f) {
    return mad_get_field(const_cast<std::uint8_t*>(info), 0, f);
  };
  for (ibnd_node_t* n = fabric.nodes; n != nullptr; n = n->next) {
    ibnetdisc_node node{};
    node.guid = n->guid;
    node.system_image = mad_get_field64(n->info, 0, IB_NODE_SYSTEM_GUID_F);
    node.kind = static_cast<std::uint32_t>(n->type);
    node.port_count = static_cast<std::uint32_t>(n->numports);
    node.vendor = field(n->info, IB_NODE_VENDORID_F);
    node.product = field(n->info, IB_NODE_DEVID_F);
    node.lid = n->type == IB_NODE_SWITCH ? n->smalid : 0;
    std::memcpy(node.description, n->nodedesc, IB_SMP_DATA_SIZE);
    for (int p = 1; p <= n->numports; ++p) node.ports += n->ports[p] != nullptr ? 1 : 0;
    if (!write_whole(to, &node, sizeof node)) return false;
    // Whether the extended speeds mean anything is told by the port, for a switch by its management port.
    for (int p = 1; p <= n->numports; ++p) {
      const ibnd_port_t* from = n->ports[p];
      if (from == nullptr) continue;
      const ibnd_port_t* asked = n->type == IB_NODE_SWITCH && n->ports[0] != nullptr ? n->ports[0] : from;
      const bool extends = (field(asked->info, IB_PORT_CAPMASK_F) >> 14U & 1U) != 0;  // IsExtendedSpeedsSupported
      ibnetdisc_port port{};
      port.number = static_cast<std::uint32_t>(p);
      port.guid = from->guid;
      port.lid = from->base_lid;
      port.lmc = from->lmc;
      port.state = field(from->info, IB_PORT_STATE_F);
      port.physical = field(from->info, IB_PORT_PHYS_STATE_F);
      port.width = field(from->info, IB_PORT_LINK_WIDTH_ACTIVE_F);
      port.speed = field(from->info, IB_PORT_LINK_SPEED_ACTIVE_F);
      port.widths = field(from->info, IB_PORT_LINK_WIDTH_SUPPORTED_F);
      port.speeds = field(from->info, IB_PORT_LINK_SPEED_SUPPORTED_F);
      if (extends) {
        port.extended = field(from->info, IB_PORT_LINK_SPEED_EXT_ACTIVE_F);
        port.extendeds = field(from->info, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F);
      }
      port.fdr10 = field(from->ext_info, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F);
      port.fdr10s = field(from->ext_info, IB_MLNX_EXT_PORT_LINK_SPEED_SUPPORTED_F);
      if (from->remoteport != nullptr) {
        port.far_guid = from->remoteport->node->guid;
        port.far_port = static_cast<std::uint32_t>(from->remoteport->portnum);
      }
      if (!write_whole(to, &port, sizeof port)) return false;
    }
  }
  const ibnetdisc_node last{};
  return write_whole(to, &last, sizeof last);
}

/// Makes structs of what the child wrote. False when it broke off.
template <class = void>
[[nodiscard]] bool read_written_fabric(std::string_view data, read::ib_fabric& out) {
  const auto take = [&](auto& into) {
    if (data.size() < sizeof into) return false;
    std::memcpy(&into, data.data(), sizeof into);
    data.remove_prefix(sizeof into);
    return true;
  };
  struct known {
    std::uint64_t guid;
    std::uint32_t device;
  };
  std::vector<known> by_guid;
  std::vector<ibnetdisc_port> ports;  // in the order of the devices and their ports
  for (;;) {
    ibnetdisc_node n{};
    if (!take(n)) return false;
    if (n.kind == 0) break;
    read::ib_device d;
    d.kind = n.kind == IB_NODE_SWITCH   ? read::ib_kind::switch_device
             : n.kind == IB_NODE_ROUTER ? read::ib_kind::router
                                        : read::ib_kind::channel_adapter;
    d.guid = n.guid;
    if (n.system_image != 0) d.system_image = n.system_image;
    d.port_count = n.port_count;
    d.vendor = n.vendor;
    d.product = n.product;
    if (n.lid != 0) d.lid = n.lid;
    d.description = std::string(read::trimmed({n.description, strnlen(n.description, sizeof n.description)}));
    by_guid.push_back({n.guid, static_cast<std::uint32_t>(out.devices.size())});
    for (std::uint32_t i = 0; i < n.ports; ++i) {
      ibnetdisc_port p{};
      if (!take(p)) return false;
      read::ib_port port;
      port.number = p.number;
      if (d.kind == read::ib_kind::channel_adapter && p.guid != 0) port.guid = p.guid;
      if (d.kind == read::ib_kind::channel_adapter && p.lid != 0) port.lid = p.lid;
      if (d.kind == read::ib_kind::channel_adapter) port.lmc = p.lmc;
      port.state = read::ib_state_of_code(p.state);
      port.physical = read::ib_physical_state_of_code(p.physical);
      if (port.state != read::ib_state::down) {  // what a port that is down tells of its link means nothing
        port.width = read::ib_lanes_of_code(p.width);
        port.speed =
            p.fdr10 != 0 && p.extended == 0 ? read::ib_speed::fdr10 : read::ib_speed_of_code(p.speed, p.extended);
      }
      ports.push_back(p);
      d.ports.push_back(std::move(port));
    }
    out.devices.push_back(std::move(d));
  }
  seq::sort_by(by_guid, &known::guid);
  std::size_t next = 0;
  for (read::ib_device& d : out.devices)
    for (read::ib_port& port : d.ports) {
      const ibnetdisc_port& p = ports[next++];
      if (p.far_port == 0) continue;
      const auto far = seq::lower_bound_by(by_guid, p.far_guid, &known::guid);
      if (far != by_guid.end() && far->guid == p.far_guid) port.peer = read::ib_end{far->device, p.far_port};
    }
  // The best of a link is what both its ends support.
  next = 0;
  std::vector<std::size_t> first(out.devices.size());
  for (std::size_t d = 0; d < out.devices.size(); ++d) {
    first[d] = next;
    next += out.devices[d].ports.size();
  }
  for (std::size_t d = 0; d < out.devices.size(); ++d)
    for (std::size_t i = 0; i < out.devices[d].ports.size(); ++i) {
      read::ib_port& port = out.devices[d].ports[i];
      if (!port.peer) continue;
      const read::ib_device& far = out.devices[port.peer->device];
      const read::ib_port* other = read::find_port(far, port.peer->port);
      if (other == nullptr) continue;
      const ibnetdisc_port& a = ports[first[d] + i];
      const ibnetdisc_port& b = ports[first[port.peer->device] + static_cast<std::size_t>(other - far.ports.data())];
      port.best_width = read::widest_of_mask(a.widths & b.widths);
      port.best_speed = read::fastest_of_masks(a.speeds & b.speeds, a.extendeds & b.extendeds);
      if (port.best_speed < read::ib_speed::fdr10 && (a.fdr10s & b.fdr10s & 1U) != 0)
        port.best_speed = read::ib_speed::fdr10;
    }
  return true;
}

/// The two ends of a pipe; closes what is still open.
class ibnetdisc_pipe {
 public:
  ibnetdisc_pipe() = default;
  ibnetdisc_pipe(const ibnetdisc_pipe&) = delete;
  ibnetdisc_pipe& operator=(const ibnetdisc_pipe&) = delete;
  ~ibnetdisc_pipe() {
    close_end(0);
    close_end(1);
  }
  [[nodiscard]] bool open() { return ::pipe2(ends_, O_CLOEXEC) == 0; }
  [[nodiscard]] int end(int which) const { return ends_[which]; }
  void close_end(int which) {
    if (ends_[which] >= 0) ::close(ends_[which]);
    ends_[which] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

/// Reads both pipes until their writer has gone. False when the time is up.
template <class = void>
[[nodiscard]] bool drain(ibnetdisc_pipe& data, ibnetdisc_pipe& words, std::string& told, std::string& said,
                         deadline until) {
  char piece[65536];
  for (;;) {
    pollfd both[2] = {{data.end(0), POLLIN, 0}, {words.end(0), POLLIN, 0}};  // poll ignores an end that is -1
    if (both[0].fd < 0 && both[1].fd < 0) return true;
    const seconds left = until.left();
    if (left.value <= 0) return false;
    const int ready = ::poll(both, 2, left.value > 1000 ? 1000000 : static_cast<int>(left.value * 1e3) + 1);
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (both[i].fd < 0 || both[i].revents == 0) continue;
      const ssize_t n = ::read(both[i].fd, piece, sizeof piece);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        (i == 0 ? data : words).close_end(0);
      else if (i == 0)
        told.append(piece, static_cast<std::size_t>(n));
      else if (said.size() < 4096)
        said.append(piece, static_cast<std::size_t>(n));
    }
  }
}

/// Collects a child that is about to end. One that the kernel does not let go of within a second stays behind.
template <class = void>
void await_end(pid_t child) {
  int status = 0;
  for (int tries = 0; tries < 100 && ::waitpid(child, &status, WNOHANG) == 0; ++tries) ::poll(nullptr, 0, 10);
}

}  // namespace detail

template <class>
result<read::ib_fabric> ibnetdisc::fabric(deadline until) const {
  detail::ibnetdisc_pipe data;
  detail::ibnetdisc_pipe words;
  const auto no_system = [](const char* what) {
    return fail(errc::system,
                std::string("the InfiniBand fabric cannot be walked: ") + what + ": " + std::strerror(errno));
  };
  if (!data.open() || !words.open()) return no_system("no pipe");
  std::string device = adapter;  // libibnetdisc wants a text that may be written to
  ibnd_config_t config{};
  config.timeout_ms = static_cast<unsigned>(answer.value > 0 && answer.value < 3600 ? answer.value * 1e3 : 500);
  config.retries = retries;
  config.max_hops = max_hops;
  config.max_smps = in_flight;
  config.flags = IBND_CONFIG_MLX_EPI;  // FDR10 is told by a vendor's attribute
  const pid_t child = ::fork();
  if (child < 0) return no_system("no process");
  if (child == 0) {
    ::dup2(words.end(1), STDERR_FILENO);
    ::dup2(words.end(1), STDOUT_FILENO);
    ibnd_fabric_t* found = ibnd_discover_fabric(device.empty() ? nullptr : device.data(), port, nullptr, &config);
    ::_exit(found != nullptr && detail::write_fabric(*found, data.end(1)) ? 0 : 1);
  }
  data.close_end(1);
  words.close_end(1);
  std::string told;
  std::string said;
  const bool in_time = detail::drain(data, words, told, said, until);
  if (!in_time) ::kill(child, SIGKILL);
  detail::await_end(child);
  if (!in_time)
    return fail(errc::timed_out, "the InfiniBand fabric was not walked before the deadline",
                "give more time, or walk less of it with max_hops");
  // The last lines of the library say why.
  const std::string why = said.empty() ? std::string() : ": " + std::string(read::trimmed(said)).substr(0, 400);
  read::ib_fabric fabric;
  if (!detail::read_written_fabric(told, fabric)) {
    if (!told.empty())
      return fail(errc::system, "the walk through the InfiniBand fabric broke off" + why,
                  "run ibnetdiscover and compare");
    return fail(errc::unavailable, "libibnetdisc finds no InfiniBand fabric here" + why,
                "run ibstat; /dev/infiniband/umad* needs root or the group rdma");
  }
  if (!said.empty())
    fabric.findings.push_back({severity::warning, "ibnetdisc", "libibnetdisc complained on its way",
                               std::string(read::trimmed(said)).substr(0, 400), "run ibnetdiscover and compare", 1});
  read::detail::close_cables(fabric, "ibnetdisc");
  return fabric;
}

}}  // namespace topocoll::v0
