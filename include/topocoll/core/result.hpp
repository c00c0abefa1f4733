// SPDX-License-Identifier: Apache-2.0
#pragma once
// A value or the reason why there is none.
#include <exception>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace topocoll { inline namespace v0 {

/// What kind of thing went wrong; programs branch on it, people read `failure::what`.
enum class errc : unsigned char {
  invalid_argument,  ///< the caller asked for something that makes no sense
  malformed_input,   ///< a text does not follow its format
  not_found,         ///< a file, device or name does not exist
  unavailable,       ///< a library or facility is not on this machine
  permission,        ///< the system refused for lack of rights
  timed_out,         ///< a deadline passed; `what` names who was missing
  peer_lost,         ///< another rank died or left
  aborted,           ///< somebody called abort()
  mismatch,          ///< ranks, versions or digests disagree
  unsupported,       ///< well-formed, but not something that is done here
  system,            ///< the operating system reported an error
  bug                ///< an invariant of topocoll itself does not hold
};

/// A failure: code, a sentence with the subject first, and what to do next (empty when nothing checked can be advised).
struct failure {
  errc code = errc::bug;
  std::string what;
  std::string next;

  /// One line for people: "what; next".
  [[nodiscard]] std::string message() const { return next.empty() ? what : what + "; " + next; }
};

/// Builds a failure, to be returned from a function that gives a `result`.
[[nodiscard]] inline failure fail(errc code, std::string what, std::string next = {}) {
  return failure{code, std::move(what), std::move(next)};
}

#if defined(__cpp_exceptions)
/// What `result::value()` throws; carries the whole failure.
class failed : public std::exception {
 public:
  explicit failed(failure f) : failure_(std::move(f)), text_(failure_.message()) {}
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  [[nodiscard]] const failure& why() const noexcept { return failure_; }

 private:
  failure failure_;
  std::string text_;
};
#endif

/// Holds a `T` or a `failure`. Test it before use; `value()` is the throwing form for programs that prefer exceptions.
template <class T>
class [[nodiscard]] result {
  static_assert(!std::is_same_v<std::remove_cv_t<T>, failure>,
                "a result of a failure would not know which one it holds");

 public:
  using value_type = T;

  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(failure f) : state_(std::in_place_index<1>, std::move(f)) {}

  [[nodiscard]] explicit operator bool() const noexcept { return state_.index() == 0; }

  /// Precondition of `*` and `->`: the result holds a value.
  [[nodiscard]] T& operator*() & { return *std::get_if<0>(&state_); }
  [[nodiscard]] const T& operator*() const& { return *std::get_if<0>(&state_); }
  [[nodiscard]] T&& operator*() && { return std::move(*std::get_if<0>(&state_)); }
  [[nodiscard]] T* operator->() { return std::get_if<0>(&state_); }
  [[nodiscard]] const T* operator->() const { return std::get_if<0>(&state_); }

  /// Precondition: the result holds a failure.
  [[nodiscard]] const failure& error() const& { return *std::get_if<1>(&state_); }
  [[nodiscard]] failure&& error() && { return std::move(*std::get_if<1>(&state_)); }

#if defined(__cpp_exceptions)
  /// The value, or throws `failed`.
  [[nodiscard]] T& value() & {
    if (!*this) throw failed(error());
    return **this;
  }
  [[nodiscard]] const T& value() const& {
    if (!*this) throw failed(error());
    return **this;
  }
  [[nodiscard]] T value() && {
    if (!*this) throw failed(std::move(*this).error());
    return std::move(**this);
  }
#endif

 private:
  std::variant<T, failure> state_;
};

/// Success without a value, or a failure.
template <>
class [[nodiscard]] result<void> {
 public:
  using value_type = void;

  result() = default;
  result(failure f) : failure_(std::move(f)), ok_(false) {}

  [[nodiscard]] explicit operator bool() const noexcept { return ok_; }
  /// Precondition: the result holds a failure.
  [[nodiscard]] const failure& error() const& { return failure_; }
  [[nodiscard]] failure&& error() && { return std::move(failure_); }

#if defined(__cpp_exceptions)
  /// Nothing, or throws `failed`.
  void value() const {
    if (!ok_) throw failed(failure_);
  }
#endif

 private:
  failure failure_;
  bool ok_ = true;
};

}}  // namespace topocoll::v0
