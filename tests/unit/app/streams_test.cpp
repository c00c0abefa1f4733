// SPDX-License-Identifier: Apache-2.0
#include <csignal>
#include <fcntl.h>
#include <string>
#include <topocoll/app/streams.hpp>
#include <gtest/gtest.h>

namespace app = topocoll::app;

namespace {

// Both ends of a pipe, closed at the end.
struct pipe_ends {
  int end[2] = {-1, -1};
  pipe_ends() { EXPECT_EQ(::pipe(end), 0); }
  ~pipe_ends() {
    for (const int e : end)
      if (e >= 0) ::close(e);
  }
};

}  // namespace

TEST(stream, writes_everything_at_once) {
  pipe_ends p;
  app::stream s(p.end[1]);
  const app::sink out = s.to();
  EXPECT_FALSE(out.terminal);
  out("one ");
  out("");
  out("two");
  char text[16] = {};
  EXPECT_EQ(::read(p.end[0], text, sizeof text), 7);
  EXPECT_STREQ(text, "one two");
  EXPECT_EQ(s.error(), 0);
  std::string complaints;
  EXPECT_EQ(app::finish(1, s, app::into(complaints)), 1);
  EXPECT_EQ(complaints, "");
}

TEST(stream, is_silent_about_a_reader_that_went_away) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  pipe_ends p;
  ::close(p.end[0]);
  p.end[0] = -1;
  app::stream s(p.end[1]);
  s.to()("text");
  s.to()("more");
  EXPECT_EQ(s.error(), EPIPE);
  std::string complaints;
  EXPECT_EQ(app::finish(0, s, app::into(complaints)), 0);
  EXPECT_EQ(complaints, "");
  std::signal(SIGPIPE, before);
}

TEST(stream, that_cannot_be_written_is_an_answer_that_was_not_given) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "no /dev/full here";
  app::stream s(full);
  s.to()("text");
  EXPECT_EQ(s.error(), ENOSPC);
  std::string complaints;
  EXPECT_EQ(app::finish(0, s, app::into(complaints)), app::exit_unable);
  EXPECT_EQ(complaints, "topocoll: standard output cannot be written: No space left on device\n");
  ::close(full);

  app::stream closed(-1);
  closed.to()("text");
  EXPECT_EQ(app::finish(0, closed, app::into(complaints)), app::exit_unable);
}
