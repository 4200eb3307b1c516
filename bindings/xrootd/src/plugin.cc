// Entry points: xrootd and cmsd look for these symbols.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "XrdCks/XrdCksManager.hh"
#include "XrdVersion.hh"
#include "authorizer.hh"
#include "checksums.hh"
#include "housekeeper.hh"
#include "settings_file.hh"
#include "storage.hh"

namespace byname::xrd {
namespace {

// How often versions seen are written to disk if no metrics are.
constexpr std::chrono::seconds kKeepVersionsEvery{60};

constexpr const char* kNoAuthorizer =
    "byname.door: clients read what their users may only if XRootD asks this plug-in. Write "
    "'ofs.authorize 1' and 'ofs.authlib libXrdByname.so' ('ofs.authlib ++ libXrdByname.so' behind "
    "all others), or 'byname.reads open' to let them read whatever everybody can.";

// cmsd loads the plug-in to look for files. It opens its session when it first looks for one.
bool is_cmsd() {
  const char* program = std::getenv("XRDPROG");
  return program && std::strcmp(program, "cmsd") == 0;
}

// xrootd never takes a storage system down: what is made here lives as long as the process.
struct Instance {
  std::unique_ptr<Door> door;
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Housekeeper> versions;
  std::unique_ptr<Housekeeper> metrics;
  std::unique_ptr<Housekeeper> recheck;
};
Instance* the_instance = nullptr;

void write_metrics(Door& door, const std::string& file) {
  const std::string text =
      metrics_text(door.counters, door.session.counters(), door.open_log.lost_count());
  if (const int error = replace_file(file, text)) {
    door.log.Emsg("metrics", error, "write", file.c_str());
  }
}

// Looks whether what is open is still what its publisher says.
void recheck(Door& door) {
  for (const OpenFiles::Open& open : door.open_files.list()) {
    const auto status = door.session.stat(open.name);
    if (const auto* failure = std::get_if<Failure>(&status)) {
      if (failure->error == ENOENT) {
        door.open_files.gone(open.path);
      }
      continue;
    }
    door.open_files.saw(open.path, std::get<Status>(status).version);
  }
}

template <class Task>
std::function<void()> quietly(Door& door, Task task) {
  return [&door, task] {
    try {
      task();
    } catch (const std::exception& error) {
      door.log.Emsg("housekeeping", error.what());
    }
  };
}

// Opens what the settings name, so that a mistake in them is told now. False: xrootd must not run.
bool start(Door& door, const Settings& settings) {
  if (const auto failure = door.session.open_now()) {
    door.log.Emsg("config", "the session cannot be opened:", failure->text.c_str());
    return false;
  }
  if (settings.door.empty() != settings.table.empty()) {
    door.log.Emsg("config", "byname.door and byname.table go together");
    return false;
  }
  if (door.session.binds_reading() && !settings.is_authorizer) {
    door.log.Emsg("config", kNoAuthorizer);
    return false;
  }
  if (const auto failure = door.session.has_door() ? door.session.open_door() : std::nullopt) {
    door.log.Emsg("config", "the door cannot be opened:", failure->text.c_str());
    return false;
  }
  if (const int error = door.open_log.open()) {
    door.log.Emsg("config", error, "open byname.openlog", settings.open_log.c_str());
    return false;
  }
  return true;
}

// Threads that cmsd does not need.
void employ(Instance& instance, const Settings& settings) {
  Door& door = *instance.door;
  instance.recheck = std::make_unique<Housekeeper>(std::chrono::milliseconds(settings.recheck_ms),
                                                   quietly(door, [&door] { recheck(door); }));
  if (!settings.metrics_file.empty()) {
    const std::string file = settings.metrics_file;
    instance.metrics =
        std::make_unique<Housekeeper>(std::chrono::seconds(settings.metrics_seconds),
                                      quietly(door, [&door, file] { write_metrics(door, file); }));
  }
}

XrdOss* make_storage(XrdOss* local, XrdSysLogger* logger, const char* file, const char* parms) {
  XrdSysError log(logger, "byname_");
  if (the_instance) {
    log.Emsg("config", "the plug-in is loaded twice");
    return nullptr;
  }
  if (parms && *parms) {
    log.Emsg("config", "parameters behind ofs.osslib are not taken, write byname. lines:", parms);
    return nullptr;
  }
  const auto settings = read_settings(file, local != nullptr, log);
  if (!settings) {
    return nullptr;
  }
  auto instance = std::make_unique<Instance>();
  instance->door = std::make_unique<Door>(*settings, !is_cmsd(), local, logger);
  Door& door = *instance->door;
  instance->storage = std::make_unique<Storage>(door);
  if (!is_cmsd()) {
    if (!start(door, *settings)) {
      return nullptr;
    }
    employ(*instance, *settings);
  }
  instance->versions = std::make_unique<Housekeeper>(
      kKeepVersionsEvery, quietly(door, [&door] { door.session.keep_versions(); }));
  the_instance = instance.release();
  return the_instance->storage.get();
}

XrdCks* make_checksums(XrdCks& native, XrdSysError* log) {
  if (!the_instance) {
    log->Emsg("config", "ofs.ckslib names the plug-in, ofs.osslib does not");
    return nullptr;
  }
  return new Checksums(*the_instance->storage, native, log);
}

XrdAccAuthorize* make_authorizer(XrdAccAuthorize* below) {
  const auto door = [] { return the_instance ? the_instance->door.get() : nullptr; };
  return new (std::nothrow) Authorizer(door, below);
}

XrdOss* made(XrdOss* local, XrdSysLogger* logger, const char* file, const char* parms) noexcept {
  try {
    return make_storage(local, logger, file, parms);
  } catch (const std::exception& error) {
    XrdSysError(logger, "byname_").Emsg("config", error.what());
    return nullptr;
  }
}

}  // namespace
}  // namespace byname::xrd

