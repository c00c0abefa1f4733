// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the program topocoll as users do: a process with arguments, its two outputs, its exit code.
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <signal.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <topocoll/core/deadline.hpp>
#include <topocoll/io/file.hpp>
#include <gtest/gtest.h>

namespace programs {

/// Path of the program, from the environment that ctest sets; empty when it was not built.
inline std::string path() {
  const char* p = std::getenv("TOPOCOLL_PROGRAM");
  return p == nullptr ? std::string() : std::string(p);
}

#define TOPOCOLL_NEEDS_PROGRAM() \
  if (programs::path().empty()) GTEST_SKIP() << "TOPOCOLL_PROGRAM is not set: the program was not built"

/// A running program. Its outputs go to files, which cannot fill up as a pipe does.
class process {
 public:
  explicit process(const std::vector<std::string>& args, const std::vector<std::string>& environment = {}) {
    char folder[] = "/tmp/topocoll-program-XXXXXX";
    if (mkdtemp(folder) == nullptr) return;
    folder_ = folder;
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::chdir(folder_.c_str()) == 0 ? void() : ::_exit(127);
    for (const std::string& e : environment) ::putenv(::strdup(e.c_str()));
    for (const int s : {SIGINT, SIGTERM, SIGHUP}) ::signal(s, SIG_DFL);
    const int out = ::open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int err = ::open("err", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::dup2(out, 1);
    ::dup2(err, 2);
    std::vector<char*> words;
    const std::string program = path();
    words.push_back(const_cast<char*>(program.c_str()));
    for (const std::string& a : args) words.push_back(const_cast<char*>(a.c_str()));
    words.push_back(nullptr);
    ::execv(program.c_str(), words.data());
    ::_exit(127);
  }
  process(const process&) = delete;
  process& operator=(const process&) = delete;
  ~process() {
    if (pid_ > 0 && !ended_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    const std::string remove = "rm -rf '" + folder_ + "'";
    if (!folder_.empty() && std::system(remove.c_str()) != 0) std::perror("rm");
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string out() const { return topocoll::io::read_file(folder_ + "/out").value(); }
  [[nodiscard]] std::string err() const { return topocoll::io::read_file(folder_ + "/err").value(); }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_ + "/" + name; }
  void signal(int number) const { ::kill(pid_, number); }

  /// Exit code, 128 + n for signal n, -1 when it did not end in time (it is killed then).
  int wait(double within = 60) {
    const auto until = topocoll::deadline::in({within});
    while (!ended_) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        ended_ = true;
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      } else if (until.passed()) {
        return -1;
      } else {
        ::usleep(2000);
      }
    }
    return code_;
  }

  /// Process ids of the children, from /proc.
  [[nodiscard]] std::vector<pid_t> children() const {
    std::vector<pid_t> found;
    const auto list =
        topocoll::io::read_file("/proc/" + std::to_string(pid_) + "/task/" + std::to_string(pid_) + "/children");
    if (!list) return found;
    for (std::size_t at = 0; at < list->size();) {
      char* end = nullptr;
      const long pid = std::strtol(list->c_str() + at, &end, 10);
      if (end == list->c_str() + at) break;
      found.push_back(static_cast<pid_t>(pid));
      at = static_cast<std::size_t>(end - list->c_str());
    }
    return found;
  }

 private:
  std::string folder_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int code_ = -1;
};

struct answer {
  int code;
  std::string out, err;
};

/// Runs to the end.
inline answer run(const std::vector<std::string>& args, const std::vector<std::string>& environment = {},
                  double within = 60) {
  process p(args, environment);
  const int code = p.wait(within);
  return {code, p.out(), p.err()};
}

/// Numbers (with signs, points, exponents and blanks before them) become "#": what is left is the form of an output.
inline std::string masked(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    const bool in_word = i > 0 && std::isalnum(static_cast<unsigned char>(text[i - 1])) != 0;
    if (!digit || in_word) {
      out += text[i++];
      continue;
    }
    while (!out.empty() && out.back() == ' ') out.pop_back();
    if (!out.empty() && out.back() != '\n') out += ' ';
    out += '#';
    while (i < text.size() && (std::isdigit(static_cast<unsigned char>(text[i])) != 0 || text[i] == '.' ||
                               (text[i] == 'e' && i + 1 < text.size() && (text[i + 1] == '-' || text[i + 1] == '+')) ||
                               (text[i] == '-' && text[i - 1] == 'e') || (text[i] == '+' && text[i - 1] == 'e')))
      ++i;
  }
  return out;
}

}  // namespace programs
