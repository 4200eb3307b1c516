// Reads: each call of XRootD is one call of the session, however many ranges it has.
#include <algorithm>

#include "XrdOuc/XrdOucIOVec.hh"
#include "XrdOuc/XrdOucPgrwUtils.hh"
#include "XrdSfs/XrdSfsAio.hh"
#include "file.hh"

namespace byname::xrd {

ssize_t File::counted(const Outcome<uint64_t>& outcome, size_t ranges) {
  door_.counters.reads += 1;
  door_.counters.ranges += ranges;
  reads_ += 1;
  ranges_ += ranges;
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    door_.counters.read_failures += 1;
    door_.log.Emsg("read", named_->name().c_str(), ":", failure->text.c_str());
    if (failure->error == ESTALE) {
      door_.open_files.gone(record_.path);
    }
    return -failure->error;
  }
  const uint64_t bytes = std::get<uint64_t>(outcome);
  door_.counters.bytes += bytes;
  bytes_ += bytes;
  return static_cast<ssize_t>(bytes);
}

ssize_t File::Read(void* buffer, off_t offset, size_t size) {
  return guarded([&]() -> ssize_t {
    if (local_) {
      return local_->Read(buffer, offset, size);
    }
    if (upload_) {
      return upload_->read(buffer, offset, size);
    }
    if (!named_) {
      return -EBADF;
    }
    if (offset < 0) {
      return -EINVAL;
    }
    return counted(named_->read(buffer, size, static_cast<uint64_t>(offset)), 1);
  });
}

// Reading ahead is the session's own business.
ssize_t File::Read(off_t offset, size_t size) {
  return local_ ? local_->Read(offset, size) : 0;
}

ssize_t File::ReadRaw(void* buffer, off_t offset, size_t size) {
  return local_ ? local_->ReadRaw(buffer, offset, size) : Read(buffer, offset, size);
}

// Not asked for where Features() has HASNAIO.
int File::Read(XrdSfsAio* aio) {
  if (local_) {
    return local_->Read(aio);
  }
  aio->Result =
      Read(const_cast<void*>(aio->sfsAio.aio_buf), aio->sfsAio.aio_offset, aio->sfsAio.aio_nbytes);
  aio->doneRead();
  return XrdOssOK;
}

ssize_t File::ReadV(XrdOucIOVec* pieces, int count) {
  return guarded([&]() -> ssize_t {
    if (local_) {
      return local_->ReadV(pieces, count);
    }
    if (!named_) {
      return -EBADF;
    }
    std::vector<byname_range> ranges;
    ranges.reserve(static_cast<size_t>(std::max(count, 0)));
    uint64_t wanted = 0;
    for (int index = 0; index < count; ++index) {
      const XrdOucIOVec& piece = pieces[index];
      if (piece.offset < 0 || piece.size < 0) {
        return -EINVAL;
      }
      const auto bytes = static_cast<uint64_t>(piece.size);
      ranges.push_back(byname_range{static_cast<uint64_t>(piece.offset), piece.data, bytes, 0});
      wanted += bytes;
    }
    return ranges.empty() ? 0 : read_pieces(ranges, wanted);
  });
}

ssize_t File::read_pieces(std::vector<byname_range>& ranges, uint64_t wanted) {
  const auto outcome = named_->read_ranges(ranges);
  const ssize_t filled = counted(outcome, ranges.size());
  // A piece beyond the end is an error of the whole call, as in XRootD's own storage.
  return filled >= 0 && static_cast<uint64_t>(filled) < wanted ? -ESPIPE : filled;
}

ssize_t File::pgRead(void* buffer, off_t offset, size_t size, uint32_t* checksums,
                     uint64_t options) {
  if (local_) {
    return local_->pgRead(buffer, offset, size, checksums, options);
  }
  const ssize_t filled = Read(buffer, offset, size);
  if (filled > 0 && checksums) {
    XrdOucPgrwUtils::csCalc(static_cast<const char*>(buffer), offset, static_cast<size_t>(filled),
                            checksums);
  }
  return filled;
}

int File::pgRead(XrdSfsAio* aio, uint64_t options) {
  return local_ ? local_->pgRead(aio, options) : XrdOssDF::pgRead(aio, options);
}

}  // namespace byname::xrd
