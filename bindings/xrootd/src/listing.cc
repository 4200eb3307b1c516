#include "listing.hh"

#include "questions.hh"

namespace byname::xrd {
namespace {

// Entries and octets of text of one page.
constexpr size_t kPageEntries = 256;
constexpr size_t kPageTextBytes = 256 * 1024;
// Room for a name and the longest target of a link, and for owner and group.
constexpr size_t kEntryTextBytes = 8192;
// Links that lead to links.
constexpr int kLinksMax = 8;

bool is_beside(const std::string& target) {
  return !target.empty() && target.find('/') == std::string::npos && target != "." &&
         target != "..";
}

// The target of a link; empty of everything else.
std::string target_of(const byname_entry& entry) {
  const bool is_link = entry.attributes.kind == BYNAME_KIND_SYMLINK;
  return is_link && entry.attributes.link_target ? entry.attributes.link_target : "";
}

}  // namespace

// A page, and room for it.
struct NamedListing::Room {
  Room(size_t entries_max, size_t text_bytes) : entries(entries_max), text(text_bytes) {
    page.entry_size = sizeof(byname_entry);
    page.entries = entries.data();
    page.entries_max = entries.size();
    page.text = text.data();
    page.text_size = text.size();
  }

  std::vector<byname_entry> entries;
  std::vector<char> text;
  byname_page page = byname_init<byname_page>();
};

NamedListing::~NamedListing() {
  byname_listing_close(listing_, nullptr);
}

Outcome<std::optional<Entry>> NamedListing::next(bool wants_status) {
  if (at_ == page_.size() && !is_at_end_) {
    if (auto failure = fetch_page(wants_status)) {
      return *failure;
    }
  }
  if (at_ == page_.size()) {
    return std::optional<Entry>();
  }
  return std::optional<Entry>(std::move(page_[at_++]));
}

std::optional<Failure> NamedListing::fetch_page(bool wants_status) {
  Room room(kPageEntries, kPageTextBytes);
  if (auto failure = fill(room, next_)) {
    return failure;
  }
  next_ = room.page.next;
  is_at_end_ = room.page.count == 0;
  page_.clear();
  at_ = 0;
  std::vector<size_t> unknown;
  Questions questions(session_);
  for (uint64_t index = 0; index < room.page.count; ++index) {
    const byname_entry& entry = room.entries[index];
    Entry made{std::string(entry.name, entry.name_bytes), std::nullopt};
    if (wants_status) {
      const std::string target = target_of(entry);
      if (auto known = is_beside(target) ? beside(target, made.name) : described(entry)) {
        made.status = std::move(*known);
      } else {
        unknown.push_back(index);
        questions.add(path_of(made.name));
      }
    }
    page_.push_back(std::move(made));
  }
  auto answers = questions.ask();
  for (size_t index = 0; index < unknown.size(); ++index) {
    page_[unknown[index]].status = std::move(answers[index]);
  }
  return std::nullopt;
}

std::optional<Failure> NamedListing::fill(Room& room, uint64_t first) const {
  room.page.next = first;
  auto error = no_error();
  if (byname_listing_page(listing_, &room.page, &error) < 0) {
    return failure_of(error);
  }
  return std::nullopt;
}

// The status of what is no link, if the listing has it.
std::optional<Status> NamedListing::described(const byname_entry& entry) const {
  const byname_attributes& attributes = entry.attributes;
  const bool is_directory = attributes.kind == BYNAME_KIND_DIRECTORY;
  const bool is_file = attributes.kind == BYNAME_KIND_FILE;
  if (is_directory || (is_file && (attributes.present & BYNAME_HAS_SIZE))) {
    return status_of(attributes, path_of(std::string(entry.name, entry.name_bytes)));
  }
  return std::nullopt;
}

// The status of what a link leads to if that stands in this listing.
std::optional<Status> NamedListing::beside(std::string target, const std::string& link) const {
  Room room(1, kEntryTextBytes);
  for (int links = 0; links < kLinksMax && is_beside(target); ++links) {
    if (!find(room, target)) {
      return std::nullopt;
    }
    if (described(room.entries[0])) {
      return status_of(room.entries[0].attributes, path_of(link));
    }
    target = target_of(room.entries[0]);
  }
  return std::nullopt;
}

// Leaves the entry of that name in `room`, which has place for one. Entries ascend by name.
bool NamedListing::find(Room& room, const std::string& name) const {
  const int64_t count = byname_listing_count(listing_, nullptr);
  uint64_t low = 0;
  uint64_t high = count > 0 ? static_cast<uint64_t>(count) : 0;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (fill(room, middle) || room.page.count == 0) {
      return false;
    }
    const int order = name.compare(0, name.npos, room.entries[0].name, room.entries[0].name_bytes);
    if (order == 0) {
      return true;
    }
    if (order > 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return false;
}

std::string NamedListing::path_of(const std::string& entry) const {
  return name_ == "/" ? "/" + entry : name_ + "/" + entry;
}

}  // namespace byname::xrd
