#include <unordered_map>

#include "cache/replacement.h"

namespace thermo::cache {
namespace {

class Fifo final : public Replacement {
 public:
  void on_insert(const VersionId& id, std::uint64_t bytes, std::uint64_t order) override {
    const auto [it, is_new] = nodes_.try_emplace(id);
    Node& node = it->second;
    node.bytes = bytes;
    if (!is_new) return;
    node.order = order;
    // References into an unordered_map stay valid while it grows: the list lives in the nodes.
    node.id = &it->first;
    node.older = newest_;
    (newest_ != nullptr ? newest_->newer : oldest_) = &node;
    newest_ = &node;
  }

  void on_hit(const VersionId& /*id*/) override {}

  void on_resize(const VersionId& id, std::uint64_t bytes) override {
    const auto it = nodes_.find(id);
    if (it != nodes_.end()) it->second.bytes = bytes;
  }

  void on_remove(const VersionId& id) override {
    const auto it = nodes_.find(id);
    if (it == nodes_.end()) return;
    Node& node = it->second;
    (node.older != nullptr ? node.older->newer : oldest_) = node.newer;
    (node.newer != nullptr ? node.newer->older : newest_) = node.older;
    nodes_.erase(it);
  }

  [[nodiscard]] std::optional<Item> find(const VersionId& id) const override {
    const auto it = nodes_.find(id);
    if (it == nodes_.end()) return std::nullopt;
    return Item{it->second.bytes, it->second.order};
  }

  [[nodiscard]] std::size_t count() const override { return nodes_.size(); }

  [[nodiscard]] std::vector<VersionId> victims(std::uint64_t bytes,
                                               const std::function<bool(const VersionId&)>& keep) const override {
    std::vector<VersionId> ids;
    std::uint64_t sum = 0;
    for (const Node* node = oldest_; node != nullptr && sum < bytes; node = node->newer) {
      if (keep(*node->id)) continue;
      ids.push_back(*node->id);
      sum += node->bytes;
    }
    return ids;
  }

  [[nodiscard]] std::vector<VersionId> all() const override {
    std::vector<VersionId> ids;
    ids.reserve(nodes_.size());
    for (const Node* node = oldest_; node != nullptr; node = node->newer) ids.push_back(*node->id);
    return ids;
  }

 private:
  struct Node {
    std::uint64_t bytes = 0;
    std::uint64_t order = 0;
    const VersionId* id = nullptr;
    Node* older = nullptr;
    Node* newer = nullptr;
  };
  std::unordered_map<VersionId, Node> nodes_;
  Node* oldest_ = nullptr;
  Node* newest_ = nullptr;
};

}  // namespace

std::unique_ptr<Replacement> make_fifo() { return std::make_unique<Fifo>(); }

}  // namespace thermo::cache
