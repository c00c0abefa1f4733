// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that do not wait: a thread of one's own makes them, one after the other.
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <pthread.h>
#include <string>
#include <utility>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <topocoll/core/units.hpp>
#include <topocoll/core/units_text.hpp>
#include <topocoll/exec/call_group.hpp>
#include <topocoll/exec/detail/call_record.hpp>
#include <topocoll/exec/detail/waiting_room.hpp>

namespace topocoll { inline namespace v0 {

namespace detail {

/// Something to be done once with the outcome of a call.
struct continuation {
  continuation() = default;
  continuation(const continuation&) = delete;
  continuation& operator=(const continuation&) = delete;
  virtual ~continuation() = default;
  virtual void go_on(const result<void>& outcome) = 0;
};

/// A call in a queue, and afterwards its outcome.
struct queued_call {
  call_group calls;
  waiting_room room;
  std::optional<result<void>> outcome;  // once it is there it does not change
  std::vector<std::unique_ptr<continuation>> then;

  template <class = void>
  void finish(result<void> with) {
    std::vector<std::unique_ptr<continuation>> next;
    {
      const waiting_room::visit alone(room);
      calls.clear();
      outcome = std::move(with);
      next.swap(then);
      room.tell_news();
    }
    for (const auto& n : next) n->go_on(*outcome);
  }
};

}  // namespace detail

/// A call that was given to a queue. Copies speak of the same call; it may outlive the queue. Any thread may use it.
class request {
 public:
  /// One that has been made, with nothing to do.
  request() = default;

  template <class = void>
  [[nodiscard]] bool done() const {
    if (!call_) return true;
    const detail::waiting_room::visit alone(call_->room);
    return call_->outcome.has_value();
  }
  /// Outcome of the call. @return `timed_out` when it is not there after `patience`: the call goes on, with the timeout of its
  /// own that it was given, and its memory stays in use
  template <class = void>
  [[nodiscard]] result<void> wait(seconds patience = {60}) const {
    if (!call_) return {};
    const deadline until = deadline::in(patience);
    detail::waiting_room::visit alone(call_->room);
    while (!call_->outcome) {
      if (until.passed())
        return fail(errc::timed_out, "the call has not ended after " + to_string(patience) + ", it goes on",
                    "wait again; its memory is in use until it ends");
      alone.wait(until);
    }
    return *call_->outcome;
  }
  /// Calls `f(outcome)`, a `const result<void>&`, when the call has ended: on the thread of the queue, which makes no other
  /// call in the meantime; or here and now if it has ended already. `f` throws nothing and does not wait for the queue.
  template <class F>
  void then(F f) const {
    struct wrapped final : detail::continuation {
      explicit wrapped(F&& what) : f(std::move(what)) {}
      void go_on(const result<void>& outcome) override { f(outcome); }
      F f;
    };
    if (!call_) {
      f(result<void>{});
      return;
    }
    {
      const detail::waiting_room::visit alone(call_->room);
      if (!call_->outcome) {
        call_->then.push_back(std::make_unique<wrapped>(std::move(f)));
        return;
      }
    }
    f(*call_->outcome);
  }

 private:
  template <class>
  friend class call_queue;
  explicit request(std::shared_ptr<detail::queued_call> call) : call_(std::move(call)) {}
  std::shared_ptr<detail::queued_call> call_;
};

/// Waits for all. @return the first failure in the order of the list; `timed_out` as `request::wait`
template <class Requests>
[[nodiscard]] result<void> wait_all(const Requests& requests, seconds patience = {60}) {
  const deadline until = deadline::in(patience);
  result<void> all;
  for (const request& r : requests)
    if (auto done = r.wait(until.left()); !done && all) all = std::move(done);
  return all;
}

/// A communicator with a thread of its own, which makes calls while the caller does something else.
///
/// Calls are made one after the other in the order in which they were given; any number may wait. All ranks give the same
/// calls in the same order. Several under way at the same time: several queues, each with a `duplicate` of the communicator.
/// When a call breaks the group, those behind it fail too. Any thread may give calls, but then the order is
/// that of the threads, which ranks must share.
/// The destructor waits until everything has been made: at most the timeouts of what is left, or soon after `abort`.
template <class C>
class call_queue : public detail::call_forms<call_queue<C>> {
 public:
  /// @return `system` when there can be no thread
  [[nodiscard]] static result<call_queue> create(C comm) {
    auto shared = std::make_unique<state>(std::move(comm));
    const int refused = ::pthread_create(
        &shared->thread, nullptr,
        [](void* s) -> void* {
          static_cast<state*>(s)->make_calls();
          return nullptr;
        },
        shared.get());
    if (refused != 0)
      return fail(errc::system, std::string("a queue got no thread: ") + std::strerror(refused),
                  "see 'ulimit -u' and the pids limit of the container");
    return call_queue(std::move(shared));
  }
  call_queue(call_queue&&) noexcept = default;
  call_queue& operator=(call_queue&& o) noexcept {
    end();
    state_ = std::move(o.state_);
    return *this;
  }
  ~call_queue() { end(); }

  [[nodiscard]] rank_id rank() const { return state_->comm.rank(); }
  [[nodiscard]] std::uint32_t size() const { return state_->comm.size(); }

  /// Calls that belong together, as one: see `call_group`.
  request start(call_group calls) {
    auto call = std::make_shared<detail::queued_call>();
    call->calls = std::move(calls);
    {
      const detail::waiting_room::visit alone(state_->room);
      state_->waiting.push_back(call);
      state_->room.tell_news();
    }
    return request(std::move(call));
  }
  /// Every call that is under way or waits fails soon with this reason, on all ranks.
  void abort(const std::string& why) noexcept { state_->comm.abort(why); }
  /// The communicator, for calls that wait, when all calls have been made. Precondition: the queue is not used any more.
  [[nodiscard]] C take_back() && {
    state_->stop_and_join();
    C comm = std::move(state_->comm);
    state_.reset();
    return comm;
  }

 private:
  friend class detail::call_forms<call_queue>;
  struct state {
    explicit state(C c) : comm(std::move(c)) {}

    void make_calls() {
      while (true) {
        std::shared_ptr<detail::queued_call> next;
        {
          detail::waiting_room::visit alone(room);
          while (first == waiting.size() && !stopping) alone.wait(deadline::in({3600}));
          if (first == waiting.size()) return;
          next = std::move(waiting[first++]);
          if (first * 2 > waiting.size()) {  // half of them are gone
            waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(first));
            first = 0;
          }
        }
        next->finish(next->calls.run(comm));
      }
    }
    void stop_and_join() {
      {
        const detail::waiting_room::visit alone(room);
        stopping = true;
        room.tell_news();
      }
      ::pthread_join(thread, nullptr);
    }

    C comm;
    pthread_t thread{};
    detail::waiting_room room;
    std::vector<std::shared_ptr<detail::queued_call>> waiting;  // from `first` on
    std::size_t first = 0;
    bool stopping = false;
  };

  explicit call_queue(std::unique_ptr<state> s) : state_(std::move(s)) {}
  request take(detail::call_record c) {
    call_group one;
    one.add(std::move(c));
    return start(std::move(one));
  }
  void end() {
    if (state_) state_->stop_and_join();
    state_.reset();
  }

  std::unique_ptr<state> state_;
};

}}  // namespace topocoll::v0
