#include "catalog/name_probe.h"

#include "catalog/key_layout.h"

namespace thermo::catalog {
namespace {
// A few keys more than the one asked for often show the folder, or that there is none, in the same answer.
constexpr std::uint32_t kObjectKeys = 4;
constexpr std::uint32_t kSubtreeKeys = 1000;
}  // namespace

std::vector<Ask> NameProbe::send(std::vector<Ask> asks) {
  for (const Ask ask : asks) {
    if (ask == Ask::kObject) object_asked_ = true;
    if (ask == Ask::kFolder) folder_asked_ = true;
  }
  outstanding_ += asks.size();
  return asks;
}

std::vector<Ask> NameProbe::start() {
  std::vector<Ask> asks;
  if (!prior_.folder) asks.push_back(Ask::kObject);
  if (prior_.folder || !prior_.file) asks.push_back(Ask::kFolder);
  if (prior_.subtree) asks.push_back(Ask::kSubtree);
  return send(std::move(asks));
}

store::ListRequest NameProbe::request(Ask ask) const {
  store::ListRequest request;
  request.prefix = ask == Ask::kObject ? path_ : path_ + "/";
  request.max_keys = ask == Ask::kObject ? kObjectKeys : ask == Ask::kFolder ? 1 : kSubtreeKeys;
  return request;
}

std::vector<Ask> NameProbe::on_answer(Ask ask, const Result<store::ListPage>& answer) {
  --outstanding_;
  if (!answer) {
    if (!error_) error_ = answer.error();
  } else if (answer->truncated && answer->objects.empty()) {
    if (!error_) error_ = Error(ErrorCode::kCorrupt, "the store sent an empty page that claims to go on");
  } else if (ask == Ask::kObject) {
    const auto& objects = answer->objects;
    file_.emplace();
    if (!objects.empty() && objects.front().key == path_) *file_ = objects.front();
    const std::string folder = path_ + "/";
    for (const auto& object : objects) {
      if (object.key.starts_with(folder)) folder_ = true;
    }
    if (!folder_ && (!answer->truncated || (!objects.empty() && objects.back().key >= prefix_end(folder)))) folder_ = false;
  } else {
    folder_ = !answer->objects.empty();
  }
  if (decided() || outstanding_ > 0 || error_) return {};
  std::vector<Ask> missing;
  if (!file_ && !object_asked_) missing.push_back(Ask::kObject);
  if (!folder_ && !folder_asked_) missing.push_back(Ask::kFolder);
  return send(std::move(missing));
}

}  // namespace thermo::catalog
