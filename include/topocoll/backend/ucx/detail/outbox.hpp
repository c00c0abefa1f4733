// SPDX-License-Identifier: Apache-2.0
#pragma once
// The connections of a rank: hands messages to UCX piece by piece, says words to peers, notes who is gone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>
#include <topocoll/backend/ucx/detail/cells.hpp>
#include <topocoll/backend/ucx/detail/wire.hpp>
#include <topocoll/backend/ucx/detail/worker.hpp>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/exec/transport.hpp>

namespace topocoll { inline namespace v0 { namespace backend::detail {

/// How a peer stands, as far as this rank has heard.
enum class ucx_peer : std::uint8_t { present, left, failed };

/// Sends of one rank. UCX calls back into it: not movable.
class ucx_outbox {
 public:
  ucx_outbox(const ucx_group& group, ucx_worker& worker, open_steps& steps)
      : group_(group), worker_(worker), steps_(steps), links_(group.ranks()) {
    for (std::uint32_t r = 0; r < group.ranks(); ++r) {
      links_[r].box = this;
      links_[r].rank = r;
    }
  }
  ucx_outbox(const ucx_outbox&) = delete;
  ucx_outbox& operator=(const ucx_outbox&) = delete;

  /// Connects to a peer now, rather than with the first message.
  [[nodiscard]] result<void> connect(std::uint32_t peer) {
    const ucs_status_t s = make_endpoint(links_[peer]);
    if (s == UCS_OK) return {};
    return ucx_worker::failed(group_.name_of(group_.rank) + " has no way to " + group_.name_of(peer), s,
                              "compare `ucx_info -d` of both hosts, UCX_TLS, UCX_NET_DEVICES and ucx_options");
  }

  /// Precondition: rank and channel exist.
  void send(std::uint32_t step, const outgoing& o) {
    link& l = links_[o.to.value];
    if (o.channel >= l.lanes.size()) l.lanes.resize(o.channel + 1);
    lane& a = l.lanes[o.channel];
    if (a.todo.empty()) {
      active_.push_back({o.to.value, o.channel});
      ++l.unsent;
    }
    messages_.append(a.todo, messages_.take({step, o.to.value, o.tag, o.data.data(), o.data.size(), 0, 0, false}));
  }
  /// Hands over what may go. Whether anything went.
  bool push() {
    bool moved = false;
    for (std::size_t i = 0; i < active_.size();) {
      link& l = links_[active_[i].peer];
      lane& a = l.lanes[active_[i].channel];
      if (l.state == ucx_peer::present && reached(l)) moved = push(l, a, active_[i].channel) || moved;
      if (a.todo.empty()) {
        --l.unsent;
        active_[i] = active_.back();
        active_.pop_back();
      } else {
        ++i;
      }
    }
    return moved;
  }
  /// The peer has taken this much of a channel, ever.
  void credit(std::uint32_t peer, std::uint32_t channel, std::uint64_t taken) {
    link& l = links_[peer];
    if (channel < l.lanes.size()) l.lanes[channel].taken = std::max(l.lanes[channel].taken, taken);
  }

  /// Sends a word without data of a program. `text` must live until `words_under_way` is 0.
  void say(std::uint32_t peer, ucx_head head, std::string_view text = {}) {
    link& l = links_[peer];
    if (!reached(l)) return;
    hand(l, no_cell, head, reinterpret_cast<const std::byte*>(text.data()), text.size());
  }

  [[nodiscard]] ucx_peer state(std::uint32_t peer) const { return links_[peer].state; }
  [[nodiscard]] seconds gone_at(std::uint32_t peer) const { return links_[peer].gone_at; }
  [[nodiscard]] ucs_status_t status(std::uint32_t peer) const { return links_[peer].status; }
  /// Whether there is a connection: without one, the peer's end goes unnoticed.
  [[nodiscard]] bool connected(std::uint32_t peer) const { return links_[peer].endpoint != nullptr; }
  void note_left(std::uint32_t peer) {
    if (links_[peer].state == ucx_peer::left) return;
    links_[peer].state = ucx_peer::left;
    links_[peer].gone_at = steady_clock::now();
    some_gone_ = true;
  }
  /// Its process was seen to be dead; UCX has not said so.
  void note_death(std::uint32_t peer) { lose(links_[peer], UCS_OK); }
  [[nodiscard]] bool some_gone() const { return some_gone_; }
  /// Whether messages for this peer wait to be handed to UCX, or were lost on the way.
  [[nodiscard]] bool stuck(std::uint32_t peer) const {
    const link& l = links_[peer];
    return l.unsent != 0 || (l.state != ucx_peer::left && (l.data_under_way != 0 || l.lost_data));
  }
  [[nodiscard]] bool under_way_to(std::uint32_t peer) const { return links_[peer].data_under_way != 0; }
  /// Whether the peer has, as far as it said, not yet taken much of what was sent.
  [[nodiscard]] bool owed(std::uint32_t peer) const {
    std::uint64_t rest = 0;
    for (const lane& a : links_[peer].lanes) rest += a.sent - a.taken;
    return rest > ucx_unsaid;
  }
  [[nodiscard]] std::uint32_t data_under_way() const { return data_under_way_; }
  [[nodiscard]] std::uint32_t words_under_way() const { return words_under_way_; }
  [[nodiscard]] std::uint32_t closes_under_way() const { return closes_under_way_; }

