// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which PCI classes and vendors are taken for GPUs.
#include <cstdint>
#include <string_view>
#include <topocoll/read/number.hpp>
#include <topocoll/read/pcie.hpp>

namespace topocoll { inline namespace v0 { namespace detail {

/// True when a PCI function of this class and vendor is taken for a GPU that can be a rank.
///
/// Classes 0302, 0380 and 1200 are. Class 0300 is what consumer and some data centre GPUs say, but also every display of a
/// board controller or hypervisor: it counts unless a vendor is told that makes no GPUs (NVIDIA 10de, AMD 1002, Intel 8086).
template <class = void>
[[nodiscard]] bool is_gpu_class(std::uint32_t class_code, std::string_view vendor) {
  switch (read::pci_subclass(class_code)) {
    case read::pci_class_3d:
    case read::pci_class_display:
    case read::pci_class_accelerator: return true;
    case read::pci_class_vga: break;
    default: return false;
  }
  vendor = read::trimmed(vendor);
  if (vendor.substr(0, 2) == "0x" || vendor.substr(0, 2) == "0X") vendor.remove_prefix(2);
  return vendor.empty() || vendor == "10de" || vendor == "10DE" || vendor == "1002" || vendor == "8086";
}

}}}  // namespace topocoll::v0::detail
