// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/mscclpp_json.hpp writes and reads the text.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include <topocoll/core/result.hpp>
#include <topocoll/core/sequence.hpp>
#include <topocoll/integrate/mscclpp_json.hpp>

namespace topocoll { inline namespace v0 {
namespace detail {

[[nodiscard]] constexpr const char* word_of(mscclpp_channel c) {
  return c == mscclpp_channel::port ? "port" : "memory";
}

template <class = void>
[[nodiscard]] io::json json_of(const mscclpp_place& p) {
  io::json o;
  if (p.buffer == 'r')
    o["buffer_id"] = p.remote;
  else
    o["type"] = std::string(1, p.buffer);
  o["index"] = p.index;
  o["size"] = p.size;
  return o;
}
template <class = void>
[[nodiscard]] io::json json_of(const mscclpp_operation& o) {
  io::json j{{"name", std::string(to_string(o.name))}};
  const auto places = [](const std::vector<mscclpp_place>& list) {
    io::json all = io::json::array();
    for (const mscclpp_place& p : list) all.push_back(json_of(p));
    return all;
  };
  if (!o.src.empty()) j["src_buff"] = places(o.src);
  if (!o.dst.empty()) j["dst_buff"] = places(o.dst);
  if (!o.channels.empty()) j["channel_ids"] = o.channels;
  if (o.type != mscclpp_channel::none) j["channel_type"] = word_of(o.type);
  if (!o.semaphores.empty()) j["semaphore_ids"] = o.semaphores;
  if (o.name == mscclpp_op::re) j["reduce_op"] = "sum";
  // The executor takes the number of channels to flush from the number of targets (execution_kernel.hpp, handleFlush).
  if (o.name == mscclpp_op::flush) {
    j["dst_buff"] = io::json::array();
    for (std::size_t i = 0; i < o.channels.size(); ++i)
      j["dst_buff"].push_back({{"type", "o"}, {"index", 0}, {"size", 0}});
  }
  return j;
}

/// Reads fields; the first failure is kept.
class mscclpp_reader {
 public:
  template <class T>
  [[nodiscard]] T field(const io::json& object, std::string_view name, const io::json_place& at) {
    auto value = io::read_field<T>(object, name, at);
    if (value) return *std::move(value);
    keep(value.error());
    return T{};
  }
  [[nodiscard]] std::vector<std::uint32_t> numbers(const io::json& object, std::string_view name,
                                                   const io::json_place& at) {
    std::vector<std::uint32_t> all;
    each(object, name, at, [&](const io::json& value, const io::json_place& here) {
      const auto n = io::read_value<std::uint32_t>(value, here);
      if (n)
        all.push_back(*n);
      else
        keep(n.error());
    });
    return all;
  }
  /// Elements of an array; a missing one is empty.
  template <class Visit>
  void each(const io::json& object, std::string_view name, const io::json_place& at, const Visit& visit) {
    if (io::find_field(object, name) == nullptr) return;
    const auto array = io::read_array(object, name, at);
    if (!array) return keep(array.error());
    const io::json_place list = at / name;
    std::size_t i = 0;
    for (const io::json& value : **array) visit(value, list / i++);
  }
  [[nodiscard]] mscclpp_channel channel(const io::json& value, const io::json_place& at) {
    const auto word = io::read_value<std::string>(value, at);
    if (!word)
      keep(word.error());
    else if (*word == "memory")
      return mscclpp_channel::memory;
    else if (*word == "port")
      return mscclpp_channel::port;
    else
      keep(fail(errc::unsupported, at.text() + " is '" + word->substr(0, 40) +
                                       "', and plans with other channels than memory and port are not read"));
    return mscclpp_channel::none;
  }
  [[nodiscard]] char buffer(const io::json& object, const io::json_place& at) {
    const auto word = field<std::string>(object, "type", at);
    if (word == "i" || word == "o" || word == "s") return word[0];
    keep(fail(errc::malformed_input, at.text() + " has the buffer '" + word.substr(0, 40) + "' instead of i, o or s"));
    return 'i';
  }
  void keep(const failure& f) {
    if (!wrong_) wrong_ = f;
  }
  [[nodiscard]] const std::optional<failure>& wrong() const { return wrong_; }