  /// Forgets what was not yet handed to UCX.
  void drop() {
    for (const place& p : active_) {
      link& l = links_[p.peer];
      cell_queue& q = l.lanes[p.channel].todo;
      while (!q.empty()) {
        const std::uint32_t at = messages_.pop(q);
        // Pieces that are under way come back to it.
        if (messages_[at].under_way == 0)
          messages_.release(at);
        else
          messages_[at].handed_all = true;
      }
      l.unsent = 0;
    }
    active_.clear();
  }
  /// Closes failed endpoints: UCX keeps them, and what was sent on them, until then.
  void close_failed() {
    if (!some_failed_) return;
    some_failed_ = false;
    for (link& l : links_)
      if (l.broken) close(l);
  }
  /// Closes endpoints by force, all of them or those that still have data under way; UCX gives back what was sent
  /// there.
  void close_all(bool only_with_data) {
    closed_ = closed_ || !only_with_data;
    for (link& l : links_)
      if (!only_with_data || l.data_under_way != 0) close(l);
  }

 private:
  struct message {
    std::uint32_t step;
    std::uint32_t peer;
    std::uint64_t tag;
    const std::byte* data;
    std::uint64_t size;
    std::uint64_t handed;
    std::uint32_t under_way;  // pieces
    bool handed_all;
  };
  struct lane {
    std::uint64_t sequence = 0;  // of the next piece
    std::uint64_t sent = 0;      // cost of the pieces so far
    std::uint64_t taken = 0;     // of that, what the peer is known to have taken
    cell_queue todo;
  };
  struct link {
    ucx_outbox* box = nullptr;
    std::uint32_t rank = 0;
    ucp_ep_h endpoint = nullptr;
    ucx_peer state = ucx_peer::present;
    bool lost_data = false;
    bool broken = false;  // UCX reported an error of the endpoint
    ucs_status_t status = UCS_OK;
    seconds gone_at{};
    std::uint32_t data_under_way = 0;  // pieces
    std::uint32_t unsent = 0;          // lanes with something to do
    std::vector<lane> lanes;
  };
  struct place {
    std::uint32_t peer;
    std::uint32_t channel;
  };
  /// Something that UCX has: its header has to stay where it is until UCX is done.
  struct parcel {
    ucx_head head;
    ucx_outbox* box = nullptr;
    std::uint32_t peer = 0;
    std::uint32_t message = no_cell;
    parcel* next_free = nullptr;
  };

  ucs_status_t make_endpoint(link& l) {
    ucp_ep_params_t p{};
    p.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    p.address = reinterpret_cast<const ucp_address_t*>(group_.places[l.rank].address.data());
    p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    p.err_handler.cb = [](void* argument, ucp_ep_h, ucs_status_t outcome) {
      auto& failed = *static_cast<link*>(argument);
      failed.box->lose(failed, outcome);
    };
    p.err_handler.arg = &l;
    const ucs_status_t s = ucp_ep_create(worker_.handle(), &p, &l.endpoint);
    if (s != UCS_OK) l.endpoint = nullptr;
    return s;
  }
  /// Whether there is an endpoint, by now.
  bool reached(link& l) {
    if (l.endpoint != nullptr) return true;
    if (l.broken || l.state != ucx_peer::present || closed_) return false;
    const ucs_status_t s = make_endpoint(l);
    if (s != UCS_OK) lose(l, s);
    return s == UCS_OK;
  }

