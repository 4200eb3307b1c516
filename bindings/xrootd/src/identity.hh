// Who asks.
#pragma once

#include "open_log.hh"

class XrdOucEnv;
class XrdSecEntity;

namespace byname::xrd {

// What XRootD has found out about the client; for its own requests nothing.
Client client_of(const XrdOucEnv& env);
Client client_of(const XrdSecEntity& entity);

}  // namespace byname::xrd
