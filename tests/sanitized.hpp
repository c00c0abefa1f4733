// SPDX-License-Identifier: Apache-2.0
#ifndef TOPOCOLL_TESTS_SANITIZED_HPP
#define TOPOCOLL_TESTS_SANITIZED_HPP

namespace topocoll_test {

/// True under a sanitizer, where code is ten times slower: a test that repeats one path for many cases then takes the first
/// few of them.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace topocoll_test

#endif
