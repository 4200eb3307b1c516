#include "door.hh"

#include "XrdOfs/XrdOfsHandle.hh"

namespace byname::xrd {

Door::Door(const Settings& settings, bool is_bulk, XrdOss* local_storage, XrdSysLogger* logger)
    : log(logger, "byname_"),
      local(local_storage),
      spool(settings.spool),
      routes(settings.prefixes),
      session(settings, is_bulk,
              [this](const std::string& text) { log.Emsg("session", text.c_str()); }),
      open_log(settings.open_log),
      open_files([](const std::string& path) { XrdOfsHandle::Hide(path.c_str()); }) {}

}  // namespace byname::xrd
