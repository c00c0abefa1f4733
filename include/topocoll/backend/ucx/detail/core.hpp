// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one rank over UCX hears and says, and how it ends the group.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/backend/ucx/detail/cells.hpp>
#include <topocoll/backend/ucx/detail/inbox.hpp>
#include <topocoll/backend/ucx/detail/outbox.hpp>
#include <topocoll/backend/ucx/detail/wire.hpp>
#include <topocoll/backend/ucx/detail/worker.hpp>
#include <topocoll/backend/ucx/options.hpp>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>

namespace topocoll { inline namespace v0 { namespace backend::detail {

/// Worker, inbox and outbox of one rank, and the words that ranks exchange beside the pieces of messages.
class ucx_core {
 public:
  ucx_core(const ucx_core&) = delete;
  ucx_core& operator=(const ucx_core&) = delete;

  [[nodiscard]] ucx_group& group() { return group_; }
  [[nodiscard]] const ucx_group& group() const { return group_; }
  [[nodiscard]] ucx_worker& worker() { return worker_; }
  [[nodiscard]] const ucx_options& options() const { return options_; }

  /// To be called once the places of all ranks are known.
  [[nodiscard]] result<void> connect() {
    inbox_.emplace(group_, worker_, steps_);
    outbox_.emplace(group_, worker_, steps_);
    for (std::uint32_t r = 0; r < group_.ranks() && group_.ranks() <= options_.connect_at_once; ++r)
      if (r != group_.rank)
        if (auto ok = outbox_->connect(r); !ok) return ok;
    return {};
  }
  /// The handler of all active messages. `self` is a ucx_core.
  static ucs_status_t on_message(void* self, const void* head, std::size_t head_size, void* data, std::size_t size,
                                 const ucp_am_recv_param_t* how) {
    return static_cast<ucx_core*>(self)->hear(head, head_size, data, size, how->recv_attr);
  }

 protected:
  // Longest that telling the others, and getting back what was sent, may hold up a call.
  static constexpr seconds longest_telling{0.25};
  static constexpr seconds longest_closing{1};
  static constexpr seconds crossing{0.02};  // within which causes count as found at the same time
  static constexpr std::uint32_t unasked = UINT32_MAX - 1;
  struct owed_answer {
    std::uint32_t peer;
    ucx_word word;
  };
  struct heard_from {
    bool spoke = false;
    bool farewell = false;
    std::uint32_t waits_for = unasked;
  };

  ucx_core(ucx_options options, ucx_group group)
      : options_(std::move(options)), group_(std::move(group)), last_words_(group_.ranks()) {}
  ~ucx_core() = default;

  /// Moves what can be moved. Whether anything moved.
  bool move() {
    bool moved = worker_.progress();
    tell_rooms();
    for (const owed_answer& a : to_answer_)
      say(a.peer, {a.word, group_.rank, a.word == ucx_word::answer ? first_missing() : 0, 0, 0, 0, 0, 0});
    to_answer_.clear();
    outbox_->close_failed();
    return outbox_->push() || moved;
  }
  /// Whether the peer may notice that we go: it has a connection to us, or we to it.
  [[nodiscard]] bool in_touch(std::uint32_t r) const { return outbox_->connected(r) || last_words_[r].spoke; }
  void tell_rooms() {
    for (const ucx_inbox::room& r : inbox_->rooms())
      say(r.peer, {ucx_word::credit, group_.rank, r.channel, 0, 0, 0, r.taken, 0});
    inbox_->rooms().clear();
  }
  void say(std::uint32_t peer, const ucx_head& head) { outbox_->say(peer, head); }

  [[nodiscard]] bool awaited(std::uint32_t peer) const { return inbox_->waits_for(peer) || outbox_->stuck(peer); }
  [[nodiscard]] std::vector<std::uint32_t> missing() const {
    std::vector<std::uint32_t> peers;
    for (std::uint32_t r = 0; r < group_.ranks(); ++r)
      if (r != group_.rank && (awaited(r) || outbox_->under_way_to(r))) peers.push_back(r);
    return peers;
  }
  [[nodiscard]] std::uint32_t first_missing() const {
    const auto peers = missing();
    if (!peers.empty()) return peers.front();
    return elsewhere_.empty() ? no_cell : elsewhere_.front();
  }

