#pragma once
// A folder that goes away with the test, and quick ways to fill it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace thermo::store::testing {

class TempTree {
 public:
  TempTree() {
    std::string name = "/tmp/thermo-file-XXXXXX";
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  ~TempTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;

  [[nodiscard]] const std::string& root() const { return root_; }
  [[nodiscard]] std::string path(const std::string& relative) const { return root_ + "/" + relative; }
  void folder(const std::string& relative) const { std::filesystem::create_directories(path(relative)); }
  void file(const std::string& relative, const std::string& text = "x") const {
    std::filesystem::create_directories(std::filesystem::path(path(relative)).parent_path());
    std::ofstream(path(relative), std::ios::binary) << text;
  }
  void link(const std::string& target, const std::string& relative) const {
    std::filesystem::create_symlink(target, path(relative));
  }

 private:
  std::string root_;
};

}  // namespace thermo::store::testing