  bool push(link& l, lane& a, std::uint32_t channel) {
    bool moved = false;
    while (!a.todo.empty() && l.state == ucx_peer::present) {
      const std::uint32_t at = a.todo.first;
      message& m = messages_[at];
      const std::uint64_t size = std::min(group_.terms.piece, m.size - m.handed);
      if (a.sent + size + ucx_piece_cost - a.taken > group_.terms.window) break;
      const std::byte* data = m.data + m.handed;
      const ucx_head head{ucx_word::piece, group_.rank, channel, 0, a.sequence++, m.tag, m.size, m.handed};
      a.sent += size + ucx_piece_cost;
      m.handed += size;
      m.handed_all = m.handed == m.size;
      if (m.handed_all) (void)messages_.pop(a.todo);
      moved = true;
      hand(l, at, head, data, size);
    }
    return moved;
  }

  void hand(link& l, std::uint32_t part_of, const ucx_head& head, const std::byte* data, std::size_t size) {
    parcel* p = free_parcels_;
    if (p == nullptr)
      p = &parcels_.emplace_back();
    else
      free_parcels_ = p->next_free;
    p->head = head;
    p->box = this;
    p->peer = l.rank;
    p->message = part_of;
    ++(part_of == no_cell ? words_under_way_ : data_under_way_);
    if (part_of != no_cell) {
      ++l.data_under_way;
      ++messages_[part_of].under_way;
    }
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS |
                       UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    how.flags = UCP_AM_SEND_FLAG_EAGER;
    how.memory_type = UCS_MEMORY_TYPE_HOST;
    how.user_data = p;
    how.cb.send = [](void* request, ucs_status_t outcome, void* user) {
      auto* back = static_cast<parcel*>(user);
      back->box->done(*back, outcome);
      ucp_request_free(request);
    };
    ucs_status_ptr_t sent = ucp_am_send_nbx(l.endpoint, 0, &p->head, sizeof p->head, data, size, &how);
    if (sent == nullptr)
      done(*p, UCS_OK);
    else if (UCS_PTR_IS_ERR(sent))
      done(*p, UCS_PTR_STATUS(sent));
  }
  void done(parcel& p, ucs_status_t outcome) {
    link& l = links_[p.peer];
    if (p.message == no_cell) {
      --words_under_way_;
    } else {
      --data_under_way_;
      --l.data_under_way;
      message& m = messages_[p.message];
      --m.under_way;
      // What was handed over for a peer that has left in order counts as sent: it needed no more.
      if (outcome != UCS_OK && l.state != ucx_peer::left) l.lost_data = true;
      if (m.handed_all && m.under_way == 0) {
        if (!l.lost_data && m.handed == m.size) steps_.message_done(m.step);
        messages_.release(p.message);
      }
    }
    if (outcome != UCS_OK && outcome != UCS_ERR_CANCELED) lose(l, outcome);
    p.next_free = free_parcels_;
    free_parcels_ = &p;
  }
  void lose(link& l, ucs_status_t outcome) {
    l.broken = some_failed_ = some_gone_ = true;
    if (l.state != ucx_peer::present) return;
    l.state = ucx_peer::failed;
    l.status = outcome;
    l.gone_at = steady_clock::now();
  }

  void close(link& l) {
    if (l.endpoint == nullptr) return;
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    how.user_data = this;
    how.cb.send = [](void* request, ucs_status_t, void* user) {
      --static_cast<ucx_outbox*>(user)->closes_under_way_;
      ucp_request_free(request);
    };
    ucp_ep_h endpoint = l.endpoint;
    l.endpoint = nullptr;
    ++closes_under_way_;
    ucs_status_ptr_t closing = ucp_ep_close_nbx(endpoint, &how);
    if (closing == nullptr || UCS_PTR_IS_ERR(closing)) --closes_under_way_;
  }

  const ucx_group& group_;
  ucx_worker& worker_;
  open_steps& steps_;
  std::vector<link> links_;
  std::vector<place> active_;  // lanes with something to do
  cell_pool<message> messages_;
  std::deque<parcel> parcels_;
  parcel* free_parcels_ = nullptr;
  std::uint32_t data_under_way_ = 0;
  std::uint32_t words_under_way_ = 0;
  std::uint32_t closes_under_way_ = 0;
  bool some_gone_ = false;
  bool some_failed_ = false;
  bool closed_ = false;
};

}}}  // namespace topocoll::v0::backend::detail
