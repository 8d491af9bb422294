#include "s3sim/uploads.h"

#include <algorithm>

#include "s3sim/checksum.h"
#include "s3sim/conditional.h"

namespace thermo::s3sim {
namespace {

constexpr std::size_t kLeastPart = 5 * 1024 * 1024;

S3Error no_such_upload(std::string_view id) {
  return {404,
          "NoSuchUpload",
          "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.",
          {},
          {{"UploadId", std::string(id)}}};
}

}  // namespace

std::string Uploads::create(Upload upload) {
  upload.created = Clock::system().wall();
  MutexLock lock(mutex_);
  std::string id = fmt::format("sim-{:08x}", next_++);
  uploads_[id] = std::move(upload);
  return id;
}

S3Result<void> Uploads::add_part(const std::string& id, const std::string& key, int number, Part part) {
  part.modified = Clock::system().wall();
  MutexLock lock(mutex_);
  const auto it = uploads_.find(id);
  if (it == uploads_.end() || it->second.key != key) return tl::unexpected<S3Error>(no_such_upload(id));
  it->second.parts[number] = std::move(part);
  return {};
}

S3Result<Upload> Uploads::find(const std::string& id, const std::string& key) {
  MutexLock lock(mutex_);
  const auto it = uploads_.find(id);
  if (it == uploads_.end() || it->second.key != key) return tl::unexpected<S3Error>(no_such_upload(id));
  return it->second;
}

S3Result<void> Uploads::remove(const std::string& id, const std::string& key) {
  MutexLock lock(mutex_);
  const auto it = uploads_.find(id);
  if (it == uploads_.end() || it->second.key != key) return tl::unexpected<S3Error>(no_such_upload(id));
  uploads_.erase(it);
  return {};
}

std::vector<std::pair<std::string, Upload>> Uploads::of_bucket(const std::string& bucket) {
  std::vector<std::pair<std::string, Upload>> out;
  {
    MutexLock lock(mutex_);
    for (const auto& entry : uploads_) {
      if (entry.second.bucket == bucket) out.emplace_back(entry);
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second.key < b.second.key; });
  return out;
}

S3Result<Object> join_parts(const Upload& upload, const std::vector<WantedPart>& wanted) {
  if (wanted.empty()) return refuse(400, "MalformedXML", "The list of parts is empty");
  auto data = std::make_shared<std::string>();
  std::string digests;
  std::string part_checksums;
  const auto unordered = [](const WantedPart& a, const WantedPart& b) { return a.number >= b.number; };
  if (std::adjacent_find(wanted.begin(), wanted.end(), unordered) != wanted.end())
    return refuse(400, "InvalidPartOrder", "The list of parts was not in ascending order.");
  for (const auto& want : wanted) {
    const auto it = upload.parts.find(want.number);
    if (it == upload.parts.end() || !etag_matches(want.etag, hex(it->second.md5)))
      return refuse(400, "InvalidPart", fmt::format("Part {} was not uploaded, or its entity tag is another one.", want.number));
    const Part& part = it->second;
    if (want.number != wanted.back().number && part.data->size() < kLeastPart)
      return refuse(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size");
    data->append(*part.data);
    digests += part.md5;
    if (!upload.algorithm.empty()) part_checksums += *checksum(upload.algorithm, *part.data);
  }
  Object object;
  object.etag = fmt::format("\"{}-{}\"", hex(md5(digests)), wanted.size());
  object.content_type = upload.content_type;
  object.metadata = upload.metadata;
  if (!upload.algorithm.empty()) {
    object.checksum_type = upload.checksum_type;
    const bool whole = upload.checksum_type == "FULL_OBJECT";
    std::string value = base64(*checksum(upload.algorithm, whole ? std::string_view(*data) : std::string_view(part_checksums)));
    if (!whole) value += fmt::format("-{}", wanted.size());
    object.checksums.emplace_back("x-amz-checksum-" + upload.algorithm, std::move(value));
  }
  object.data = std::move(data);
  return object;
}

}  // namespace thermo::s3sim
