#include "status.hh"

#include <unistd.h>

#include <cstring>

namespace byname::xrd {
namespace {

// XRootD takes a file with device 0 for one that is on tape.
constexpr dev_t kDevice = 0x62796e61;
constexpr uint64_t kDirectoryBytes = 4096;
constexpr uint64_t kBlockBytes = 512;
constexpr uint64_t kNanosecondsPerSecond = 1'000'000'000;

// FNV-1a.
uint64_t hash_of(const std::string& name, uint64_t version) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto take = [&](unsigned char octet) { hash = (hash ^ octet) * 0x100000001b3; };
  for (const char octet : name) {
    take(static_cast<unsigned char>(octet));
  }
  for (int shift = 0; shift < 64; shift += 8) {
    take(static_cast<unsigned char>(version >> shift));
  }
  return hash;
}

mode_t mode_of(const byname_attributes& attributes) {
  // Nobody writes here; the process may read what its publisher let it have.
  const mode_t known = attributes.present & BYNAME_HAS_MODE ? attributes.mode & 0555 : 0444;
  switch (attributes.kind) {
    case BYNAME_KIND_DIRECTORY:
      return S_IFDIR | known | 0555;
    case BYNAME_KIND_SYMLINK:
      return S_IFLNK | known | S_IRUSR;
    default:
      return S_IFREG | known | S_IRUSR;
  }
}

template <size_t N>
void add_checksum(Status& status, const byname_attributes& attributes, uint32_t bit,
                  const char* name, const uint8_t (&octets)[N]) {
  if (attributes.present & bit) {
    status.checksums.push_back({name, std::string(reinterpret_cast<const char*>(octets), N)});
  }
}

}  // namespace

Status status_of(const byname_attributes& attributes, const std::string& name) {
  Status status{};
  struct stat& stat = status.stat;
  const bool is_directory = attributes.kind == BYNAME_KIND_DIRECTORY;
  status.version = attributes.present & BYNAME_HAS_VERSION ? attributes.version : 0;
  stat.st_dev = kDevice;
  stat.st_ino = hash_of(name, is_directory ? 0 : status.version) | 1;
  stat.st_mode = mode_of(attributes);
  stat.st_nlink = is_directory ? 2 : 1;
  stat.st_uid = geteuid();
  stat.st_gid = getegid();
  const uint64_t size = is_directory ? kDirectoryBytes : attributes.size;
  stat.st_size = static_cast<off_t>(size);
  stat.st_blksize = 8192;
  stat.st_blocks = static_cast<blkcnt_t>((size + kBlockBytes - 1) / kBlockBytes);
  if (attributes.present & BYNAME_HAS_MTIME) {
    stat.st_mtim.tv_sec = static_cast<time_t>(attributes.mtime_ns / kNanosecondsPerSecond);
    stat.st_mtim.tv_nsec = static_cast<long>(attributes.mtime_ns % kNanosecondsPerSecond);
  }
  stat.st_ctim = stat.st_mtim;
  stat.st_atim = stat.st_mtim;
  add_checksum(status, attributes, BYNAME_HAS_ADLER32, "adler32", attributes.adler32);
  // XRootD calls "crc32" what cksum(1) prints, and this one, which gzip has:
  add_checksum(status, attributes, BYNAME_HAS_CRC32, "zcrc32", attributes.crc32);
  add_checksum(status, attributes, BYNAME_HAS_CRC32C, "crc32c", attributes.crc32c);
  add_checksum(status, attributes, BYNAME_HAS_MD5, "md5", attributes.md5);
  add_checksum(status, attributes, BYNAME_HAS_SHA256, "sha256", attributes.sha256);
  return status;
}

}  // namespace byname::xrd
