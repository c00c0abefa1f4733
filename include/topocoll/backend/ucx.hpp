// SPDX-License-Identifier: Apache-2.0
#pragma once
// UCX: its versions and the network resources it sees; the base of the UCX transport.
#if !__has_include(<ucp/api/ucp.h>) || !__has_include(<uct/api/uct.h>)
#error "topocoll/backend/ucx.hpp needs the headers of UCX: on Debian install libucx-dev, link topocoll::ucx"
#endif
#include <algorithm>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/backend/library_info.hpp>
#include <topocoll/core/result.hpp>
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

namespace topocoll { inline namespace v0 {

namespace backend::detail {

// Names "transport/device" of one memory domain, appended to `names`.
inline ucs_status_t append_ucx_resources(uct_component_h component, const char* domain,
                                         std::vector<std::string>& names) {
  uct_md_config_t* config = nullptr;
  ucs_status_t status = uct_md_config_read(component, nullptr, nullptr, &config);
  if (status != UCS_OK) return status;
  uct_md_h opened = nullptr;
  status = uct_md_open(component, domain, config, &opened);
  uct_config_release(config);
  if (status != UCS_OK) return status;
  uct_tl_resource_desc_t* resources = nullptr;
  unsigned count = 0;
  status = uct_md_query_tl_resources(opened, &resources, &count);
  if (status == UCS_OK) {
    for (unsigned i = 0; i < count; ++i) {
      names.push_back(std::string(resources[i].tl_name) + "/" + resources[i].dev_name);
    }
    uct_release_tl_resource_list(resources);
  }
  uct_md_close(opened);
  return status;
}

// Resources of one component (tcp, ib, sysv, …), appended to `names`.
inline ucs_status_t append_ucx_component(uct_component_h component, std::vector<std::string>& names) {
  uct_component_attr_t asked{};
  asked.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
  ucs_status_t status = uct_component_query(component, &asked);
  if (status != UCS_OK) return status;
  std::vector<uct_md_resource_desc_t> domains(asked.md_resource_count);
  asked.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
  asked.md_resources = domains.data();
  if (!domains.empty()) status = uct_component_query(component, &asked);
  if (status != UCS_OK) return status;
  for (const uct_md_resource_desc_t& domain : domains) {
    const ucs_status_t one = append_ucx_resources(component, domain.md_name, names);
    if (one != UCS_OK) status = one;
  }
  return status;
}

}  // namespace backend::detail

/// Versions of UCX and its resources as "transport/device", such as "rc_mlx5/mlx5_0:1" or "tcp/eth0", sorted.
///
/// Opens and closes every memory domain once, which takes some 10 ms where devices are present. UCX itself reads its
/// UCX_* environment variables here. A domain that cannot be opened becomes a finding; `unavailable` when UCX lists no
/// components at all.
[[nodiscard]] inline result<library_info> ucx_library() {
  library_info info;
  info.name = "UCX";
  info.compiled_against = std::to_string(UCP_API_MAJOR) + "." + std::to_string(UCP_API_MINOR);
  info.running = ucp_get_version_string();

  uct_component_h* components = nullptr;
  unsigned count = 0;
  const ucs_status_t status = uct_query_components(&components, &count);
  if (status != UCS_OK) {
    return fail(errc::unavailable,
                std::string("UCX ") + *info.running + " lists no components: " + ucs_status_string(status),
                "run `ucx_info -d` and compare");
  }
  std::vector<std::string> names;
  for (unsigned i = 0; i < count; ++i) {
    const ucs_status_t one = backend::detail::append_ucx_component(components[i], names);
    if (one != UCS_OK) {
      finding missing;
      missing.where = "UCX component " + std::to_string(i) + " of " + std::to_string(count);
      missing.what = "its devices are not known";
      missing.evidence = ucs_status_string(one);
      missing.next_step = "run `ucx_info -d` and compare";
      info.findings.push_back(std::move(missing));
    }
  }
  uct_release_component_list(components);
  std::sort(names.begin(), names.end());
  info.devices = std::move(names);
  return info;
}

}}  // namespace topocoll::v0
