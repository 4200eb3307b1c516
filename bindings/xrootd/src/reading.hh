// Reading by name for a client: as everybody does, or only what the client's user may.
//
// Behind a door the head is asked for each open, listing and status, with the user's name. XRootD
// gives several clients one open file without asking storage, so `may` stands before that as well,
// called by XRootD's authorization; what is opened is what the head has then, and links are not
// followed: somebody could point one elsewhere in between.
#pragma once

#include <memory>
#include <string>

#include "door.hh"

class XrdOucEnv;

namespace byname::xrd {

// Opens a file; without an environment nobody is known.
Outcome<std::unique_ptr<NamedFile>> open_for(Door& door, const XrdOucEnv* env,
                                             const std::string& name);
Outcome<std::unique_ptr<Listing>> list_for(Door& door, const XrdOucEnv& env,
                                           const std::string& name);

// True if a client may use a path so (BYNAME_MAY_*), or if there is nothing of that name. Nobody
// may while the head does not answer.
bool may(Door& door, const Client& client, const std::string& path, uint32_t wanted);

}  // namespace byname::xrd
