// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: the corpus as it is, then mutations of it, the same ones every time.
//   TOPOCOLL_FUZZ_TARGET=<name> fuzz_targets <folder> [mutations]
// The last line before a crash says where it was; the same command repeats it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t most_bytes = 1U << 16U;  // of one mutated input; larger ones only cost time

// splitmix64 (Steele, Lea, Flood 2014): small, and the same on every platform.
class generator {
 public:
  explicit generator(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  // 0 to n-1; 0 for n = 0.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(next() % n); }

 private:
  std::uint64_t state_;
};

struct input {
  std::string name;
  std::string text;
};

// What trips parsers: ends of number ranges, signs, brackets that do not close, odd bytes.
constexpr std::string_view tokens[] = {"0",
                                       "-1",
                                       "1e999",
                                       "18446744073709551616",
                                       "4294967295",
                                       "0x",
                                       "nan",
                                       "\x01",
                                       "\xff\xfe",
                                       "\"",
                                       "<",
                                       ">",
                                       "{",
                                       "[",
                                       "<!--",
                                       "&#0;",
                                       "\r\n",
                                       "\t",
                                       ",",
                                       "::",
                                       "/",
                                       "%s",
                                       "\xf0\x9f\x92\xa9"};

std::string mutated(const std::string& seed, const std::vector<input>& all, generator& random) {
  std::string text = seed.substr(0, most_bytes);
  for (std::size_t left = 1 + random.below(6); left > 0; --left) {
    const std::size_t at = random.below(text.size() + 1);
    const std::size_t length = std::min(random.below(64) + 1, text.size() - at);
    switch (random.below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(random.below(256));
        break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(random.below(text.size() + 1), length)); break;
      case 3: text.insert(at, tokens[random.below(std::size(tokens))]); break;
      case 4:
        if (random.below(4) == 0) text.resize(at);
        break;
      case 5: text.replace(at, length, tokens[random.below(std::size(tokens))]); break;
      default: {
        const std::string& other = all[random.below(all.size())].text;
        const std::size_t from = random.below(other.size() + 1);
        text.insert(at, other.substr(from, random.below(512)));
      }
    }
  }
  if (text.size() > most_bytes) text.resize(most_bytes);
  return text;
}

// An exact copy on the heap, so that the address sanitizer sees a read past the end.
void feed(const std::string& text) {
  std::vector<std::uint8_t> copy(text.begin(), text.end());
  copy.shrink_to_fit();
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<input> corpus;
  if (count > 1 && std::filesystem::is_directory(arguments[1])) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[1])) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      corpus.push_back({entry.path().filename().string(), std::string(std::istreambuf_iterator<char>(file), {})});
    }
  }
  std::sort(corpus.begin(), corpus.end(), [](const input& a, const input& b) { return a.name < b.name; });
  if (corpus.empty()) corpus.push_back({"(empty)", ""});
  const std::size_t mutations = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 4000;

  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const input& one : corpus) {
    std::printf("input: %s\n", one.name.c_str());
    feed(one.text);
  }
  generator random(20240229);
  for (std::size_t i = 0; i < mutations; ++i) {
    const input& seed = corpus[i % corpus.size()];
    if (i % 500 == 0) std::printf("mutations from %zu\n", i);
    feed(mutated(seed.text, corpus, random));
  }
  std::printf("%zu inputs and %zu mutations: no crash\n", corpus.size(), mutations);
  return 0;
}