  /// Breaks the group, and gives the caller its memory back.
  void end_group(failure why, bool tell) {
    if (broken_) return;
    broken_ = true;
    cause_ = std::move(why);
    inbox_->drop();
    outbox_->drop();
    if (tell) {
      told_text_ = cause_.what + cause_.next;
      for (std::uint32_t r = 0; r < group_.ranks(); ++r)
        if (r != group_.rank && outbox_->state(r) == ucx_peer::present)
          outbox_->say(
              r,
              {ucx_word::cause, group_.rank, 0, static_cast<std::uint32_t>(cause_.code), 0, 0, cause_.what.size(), 0},
              told_text_);
    }
    run_until(deadline::in(longest_telling), [&] {
      return outbox_->data_under_way() == 0 && outbox_->words_under_way() == 0 && (!tell || all_have_heard());
    });
    if (outbox_->data_under_way() != 0) {
      outbox_->close_all(true);
      // Should UCX keep something even so, nothing here lets it run again before the worker is destroyed.
      run_until(deadline::in(longest_closing), [&] { return outbox_->data_under_way() == 0; });
    }
    // Ranks that find causes at the same time agree on that of the lowest.
    const std::uint32_t found_by = tell ? group_.rank : heard_from_;
    run_until(deadline::in(crossing), [&] { return heard_from_ == 0 || found_by == 0; });
    if (heard_from_ < found_by) cause_ = *heard_;
  }
  /// Whether all that are still there have answered the cause. A rank that went before they had read it would look
  /// lost.
  [[nodiscard]] bool all_have_heard() const {
    for (std::uint32_t r = 0; r < group_.ranks(); ++r)
      if (r != group_.rank && outbox_->state(r) == ucx_peer::present && !last_words_[r].farewell) return false;
    return true;
  }
  template <class Done>
  void run_until(deadline until, Done done) {
    while (!done() && !until.passed())
      if (!move()) worker_.sleep(std::min(until.left(), seconds{0.01}));
  }

  ucx_options options_;
  ucx_group group_;
  open_steps steps_;
  std::vector<heard_from> last_words_;  // by rank
  std::vector<owed_answer> to_answer_;
  std::vector<std::uint32_t> elsewhere_;  // ranks that this one waits for by other means
  std::optional<failure> heard_;          // a cause, from somebody else
  std::uint32_t heard_from_ = no_cell;
  failure cause_;
  std::string told_text_;
  bool broken_ = false;
  std::optional<ucx_outbox> outbox_;
  std::optional<ucx_inbox> inbox_;
  ucx_worker worker_;  // goes first: it may call back into the others

 private:
  /// Runs inside `progress`: notes, and leaves everything that talks or fails to `move` and `look_for_end`.
  ucs_status_t hear(const void* bytes_of_head, std::size_t head_size, void* data, std::size_t size,
                    std::uint64_t attributes) {
    ucx_head head;
    if (head_size != sizeof head || !inbox_) return UCS_OK;
    std::memcpy(&head, bytes_of_head, sizeof head);
    if (head.from >= group_.ranks() || head.from == group_.rank) return UCS_OK;
    last_words_[head.from].spoke = true;
    const auto* text = static_cast<const char*>(data);
    switch (head.word) {
      case ucx_word::piece:
        if ((attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0 || head.channel >= options_.channels) {
          inbox_->complain(fail(errc::bug, group_.name_of(head.from) + " sent a piece that UCX did not bring along"));
          return UCS_OK;
        }
        if (inbox_->arrived(head, static_cast<std::byte*>(data), size, (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0))
          return UCS_INPROGRESS;
        return UCS_OK;
      case ucx_word::credit: outbox_->credit(head.from, head.channel, head.size); return UCS_OK;
      case ucx_word::nudge: return UCS_OK;
      case ucx_word::goodbye:
        outbox_->note_left(head.from);
        to_answer_.push_back({head.from, ucx_word::farewell});
        return UCS_OK;
      case ucx_word::farewell: last_words_[head.from].farewell = true; return UCS_OK;
      case ucx_word::ask: to_answer_.push_back({head.from, ucx_word::answer}); return UCS_OK;
      case ucx_word::answer: last_words_[head.from].waits_for = head.channel; return UCS_OK;
      case ucx_word::cause:
        to_answer_.push_back({head.from, ucx_word::farewell});
        if (head.from < heard_from_ && head.size <= size && head.code <= static_cast<std::uint32_t>(errc::bug)) {
          heard_ = fail(static_cast<errc>(head.code), std::string(text, head.size),
                        std::string(text + head.size, size - head.size));
          heard_from_ = head.from;
        }
        return UCS_OK;
    }
    return UCS_OK;
  }
};

}}}  // namespace topocoll::v0::backend::detail
