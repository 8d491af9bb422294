#include "catalog/numbers.h"

#include <algorithm>

#include "catalog/key_layout.h"

namespace thermo::catalog {
namespace {
constexpr std::string_view kBoundName = "next-number";
}

Result<void> NumberAllocator::open(Number first) {
  TRY_ASSIGN(const auto stored, kv_.get(meta_key(kBoundName)));
  if (stored && stored->size() != 8) return fail(ErrorCode::kCorrupt, "the catalog's number bound is damaged");
  next_ = bound_ = stored ? read_be64(*stored) : std::max(first, kFirstNumber);
  return {};
}

Result<Number> NumberAllocator::next() {
  if (next_ == bound_) {
    if (bound_ + kBlock > Number{1} << kNumberBits) {
      return fail(ErrorCode::kNoSpace, "all 2^44 file numbers are used; unmount and delete the catalog folder to start anew");
    }
    std::string value;
    append_be64(value, bound_ + kBlock);
    io::KvBatch batch;
    batch.put(meta_key(kBoundName), value);
    TRY(kv_.write(batch, /*sync=*/true));
    bound_ += kBlock;
  }
  return next_++;
}

}  // namespace thermo::catalog
