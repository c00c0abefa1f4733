// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <topocoll/read/pcie.hpp>
#include <gtest/gtest.h>

namespace rd = topocoll::read;

TEST(pcie_generation, is_read_from_the_number_whatever_follows_it) {
  const double rates[] = {2.5, 5, 8, 16, 32, 64, 128};
  for (unsigned g = 1; g <= 7; ++g) {
    const std::string plain = g == 1 ? "2.5" : std::to_string(static_cast<int>(rates[g - 1]));
    for (const std::string& text :
         {plain + " GT/s", plain + " GT/s PCIe", plain + " GT/s PCIe/s", plain, plain + "GT/s"})
      EXPECT_EQ(rd::pcie_generation(text), g) << text;
    if (g > 1) {
      EXPECT_EQ(rd::pcie_generation(plain + ".0 GT/s PCIe"), g);
    }
  }
}

TEST(pcie_generation, is_unknown_for_texts_without_a_pcie_rate) {
  for (const char* text : {"", "Unknown", "Unknown speed", "0", "12 GT/s", "2.4 GT/s", "-8 GT/s", "GT/s"})
    EXPECT_FALSE(rd::pcie_generation(text)) << text;
}

TEST(pcie_width, knows_the_widths_that_pcie_has) {
  for (const unsigned w : {1U, 2U, 4U, 8U, 12U, 16U, 32U}) EXPECT_EQ(rd::pcie_width(std::to_string(w)), w);
  for (const char* text : {"0", "", "3", "63", "255", "64", "x16", "-1", "16 lanes"})
    EXPECT_FALSE(rd::pcie_width(text)) << text;
}

TEST(pci_class_code, is_the_same_in_all_spellings) {
  EXPECT_EQ(rd::pci_class_code("0x030200"), 0x030200U);
  EXPECT_EQ(rd::pci_class_code("030200\n"), 0x030200U);
  EXPECT_EQ(rd::pci_class_code("0302"), 0x030200U);
  EXPECT_EQ(rd::pci_class_code("0X12FF00"), 0x12ff00U);
  for (const char* text : {"", "0x", "shiny", "0x3", "0x0302000", "0x03 200"})
    EXPECT_FALSE(rd::pci_class_code(text)) << text;
}
