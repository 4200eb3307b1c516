// Whether a client may: XRootD's authorization, asked before it opens, lists or looks.
//
// Only reading is judged here; changes are the head's to refuse when they are made. Another
// authorization below it has to grant as well. All functions may be called from any thread.
#pragma once

#include <functional>

#include "XrdAcc/XrdAccAuthorize.hh"
#include "door.hh"

namespace byname::xrd {

class Authorizer final : public XrdAccAuthorize {
 public:
  // `door` finds what storage has made by the time of a question; `below` may be null.
  Authorizer(std::function<Door*()> door, XrdAccAuthorize* below)
      : door_(std::move(door)), below_(below) {}

  XrdAccPrivs Access(const XrdSecEntity* entity, const char* path, Access_Operation operation,
                     XrdOucEnv* env) override;
  int Audit(int, const XrdSecEntity*, const char*, Access_Operation, XrdOucEnv*) override {
    return 0;
  }
  int Test(XrdAccPrivs privileges, Access_Operation operation) override;

 private:
  bool is_granted(const XrdSecEntity* entity, const char* path, uint32_t wanted);

  std::function<Door*()> door_;
  XrdAccAuthorize* below_;
};

}  // namespace byname::xrd
