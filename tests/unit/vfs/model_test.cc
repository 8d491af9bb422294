// Seeded histories of a mount with foreign writers: every byte read belongs to the version that was opened, or the reader is
// told.

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "base/rng.h"
#include "unit/vfs/vfs_fixture.h"
#include "vfs/node_table.h"

namespace thermo::vfs {
namespace {

class Model : public VfsFixture, public testing::WithParamInterface<std::uint64_t> {
 protected:
  struct Open {
    NodeId node;
    HandleId handle;
    std::string body;  ///< of the version that was opened
    std::string key;
    int mount = 0;  ///< which mount opened it
  };

  // Each version is one repeated letter pair and a length of its own: any mixture shows.
  std::string body(Rng& rng) {
    const auto tag = std::to_string(++versions_) + ",";
    std::string text;
    const std::size_t size = 1 + rng.below(rng.chance(0.2) ? 3u << 20 : 3000);
    while (text.size() < size) text += tag;
    text.resize(size);
    return text;
  }

  /// As the kernel does: look the path up; at ESTALE look up again.
  std::optional<Open> open_path(const std::string& folder, const std::string& file) {
    for (int attempt = 0; attempt < 3; ++attempt) {
      const auto d = vfs_->lookup(ctx_, kRootNode, folder);
      if (!d || d->node == 0) return std::nullopt;
      const auto f = vfs_->lookup(ctx_, d->node, file);
      if (!f || f->node == 0) return std::nullopt;
      const auto handle = vfs_->open(ctx_, f->node, 0);
      if (!handle) continue;
      const std::string key = folder + "/" + file;
      const std::string etag = *vfs_->get_xattr(ctx_, f->node, "user.thermo.etag");
      return Open{f->node, *handle, by_etag_.at(key + etag), key, mount_};
    }
    ADD_FAILURE() << "ESTALE for ever on " << folder << "/" << file;
    return std::nullopt;
  }

  void foreign_put(const std::string& key, std::string text) {
    const auto info = store_->put(ctx_, key, std::as_bytes(std::span(text)), {});
    ASSERT_TRUE(info);
    by_etag_[key + info->etag] = text;
    truth_[key] = std::move(text);
  }

  int versions_ = 0;
  int mount_ = 0;
  std::map<std::string, std::string> truth_;
  std::map<std::string, std::string> by_etag_;
};

TEST_P(Model, ForeignWritersNeverMix) {
  Rng rng(GetParam());
  const std::string folders[] = {"a", "b", "c"}, files[] = {"f", "g", "h", "i"};
  std::vector<Open> opened;
  std::map<std::string, std::pair<NodeId, std::uint64_t>> seen;  // key -> newest node and ino
  int stale = 0, right = 0;
  for (int step = 0; step < 1500; ++step) {
    const std::string& folder = folders[rng.below(3)];
    const std::string& file = files[rng.below(4)];
    const std::string key = folder + "/" + file;
    switch (rng.below(10)) {
      case 0: foreign_put(key, body(rng)); break;
      case 1:
        if (rng.chance(0.3)) {
          remove(key);
          truth_.erase(key);
        }
        break;
      case 2: clock_.advance(std::chrono::seconds(rng.below(40))); break;
      case 3:
        if (rng.chance(0.1)) {
          start();  // handles and nodes go on meaning the same
          ++mount_;
        }
        break;
      case 4: {
        const auto dir = vfs_->open_dir(ctx_, kRootNode);
        ASSERT_TRUE(dir);
        ASSERT_TRUE(list(kRootNode, *dir, 0, 100));
        vfs_->release_dir(*dir);
        break;
      }
      case 5:
      case 6:
        if (opened.size() < 20) {
          if (auto open = open_path(folder, file)) opened.push_back(std::move(*open));
        }
        break;
      default:
        if (opened.empty()) break;
        const std::size_t at = rng.below(opened.size());
        Open& o = opened[at];
        const std::uint64_t offset = rng.below(o.body.size());
        const auto text = read(o.node, o.handle, offset, 1 + rng.below(1u << 20));
        if (text) {
          ASSERT_EQ(*text, o.body.substr(offset, text->size())) << o.key;
          ASSERT_TRUE(!text->empty());
          ++right;
        } else {
          ASSERT_EQ(text.error().code(), ErrorCode::kStale) << text.error().describe();
          ASSERT_TRUE(!truth_.contains(o.key) || truth_[o.key] != o.body) << o.key << " is as it was opened";
          ++stale;
          // M16: who was told so finds the newest version at once, whatever the TTL.
          // (A handle of an earlier mount on an old generation is told without asking the store.)
          if (o.mount == mount_) {
            const auto slash = o.key.find('/');
            const auto again = open_path(o.key.substr(0, slash), o.key.substr(slash + 1));
            ASSERT_EQ(again.has_value(), truth_.contains(o.key)) << o.key;
            if (again) {
              ASSERT_EQ(again->body, truth_[o.key]);
              vfs_->release(again->handle);
            }
          }
        }
        if (!text || rng.chance(0.1)) {
          vfs_->release(o.handle);
          opened.erase(opened.begin() + static_cast<std::ptrdiff_t>(at));
        }
    }
    // One version, one st_ino; generations only go up; numbers stay.
    const auto d = vfs_->lookup(ctx_, kRootNode, folder);
    ASSERT_TRUE(d);
    if (d->node == 0) continue;
    const auto f = vfs_->lookup(ctx_, d->node, file);
    ASSERT_TRUE(f);
    if (f->node == 0) {
      seen.erase(key);
      continue;
    }
    if (const auto before = seen.find(key); before != seen.end()) {
      const auto [node, ino] = before->second;
      ASSERT_EQ(node == f->node, ino == f->attr.ino);
      if (node_number(node) == node_number(f->node)) {
        ASSERT_GE(node_generation(f->node), node_generation(node));
      }
      if (node != f->node) {
        ASSERT_EQ(code_of(vfs_->open(ctx_, node, 0)), ErrorCode::kStale);
      }
    }
    seen[key] = {f->node, f->attr.ino};
    const auto attr = vfs_->getattr(ctx_, f->node, 0);
    ASSERT_TRUE(attr) << attr.error().describe();
    ASSERT_EQ(attr->attr.ino, f->attr.ino);
  }
  for (const auto& o : opened) vfs_->release(o.handle);
  EXPECT_EQ(vfs_->open_handles(), 0u);
  EXPECT_GT(right, 50);
  EXPECT_GT(stale, 0);
  // A TTL later everybody sees the truth.
  pass_ttl();
  for (const auto& folder : folders) {
    for (const auto& file : files) {
      const auto open = open_path(folder, file);
      ASSERT_EQ(open.has_value(), truth_.contains(folder + "/" + file));
      if (open) {
        EXPECT_EQ(open->body, truth_[folder + "/" + file]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Model, testing::Range<std::uint64_t>(1, 11));

}  // namespace
}  // namespace thermo::vfs
