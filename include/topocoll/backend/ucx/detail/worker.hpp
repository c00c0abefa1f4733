// SPDX-License-Identifier: Apache-2.0
#pragma once
// A context and a worker of UCX as one object, and what UCX's statuses mean in sentences.
#if !__has_include(<ucp/api/ucp.h>)
#error "topocoll/backend/ucx needs the headers of UCX: on Debian install libucx-dev, link topocoll::ucx"
#endif
#include <algorithm>
#include <memory>
#include <poll.h>
#include <string>
#include <utility>
#include <topocoll/backend/ucx/options.hpp>
#include <topocoll/core/deadline.hpp>
#include <topocoll/core/result.hpp>
#include <ucp/api/ucp.h>

namespace topocoll { inline namespace v0 { namespace backend::detail {

/// Not movable once open: endpoints and callbacks hold its address.
class ucx_worker {
 public:
  ucx_worker() = default;
  ucx_worker(const ucx_worker&) = delete;
  ucx_worker& operator=(const ucx_worker&) = delete;
  ~ucx_worker() {
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    if (context_ != nullptr) ucp_cleanup(context_);
  }

  /// @return `invalid_argument` for settings that UCX refuses, `unavailable` if it finds no network to use
  [[nodiscard]] result<void> open(const ucx_options& o, std::uint32_t ranks) {
    ucp_config_t* read = nullptr;
    if (const ucs_status_t s = ucp_config_read(nullptr, nullptr, &read); s != UCS_OK)
      return failed("UCX cannot read its settings", s, "look at the UCX_* variables of the environment");
    const std::unique_ptr<ucp_config_t, void (*)(ucp_config_t*)> config(read, ucp_config_release);
    const std::string every = std::to_string(o.keepalive.value) + "s";
    const std::pair<const char*, const std::string*> settings[] = {
        {"TLS", o.transports.empty() ? nullptr : &o.transports},
        {"NET_DEVICES", o.devices.empty() ? nullptr : &o.devices},
        {"KEEPALIVE_INTERVAL", o.keepalive.value > 0 ? &every : nullptr}};
    for (const auto& [name, value] : settings) {
      if (value == nullptr) continue;
      if (const ucs_status_t s = ucp_config_modify(read, name, value->c_str()); s != UCS_OK)
        return fail(errc::invalid_argument,
                    "UCX does not take " + *value + " for UCX_" + name + ": " + ucs_status_string(s),
                    "look at ucx_options");
    }
    ucp_params_t wanted{};
    wanted.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    wanted.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    wanted.estimated_num_eps = ranks;
    if (const ucs_status_t s = ucp_init(&wanted, read, &context_); s != UCS_OK)
      return failed("UCX finds nothing to communicate with", s,
                    "run `ucx_info -d`, and compare with UCX_TLS, UCX_NET_DEVICES and ucx_options");
    ucp_worker_params_t how{};
    how.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    how.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // abort() may come from another thread, in turn
    if (const ucs_status_t s = ucp_worker_create(context_, &how, &worker_); s != UCS_OK)
      return failed("UCX makes no worker", s, "run `ucx_info -d`, and compare with UCX_TLS and UCX_NET_DEVICES");
    if (const ucs_status_t s = ucp_worker_get_efd(worker_, &descriptor_); s != UCS_OK)
      return failed("UCX gives no descriptor to sleep on", s, "choose other transports in UCX_TLS");
    return {};
  }

  [[nodiscard]] ucp_worker_h handle() const { return worker_; }
  [[nodiscard]] result<std::string> address() const {
    ucp_address_t* at = nullptr;
    std::size_t size = 0;
    if (const ucs_status_t s = ucp_worker_get_address(worker_, &at, &size); s != UCS_OK)
      return failed("UCX has no address for its worker", s, {});
    std::string text(reinterpret_cast<const char*>(at), size);
    ucp_worker_release_address(worker_, at);
    return text;
  }
  [[nodiscard]] result<void> handle_messages(unsigned id, ucp_am_recv_callback_t run, void* argument) {
    ucp_am_handler_param_t p{};
    p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB |
                   UCP_AM_HANDLER_PARAM_FIELD_ARG;
    p.id = id;
    // Without UCP_AM_FLAG_PERSISTENT_DATA: it makes UCX copy what comes over TCP, even if it is used on the spot.
    p.flags = UCP_AM_FLAG_WHOLE_MSG;
    p.cb = run;
    p.arg = argument;
    if (const ucs_status_t s = ucp_worker_set_am_recv_handler(worker_, &p); s != UCS_OK)
      return failed("UCX takes no handler for active messages", s, {});
    return {};
  }

  /// Whether anything moved.
  bool progress() { return ucp_worker_progress(worker_) != 0; }
  /// Sleeps until something comes, `wake` is called, or the span is over. May return early.
  void sleep(seconds longest) {
    if (longest.value <= 0 || ucp_worker_arm(worker_) != UCS_OK) return;  // busy: there is something to do
    pollfd p{descriptor_, POLLIN, 0};
    (void)::poll(&p, 1, std::max(1, static_cast<int>(longest.value * 1e3)));
  }
  /// From any thread.
  void wake() noexcept { (void)ucp_worker_signal(worker_); }

  [[nodiscard]] static failure failed(const std::string& what, ucs_status_t status, const std::string& next) {
    const errc code = status == UCS_ERR_INVALID_PARAM ? errc::invalid_argument
                      : status == UCS_ERR_NO_DEVICE || status == UCS_ERR_UNREACHABLE || status == UCS_ERR_UNSUPPORTED
                          ? errc::unavailable
                          : errc::system;
    return fail(code, what + ": " + ucs_status_string(status), next);
  }

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int descriptor_ = -1;
};

}}}  // namespace topocoll::v0::backend::detail
