#include "vfs/attributes.h"

#include <sys/stat.h>

namespace thermo::vfs {

Attr make_attr(const catalog::Entry& entry, const Options& options) {
  Attr attr;
  attr.uid = options.uid;
  attr.gid = options.gid;
  attr.nlink = 1;  // also for folders: tools that count sub-folders by links (find) then look at each entry's type instead
  if (const auto* file = std::get_if<catalog::File>(&entry)) {
    attr.ino = file->ino;
    attr.mode = static_cast<std::uint32_t>(S_IFREG) | (options.file_mode & 07777u);
    attr.size = file->size;
    attr.blocks = (file->size + 511) / 512;
    attr.mtime = file->mtime;
  } else {
    const auto& folder = std::get<catalog::Folder>(entry);
    attr.ino = folder.ino;
    attr.mode = static_cast<std::uint32_t>(S_IFDIR) | (options.dir_mode & 07777u);
    attr.mtime = folder.first_seen;
  }
  return attr;
}

std::string store_url(const Options& options, std::string_view key) {
  std::string url = options.store_name;
  if (url.empty() || url.back() != '/') url += '/';
  if (!options.root_prefix.empty() && url.ends_with(options.root_prefix)) url.resize(url.size() - options.root_prefix.size());
  url += key;
  return url;
}

}  // namespace thermo::vfs
