#pragma once
// View: what one mount asks. Decides whether what is known is fresh enough, and which question to the store makes it so.

#include <atomic>
#include <memory>
#include <string>

#include "catalog/engine.h"

namespace thermo::catalog {

class MountView final : public View {
 public:
  MountView(std::shared_ptr<Engine> engine, store::ObjectStorePtr store, std::string root, Freshness freshness);
  ~MountView() override;

  [[nodiscard]] Result<Found> lookup(const RequestContext& ctx, const std::string& prefix, std::string_view name) override;
  [[nodiscard]] Result<void> list(const RequestContext& ctx, const std::string& prefix, std::string_view after,
                                  const std::function<bool(const ListedName&)>& visit, Told* told) override;
  [[nodiscard]] Result<Entry> by_number(const RequestContext& ctx, Number number) override;
  [[nodiscard]] Result<Folder> folder(const RequestContext& ctx, const std::string& prefix) override;
  void expire(const std::string& key) override;
  void expire_prefix(const std::string& prefix) override;
  void set_listener(Listener* listener) override { listener_->set(listener); }
  [[nodiscard]] Skipped skipped() const override { return engine_->applier().skipped(); }
  [[nodiscard]] store::ObjectStore& store() override { return *store_; }

 private:
  /// What is known of a name, fresh enough, and since when.
  struct Known {
    KnownNamePtr name;
    WallNanos since = 0;
  };
  [[nodiscard]] Result<Known> resolve(const RequestContext& ctx, const std::string& prefix, std::string_view name);
  /// The object that the folder `prefix` + `name` hides, if there is one.
  [[nodiscard]] Result<std::optional<Known>> hidden_object(const RequestContext& ctx, const std::string& prefix,
                                                           std::string_view name);
  /// Waits for a flight that ends in one step.
  [[nodiscard]] Result<void> ended(const RequestContext& ctx, const FlightPtr& flight);
  [[nodiscard]] Result<FlightPtr> next_for_name(const RequestContext& ctx, const std::string& prefix, std::string_view name,
                                                const KnownName& known, WallNanos need, std::vector<FlightPtr>& joined);
  [[nodiscard]] Result<FlightPtr> next_for_listing(const RequestContext& ctx, const std::string& prefix, WallNanos need,
                                                   std::vector<FlightPtr>& joined);
  /// The page of a subtree that holds `prefix`, if one is on its way and was not waited for yet.
  [[nodiscard]] FlightPtr subtree_under_way(std::string_view prefix, WallNanos need, std::vector<FlightPtr>& joined);

  [[nodiscard]] bool strict() const { return freshness_.ttl == Nanos::zero(); }
  [[nodiscard]] bool immutable() const { return freshness_.ttl == Nanos::max(); }
  /// Answers from before this do not count for a request that begins now.
  [[nodiscard]] WallNanos need() const;
  [[nodiscard]] Nanos remaining(WallNanos since) const;
  [[nodiscard]] Result<bool> has_subfolders(const std::string& prefix);

  const std::shared_ptr<Engine> engine_;
  const store::ObjectStorePtr store_;
  const std::string root_;
  const Freshness freshness_;
  const std::shared_ptr<ListenerSlot> listener_ = std::make_shared<ListenerSlot>();
};

}  // namespace thermo::catalog
