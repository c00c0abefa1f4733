// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string_view>
#include <topocoll/topo/address.hpp>
#include <gtest/gtest.h>

using topocoll::topo::pci_address;

TEST(pci_address, is_read_with_and_without_domain_in_either_case) {
  EXPECT_EQ(pci_address::parse("0000:1b:00.0"), (pci_address{0, 0x1b, 0, 0}));
  EXPECT_EQ(pci_address::parse("1B:1f.7"), (pci_address{0, 0x1b, 0x1f, 7}));
  EXPECT_EQ(pci_address::parse("00000000:AF:00.1"), (pci_address{0, 0xaf, 0, 1}));
  EXPECT_EQ(pci_address::parse("ffffffff:ff:1f.7"), (pci_address{0xffffffff, 0xff, 0x1f, 7}));
  EXPECT_EQ(pci_address::parse("1:2:3.4"), (pci_address{1, 2, 3, 4}));
}

TEST(pci_address, refuses_everything_else) {
  for (const std::string_view text :
       {"", "1b", "1b:00", "1b:00.", ":00.0", "0000:1b:00.8", "0000:1b:20.0", "000000000:1b:00.0", "0000:1bb:00.0",
        "0000:1b:000.0", "0000:1b:00.00.0", "0000:1b.00.0", "0000:1b:00:0", "0000:1b:0g.0", " 0000:1b:00.0",
        "0000:1b:00.0 ", "0x1b:00.0", "0:0:0:0.0"})
    EXPECT_FALSE(pci_address::parse(text)) << text;
}

TEST(pci_address, is_written_as_the_kernel_does) {
  EXPECT_EQ(to_string(pci_address{0, 0x1b, 0, 0}), "0000:1b:00.0");
  EXPECT_EQ(to_string(pci_address{0x10000, 0xaf, 0x1f, 7}), "10000:af:1f.7");
  EXPECT_EQ(to_string(pci_address{0xffffffff, 0xff, 0, 0}), "ffffffff:ff:00.0");
}

TEST(pci_address, reads_back_what_it_writes) {
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const std::uint32_t mixed = i * 2654435761U;
    const pci_address a{mixed >> (i % 32), static_cast<std::uint8_t>(mixed),
                        static_cast<std::uint8_t>(mixed >> 8U & 31U), static_cast<std::uint8_t>(mixed >> 16U & 7U)};
    EXPECT_EQ(pci_address::parse(to_string(a)), a) << to_string(a);
  }
}
