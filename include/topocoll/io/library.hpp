// SPDX-License-Identifier: Apache-2.0
#pragma once
// A shared library opened while the program runs, and its functions with their types.
#include <dlfcn.h>
#include <string>
#include <type_traits>
#include <utility>
#include <topocoll/core/result.hpp>

namespace topocoll { inline namespace v0 { namespace io {

/// An open shared library; closed when the object ends, so functions must not be called later.
///
/// Symbols stay private to the object (RTLD_LOCAL): opening a library never changes what the program is linked with.
class library {
 public:
  /// Opens `name` as the dynamic linker finds it: a path when it has a slash, else by RUNPATH, LD_LIBRARY_PATH and the cache.
  /// Constructors of the library run here.
  /// @return `unavailable` with the linker's reason: no such file, another architecture, a missing dependency
  [[nodiscard]] static result<library> open(const std::string& name) {
    if (name.empty()) return fail(errc::invalid_argument, "a library to open has no name");
    void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* why = ::dlerror();
      std::string reason = why != nullptr ? why : "no reason given";
      if (reason.find(name) == std::string::npos) reason = name + ": " + reason;
      return fail(errc::unavailable, "a shared library cannot be opened: " + reason);
    }
    return library(handle, name);
  }

  library(library&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)), name_(std::move(other.name_)) {}
  library& operator=(library&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(name_, other.name_);
    return *this;
  }
  library(const library&) = delete;
  library& operator=(const library&) = delete;
  ~library() {
    if (handle_ != nullptr) ::dlclose(handle_);
  }

  /// The function `symbol`, or null. `F` is its type, `int(const char*)`; nothing checks that it is the right one.
  template <class F>
  [[nodiscard]] F* find(const char* symbol) const {
    static_assert(std::is_function_v<F>, "library::find is asked for a function type such as int(const char*)");
    return reinterpret_cast<F*>(::dlsym(handle_, symbol));
  }
  /// As `find`. @return `unavailable`, naming library and symbol, when the library has no such function
  template <class F>
  [[nodiscard]] result<F*> function(const char* symbol) const {
    if (F* found = find<F>(symbol)) return found;
    return fail(errc::unavailable, "the library " + name_ + " has no function " + symbol,
                "install a version of the library that has it");
  }
  /// As it was opened.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  library(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  void* handle_;
  std::string name_;
};

}}}  // namespace topocoll::v0::io
