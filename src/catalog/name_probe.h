#pragma once
// Which LISTs find out what a name is. Keys such as "q-a" sort between the object "q" and the folder "q/", so one LIST can miss
// either. A plain state machine: answers in, requests out.

#include <optional>
#include <string>
#include <vector>

#include "catalog/applier.h"

namespace thermo::catalog {

enum class Ask : std::uint8_t {
  kObject,   ///< LIST from the key itself on: the object sorts first
  kFolder,   ///< LIST of "q/", one key
  kSubtree,  ///< LIST of "q/", a full page: knows the whole subtree when that is small
};

/// Not thread-safe.
class NameProbe {
 public:
  /// What was known before decides what is asked first: a known file is probably still one.
  struct Prior {
    bool file = false;
    bool folder = false;
    bool subtree = false;  ///< ask for the subtree too
  };
  NameProbe(std::string path, Prior prior) : path_(std::move(path)), prior_(prior) {}

  [[nodiscard]] std::vector<Ask> start();
  [[nodiscard]] std::vector<Ask> on_answer(Ask ask, const Result<store::ListPage>& answer);
  [[nodiscard]] store::ListRequest request(Ask ask) const;

  /// A folder, or a file and no folder, or neither.
  [[nodiscard]] bool decided() const { return (folder_ && *folder_) || (folder_ && file_); }
  /// Undecided and nothing under way: why.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] bool failed() const { return !decided() && outstanding_ == 0; }
  [[nodiscard]] Applier::NameFacts facts(WallNanos started) const { return {file_, folder_, started}; }

 private:
  std::vector<Ask> send(std::vector<Ask> asks);

  const std::string path_;
  const Prior prior_;
  std::optional<std::optional<store::ObjectInfo>> file_;
  std::optional<bool> folder_;
  std::optional<Error> error_;
  bool object_asked_ = false;
  bool folder_asked_ = false;
  std::size_t outstanding_ = 0;
};

}  // namespace thermo::catalog
