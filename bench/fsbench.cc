// One file-system measurement per call, the same program on the local disk and on a mount. Prints one JSON line.
//
//   fsbench seq FILE BLOCK | rand FILE BLOCK COUNT SEED | openclose FILE COUNT | openread FILE COUNT | firstbyte FILE | walk
//   FOLDER | ls FOLDER
//           small FOLDER THREADS

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "fsbench: %s: %s\n", what.c_str(), std::strerror(errno));
  std::exit(1);
}

int open_or_die(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) die(path);
  return fd;
}

std::uint64_t size_of(int fd) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) die("fstat");
  return static_cast<std::uint64_t>(st.st_size);
}

int seq(const std::string& path, std::size_t block) {
  std::vector<char> buffer(block);
  const auto start = Clock::now();
  const int fd = open_or_die(path);
  std::uint64_t total = 0;
  while (true) {
    const ssize_t n = ::read(fd, buffer.data(), block);
    if (n < 0) die("read");
    if (n == 0) break;
    total += static_cast<std::uint64_t>(n);
  }
  const double seconds = since(start);
  ::close(fd);
  std::printf("{\"seconds\": %.6f, \"bytes\": %llu, \"mb_s\": %.1f}\n", seconds, static_cast<unsigned long long>(total),
              static_cast<double>(total) / seconds / 1e6);
  return 0;
}

int random_reads(const std::string& path, std::size_t block, int count, std::uint64_t seed) {
  std::vector<char> buffer(block);
  std::vector<double> micros;
  micros.reserve(static_cast<std::size_t>(count));
  const int fd = open_or_die(path);
  const std::uint64_t blocks = size_of(fd) / block;
  const auto start = Clock::now();
  for (int i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    const std::uint64_t offset = (seed >> 20) % blocks * block;
    const auto before = Clock::now();
    if (::pread(fd, buffer.data(), block, static_cast<off_t>(offset)) != static_cast<ssize_t>(block)) die("pread");
    micros.push_back(since(before) * 1e6);
  }
  const double seconds = since(start);
  std::sort(micros.begin(), micros.end());
  std::printf("{\"seconds\": %.6f, \"per_s\": %.0f, \"median_us\": %.2f}\n", seconds, count / seconds, micros[micros.size() / 2]);
  return 0;
}

int open_close(const std::string& path, int count, bool read) {
  char buffer[4096];
  std::vector<double> micros;
  for (int i = 0; i < count; ++i) {
    const auto before = Clock::now();
    const int fd = open_or_die(path);
    if (read && ::pread(fd, buffer, sizeof buffer, 0) < 0) die("pread");
    ::close(fd);
    micros.push_back(since(before) * 1e6);
  }
  std::sort(micros.begin(), micros.end());
  std::printf("{\"median_us\": %.2f}\n", micros[micros.size() / 2]);
  return 0;
}

int first_byte(const std::string& path) {
  char byte = 0;
  const auto start = Clock::now();
  const int fd = open_or_die(path);
  if (::pread(fd, &byte, 1, 0) != 1) die("pread");
  std::printf("{\"ms\": %.3f}\n", since(start) * 1e3);
  return 0;
}

// As find does it: readdir, then an lstat of every entry.
std::uint64_t walk(const std::string& folder, bool recurse) {
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) die(folder);
  std::uint64_t entries = 0;
  std::vector<std::string> folders;
  while (const dirent* entry = ::readdir(dir)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    ++entries;
    struct stat st{};
    if (::fstatat(::dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) die(folder + "/" + entry->d_name);
    if (recurse && S_ISDIR(st.st_mode)) folders.push_back(folder + "/" + entry->d_name);
  }
  ::closedir(dir);
  for (const auto& sub : folders) entries += walk(sub, recurse);
  return entries;
}

int walk_command(const std::string& folder, bool recurse) {
  const auto start = Clock::now();
  const std::uint64_t entries = walk(folder, recurse);
  const double seconds = since(start);
  std::printf("{\"seconds\": %.6f, \"entries\": %llu}\n", seconds, static_cast<unsigned long long>(entries));
  return 0;
}

void collect(const std::string& folder, std::vector<std::string>& files) {
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) die(folder);
  std::vector<std::string> folders;
  while (const dirent* entry = ::readdir(dir)) {  // NOLINT(concurrency-mt-unsafe): one stream, one thread
    if (entry->d_name[0] == '.') continue;
    const std::string path = folder + "/" + entry->d_name;
    if (entry->d_type == DT_DIR) folders.push_back(path);
    else files.push_back(path);
  }
  ::closedir(dir);
  std::sort(folders.begin(), folders.end());
  for (const auto& sub : folders) collect(sub, files);
}

int small_files(const std::string& folder, int threads) {
  std::vector<std::string> files;
  collect(folder, files);
  std::sort(files.begin(), files.end());
  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> bytes{0};
  const auto start = Clock::now();
  std::vector<std::thread> readers;
  for (int i = 0; i < threads; ++i) {
    readers.emplace_back([&] {
      std::vector<char> buffer(1u << 20);
      for (std::size_t at = next++; at < files.size(); at = next++) {
        const int fd = open_or_die(files[at]);
        while (true) {
          const ssize_t n = ::read(fd, buffer.data(), buffer.size());
          if (n < 0) die(files[at]);
          if (n == 0) break;
          bytes += static_cast<std::uint64_t>(n);
        }
        ::close(fd);
      }
    });
  }
  for (auto& reader : readers) reader.join();
  const double seconds = since(start);
  std::printf("{\"seconds\": %.6f, \"files\": %zu, \"per_s\": %.0f}\n", seconds, files.size(),
              static_cast<double>(files.size()) / seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 2 ? argv[1] : "";
  const std::string path = argc > 2 ? argv[2] : "";
  const auto number = [&](int index) { return argc > index ? std::atoi(argv[index]) : 0; };
  if (command == "seq" && argc > 3) return seq(path, static_cast<std::size_t>(number(3)));
  if (command == "rand" && argc > 5)
    return random_reads(path, static_cast<std::size_t>(number(3)), number(4), static_cast<std::uint64_t>(number(5)));
  if (command == "openclose" && argc > 3) return open_close(path, number(3), false);
  if (command == "openread" && argc > 3) return open_close(path, number(3), true);
  if (command == "firstbyte") return first_byte(path);
  if (command == "walk") return walk_command(path, true);
  if (command == "ls") return walk_command(path, false);
  if (command == "small" && argc > 3) return small_files(path, number(3));
  std::fprintf(stderr,
               "usage: fsbench seq|rand|openclose|openread|firstbyte|walk|ls|small PATH ... (see the head of fsbench.cc)\n");
  return 2;
}
