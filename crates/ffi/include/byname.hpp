// byname for C++17: the C interface with owners, exceptions, and strings.
//
// Objects are movable and not copyable; each closes its handle when it is destroyed. A failed call
// throws byname::Error. All threads may use one object at once, but for moving and destroying it.
// Functions started with a call-back follow the rules of byname.h: what they are given by pointer
// stays the library's until the call-back.
#ifndef BYNAME_HPP
#define BYNAME_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "byname.h"

namespace byname {

/// A failed call.
class Error : public std::runtime_error {
 public:
  explicit Error(const byname_error &error)
      : std::runtime_error(error.message), code_(error.code), class_(error.error_class) {}

  /// An errno, or BYNAME_EINTERNAL.
  int code() const noexcept { return code_; }
  /// BYNAME_CLASS_*.
  std::uint32_t error_class() const noexcept { return class_; }

 private:
  int code_;
  std::uint32_t class_;
};

/// Attributes with texts of their own.
struct Attributes {
  byname_attributes fixed = BYNAME_INIT(byname_attributes);
  std::string owner, group, link_target, publisher;

  bool has(std::uint32_t bit) const noexcept { return (fixed.present & bit) != 0; }
  bool is_directory() const noexcept { return fixed.kind == BYNAME_KIND_DIRECTORY; }
};

/// An entry of a directory.
struct Entry {
  std::string name;
  bool is_resolved = false;
  Attributes attributes;
};

namespace detail {

/// The result of a call that fills an error: itself, or an exception.
template <class Call>
std::int64_t check(Call &&call) {
  byname_error error = BYNAME_INIT(byname_error);
  std::int64_t result = call(&error);
  if (result < 0) throw Error(error);
  return result;
}

inline std::string text(const char *start) { return start == nullptr ? "" : start; }

/// Takes the texts of a struct, and the pointers out of it.
inline void take_texts(Attributes &made) {
  made.owner = text(made.fixed.owner);
  made.group = text(made.fixed.group);
  made.link_target = text(made.fixed.link_target);
  made.publisher = text(made.fixed.publisher);
  made.fixed.owner = made.fixed.group = made.fixed.link_target = made.fixed.publisher = nullptr;
  made.fixed.text = nullptr;
  made.fixed.text_size = 0;
}

/// Attributes that a call fills.
template <class Call>
Attributes attributes(Call &&call) {
  Attributes made;
  std::vector<char> room(BYNAME_TEXT_BYTES);
  made.fixed.text = room.data();
  made.fixed.text_size = room.size();
  check([&](byname_error *error) { return call(&made.fixed, error); });
  take_texts(made);
  return made;
}

/// Owner of a handle.
template <std::int32_t (*Close)(std::int64_t, byname_error *)>
class Handle {
 public:
  Handle() noexcept = default;
  explicit Handle(std::int64_t raw) noexcept : raw_(raw) {}
  Handle(Handle &&other) noexcept : raw_(std::exchange(other.raw_, 0)) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) {
      reset();
      raw_ = std::exchange(other.raw_, 0);
    }
    return *this;
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { reset(); }

  /// The handle, for the C interface; 0 if there is none.
  std::int64_t raw() const noexcept { return raw_; }
  explicit operator bool() const noexcept { return raw_ != 0; }
  /// Closes it now.
  void reset() noexcept {
    if (raw_ != 0) Close(std::exchange(raw_, 0), nullptr);
  }

 private:
  std::int64_t raw_ = 0;
};

/// A function that a started call ends with.
using Done = std::function<void(const byname_error &)>;

extern "C" inline void byname_hpp_done(void *context, const byname_error *error) {
  std::unique_ptr<Done> done(static_cast<Done *>(context));
  // There is nobody to catch what it throws.
  try {
    (*done)(*error);
  } catch (...) {
    std::terminate();
  }
}

/// Starts a call that ends with `done`.
template <class Start>
byname_call start(Done done, Start &&begin) {
  auto owned = std::make_unique<Done>(std::move(done));
  byname_completion completion = BYNAME_INIT(byname_completion);
  completion.done = byname_hpp_done;
  completion.context = owned.get();
  byname_call call =
      check([&](byname_error *error) { return begin(&completion, error); });
  // It is the call-back's now, which may have run already.
  owned.release();
  return call;
}

}  // namespace detail

using detail::Done;

/// Asks a started call to end. False if it has ended.
inline bool cancel(byname_call call) noexcept { return byname_cancel(call, nullptr) == 0; }

/// One version of a file.
class File {
 public:
  File() noexcept = default;
  explicit File(byname_file raw) noexcept : handle_(raw) {}

