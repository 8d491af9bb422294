#pragma once
// Private to s3sim: where buckets and objects are.

#include <optional>
#include <string>
#include <vector>

#include "s3sim/list.h"
#include "s3sim/types.h"

namespace thermo::s3sim {

struct BucketInfo {
  std::string name;
  WallNanos created = 0;
};

/// Condition of a write, checked together with the write. ETags with or without quotes.
struct WriteCondition {
  bool if_absent = false;  ///< If-None-Match: *
  std::string if_match;    ///< empty = any
};

/// Does `current` (null: no object) satisfy the condition? S3's answers: 412, and 404 for If-Match on a missing key.
[[nodiscard]] S3Result<void> check_condition(const WriteCondition& condition, const ObjectPtr& current, std::string_view key);

/// Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::vector<BucketInfo> buckets() = 0;
  [[nodiscard]] virtual bool has_bucket(const std::string& bucket) = 0;
  [[nodiscard]] virtual S3Result<void> create_bucket(const std::string& bucket) = 0;
  [[nodiscard]] virtual S3Result<void> remove_bucket(const std::string& bucket) = 0;
  /// The object, its bytes readable when `with_body`.
  [[nodiscard]] virtual S3Result<ObjectPtr> find(const std::string& bucket, const std::string& key, bool with_body) = 0;
  /// Stores `object.data` and all else but size and time.
  [[nodiscard]] virtual S3Result<ObjectPtr> put(const std::string& bucket, const std::string& key, Object object,
                                                const WriteCondition& condition) = 0;
  /// A key that does not exist counts as removed.
  [[nodiscard]] virtual S3Result<void> remove(const std::string& bucket, const std::string& key,
                                              const WriteCondition& condition) = 0;
  /// `stale_by` > 0: as the bucket was that long ago (memory only; elsewhere it is the present).
  [[nodiscard]] virtual S3Result<ListPage> list(const std::string& bucket, const ListQuery& query, Nanos stale_by) = 0;
};

/// Truly flat keys of any bytes.
[[nodiscard]] std::unique_ptr<Backend> make_memory_backend();
/// Each sub-folder of `folder` is a bucket, each plain file below it an object.
[[nodiscard]] std::unique_ptr<Backend> make_folder_backend(std::string folder);

}  // namespace thermo::s3sim
