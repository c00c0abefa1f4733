// SPDX-License-Identifier: Apache-2.0
// A library with NVML's calls that tells of a machine written down in a file, so that the way to the real one is tested
// where there is no GPU: opened by name, called through the same pointers, the same structures.
//
// The file is named by TOPOCOLL_STAND_IN_MACHINE and read by nvmlInit_v2. One fact a line, '#' begins a comment:
//
//   driver 550.54.15          init 9                  what nvmlInit_v2 answers
//   refuse CALL CODE          a call that fails for every GPU
//   gpu 0000:1b:00.0          begins a GPU; what follows is about it
//     handle 15               what nvmlDeviceGetHandleByIndex_v2 answers for it
//     name … | uuid … | device 233010de | sm 9 0 | numa 0
//     pcie 1 16 of 5 16       generation and width now, and at best
//     links 0-17 switch 0000:05:00.0 speed 26562 version 6      also: gpu, cpu, hidden
//     link 3 down
//     fabric 3 status 0 clique 5 health 2 cluster 00112233445566778899aabbccddeeff
//     mig 1 1 devices 7
//     c2c 10 speed 45000
//
// With TOPOCOLL_STAND_IN_OLD the library has only the calls of driver 450.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>
#include <topocoll/discover/detail/nvml_api.hpp>

namespace {

using namespace topocoll::detail;

struct link {
  bool there = false, active = false;
  std::string end, address;
  unsigned speed = 0, version = 0;
};
struct gpu {
  std::string address, name, uuid;
  int handle = nvml_success;
  std::uint32_t device = 0;
  int major = 0, minor = 0;
  unsigned pcie[4] = {};
  int numa = -1;
  std::vector<link> links;
  bool has_fabric = false;
  unsigned state = 0, clique = 0, health = 0;
  int status = 0;
  unsigned char cluster[16] = {};
  bool has_mig = false;
  unsigned mig = 0, pending = 0, instances = 0;
  unsigned c2c = 0, c2c_speed = 0;
};
struct machine {
  bool started = false;
  std::string driver;
  int init = nvml_success;
  std::vector<std::pair<std::string, int>> refused;
  std::vector<gpu> gpus;
};
machine& here() {
  static machine m;
  return m;
}

bool read(const char* path, machine& m) {
  std::ifstream file(path);
  if (!file) return false;
  std::string row;
  while (std::getline(file, row)) {
    std::istringstream words(row.substr(0, row.find('#')));
    std::string key, word;
    if (!(words >> key)) continue;
    if (key == "driver") {
      words >> m.driver;
    } else if (key == "init") {
      words >> m.init;
    } else if (key == "refuse") {
      int code = 0;
      words >> word >> code;
      m.refused.emplace_back(word, code);
    } else if (key == "gpu") {
      m.gpus.emplace_back();
      words >> m.gpus.back().address;
    } else {
      if (m.gpus.empty()) return false;
      gpu& g = m.gpus.back();
      if (key == "handle") {
        words >> g.handle;
      } else if (key == "name") {
        std::getline(words >> std::ws, g.name);
      } else if (key == "uuid") {
        words >> g.uuid;
      } else if (key == "device") {
        words >> std::hex >> g.device;
      } else if (key == "sm") {
        words >> g.major >> g.minor;
      } else if (key == "numa") {
        words >> g.numa;
      } else if (key == "pcie") {
        words >> g.pcie[0] >> g.pcie[1] >> word >> g.pcie[2] >> g.pcie[3];
      } else if (key == "links" || key == "link") {
        unsigned first = 0;
        unsigned last = 0;
        words >> word;
        const int read = std::sscanf(word.c_str(), "%u-%u", &first, &last);
        if (read < 1 || first > 63) return false;
        if (read == 1) last = first;
        link l;
        l.there = true;
        words >> l.end;
        l.active = l.end != "down";
        while (words >> word) {
          if (word == "speed")
            words >> l.speed;
          else if (word == "version")
            words >> l.version;
          else
            l.address = word;
        }
        if (g.links.size() <= last) g.links.resize(last + 1);
        for (unsigned n = first; n <= last && n < 64; ++n) g.links[n] = l;
      } else if (key == "fabric") {
        g.has_fabric = true;
        words >> g.state;
        while (words >> word) {
          if (word == "status") words >> g.status;
          if (word == "clique") words >> g.clique;
          if (word == "health") words >> g.health;
          if (word == "cluster" && words >> word && word.size() == 32)
            for (std::size_t i = 0; i < 16; ++i)
              g.cluster[i] = static_cast<unsigned char>(std::stoul(word.substr(2 * i, 2), nullptr, 16));
        }
      } else if (key == "mig") {
        g.has_mig = true;
        words >> g.mig >> g.pending >> word >> g.instances;
      } else if (key == "c2c") {
        words >> g.c2c >> word >> g.c2c_speed;
      } else {
        return false;  // a misspelt description must not pass for another machine
      }
    }
  }
  return true;
}

// What a call answers before it looks at its arguments.
int gate(const char* call) {
  if (!here().started) return 1;  // NVML_ERROR_UNINITIALIZED
  for (const auto& r : here().refused)
    if (r.first == call) return r.second;
  return nvml_success;
}
gpu* of(nvml_device device) {
  const auto number = reinterpret_cast<std::uintptr_t>(device);
  return number >= 1 && number <= here().gpus.size() ? &here().gpus[number - 1] : nullptr;
}
int put(const std::string& text, char* into, unsigned room) {
  if (text.empty()) return nvml_not_supported;
  if (text.size() >= room) return 7;  // NVML_ERROR_INSUFFICIENT_SIZE
  std::memcpy(into, text.c_str(), text.size() + 1);
  return nvml_success;
}
void fill(const std::string& address, std::uint32_t device, nvml_pci_info* pci) {
  std::memset(pci, 0, sizeof *pci);
  unsigned function = 0;
  std::sscanf(address.c_str(), "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &function);
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:%02X:%02X.%X", pci->domain, pci->bus & 0xffU,
                pci->device & 0x1fU, function & 7U);
  std::snprintf(pci->short_bus_id, sizeof pci->short_bus_id, "%04X:%02X:%02X.%X", pci->domain & 0xffffU,
                pci->bus & 0xffU, pci->device & 0x1fU, function & 7U);
  pci->device_id = device;
}
link* of(gpu* g, unsigned n) { return n < g->links.size() && g->links[n].there ? &g->links[n] : nullptr; }

}  // namespace

