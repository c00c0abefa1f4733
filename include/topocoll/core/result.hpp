// SPDX-License-Identifier: Apache-2.0
#pragma once
// A value or the reason why there is none.
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

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

  result(T held) : value_(std::move(held)), holds_value_(true) {}
  result(failure f) : failure_(std::move(f)), holds_value_(false) {}
  result(result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : holds_value_(other.holds_value_) {
    fill(std::move(other));
  }
  result(const result& other) requires std::is_copy_constructible_v<T> : holds_value_(other.holds_value_) {
    fill(other);
  }
  /// Takes over what `other` holds, a copy or a moved one.
  result& operator=(result other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    clear();
    holds_value_ = other.holds_value_;
    fill(std::move(other));
    return *this;
  }
  ~result() { clear(); }

  [[nodiscard]] explicit operator bool() const noexcept { return holds_value_; }

  /// Precondition of `*` and `->`: the result holds a value.
  [[nodiscard]] T& operator*() & { return value_; }
  [[nodiscard]] const T& operator*() const& { return value_; }
  [[nodiscard]] T&& operator*() && { return std::move(value_); }
  [[nodiscard]] T* operator->() { return &value_; }
  [[nodiscard]] const T* operator->() const { return &value_; }

  /// Precondition: the result holds a failure.
  [[nodiscard]] const failure& error() const& { return failure_; }
  [[nodiscard]] failure&& error() && { return std::move(failure_); }

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
  template <class Other>
  void fill(Other&& other) {
    if (holds_value_)
      ::new (static_cast<void*>(&value_)) T(std::forward<Other>(other).value_);
    else
      ::new (static_cast<void*>(&failure_)) failure(std::forward<Other>(other).failure_);
  }
  void clear() noexcept {
    if (holds_value_)
      value_.~T();
    else
      failure_.~failure();
  }

  // A union rather than std::variant, whose tables of visitors cost a compiler 10 ms for every T.
  union {
    T value_;
    failure failure_;
  };
  bool holds_value_;
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
