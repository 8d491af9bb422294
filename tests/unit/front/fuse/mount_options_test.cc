#include "front/fuse/mount_options.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include "front/fuse/fusermount.h"
#include "front/fuse/mount_table.h"

namespace thermo::fuse {
namespace {

TEST(MountOptions, GenericWordsBecomeFlagsAndTheLastOneHolds) {
  const auto options = parse_mount_options("ro,noatime,noexec,allow_other");
  ASSERT_TRUE(options.has_value());
  EXPECT_EQ(options->flags, static_cast<unsigned long>(MS_RDONLY | MS_NOATIME | MS_NOEXEC));
  EXPECT_TRUE(options->allow_other);
  EXPECT_FALSE(options->nonempty);
  EXPECT_EQ(parse_mount_options("ro,rw")->flags, 0ul);
  EXPECT_EQ(parse_mount_options("rw,ro")->flags, static_cast<unsigned long>(MS_RDONLY));
  EXPECT_TRUE(parse_mount_options("nonempty")->nonempty);
  EXPECT_EQ(parse_mount_options("")->flags, 0ul);
  EXPECT_EQ(parse_mount_options(",,ro,")->flags, static_cast<unsigned long>(MS_RDONLY));
}

TEST(MountOptions, FstabWordsAreIgnored) {
  const auto options = parse_mount_options(
      "defaults,auto,noauto,user,nouser,users,owner,group,nofail,_netdev,x-systemd.automount,X-y,comment=z,nosuid,nodev,default_"
      "permissions");
  ASSERT_TRUE(options.has_value()) << options.error().message();
  EXPECT_EQ(options->flags, 0ul);
}

TEST(MountOptions, UnknownWordsAreNamed) {
  for (const std::string word : {"suid", "dev", "bogus", "uid=5", "roo"}) {
    const auto options = parse_mount_options("ro," + word);
    ASSERT_FALSE(options.has_value()) << word;
    EXPECT_EQ(options.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(options.error().message().find("'" + word + "'"), std::string_view::npos);
  }
}

TEST(MountOptions, WordsForTheHelper) {
  EXPECT_EQ(flag_words(0), "");
  EXPECT_EQ(flag_words(MS_RDONLY | MS_NOATIME), "ro,noatime");
  MountOptions options = *parse_mount_options("ro,allow_other");
  const auto text = fusermount_options("s3://b/a,b\\c", options);
  EXPECT_TRUE(text.starts_with("fsname=s3://b/a\\,b\\\\c,subtype=thermo,")) << text;
  EXPECT_NE(text.find(",allow_other"), std::string::npos);
  EXPECT_NE(text.find(",ro"), std::string::npos);
  EXPECT_EQ(fusermount_options("s", {}).find("allow_other"), std::string::npos);
}

TEST(MountOptions, FuseConf) {
  EXPECT_FALSE(grants_allow_other(""));
  EXPECT_FALSE(grants_allow_other("#user_allow_other\nmount_max = 10\n"));
  EXPECT_FALSE(grants_allow_other("user_allow_others\n"));
  EXPECT_TRUE(grants_allow_other("mount_max = 10\n user_allow_other \n"));
}

TEST(MountTable, LinesAreDecoded) {
  const auto mounts = parse_mountinfo(
      "22 1 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/root rw\n"
      "garbage\n"
      "40 22 0:33 / /mnt/with\\040space\\134and\\012line rw,nosuid,nodev - fuse.thermo s3://b/a\\040b rw,user_id=0\n"
      "41 22 0:x / /broken rw - ext4 a rw\n"
      "42 22 0:35 / /cut rw shared:1\n"
      "43 22 0:36 / /last ro - tmpfs tmpfs rw");
  ASSERT_EQ(mounts.size(), 3u);
  EXPECT_EQ(mounts[0].type, "ext4");
  EXPECT_EQ(mounts[1].path, "/mnt/with space\\and\nline");
  EXPECT_EQ(mounts[1].source, "s3://b/a b");
  EXPECT_EQ(mounts[1].type, kFsType);
  EXPECT_EQ(mounts[1].major, 0u);
  EXPECT_EQ(mounts[1].minor, 33u);
  EXPECT_EQ(mounts[1].options, "rw,nosuid,nodev");
  EXPECT_EQ(mounts[2].path, "/last");
  EXPECT_TRUE(parse_mountinfo("").empty());
}

TEST(MountTable, TheRootIsMounted) {
  const auto root = mount_at("/");
  ASSERT_TRUE(root.has_value());
  EXPECT_FALSE(root->type.empty());
  EXPECT_FALSE(mount_at("/no/such/place").has_value());
}

}  // namespace
}  // namespace thermo::fuse
