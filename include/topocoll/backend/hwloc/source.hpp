// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the hwloc library sees of this machine, or of a synthetic one, as a topology source. Needs pugixml.
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <topocoll/backend/hwloc.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/discover/hwloc_graph.hpp>
#include <topocoll/discover/source.hpp>
#include <topocoll/io/xml.hpp>
#include <topocoll/read/hwloc_topology.hpp>
#include <topocoll/topo/graph.hpp>

namespace topocoll { inline namespace v0 {

/// This machine by way of the hwloc library: `discover({}, hwloc{})`; with `.synthetic` a machine that hwloc makes up from a
/// description such as "pack:2 numa:1 core:8 pu:2".
///
/// The library exports XML, which is read like a file: what is said there of files holds here. Keys start with
/// `options.host`, so that the answer joins with that of `sysfs`. Loading takes 10 to 1000 ms with the number of PCI devices
/// and cannot be interrupted; it does not start after the deadline. hwloc itself reads its HWLOC_* environment variables.
/// @return from `read`: `invalid_argument` for a description that hwloc refuses; `mismatch` when headers and library are of
///         different major versions; `timed_out`; `system` when hwloc fails
struct hwloc {
  std::string synthetic{};  ///< empty for the running machine

  [[nodiscard]] static std::string_view name() { return "hwloc"; }
  template <class = void>
  [[nodiscard]] result<topo::fragment> read(const discover_options& options) const;
};

namespace backend::detail {

/// An XML text that hwloc allocated.
class hwloc_text {
 public:
  explicit hwloc_text(hwloc_topology_t topology) : topology_(topology) {
    failed_ = hwloc_topology_export_xmlbuffer(topology, &text_, &length_, 0) != 0;
  }
  hwloc_text(const hwloc_text&) = delete;
  hwloc_text& operator=(const hwloc_text&) = delete;
  ~hwloc_text() {
    if (!failed_) hwloc_free_xmlbuffer(topology_, text_);
  }
  [[nodiscard]] bool failed() const { return failed_; }
  /// Without the NUL that hwloc counts.
  [[nodiscard]] std::string_view view() const {
    return {text_, length_ > 0 ? static_cast<std::size_t>(length_ - 1) : 0};
  }

 private:
  hwloc_topology_t topology_;
  char* text_ = nullptr;
  int length_ = 0;
  bool failed_ = true;
};

}  // namespace backend::detail

template <class>
result<topo::fragment> hwloc::read(const discover_options& options) const {
  const std::string origin = synthetic.empty() ? "live" : "synthetic " + synthetic;
  if (hwloc_get_api_version() >> 16U != HWLOC_API_VERSION >> 16U)
    return fail(errc::mismatch,
                "hwloc " + backend::detail::hwloc_version_text(hwloc_get_api_version()) + " runs, but " +
                    backend::detail::hwloc_version_text(HWLOC_API_VERSION) + " was compiled against",
                "rebuild with the headers of the installed hwloc");
  if (options.until.passed())
    return fail(errc::timed_out, "the deadline passed before hwloc began to read the machine");
  const auto fails = [](const char* doing) {
    return fail(errc::system, std::string("hwloc cannot ") + doing + ": " + std::strerror(errno),
                "run `lstopo` and compare");
  };
  hwloc_topology_t made = nullptr;
  errno = 0;
  if (hwloc_topology_init(&made) != 0) return fails("begin");
  const backend::detail::hwloc_handle topology(made);
  if (!synthetic.empty() && hwloc_topology_set_synthetic(made, synthetic.c_str()) != 0)
    return fail(errc::invalid_argument, "hwloc does not understand the synthetic description \"" + synthetic + "\"",
                "write it as \"pack:2 numa:1 core:8 pu:2\"; see the manual of hwloc, Synthetic topologies");
  if (hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_IMPORTANT) != 0 || hwloc_topology_load(made) != 0)
    return fails("read this machine");
  const backend::detail::hwloc_text text(made);
  if (text.failed()) return fails("export what it read");
  const auto root = io::parse_xml(text.view(), "hwloc " + origin);
  if (!root) return root.error();
  auto machine = read::hwloc_topology_of(*root, "hwloc " + origin);
  if (!machine) return machine.error();
  machine->host_name.clear();  // a machine is called what the caller calls it, as by its other sources
  auto fragment = fragment_of(*machine, options, origin);
  if (fragment && synthetic.empty()) fragment->source = "hwloc";
  return fragment;
}

static_assert(TopologySource<hwloc>);

}}  // namespace topocoll::v0
