#include "identity.hh"

#include <cstring>

#include "XrdOuc/XrdOucEnv.hh"
#include "XrdSec/XrdSecEntity.hh"

namespace byname::xrd {
namespace {

std::string text_of(const char* text) {
  return text ? text : "";
}

}  // namespace

Client client_of(const XrdOucEnv& env) {
  // The accessor is not const; it changes nothing.
  const XrdSecEntity* entity = const_cast<XrdOucEnv&>(env).secEnv();
  return entity ? client_of(*entity) : Client{};
}

Client client_of(const XrdSecEntity& entity) {
  Client client;
  client.protocol.assign(entity.prot, strnlen(entity.prot, sizeof entity.prot));
  client.name = text_of(entity.name);
  client.host = text_of(entity.host);
  client.vo = text_of(entity.vorg);
  client.role = text_of(entity.role);
  client.groups = text_of(entity.grps);
  client.connection = text_of(entity.tident);
  return client;
}

}  // namespace byname::xrd
