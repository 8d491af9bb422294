#include <fmt/core.h>

#include <functional>

#include "store/layers/forwarding.h"
#include "store/layers/layers.h"

namespace thermo::store {
namespace {

/// Lets no byte through beyond the number asked for.
class BoundedSink final : public BodySink {
 public:
  BoundedSink(BodySink& inner, std::uint64_t limit) : inner_(inner), left_(limit) {}
  [[nodiscard]] Result<void> write(std::span<const std::byte> bytes) override {
    if (bytes.size() > left_) return fail(ErrorCode::kCorrupt, "the store sent more bytes than were asked for");
    left_ -= bytes.size();
    return inner_.write(bytes);
  }
  [[nodiscard]] std::uint64_t left() const { return left_; }

 private:
  BodySink& inner_;
  std::uint64_t left_;
};

// What is wrong with a sequence of names of a page; empty when nothing is.
template <class Items, class NameOf>
std::string fault_of(const Items& items, const ListRequest& request, NameOf&& name_of) {
  const std::string* before = nullptr;
  for (const auto& item : items) {
    const std::string& name = name_of(item);
    if (!name.starts_with(request.prefix)) return fmt::format("'{}' lies outside the prefix", name);
    if (before != nullptr && name <= *before) return fmt::format("'{}' comes after '{}'", name, *before);
    before = &name;
  }
  return {};
}

std::string fault_of(const ListPage& page, const ListRequest& request) {
  auto fault = fault_of(page.objects, request, [](const ObjectInfo& info) -> const std::string& { return info.key; });
  if (!fault.empty()) return fault;
  fault = fault_of(page.prefixes, request, std::identity());
  if (!fault.empty()) return fault;
  for (const auto& prefix : page.prefixes) {
    if (request.delimiter.empty() || !prefix.ends_with(request.delimiter) || prefix.size() <= request.prefix.size()) {
      return fmt::format("'{}' is no group of this request", prefix);
    }
  }
  if (!request.delimiter.empty()) {
    for (const auto& object : page.objects) {
      if (object.key.find(request.delimiter, request.prefix.size()) != std::string::npos)
        return fmt::format("'{}' belongs in a group", object.key);
    }
  }
  if (request.continuation.empty() && !request.start_after.empty() && !page.objects.empty() &&
      page.objects[0].key <= request.start_after) {
    return fmt::format("'{}' is not after '{}'", page.objects[0].key, request.start_after);
  }
  if (page.truncated && (page.continuation.empty() || page.continuation == request.continuation)) return "it leads to itself";
  return {};
}

class CheckLayer final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  Result<GetInfo> get_range(const RequestContext& ctx, const std::string& key, const std::string& if_match,
                            std::uint64_t object_size, ByteRange range, BodySink& sink) override {
    BoundedSink bounded(sink, range.length);
    TRY_ASSIGN(GetInfo info, inner().get_range(ctx, key, if_match, object_size, range, bounded));
    if (!if_match.empty() && info.etag != if_match) {
      return fail(ErrorCode::kPreconditionFailed, fmt::format("'{}': asked for version {}, got {}", key, if_match, info.etag));
    }
    if (bounded.left() != 0) {
      return fail(ErrorCode::kCorrupt, fmt::format("'{}': {} of {} bytes came, and the store called it complete", key,
                                                   range.length - bounded.left(), range.length));
    }
    if (!if_match.empty() && info.object_size != object_size) {
      return fail(ErrorCode::kCorrupt,
                  fmt::format("'{}': version {} had {} bytes and now has {}", key, if_match, object_size, info.object_size));
    }
    return info;
  }

  Result<ListPage> list_page(const RequestContext& ctx, const ListRequest& request) override {
    TRY_ASSIGN(ListPage page, inner().list_page(ctx, request));
    const std::string fault = fault_of(page, request);
    if (!fault.empty()) return fail(ErrorCode::kCorrupt, fmt::format("listing of '{}': {}", request.prefix, fault));
    return page;
  }
};

}  // namespace

ObjectStorePtr with_check(ObjectStorePtr inner) { return std::make_shared<CheckLayer>(std::move(inner)); }

}  // namespace thermo::store
