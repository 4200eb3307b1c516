// The checksum manager: sums of names are their publisher's, or computed once from verified octets.
#pragma once

#include <memory>

#include "XrdCks/XrdCksData.hh"
#include "XrdCks/XrdCksWrapper.hh"
#include "checksum_store.hh"
#include "storage.hh"

namespace byname::xrd {

// What XRootD has in place of a path for a file that is served by name: where Lfn2Pfn() leads. No
// file of this machine can have it, so nobody opens one by mistake.
std::string physical_name(const std::string& path);
// The path that physical_name() was made of, or nothing.
std::optional<std::string> logical_path(const char* physical);

class Checksums final : public XrdCksWrapper {
 public:
  // `native` computes, and answers for local files.
  Checksums(Storage& storage, XrdCks& native, XrdSysError* log)
      : XrdCksWrapper(native, log), storage_(storage), door_(storage.door()), store_(kKeptMax) {}

  int Get(const char* file, XrdCksData& sum) override;
  int Calc(const char* file, XrdCksData& sum, int set) override;
  int Calc(const char* file, XrdCksData& sum, XrdCksPCB* progress, int set) override;
  int Ver(const char* file, XrdCksData& sum) override;
  int Ver(const char* file, XrdCksData& sum, XrdCksPCB* progress) override;
  int Set(const char* file, XrdCksData& sum, int my_time) override;
  int Del(const char* file, XrdCksData& sum) override;
  char* List(const char* file, char* buffer, int size, char separator) override;

 private:
  static constexpr size_t kKeptMax = 16'384;

  // The name that a file stands for, if it is served by name.
  std::optional<std::string> name_of(const char* file) const;
  template <class Named, class Native>
  int named_or_native(const char* file, Named named, Native native) const;
  int get_named(const std::string& name, XrdCksData& sum);
  int calc_named(const std::string& name, XrdCksData& sum);
  bool fill(const std::string& name, const Status& status, XrdCksData& sum) const;

  Storage& storage_;
  Door& door_;
  ChecksumStore store_;
};

}  // namespace byname::xrd
