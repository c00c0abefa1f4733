// SPDX-License-Identifier: Apache-2.0
#pragma once
// All of read/ that needs no optional library: parsers of other people's texts.
// Written by tests/lint/umbrellas.py.
#include <topocoll/read/acs.hpp>
#include <topocoll/read/cluster_file.hpp>
#include <topocoll/read/host_map.hpp>
#include <topocoll/read/hostfile.hpp>
#include <topocoll/read/hostlist.hpp>
#include <topocoll/read/hwloc_topology.hpp>
#include <topocoll/read/ib_codes.hpp>
#include <topocoll/read/ib_fabric.hpp>
#include <topocoll/read/ib_speed.hpp>
#include <topocoll/read/iblinkinfo.hpp>
#include <topocoll/read/ibnetdiscover.hpp>
#include <topocoll/read/ibstat.hpp>
#include <topocoll/read/kfd.hpp>
#include <topocoll/read/lldp.hpp>
#include <topocoll/read/lspci.hpp>
#include <topocoll/read/nccl_tests.hpp>
#include <topocoll/read/nccl_topology.hpp>
#include <topocoll/read/number.hpp>
#include <topocoll/read/nvidia_smi_nvlink.hpp>
#include <topocoll/read/nvidia_smi_topo.hpp>
#include <topocoll/read/pcie.hpp>
#include <topocoll/read/rocm_smi_topo.hpp>
#include <topocoll/read/slurm_topology.hpp>
#include <topocoll/read/slurm_yaml.hpp>
#include <topocoll/read/sysfs.hpp>
#include <topocoll/read/sysfs_text.hpp>
#include <topocoll/read/topograph_model.hpp>
