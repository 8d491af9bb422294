#pragma once
// The store as a source of cached bytes.

#include <memory>

#include "cache/cache.h"
#include "catalog/catalog.h"

namespace thermo::vfs {

/// Fetches from the view's store under the condition that the object is still the version asked for. Keeps the view alive.
class StoreSource final : public cache::Source {
 public:
  explicit StoreSource(std::shared_ptr<catalog::View> view) : view_(std::move(view)) {}
  [[nodiscard]] Result<void> fetch(const RequestContext& ctx, const cache::ObjectRef& object, cache::ByteRange range,
                                   store::BodySink& sink) override {
    TRY(view_->store().get_range(ctx, object.key, object.etag, object.size, range, sink));
    return {};
  }

 private:
  const std::shared_ptr<catalog::View> view_;
};

}  // namespace thermo::vfs
