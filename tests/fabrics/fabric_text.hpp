// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes fabrics of leaves and spines in the dialect of ibnetdiscover, as large as a test or a benchmark wants them.
#include <cstddef>
#include <cstdint>
#include <string>

namespace fabrics {

struct shape {
  std::uint32_t leaves = 2;
  std::uint32_t hosts = 2;  ///< on each leaf, with one adapter of one port each
  std::uint32_t spines = 2;
  std::uint32_t cables = 1;  ///< between each leaf and each spine
  const char* rate = "4xNDR";
  bool reducing = false;  ///< an aggregation node on the last port of every switch
};

/// Ports with a cable, both ends counted.
constexpr std::size_t ports(const shape& s) {
  const std::size_t hosts = std::size_t{s.leaves} * s.hosts;
  const std::size_t up = std::size_t{s.leaves} * s.spines * s.cables;
  return 2 * (hosts + up) + (s.reducing ? 2 * (std::size_t{s.leaves} + s.spines) : 0);
}

inline std::string digits(std::uint64_t value, bool padded) {
  std::string text;
  for (; value != 0; value >>= 4U) text.insert(text.begin(), "0123456789abcdef"[value & 15U]);
  if (padded && text.size() < 16) text.insert(0, 16 - text.size(), '0');
  return text.empty() ? "0" : text;
}

/// The listing. Leaves are "leaf<l>", spines "spine<s>", hosts "node<l>-<h> mlx5_0"; every cable is told from both ends.
inline std::string ibnetdiscover_text(const shape& s) {
  const auto leaf = [](std::uint64_t l) { return 0x0a10000000000000U + l * 0x100; };
  const auto spine = [](std::uint64_t i) { return 0x0a20000000000000U + i * 0x100; };
  const auto host = [&](std::uint64_t l, std::uint64_t h) { return 0x0a30000000000000U + (l * s.hosts + h) * 0x100; };
  const std::uint32_t leaf_ports = s.hosts + s.spines * s.cables + (s.reducing ? 1 : 0);
  const std::uint32_t spine_ports = s.leaves * s.cables + (s.reducing ? 1 : 0);
  const auto port = [](std::uint32_t p) { return "[" + std::to_string(p) + "]"; };
  const auto lid = [](std::uint64_t guid) { return std::to_string(guid / 0x100 % 0xbffe + 1); };
  std::string t = "#\n# Topology file: generated on Thu Jan  1 00:00:00 1970\n#\n# Initiated from node 0 port 0\n";
  const auto reducer = [&](std::uint64_t guid, std::uint32_t last, const std::string& name) {
    t += "\nvendid=0x2c9\nsysimgguid=0x" + digits(guid, false) + "\ncaguid=0x" + digits(guid + 8, false) +
         "\nCa\t1 \"H-" + digits(guid + 8, true) + "\"\t\t# \"Mellanox Technologies Aggregation Node\"\n[1](" +
         digits(guid + 8, false) + ")\t\"S-" + digits(guid, true) + "\"" + port(last) + "\t\t# lid " +
         lid(guid + 0x80) + " lmc 0 \"" + name + "\" lid " + lid(guid) + " " + s.rate + "\n";
  };
  const auto begin = [&](std::uint64_t guid, std::uint32_t count, const std::string& name) {
    t += "\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x" + digits(guid, false) + "\nswitchguid=0x" + digits(guid, false) +
         "(" + digits(guid, false) + ")\nSwitch\t" + std::to_string(count) + " \"S-" + digits(guid, true) +
         "\"\t\t# \"" + name + "\" enhanced port 0 lid " + lid(guid) + " lmc 0\n";
  };
  const auto reducer_port = [&](std::uint64_t guid, std::uint32_t last) {
    t += port(last) + "\t\"H-" + digits(guid + 8, true) + "\"[1](" + digits(guid + 8, false) +
         ") \t\t# \"Mellanox Technologies Aggregation Node\" lid " + lid(guid + 0x80) + " " + s.rate + "\n";
  };
  for (std::uint32_t l = 0; l < s.leaves; ++l) {
    const std::string name = "leaf" + std::to_string(l);
    begin(leaf(l), leaf_ports, name);
    for (std::uint32_t h = 0; h < s.hosts; ++h)
      t += port(h + 1) + "\t\"H-" + digits(host(l, h), true) + "\"[1](" + digits(host(l, h) + 1, false) +
           ") \t\t# \"node" + std::to_string(l) + "-" + std::to_string(h) + " mlx5_0\" lid " + lid(host(l, h)) + " " +
           s.rate + "\n";
    for (std::uint32_t i = 0; i < s.spines; ++i)
      for (std::uint32_t c = 0; c < s.cables; ++c)
        t += port(s.hosts + i * s.cables + c + 1) + "\t\"S-" + digits(spine(i), true) + "\"" +
             port(l * s.cables + c + 1) + "\t\t# \"spine" + std::to_string(i) + "\" lid " + lid(spine(i)) + " " +
             s.rate + "\n";
    if (s.reducing) reducer_port(leaf(l), leaf_ports);
  }
  for (std::uint32_t i = 0; i < s.spines; ++i) {
    begin(spine(i), spine_ports, "spine" + std::to_string(i));
    for (std::uint32_t l = 0; l < s.leaves; ++l)
      for (std::uint32_t c = 0; c < s.cables; ++c)
        t += port(l * s.cables + c + 1) + "\t\"S-" + digits(leaf(l), true) + "\"" +
             port(s.hosts + i * s.cables + c + 1) + "\t\t# \"leaf" + std::to_string(l) + "\" lid " + lid(leaf(l)) +
             " " + s.rate + "\n";
    if (s.reducing) reducer_port(spine(i), spine_ports);
  }
  for (std::uint32_t l = 0; l < s.leaves; ++l) {
    for (std::uint32_t h = 0; h < s.hosts; ++h)
      t += "\nvendid=0x2c9\ndevid=0x1021\nsysimgguid=0x" + digits(host(l, h), false) + "\ncaguid=0x" +
           digits(host(l, h), false) + "\nCa\t1 \"H-" + digits(host(l, h), true) + "\"\t\t# \"node" +
           std::to_string(l) + "-" + std::to_string(h) + " mlx5_0\"\n[1](" + digits(host(l, h) + 1, false) +
           ") \t\"S-" + digits(leaf(l), true) + "\"" + port(h + 1) + "\t\t# lid " + lid(host(l, h)) + " lmc 0 \"leaf" +
           std::to_string(l) + "\" lid " + lid(leaf(l)) + " " + s.rate + "\n";
    if (s.reducing) reducer(leaf(l), leaf_ports, "leaf" + std::to_string(l));
  }
  for (std::uint32_t i = 0; s.reducing && i < s.spines; ++i)
    reducer(spine(i), spine_ports, "spine" + std::to_string(i));
  return t;
}

/// The same fabric as a net file of ibsim: "leaf0", "spine1", "node0-1", no rates, no GUIDs.
inline std::string ibsim_text(const shape& s) {
  std::string t = "# leaves and spines\n";
  const auto row = [&](std::uint32_t p, const std::string& peer, std::uint32_t q) {
    t += "[" + std::to_string(p) + "] \"" + peer + "\"[" + std::to_string(q) + "]\n";
  };
  const auto node = [](std::uint32_t l, std::uint32_t h) {
    return "node" + std::to_string(l) + "-" + std::to_string(h);
  };
  for (std::uint32_t l = 0; l < s.leaves; ++l) {
    t += "\nSwitch " + std::to_string(s.hosts + s.spines * s.cables) + " \"leaf" + std::to_string(l) + "\"\n";
    for (std::uint32_t h = 0; h < s.hosts; ++h) row(h + 1, node(l, h), 1);
    for (std::uint32_t i = 0; i < s.spines; ++i)
      for (std::uint32_t c = 0; c < s.cables; ++c)
        row(s.hosts + i * s.cables + c + 1, "spine" + std::to_string(i), l * s.cables + c + 1);
  }
  for (std::uint32_t i = 0; i < s.spines; ++i) {
    t += "\nSwitch " + std::to_string(s.leaves * s.cables) + " \"spine" + std::to_string(i) + "\"\n";
    for (std::uint32_t l = 0; l < s.leaves; ++l)
      for (std::uint32_t c = 0; c < s.cables; ++c)
        row(l * s.cables + c + 1, "leaf" + std::to_string(l), s.hosts + i * s.cables + c + 1);
  }
  for (std::uint32_t l = 0; l < s.leaves; ++l)
    for (std::uint32_t h = 0; h < s.hosts; ++h) {
      t += "\nHca 1 \"" + node(l, h) + "\"\n";
      row(1, "leaf" + std::to_string(l), h + 1);
    }
  return t;
}

}  // namespace fabrics
