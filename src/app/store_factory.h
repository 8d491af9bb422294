#pragma once
// Builds the stores of mounts: the protocol itself and the layers around it, over one HTTP client per TLS setting.

#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "app/mount_spec.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "net/http_client.h"
#include "store/object_store.h"

namespace thermo::app {

struct StoreSetup {
  store::ObjectStorePtr bare;     ///< traced, but without retries: says at once what is wrong
  store::ObjectStorePtr layered;  ///< what mounts use
  std::string credentials;        ///< where the keys come from, for messages
};

/// Thread-safe. `registry` and `clock` must outlive it and its stores.
class StoreFactory {
 public:
  StoreFactory(metrics::Registry& registry, const Clock& clock, std::size_t connections)
      : registry_(registry), clock_(clock), connections_(connections) {}
  [[nodiscard]] Result<StoreSetup> make(const MountSpec& spec);

 private:
  [[nodiscard]] Result<StoreSetup> protocol(const MountSpec& spec);
  [[nodiscard]] std::shared_ptr<net::HttpClient> http(const MountSpec& spec);

  metrics::Registry& registry_;
  const Clock& clock_;
  const std::size_t connections_;
  Mutex mutex_{LockRank::kLeaf, "http clients"};
  std::map<std::pair<std::string, bool>, std::shared_ptr<net::HttpClient>> clients_ GUARDED_BY(mutex_);
};

/// Asks the store for one key of the mount's prefix, before anything is mounted. Ends within 10 s; the error is a sentence that
/// says what is wrong and how to mend it. `stop` ends it at once. True when there is at least one key.
[[nodiscard]] Result<bool> check_store(const MountSpec& spec, const StoreSetup& setup, const Clock& clock,
                                       const std::stop_token& stop);
/// The sentence for an error of that first request. Pure.
[[nodiscard]] Error explain_store_error(const MountSpec& spec, std::string_view credentials, const Error& error);

}  // namespace thermo::app
