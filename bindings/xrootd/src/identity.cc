#include "identity.hh"

#include <cstring>

#include "XrdOuc/XrdOucEnv.hh"
#include "XrdSec/XrdSecEntity.hh"
#include "XrdSec/XrdSecEntityAttr.hh"

namespace byname::xrd {
namespace {

// XRootD's name for whom an authorization has found in the token of a request.
const std::string kRequestName = "request.name";
// The same of the request that is being carried out, noted by the authorizer: connections of HTTP
// carry requests of many tokens, and nobody takes away what an earlier one has left.
const std::string kNoted = "byname.name";
// What clients by HTTP are called who have shown a token: as those who have shown it to XRootD.
constexpr char kToken[] = "ztn";

std::string text_of(const char* text) {
  return text ? text : "";
}

std::string protocol_of(const XrdSecEntity& entity) {
  return std::string(entity.prot, strnlen(entity.prot, sizeof entity.prot));
}

// A client by HTTP without a name, of whom the token of each request says who he is.
bool is_named_by_token(const XrdSecEntity& entity) {
  const std::string protocol = protocol_of(entity);
  const bool is_http = protocol == "http" || protocol == "https";
  return is_http && text_of(entity.name).empty() && entity.eaAPI;
}

}  // namespace

Client client_of(const XrdOucEnv& env) {
  // The accessor is not const; it changes nothing.
  const XrdSecEntity* entity = const_cast<XrdOucEnv&>(env).secEnv();
  return entity ? client_of(*entity) : Client{};
}

Client client_of(const XrdSecEntity& entity) {
  Client client;
  client.protocol = protocol_of(entity);
  client.name = text_of(entity.name);
  client.host = text_of(entity.host);
  client.vo = text_of(entity.vorg);
  client.role = text_of(entity.role);
  client.groups = text_of(entity.grps);
  client.connection = text_of(entity.tident);
  std::string noted;
  if (is_named_by_token(entity) && entity.eaAPI->Get(kNoted, noted) && !noted.empty()) {
    client.protocol = kToken;
    client.name = noted;
  }
  return client;
}

void forget_token(const XrdSecEntity& entity) {
  if (is_named_by_token(entity)) {
    entity.eaAPI->Add(kRequestName, "", true);
    entity.eaAPI->Add(kNoted, "", true);
  }
}

void note_token(const XrdSecEntity& entity) {
  std::string name;
  if (is_named_by_token(entity) && entity.eaAPI->Get(kRequestName, name)) {
    entity.eaAPI->Add(kNoted, name, true);
  }
}

}  // namespace byname::xrd
