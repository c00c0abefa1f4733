// SPDX-License-Identifier: Apache-2.0
// A result is looked at, and a failure is not mistaken for a value.
#include <topocoll/core/result.hpp>

namespace tc = topocoll;

tc::result<int> count();
tc::result<void> connect();
int use();
int use() {
  const auto connected = connect();
  const auto n = count();
  return connected && n ? *n : 0;
}

#ifdef SECTION_IGNORE_A_VALUE
// expect: ignoring returned value of type 'topocoll::.*result<int>'
// expect: ignoring return value of function declared with 'nodiscard' attribute
void ignore();
void ignore() { count(); }
#endif

#ifdef SECTION_IGNORE_A_FAILURE
// expect: ignoring returned value of type 'topocoll::.*result<void>'
// expect: ignoring return value of function declared with 'nodiscard' attribute
void ignore();
void ignore() { connect(); }
#endif

#ifdef SECTION_IGNORE_FAIL
// expect: ignoring return value of 'topocoll::.*failure.*fail
// expect: ignoring return value of function declared with 'nodiscard' attribute
void ignore();
void ignore() { tc::fail(tc::errc::not_found, "nobody sees this"); }
#endif

#ifdef SECTION_RESULT_AS_VALUE
// expect: cannot convert 'topocoll::.*result<int>' to 'int'
// expect: no viable conversion from returned value of type 'tc::result<int>' to function return type 'int'
int unchecked();
int unchecked() { return count(); }
#endif

#ifdef SECTION_RESULT_OF_FAILURE
// expect: a result of a failure would not know which one it holds
tc::result<tc::failure> neither{tc::failure{}};
#endif
