#include "vfs/node_table.h"

#include <iterator>
#include <utility>

#include "base/hash.h"

namespace thermo::vfs {

NodeId make_node(catalog::Number number, std::uint32_t generation) {
  return (number << kGenerationBits) | (generation & ((1u << kGenerationBits) - 1));
}

const std::string& entry_key(const catalog::Entry& entry) {
  if (const auto* file = std::get_if<catalog::File>(&entry)) return file->key;
  return std::get<catalog::Folder>(entry).prefix;
}

catalog::Number entry_number(const catalog::Entry& entry) {
  return std::visit([](const auto& e) { return e.number; }, entry);
}

NodeId entry_node(const catalog::Entry& entry) {
  if (const auto* file = std::get_if<catalog::File>(&entry)) return make_node(file->number, file->generation);
  return make_node(std::get<catalog::Folder>(entry).number, kFolderGeneration);
}

ParentAndName split_key(const std::string& key) {
  const std::size_t end = !key.empty() && key.back() == '/' ? key.size() - 1 : key.size();
  const std::size_t slash = end == 0 ? std::string::npos : key.rfind('/', end - 1);
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  return {key.substr(0, begin), key.substr(begin, end - begin)};
}

void NodeTable::erase(Slots::iterator slot) {
  const auto key = by_key_.find(slot->key_hash);
  if (key != by_key_.end() && key->second == slot->number) by_key_.erase(key);
  by_number_.erase(slot->number);
  slots_.erase(slot);
}

void NodeTable::remember(KnownPtr known, bool confirmed) {
  const catalog::Number number = entry_number(known->entry);
  const std::uint64_t key_hash = hash64(entry_key(known->entry));
  const auto* file = std::get_if<catalog::File>(&known->entry);
  MutexLock lock(mutex_);
  if (!suspects_.empty()) {
    const auto suspect = suspects_.find(number);
    if (suspect != suspects_.end() && (confirmed || (file != nullptr && file->generation > suspect->second.generation))) {
      suspects_.erase(suspect);
    }
  }
  if (const auto found = by_number_.find(number); found != by_number_.end()) {
    const Slots::iterator slot = found->second;
    // A slow caller may come with an older state than one that was told since: generations only go up.
    const auto* old_file = std::get_if<catalog::File>(&slot->known->entry);
    if (old_file != nullptr && file != nullptr && old_file->generation > file->generation) return;
    slot->known = std::move(known);
    slots_.splice(slots_.begin(), slots_, slot);
    return;
  }
  // The key may have had another number (deleted and made again).
  if (const auto other = by_key_.find(key_hash); other != by_key_.end()) erase(by_number_.at(other->second));
  slots_.push_front({number, key_hash, std::move(known)});
  by_number_[number] = slots_.begin();
  by_key_[key_hash] = number;
  if (slots_.size() > capacity_) erase(std::prev(slots_.end()));
}

void NodeTable::forget_key(const std::string& key) {
  const std::uint64_t key_hash = hash64(key);
  MutexLock lock(mutex_);
  if (const auto found = by_key_.find(key_hash); found != by_key_.end()) erase(by_number_.at(found->second));
}

NodeTable::Answer NodeTable::find(catalog::Number number) {
  MutexLock lock(mutex_);
  if (!suspects_.empty()) {
    if (const auto suspect = suspects_.find(number); suspect != suspects_.end()) return {nullptr, suspect->second.key};
  }
  const auto found = by_number_.find(number);
  if (found == by_number_.end()) return {};
  slots_.splice(slots_.begin(), slots_, found->second);
  return {found->second->known, std::nullopt};
}

NodeTable::KnownPtr NodeTable::find_key(const std::string& key) {
  const std::uint64_t key_hash = hash64(key);
  MutexLock lock(mutex_);
  const auto found = by_key_.find(key_hash);
  return found == by_key_.end() ? nullptr : by_number_.at(found->second)->known;
}

void NodeTable::suspect(const catalog::File& file) {
  MutexLock lock(mutex_);
  if (const auto found = by_number_.find(file.number); found != by_number_.end()) {
    const auto* known = std::get_if<catalog::File>(&found->second->known->entry);
    if (known != nullptr && known->generation > file.generation) return;  // the newer version is known already
    erase(found->second);
  }
  if (suspects_.size() >= kMaxSuspects) suspects_.erase(suspects_.begin());
  suspects_[file.number] = {file.generation, file.key};
}

std::size_t NodeTable::size() {
  MutexLock lock(mutex_);
  return slots_.size();
}

}  // namespace thermo::vfs