#define TOPOCOLL_STAND_IN extern "C" __attribute__((visibility("default"))) int
#define TOPOCOLL_ENTER(call)                                \
  if (const int code = gate(#call); code != 0) return code; \
  gpu* g = of(device);                                      \
  if (g == nullptr) return nvml_invalid_argument

TOPOCOLL_STAND_IN nvmlInit_v2() {
  machine m;
  const char* path = std::getenv("TOPOCOLL_STAND_IN_MACHINE");
  if (path == nullptr || !read(path, m)) return nvml_unknown_error;
  m.started = m.init == nvml_success;
  here() = m;
  return m.init;
}
TOPOCOLL_STAND_IN nvmlShutdown() {
  if (!here().started) return 1;
  here() = {};
  return nvml_success;
}
extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(int code) {
  switch (code) {
    case nvml_driver_not_loaded: return "Driver Not Loaded";
    case nvml_no_permission: return "Insufficient Permissions";
    case nvml_version_mismatch: return "Driver/library version mismatch";
    case nvml_gpu_is_lost: return "GPU is lost";
    default: return "Unknown Error";
  }
}
TOPOCOLL_STAND_IN nvmlSystemGetDriverVersion(char* text, unsigned room) {
  const int code = gate("nvmlSystemGetDriverVersion");
  return code != 0 ? code : put(here().driver, text, room);
}
TOPOCOLL_STAND_IN nvmlDeviceGetCount_v2(unsigned* count) {
  const int code = gate("nvmlDeviceGetCount_v2");
  *count = static_cast<unsigned>(here().gpus.size());
  return code;
}
TOPOCOLL_STAND_IN nvmlDeviceGetHandleByIndex_v2(unsigned index, nvml_device* device) {
  if (const int code = gate("nvmlDeviceGetHandleByIndex_v2"); code != 0) return code;
  if (index >= here().gpus.size()) return nvml_invalid_argument;
  *device = reinterpret_cast<nvml_device>(static_cast<std::uintptr_t>(index) + 1);
  return here().gpus[index].handle;
}
TOPOCOLL_STAND_IN nvmlDeviceGetPciInfo_v3(nvml_device device, nvml_pci_info* pci) {
  TOPOCOLL_ENTER(nvmlDeviceGetPciInfo_v3);
  fill(g->address, g->device, pci);
  return nvml_success;
}
TOPOCOLL_STAND_IN nvmlDeviceGetUUID(nvml_device device, char* text, unsigned room) {
  TOPOCOLL_ENTER(nvmlDeviceGetUUID);
  return put(g->uuid, text, room);
}
TOPOCOLL_STAND_IN nvmlDeviceGetName(nvml_device device, char* text, unsigned room) {
  TOPOCOLL_ENTER(nvmlDeviceGetName);
  return put(g->name, text, room);
}
TOPOCOLL_STAND_IN nvmlDeviceGetCudaComputeCapability(nvml_device device, int* major, int* minor) {
  TOPOCOLL_ENTER(nvmlDeviceGetCudaComputeCapability);
  *major = g->major;
  *minor = g->minor;
  return nvml_success;
}
#define TOPOCOLL_PCIE(call, which)                                  \
  TOPOCOLL_STAND_IN call(nvml_device device, unsigned* value) {     \
    TOPOCOLL_ENTER(call);                                           \
    *value = g->pcie[which];                                        \
    return g->pcie[which] == 0 ? nvml_not_supported : nvml_success; \
  }
TOPOCOLL_PCIE(nvmlDeviceGetCurrPcieLinkGeneration, 0)
TOPOCOLL_PCIE(nvmlDeviceGetCurrPcieLinkWidth, 1)
TOPOCOLL_PCIE(nvmlDeviceGetMaxPcieLinkGeneration, 2)
TOPOCOLL_PCIE(nvmlDeviceGetMaxPcieLinkWidth, 3)
TOPOCOLL_STAND_IN nvmlDeviceGetNvLinkState(nvml_device device, unsigned n, unsigned* state) {
  TOPOCOLL_ENTER(nvmlDeviceGetNvLinkState);
  if (g->links.empty()) return nvml_not_supported;
  if (n >= g->links.size()) return nvml_invalid_argument;
  if (of(g, n) == nullptr) return nvml_not_supported;
  *state = g->links[n].active ? 1 : 0;
  return nvml_success;
}
TOPOCOLL_STAND_IN nvmlDeviceGetNvLinkVersion(nvml_device device, unsigned n, unsigned* version) {
  TOPOCOLL_ENTER(nvmlDeviceGetNvLinkVersion);
  const link* l = of(g, n);
  if (l == nullptr || l->version == 0) return nvml_not_supported;
  *version = l->version;
  return nvml_success;
}
TOPOCOLL_STAND_IN nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned n, nvml_pci_info* pci) {
  TOPOCOLL_ENTER(nvmlDeviceGetNvLinkRemotePciInfo_v2);
  const link* l = of(g, n);
  if (l == nullptr || !l->active || l->address.empty()) return nvml_not_supported;
  fill(l->address, 0, pci);
  return nvml_success;
}
TOPOCOLL_STAND_IN nvmlDeviceGetFieldValues(nvml_device device, int count, nvml_field* fields) {
  TOPOCOLL_ENTER(nvmlDeviceGetFieldValues);
  for (int i = 0; i < count; ++i) {
    nvml_field& f = fields[i];
    f.outcome = nvml_success;
    f.type = nvml_type_unsigned_int;
    f.value.large = 0;
    const link* l = of(g, f.scope);
    if (f.id == nvml_field_nvlink_count && !g->links.empty()) {
      f.value.u32 = static_cast<std::uint32_t>(g->links.size());
    } else if (f.id == nvml_field_nvlink_common_speed && !g->links.empty()) {
      for (const link& any : g->links)
        if (any.active) f.value.u32 = any.speed;
#if !defined(TOPOCOLL_STAND_IN_OLD)
    } else if (f.id == nvml_field_nvlink_speed && l != nullptr && l->active) {
      f.value.u32 = l->speed;
    } else if (f.id == nvml_field_c2c_count) {
      f.type = nvml_type_unsigned_long_long;
      f.value.large = g->c2c;
    } else if (f.id == nvml_field_c2c_active && f.scope < g->c2c) {
      f.value.u32 = 1;
    } else if (f.id == nvml_field_c2c_speed && f.scope < g->c2c) {
      f.type = nvml_type_unsigned_long;
      f.value.large = g->c2c_speed;
#endif
    } else {
      f.outcome = nvml_not_supported;
    }
    static_cast<void>(l);
  }
  return nvml_success;
}
TOPOCOLL_STAND_IN nvmlDeviceGetMigMode(nvml_device device, unsigned* now, unsigned* pending) {
  TOPOCOLL_ENTER(nvmlDeviceGetMigMode);
  *now = g->mig;
  *pending = g->pending;
  return g->has_mig ? nvml_success : nvml_not_supported;
}
TOPOCOLL_STAND_IN nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned* most) {
  TOPOCOLL_ENTER(nvmlDeviceGetMaxMigDeviceCount);
  *most = 7;
  return nvml_success;
}
TOPOCOLL_STAND_IN nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned n, nvml_device* instance) {
  TOPOCOLL_ENTER(nvmlDeviceGetMigDeviceHandleByIndex);
  *instance = device;
  return n < g->instances ? nvml_success : nvml_not_found;
}
#if !defined(TOPOCOLL_STAND_IN_OLD)
TOPOCOLL_STAND_IN nvmlDeviceGetMemoryAffinity(nvml_device device, unsigned size, unsigned long* nodes, unsigned) {
  TOPOCOLL_ENTER(nvmlDeviceGetMemoryAffinity);
  if (g->numa < 0) return nvml_not_supported;
  for (unsigned i = 0; i < size; ++i) nodes[i] = 0;
  nodes[static_cast<unsigned>(g->numa) / 64] = 1UL << (static_cast<unsigned>(g->numa) % 64);
  return nvml_success;
}
TOPOCOLL_STAND_IN nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned n, unsigned* type) {
  TOPOCOLL_ENTER(nvmlDeviceGetNvLinkRemoteDeviceType);
  const link* l = of(g, n);
  if (l == nullptr || !l->active) return nvml_not_supported;
  *type = l->end == "switch" ? nvml_end_switch
          : l->end == "gpu"  ? nvml_end_gpu
          : l->end == "cpu"  ? nvml_end_cpu
                             : nvml_end_unknown;
  return nvml_success;
}
TOPOCOLL_STAND_IN nvmlDeviceGetGpuFabricInfo(nvml_device device, nvml_fabric_info* f) {
  TOPOCOLL_ENTER(nvmlDeviceGetGpuFabricInfo);
  if (!g->has_fabric) return nvml_not_supported;
  std::memcpy(f->cluster, g->cluster, 16);
  f->status = g->status;
  f->clique = g->clique;
  f->state = static_cast<unsigned char>(g->state);
  return nvml_success;
}
TOPOCOLL_STAND_IN nvmlDeviceGetGpuFabricInfoV(nvml_device device, nvml_fabric_info_v2* f) {
  TOPOCOLL_ENTER(nvmlDeviceGetGpuFabricInfoV);
  if (f->version != 0x02000024U) return nvml_argument_version_mismatch;
  if (!g->has_fabric) return nvml_not_supported;
  std::memcpy(f->cluster, g->cluster, 16);
  f->status = g->status;
  f->clique = g->clique;
  f->state = static_cast<unsigned char>(g->state);
  f->health = g->health;
  return nvml_success;
}
TOPOCOLL_STAND_IN nvmlDeviceGetC2cModeInfoV(nvml_device device, nvml_c2c_mode* mode) {
  TOPOCOLL_ENTER(nvmlDeviceGetC2cModeInfoV);
  mode->enabled = g->c2c > 0 ? 1 : 0;
  return g->c2c > 0 ? nvml_success : nvml_not_supported;
}
#endif
