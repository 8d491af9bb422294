#include "store/s3/ini_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "net/sigv4_canonical.h"

namespace thermo::store {
namespace {

constexpr std::size_t kMaxFile = 1U << 20U;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// A comment begins at '#' or ';' that stands after a blank.
std::string_view without_comment(std::string_view value) {
  for (std::size_t i = 1; i < value.size(); ++i) {
    if ((value[i] == '#' || value[i] == ';') && (value[i - 1] == ' ' || value[i - 1] == '\t')) return trimmed(value.substr(0, i));
  }
  return value;
}

std::string section_name(std::string_view inside) {
  std::string name;
  for (const char c : net::fold_spaces(inside)) {
    if (c != '"' && c != '\'') name += c;
  }
  return name;
}

}  // namespace

IniSections parse_ini(std::string_view text) {
  IniSections sections;
  std::map<std::string, std::string>* current = nullptr;
  std::string parent;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view raw = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string_view line = trimmed(raw);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      const std::size_t close = line.find(']');
      current = close == std::string_view::npos ? nullptr : &sections[section_name(line.substr(1, close - 1))];
      parent.clear();
      continue;
    }
    const std::size_t equals = line.find('=');
    if (current == nullptr || equals == std::string_view::npos) continue;
    const std::string name = net::lower_ascii(trimmed(line.substr(0, equals)));
    const std::string_view value = without_comment(trimmed(line.substr(equals + 1)));
    const bool nested = (raw.front() == ' ' || raw.front() == '\t') && !parent.empty();
    if (nested) {
      (*current)[parent + '.' + name] = value;
    } else {
      (*current)[name] = value;
      parent = value.empty() ? name : std::string();
    }
  }
  return sections;
}

FileStamp stamp_of(const std::string& path) {
  struct stat st{};
  if (path.empty() || ::stat(path.c_str(), &st) != 0) return {};
  return {static_cast<std::int64_t>(st.st_mtim.tv_sec) * 1'000'000'000 + st.st_mtim.tv_nsec, st.st_size, st.st_ino};
}

Result<std::string> read_small_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(errno_error(errno, "read " + path));
  std::string text;
  std::array<char, 16384> buffer{};
  while (true) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || text.size() > kMaxFile) {
      const int err = n < 0 ? errno : 0;
      ::close(fd);
      if (err != 0) return fail(errno_error(err, "read " + path));
      if (text.size() > kMaxFile) return fail(ErrorCode::kInvalidArgument, path + " has more than 1 MiB: is it the right file?");
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace thermo::store