XrdVERSIONINFO(XrdOssGetStorageSystem2, byname);
XrdVERSIONINFO(XrdOssAddStorageSystem2, byname);
XrdVERSIONINFO(XrdCksInit, byname);
XrdVERSIONINFO(XrdCksAdd2, byname);
XrdVERSIONINFO(XrdAccAuthorizeObject, byname);
XrdVERSIONINFO(XrdAccAuthorizeObjAdd, byname);

extern "C" {

// In place of all other storage.
XrdOss* XrdOssGetStorageSystem2(XrdOss*, XrdSysLogger* logger, const char* file, const char* parms,
                                XrdOucEnv*) {
  return byname::xrd::made(nullptr, logger, file, parms);
}

// On top of other storage.
XrdOss* XrdOssAddStorageSystem2(XrdOss* local, XrdSysLogger* logger, const char* file,
                                const char* parms, XrdOucEnv*) {
  return byname::xrd::made(local, logger, file, parms);
}

// Checksums, in place of XRootD's own manager, which computes for this one.
XrdCks* XrdCksInit(XrdSysError* log, const char*, const char*) {
  auto* const native = new (std::nothrow) XrdCksManager(log, 0, XrdVERSIONINFOVAR(XrdCksInit));
  return native ? byname::xrd::make_checksums(*native, log) : nullptr;
}

// Checksums, on top of another manager.
XrdCks* XrdCksAdd2(XrdCks& native, XrdSysError* log, const char*, const char*, XrdOucEnv*) {
  return byname::xrd::make_checksums(native, log);
}

// Authorization: clients read what their users may, whatever else XRootD lets everybody do.
XrdAccAuthorize* XrdAccAuthorizeObject(XrdSysLogger*, const char*, const char*) {
  return byname::xrd::make_authorizer(nullptr);
}

// Authorization, where another one has to grant as well.
XrdAccAuthorize* XrdAccAuthorizeObjAdd(XrdSysLogger*, const char*, const char*, XrdOucEnv*,
                                       XrdAccAuthorize* below) {
  return byname::xrd::make_authorizer(below);
}
}
