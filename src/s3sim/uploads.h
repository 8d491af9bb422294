#pragma once
// Private to s3sim: multipart uploads in progress, in memory.

#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "s3sim/types.h"

namespace thermo::s3sim {

struct Part {
  std::shared_ptr<const std::string> data;
  std::string md5;  ///< raw
  Headers checksums;
  WallNanos modified = 0;
};

struct Upload {
  std::string bucket, key;
  std::string content_type;
  Headers metadata;
  std::string algorithm;      ///< lower case, empty = no checksum asked
  std::string checksum_type;  ///< FULL_OBJECT or COMPOSITE, with an algorithm
  WallNanos created = 0;
  std::map<int, Part> parts;
};

/// What the client says the object consists of.
struct WantedPart {
  int number = 0;
  std::string etag;
};

/// Thread-safe.
class Uploads {
 public:
  [[nodiscard]] std::string create(Upload upload);
  [[nodiscard]] S3Result<void> add_part(const std::string& id, const std::string& key, int number, Part part);
  [[nodiscard]] S3Result<Upload> find(const std::string& id, const std::string& key);
  [[nodiscard]] S3Result<void> remove(const std::string& id, const std::string& key);
  /// Of one bucket, ordered by key, then id.
  [[nodiscard]] std::vector<std::pair<std::string, Upload>> of_bucket(const std::string& bucket);

 private:
  Mutex mutex_{LockRank::kStore, "s3sim uploads"};
  std::map<std::string, Upload> uploads_ GUARDED_BY(mutex_);
  std::uint64_t next_ GUARDED_BY(mutex_) = 1;
};

/// Joins the wanted parts of an upload to one object (no time yet): checks order, presence, ETags and the least size of 5 MiB of
/// all but the last.
[[nodiscard]] S3Result<Object> join_parts(const Upload& upload, const std::vector<WantedPart>& wanted);

}  // namespace thermo::s3sim
