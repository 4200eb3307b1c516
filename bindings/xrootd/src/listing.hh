// A directory's listing by name: verified, a page in memory at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "byname.h"
#include "errors.hh"
#include "status.hh"

namespace byname::xrd {

// An entry of a directory.
struct Entry {
  std::string name;
  // If it was wanted: its status, or why there is none.
  std::optional<Outcome<Status>> status;
};

// The entries of a directory. Not for several threads at once.
class Listing {
 public:
  virtual ~Listing() = default;

  // The next entry; nothing at the end.
  virtual Outcome<std::optional<Entry>> next(bool wants_status) = 0;
};

// As everybody reads it.
//
// The listing describes its files and directories. A link is what it leads to: that is looked up in
// the same listing if it lies beside the link. The others of a page are asked for all at once.
class NamedListing final : public Listing {
 public:
  NamedListing(byname_session session, byname_listing listing, std::string name)
      : session_(session), listing_(listing), name_(std::move(name)) {}
  ~NamedListing() override;
  NamedListing(const NamedListing&) = delete;
  NamedListing& operator=(const NamedListing&) = delete;

  Outcome<std::optional<Entry>> next(bool wants_status) override;

 private:
  struct Room;

  std::optional<Failure> fetch_page(bool wants_status);
  std::optional<Failure> fill(Room& room, uint64_t first) const;
  std::optional<Status> described(const byname_entry& entry) const;
  std::optional<Status> beside(std::string target, const std::string& link) const;
  bool find(Room& room, const std::string& name) const;
  std::string path_of(const std::string& entry) const;

  byname_session session_;
  byname_listing listing_;
  std::string name_;
  uint64_t next_ = 0;
  std::vector<Entry> page_;
  size_t at_ = 0;
  bool is_at_end_ = false;
};

}  // namespace byname::xrd
