// SPDX-License-Identifier: Apache-2.0
#pragma once
// How integrate/nccl_environment.hpp writes variables.
#include <string>
#include <topocoll/integrate/detail/shell_word.hpp>
#include <topocoll/integrate/nccl_environment.hpp>

namespace topocoll { inline namespace v0 {
template <class>
std::string to_export_lines(const nccl_environment& e) {
  std::string text;
  for (const nccl_variable& v : e.variables)
    text += "# " + detail::one_line(v.why) + "\nexport " + v.name + '=' + detail::shell_word(v.value) + '\n';
  return text.empty() ? "# nothing that this topology tells speaks against NCCL's own choices\n" : text;
}

template <class>
std::string to_env_file(const nccl_environment& e) {
  std::string text;
  for (const nccl_variable& v : e.variables)
    text += "# " + detail::one_line(v.why) + '\n' + v.name + '=' + detail::one_line(v.value) + '\n';
  return text.empty() ? "# nothing that this topology tells speaks against NCCL's own choices\n" : text;
}

template <class>
std::string to_mpirun_options(const nccl_environment& e) {
  std::string text;
  for (const nccl_variable& v : e.variables)
    text += (text.empty() ? "-x " : " -x ") + v.name + '=' + detail::shell_word(v.value);
  return text + '\n';
}

template <class>
std::string to_config_notes(const nccl_environment& e) {
  std::string text = "ncclConfig_t config = NCCL_CONFIG_INITIALIZER;\n", others;
  for (const nccl_variable& v : e.variables) {
    if (v.config_field.empty())
      others += "//   " + v.name + '=' + detail::one_line(v.value) + "\n";
    else
      text += "config." + v.config_field + " = " + v.value + ";  // " + detail::one_line(v.why) + '\n';
  }
  if (!others.empty()) text += "// No field of ncclConfig_t; set before the first communicator:\n" + others;
  return text;
}

}}  // namespace topocoll::v0
