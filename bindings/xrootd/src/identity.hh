// Who asks.
#pragma once

#include "open_log.hh"

class XrdOucEnv;
class XrdSecEntity;

namespace byname::xrd {

// What XRootD has found out about the client; for its own requests nothing.
Client client_of(const XrdOucEnv& env);
Client client_of(const XrdSecEntity& entity);

// Around the authorization of a request: nobody is known by the token of an earlier one, and who
// has none of XRootD's names is known by that of this one.
void forget_token(const XrdSecEntity& entity);
void note_token(const XrdSecEntity& entity);

}  // namespace byname::xrd