 private:
  std::optional<failure> wrong_;
};

/// Fields of an operation.
[[nodiscard]] inline std::vector<std::string_view> mscclpp_fields() {
  return {"name", "src_buff", "dst_buff", "channel_ids", "channel_type", "semaphore_ids", "reduce_op"};
}

template <class = void>
[[nodiscard]] mscclpp_operation read_operation(mscclpp_reader& read, const io::json& value, const io::json_place& at) {
  mscclpp_operation o;
  const auto name = read.field<std::string>(value, "name", at);
  bool known = false;
  for (int k = 0; k <= static_cast<int>(mscclpp_op::sem_release); ++k)
    if (to_string(static_cast<mscclpp_op>(k)) == name) {
      o.name = static_cast<mscclpp_op>(k);
      known = true;
    }
  if (!known)
    read.keep(fail(errc::unsupported, at.text() + " is the operation '" + name.substr(0, 40) +
                                          "', which is not among those that are proved"));
  const io::json_place type = at / "channel_type";
  if (const io::json* word = io::find_field(value, "channel_type"); word != nullptr) o.type = read.channel(*word, type);
  // A field that is not known may change what the operation does: so thread blocks that share one ("tbg_info").
  if (value.is_object())
    for (const auto& field : value.items())
      if (!seq::contains(mscclpp_fields(), std::string_view(field.key())))
        read.keep(fail(errc::unsupported, at.text() + " has the field '" + field.key().substr(0, 40) +
                                              "', which is not among those that are proved"));
  if (io::find_field(value, "reduce_op") != nullptr)
    if (const auto how = read.field<std::string>(value, "reduce_op", at); how != "sum")
      read.keep(fail(errc::unsupported, at.text() + " reduces by '" + how.substr(0, 40) + "'; only sums are proved"));
  o.channels = read.numbers(value, "channel_ids", at);
  o.semaphores = read.numbers(value, "semaphore_ids", at);
  const auto places = [&](const char* field, std::vector<mscclpp_place>& to) {
    read.each(value, field, at, [&](const io::json& p, const io::json_place& here) {
      mscclpp_place place;
      if (io::find_field(p, "buffer_id") != nullptr) {
        place.buffer = 'r';
        place.remote = read.field<std::uint32_t>(p, "buffer_id", here);
      } else {
        place.buffer = read.buffer(p, here);
      }
      place.index = read.field<std::uint32_t>(p, "index", here);
      place.size = read.field<std::uint32_t>(p, "size", here);
      to.push_back(place);
    });
  };
  places("src_buff", o.src);
  if (o.name != mscclpp_op::flush) places("dst_buff", o.dst);
  return o;
}

}  // namespace detail

template <class>
std::string to_mscclpp_json(const mscclpp_plan& plan) {
  // An operation a line: a plan has thousands of them.
  const auto line = [](const io::json& value) {
    return value.dump(-1, ' ', false, io::json::error_handler_t::replace);
  };
  const auto listed = [](std::string& text, const std::string& indent, std::size_t i, const std::string& element) {
    text += (i == 0 ? "\n" : ",\n") + indent + element;
  };
  std::string text = "{\n  \"name\": " + line(plan.name) +
                     ",\n  \"collective\": " + line(std::string(detail::mscclpp_word(plan.collective))) +
                     ",\n  \"protocol\": \"Simple\",\n  \"inplace\": " + line(plan.in_place) +
                     ",\n  \"reuse_resources\": false,\n  \"gpus\": [";
  for (std::size_t g = 0; g < plan.gpus.size(); ++g) {
    const mscclpp_gpu& gpu = plan.gpus[g];
    listed(text, "    ", g,
           "{\"id\": " + std::to_string(g) + ", \"input_chunks\": " + std::to_string(gpu.input) +
               ", \"output_chunks\": " + std::to_string(gpu.output) +
               ", \"scratch_chunks\": " + std::to_string(gpu.scratch) + ",\n     \"threadblocks\": [");
    for (std::size_t b = 0; b < gpu.blocks.size(); ++b) {
      const mscclpp_block& block = gpu.blocks[b];
      listed(text, "       ", b, "{\"id\": " + std::to_string(b) + ", \"ops\": [");
      for (std::size_t i = 0; i < block.operations.size(); ++i)
        listed(text, "         ", i, line(detail::json_of(block.operations[i])));
      io::json channels = io::json::array(), buffers = io::json::array();
      for (const bool port : {false, true}) {
        const char* kind = port ? "port" : "memory";
        const auto& mine = port ? block.port_channels : block.memory_channels;
        const auto& remotes = port ? block.port_buffers : block.memory_buffers;
        if (!mine.empty()) channels.push_back({{"channel_type", kind}, {"channel_ids", mine}});
        if (!remotes.empty()) buffers.push_back({{"access_channel_type", kind}, {"remote_buffer_ids", remotes}});
      }
      text += "],\n        \"channels\": " + line(channels) + ", \"remote_buffer_refs\": " + line(buffers) + "}";
    }
    io::json channels = io::json::array(), remotes = io::json::array(), semaphores = io::json::array();
    if (!gpu.memory_peers.empty()) channels.push_back({{"channel_type", "memory"}, {"connected_to", gpu.memory_peers}});
    if (!gpu.port_peers.empty()) channels.push_back({{"channel_type", "port"}, {"connected_to", gpu.port_peers}});
    for (const mscclpp_remote& r : gpu.remotes) {
      io::json types = io::json::array();
      if (r.by_memory) types.push_back("memory");
      if (r.by_port) types.push_back("port");
      remotes.push_back({{"rank", r.rank}, {"type", std::string(1, r.buffer)}, {"access_channel_types", types}});
    }
    for (std::uint32_t s = 0; s < gpu.semaphores; ++s) semaphores.push_back({{"init_value", 0}});
    text += "],\n     \"channels\": " + line(channels) + ",\n     \"remote_buffers\": " + line(remotes) +
            ",\n     \"semaphores\": " + line(semaphores) + "}";
  }
  text +=
      "],\n  \"num_threads_per_block\": 1024,\n  \"use_double_scratch_buffer\": false,\n  \"buffer_alignment\": 16,\n"
      "  \"min_message_size\": " +
      std::to_string(plan.min_bytes);
  if (plan.max_bytes != 0) text += ",\n  \"max_message_size\": " + std::to_string(plan.max_bytes);
  return text + "\n}\n";
}

template <class>
result<mscclpp_plan> read_mscclpp_json(std::string_view text, std::string_view file) {
  const auto document = io::parse_json(text, file);
  if (!document) return document.error();
  const io::json_place top(file);
  detail::mscclpp_reader read;
  mscclpp_plan plan;
  plan.name = read.field<std::string>(*document, "name", top);
  const auto word = read.field<std::string>(*document, "collective", top);
  bool known = false;
  for (int k = 0; k <= static_cast<int>(collective_kind::all_to_all) && !word.empty(); ++k)
    if (detail::mscclpp_word(static_cast<collective_kind>(k)) == word) {
      plan.collective = static_cast<collective_kind>(k);
      known = true;
    }
  if (!known)
    read.keep(fail(errc::unsupported, std::string(file) + ": the collective '" + word.substr(0, 40) + "' is not read"));
  if (const auto protocol = read.field<std::string>(*document, "protocol", top); protocol != "Simple")
    read.keep(fail(errc::unsupported,
                   std::string(file) + ": plans of the protocol '" + protocol.substr(0, 40) + "' are not read"));
  plan.in_place = read.field<bool>(*document, "inplace", top);
  if (io::find_field(*document, "min_message_size") != nullptr)
    plan.min_bytes = read.field<std::uint64_t>(*document, "min_message_size", top);
  if (io::find_field(*document, "max_message_size") != nullptr)
    plan.max_bytes = read.field<std::uint64_t>(*document, "max_message_size", top);
  if (const auto gpus = io::read_array(*document, "gpus", top); !gpus) read.keep(gpus.error());
  const auto numbered = [&](const io::json& value, std::size_t wanted, const io::json_place& at) {
    if (const auto id = read.field<std::uint64_t>(value, "id", at); id != wanted)
      read.keep(fail(errc::malformed_input,
                     at.text() + " has the id " + std::to_string(id) + " where " + std::to_string(wanted) + " is due"));
  };
  read.each(*document, "gpus", top, [&](const io::json& value, const io::json_place& at) {
    mscclpp_gpu gpu;
    numbered(value, plan.gpus.size(), at);
    gpu.input = read.field<std::uint32_t>(value, "input_chunks", at);
    gpu.output = read.field<std::uint32_t>(value, "output_chunks", at);
    gpu.scratch = read.field<std::uint32_t>(value, "scratch_chunks", at);
    read.each(value, "channels", at, [&](const io::json& c, const io::json_place& here) {
      const io::json_place type = here / "channel_type";
      const io::json* kind = io::find_field(c, "channel_type");
      if (kind == nullptr) return read.keep(io::detail::lacks_field(c, "channel_type", here));
      auto& peers = read.channel(*kind, type) == mscclpp_channel::port ? gpu.port_peers : gpu.memory_peers;
      for (const std::uint32_t p : read.numbers(c, "connected_to", here)) peers.push_back(p);
    });
    read.each(value, "remote_buffers", at, [&](const io::json& r, const io::json_place& here) {
      mscclpp_remote remote;
      remote.rank = read.field<std::uint32_t>(r, "rank", here);
      remote.buffer = read.buffer(r, here);
      read.each(r, "access_channel_types", here, [&](const io::json& t, const io::json_place& place) {
        (read.channel(t, place) == mscclpp_channel::port ? remote.by_port : remote.by_memory) = true;
      });
      gpu.remotes.push_back(remote);
    });
    read.each(value, "semaphores", at, [&](const io::json& s, const io::json_place& here) {
      ++gpu.semaphores;
      if (read.field<std::uint32_t>(s, "init_value", here) != 0)
        read.keep(fail(errc::unsupported, here.text() + " does not begin at 0"));
    });
    read.each(value, "threadblocks", at, [&](const io::json& b, const io::json_place& here) {
      mscclpp_block block;
      numbered(b, gpu.blocks.size(), here);
      read.each(b, "ops", here, [&](const io::json& o, const io::json_place& place) {
        block.operations.push_back(detail::read_operation(read, o, place));
      });
      const auto list = [&](const char* field, const char* type, const char* ids, auto& memory, auto& port) {
        read.each(b, field, here, [&](const io::json& c, const io::json_place& place) {
          const io::json_place kind = place / type;
          const io::json* word_of_type = io::find_field(c, type);
          if (word_of_type == nullptr) return read.keep(io::detail::lacks_field(c, type, place));
          auto& to = read.channel(*word_of_type, kind) == mscclpp_channel::port ? port : memory;
          for (const std::uint32_t id : read.numbers(c, ids, place)) to.push_back(id);
        });
      };
      list("channels", "channel_type", "channel_ids", block.memory_channels, block.port_channels);
      list("remote_buffer_refs", "access_channel_type", "remote_buffer_ids", block.memory_buffers, block.port_buffers);
      gpu.blocks.push_back(std::move(block));
    });
    plan.gpus.push_back(std::move(gpu));
  });
  if (read.wrong()) return *read.wrong();
  return plan;
}

}}  // namespace topocoll::v0