  byname_file raw() const noexcept { return handle_.raw(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  void close() noexcept { handle_.reset(); }

  /// Reads from `offset` on; fewer octets than asked for only where the file ends.
  std::size_t read(void *buffer, std::size_t bytes, std::uint64_t offset) const {
    return static_cast<std::size_t>(detail::check([&](byname_error *error) {
      return byname_read(raw(), buffer, bytes, offset, error);
    }));
  }

  /// Reads many ranges in one go; returns the octets of all.
  std::uint64_t read(byname_range *ranges, std::size_t count) const {
    return static_cast<std::uint64_t>(detail::check([&](byname_error *error) {
      return byname_read_ranges(raw(), ranges, count, error);
    }));
  }
  std::uint64_t read(std::vector<byname_range> &ranges) const {
    return read(ranges.data(), ranges.size());
  }

  /// Starts a read; ranges and buffers stay alive until `done`.
  byname_call start_read(byname_range *ranges, std::size_t count, Done done) const {
    return detail::start(std::move(done), [&](byname_completion *completion, byname_error *error) {
      return byname_read_ranges_start(raw(), ranges, count, completion, error);
    });
  }

  Attributes attributes() const {
    return detail::attributes([&](byname_attributes *made, byname_error *error) {
      return byname_file_attributes(raw(), made, error);
    });
  }

  byname_counters counters() const {
    byname_counters made = BYNAME_INIT(byname_counters);
    detail::check(
        [&](byname_error *error) { return byname_file_counters(raw(), &made, error); });
    return made;
  }

 private:
  detail::Handle<byname_file_close> handle_;
};

/// One version of a directory.
class Listing {
 public:
  Listing() noexcept = default;
  explicit Listing(byname_listing raw) noexcept : handle_(raw) {}

  byname_listing raw() const noexcept { return handle_.raw(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  void close() noexcept { handle_.reset(); }

  std::uint64_t size() const {
    return static_cast<std::uint64_t>(detail::check(
        [&](byname_error *error) { return byname_listing_count(raw(), error); }));
  }

  Attributes attributes() const {
    return detail::attributes([&](byname_attributes *made, byname_error *error) {
      return byname_listing_attributes(raw(), made, error);
    });
  }

  /// At most `count` entries from number `first` on; none at the end.
  std::vector<Entry> entries(std::uint64_t first, std::size_t count) const {
    std::vector<byname_entry> raw_entries(count);
    std::vector<char> text(count * 64 + BYNAME_TEXT_BYTES);
    byname_page page = BYNAME_INIT(byname_page);
    page.entry_size = sizeof(byname_entry);
    page.next = first;
    page.entries = raw_entries.data();
    page.entries_max = count;
    page.text = text.data();
    page.text_size = text.size();
    detail::check([&](byname_error *error) { return byname_listing_page(raw(), &page, error); });
    std::vector<Entry> made;
    made.reserve(page.count);
    for (std::uint64_t index = 0; index < page.count; index++) {
      const byname_entry &entry = raw_entries[index];
      Entry next;
      next.name.assign(entry.name, entry.name_bytes);
      next.is_resolved = entry.is_resolved != 0;
      next.attributes.fixed = entry.attributes;
      detail::take_texts(next.attributes);
      made.push_back(std::move(next));
    }
    return made;
  }

  /// Opens an entry, in the version that the listing has.
  File open(const std::string &name) const {
    return File(detail::check(
        [&](byname_error *error) { return byname_open_entry(raw(), name.c_str(), error); }));
  }

 private:
  detail::Handle<byname_listing_close> handle_;
};

/// Wishes for a session. What is empty or 0 is as the configuration has it.
struct Options {
  std::string link, config_file, home, connect;
  byname_session_options fixed = BYNAME_INIT(byname_session_options);
};

/// A connection to who has the files, with whom to trust, memory and a thread.
class Session {
 public:
  Session() noexcept = default;
  explicit Session(const Options &options) {
    byname_session_options fixed = options.fixed;
    const auto pointer = [](const std::string &text) {
      return text.empty() ? nullptr : text.c_str();
    };
    fixed.link = pointer(options.link);
    fixed.config_file = pointer(options.config_file);
    fixed.home = pointer(options.home);
    fixed.connect = pointer(options.connect);
    handle_ = Handle(detail::check([&](byname_error *error) {
      return byname_session_open(&fixed, BYNAME_ABI_VERSION, error);
    }));
  }

  byname_session raw() const noexcept { return handle_.raw(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  void close() noexcept { handle_.reset(); }

  Attributes stat(const std::string &path) const {
    return detail::attributes([&](byname_attributes *made, byname_error *error) {
      return byname_stat(raw(), path.c_str(), made, error);
    });
  }

  Listing list(const std::string &path) const {
    return Listing(detail::check(
        [&](byname_error *error) { return byname_list(raw(), path.c_str(), error); }));
  }

  File open(const std::string &path) const {
    return File(detail::check(
        [&](byname_error *error) { return byname_open(raw(), path.c_str(), error); }));
  }

  /// The name that a path stands for, as a URI.
  std::string name(const std::string &path) const {
    const auto ask = [&](char *buffer, std::size_t size) {
      return static_cast<std::size_t>(detail::check([&](byname_error *error) {
        return byname_session_name(raw(), path.c_str(), buffer, size, error);
      }));
    };
    std::string made(ask(nullptr, 0), '\0');
    ask(made.data(), made.size());
    made.pop_back();
    return made;
  }

  byname_counters counters() const {
    byname_counters made = BYNAME_INIT(byname_counters);
    detail::check(
        [&](byname_error *error) { return byname_session_counters(raw(), &made, error); });
    return made;
  }

  byname_source source() const {
    byname_source made = BYNAME_INIT(byname_source);
    detail::check(
        [&](byname_error *error) { return byname_session_source(raw(), &made, error); });
    return made;
  }

  void keep_versions() const {
    detail::check([&](byname_error *error) { return byname_session_keep_versions(raw(), error); });
  }

 private:
  using Handle = detail::Handle<byname_session_close>;
  Handle handle_;
};

}  // namespace byname

#endif  // BYNAME_HPP
