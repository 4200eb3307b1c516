#include "checksums.hh"

#include <cstring>
#include <vector>

#include "XrdCks/XrdCksCalc.hh"
#include "reading.hh"

namespace byname::xrd {
namespace {

constexpr const char* kPhysicalPrefix = "byname:";
// Octets in one read while a sum is computed.
constexpr size_t kReadBytes = 1 << 20;

struct Recycle {
  void operator()(XrdCksCalc* calculation) const { calculation->Recycle(); }
};
using Calculation = std::unique_ptr<XrdCksCalc, Recycle>;

void set_value(XrdCksData& sum, const std::string& value, const Status& status) {
  sum.Set(static_cast<const void*>(value.data()), static_cast<int>(value.size()));
  sum.fmTime = status.stat.st_mtim.tv_sec;
  sum.csTime = 0;
}

// Feeds the whole file; an errno or 0.
int feed(const NamedFile& file, XrdCksCalc& calculation) {
  std::vector<char> buffer(kReadBytes);
  uint64_t offset = 0;
  while (true) {
    const auto outcome = file.read(buffer.data(), buffer.size(), offset);
    if (const auto* failure = std::get_if<Failure>(&outcome)) {
      return failure->error;
    }
    const uint64_t bytes = std::get<uint64_t>(outcome);
    calculation.Update(buffer.data(), static_cast<int>(bytes));
    offset += bytes;
    if (bytes < buffer.size()) {
      return 0;
    }
  }
}

}  // namespace

std::string physical_name(const std::string& path) {
  return kPhysicalPrefix + path;
}

std::optional<std::string> logical_path(const char* physical) {
  const size_t length = std::strlen(kPhysicalPrefix);
  if (std::strncmp(physical, kPhysicalPrefix, length) != 0) {
    return std::nullopt;
  }
  return std::string(physical + length);
}

// XRootD says a logical path or, where it opens files itself, what Lfn2Pfn() gave.
std::optional<std::string> Checksums::name_of(const char* file) const {
  const auto path = logical_path(file);
  if (!path && !storage_.is_served_by_name(file)) {
    return std::nullopt;
  }
  const auto route = door_.routes.find(path ? *path : file);
  return route ? std::optional<std::string>(route->name) : std::nullopt;
}

// Without local storage no file of this machine is ever looked at. With it, a path that is no name
// may be where that storage keeps a file.
template <class Named, class Native>
int Checksums::named_or_native(const char* file, Named named, Native native) const {
  const auto name = name_of(file);
  const int outcome = name ? named(*name) : -ENOENT;
  const bool can_be_local = door_.local && !logical_path(file);
  return outcome == -ENOENT && can_be_local ? native() : outcome;
}

// What the publisher has signed comes before what was computed here.
bool Checksums::fill(const std::string& name, const Status& status, XrdCksData& sum) const {
  for (const Checksum& checksum : status.checksums) {
    if (checksum.name == sum.Name) {
      set_value(sum, checksum.value, status);
      return true;
    }
  }
  const auto kept = store_.find(name, status.version, sum.Name);
  if (kept) {
    set_value(sum, *kept, status);
  }
  return kept.has_value();
}

int Checksums::get_named(const std::string& name, XrdCksData& sum) {
  // Who may not read a file is told nothing of its content.
  const auto status_for = [&]() -> Outcome<Status> {
    if (!door_.session.binds_reading()) {
      return door_.session.stat(name);
    }
    auto opened = open_for(door_, sum.envP, name);
    if (const auto* failure = std::get_if<Failure>(&opened)) {
      return *failure;
    }
    return std::get<std::unique_ptr<NamedFile>>(opened)->status();
  };
  const auto outcome = status_for();
  if (const auto* failure = std::get_if<Failure>(&outcome)) {
    return -failure->error;
  }
  return fill(name, std::get<Status>(outcome), sum) ? sum.Length : -ESRCH;
}

int Checksums::calc_named(const std::string& name, XrdCksData& sum) {
  const Calculation calculation(Object(sum.Name));
  if (!calculation) {
    return -ENOTSUP;
  }
  const auto opened = open_for(door_, sum.envP, name);
  if (const auto* failure = std::get_if<Failure>(&opened)) {
    return -failure->error;
  }
  const NamedFile& file = *std::get<std::unique_ptr<NamedFile>>(opened);
  const auto known = file.status();
  if (const auto* failure = std::get_if<Failure>(&known)) {
    return -failure->error;
  }
  const Status& status = std::get<Status>(known);
  if (fill(name, status, sum)) {
    return 0;
  }
  calculation->Init();
  if (const int error = feed(file, *calculation)) {
    return -error;
  }
  int length = 0;
  calculation->Type(length);
  const std::string value(calculation->Final(), static_cast<size_t>(length));
  store_.keep(name, status.version, sum.Name, value);
  set_value(sum, value, status);
  return 0;
}

int Checksums::Get(const char* file, XrdCksData& sum) {
  return guarded([&] {
    return named_or_native(
        file, [&](const std::string& name) { return get_named(name, sum); },
        [&] { return cksPI.Get(file, sum); });
  });
}

int Checksums::Calc(const char* file, XrdCksData& sum, int set) {
  return guarded([&] {
    return named_or_native(
        file, [&](const std::string& name) { return calc_named(name, sum); },
        [&] { return cksPI.Calc(file, sum, set); });
  });
}

int Checksums::Calc(const char* file, XrdCksData& sum, XrdCksPCB*, int set) {
  return Calc(file, sum, set);
}

// 1 if the sum is right, 0 if not.
int Checksums::Ver(const char* file, XrdCksData& sum) {
  const auto compare = [&](const std::string& name) {
    XrdCksData right;
    right.Set(sum.Name);
    right.envP = sum.envP;
    const int outcome = calc_named(name, right);
    return outcome != 0 ? outcome : static_cast<int>(right == sum);
  };
  return guarded(
      [&] { return named_or_native(file, compare, [&] { return cksPI.Ver(file, sum); }); });
}

int Checksums::Ver(const char* file, XrdCksData& sum, XrdCksPCB*) {
  return Ver(file, sum);
}

int Checksums::Set(const char* file, XrdCksData& sum, int my_time) {
  const auto refuse = [](const std::string&) { return -EROFS; };
  return guarded(
      [&] { return named_or_native(file, refuse, [&] { return cksPI.Set(file, sum, my_time); }); });
}

int Checksums::Del(const char* file, XrdCksData& sum) {
  const auto refuse = [](const std::string&) { return -EROFS; };
  return guarded(
      [&] { return named_or_native(file, refuse, [&] { return cksPI.Del(file, sum); }); });
}

// Without a file: all algorithms. With one: those whose sums are at hand.
char* Checksums::List(const char* file, char* buffer, int size, char separator) {
  try {
    const auto name = file ? name_of(file) : std::nullopt;
    if (!name) {
      return cksPI.List(file, buffer, size, separator);
    }
    const auto outcome = door_.session.stat(*name);
    std::string names;
    if (const auto* status = std::get_if<Status>(&outcome)) {
      for (const Checksum& checksum : status->checksums) {
        names += (names.empty() ? "" : std::string(1, separator)) + checksum.name;
      }
    }
    if (names.empty() || names.size() >= static_cast<size_t>(size)) {
      return nullptr;
    }
    return std::strcpy(buffer, names.c_str());
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace byname::xrd
