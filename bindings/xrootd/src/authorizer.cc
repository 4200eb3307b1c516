#include "authorizer.hh"

#include <optional>

#include "identity.hh"
#include "reading.hh"

namespace byname::xrd {
namespace {

constexpr int kReadingPrivileges = XrdAccPriv_Read | XrdAccPriv_Lookup;

// Rights that an operation needs; nothing of one that is no reading.
std::optional<uint32_t> wanted_for(Access_Operation operation) {
  switch (operation) {
    case AOP_Any:
    case AOP_Read:
      return BYNAME_MAY_READ;
    // A listing tells sizes as well.
    case AOP_Readdir:
      return BYNAME_MAY_READ | BYNAME_MAY_SEARCH;
    case AOP_Stat:
      return 0;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool Authorizer::is_granted(const XrdSecEntity* entity, const char* path, uint32_t wanted) {
  const auto ask = [&] {
    Door* const door = door_();
    const Client client = entity ? client_of(*entity) : Client{};
    return door && may(*door, client, path, wanted) ? 1 : 0;
  };
  return guarded(ask) == 1;
}

XrdAccPrivs Authorizer::Access(const XrdSecEntity* entity, const char* path,
                               Access_Operation operation, XrdOucEnv* env) {
  if (entity) {
    forget_token(*entity);
  }
  const XrdAccPrivs below =
      below_ ? below_->Access(entity, path, operation, env) : XrdAccPriv_All;
  if (entity && below != XrdAccPriv_None) {
    note_token(*entity);
  }
  const auto wanted = wanted_for(operation);
  if (below == XrdAccPriv_None || !wanted || is_granted(entity, path, *wanted)) {
    return below;
  }
  return operation == AOP_Any ? static_cast<XrdAccPrivs>(below & ~kReadingPrivileges)
                              : XrdAccPriv_None;
}

int Authorizer::Test(XrdAccPrivs privileges, Access_Operation operation) {
  if (below_) {
    return below_->Test(privileges, operation);
  }
  const bool is_reading = wanted_for(operation).has_value();
  return !is_reading || (privileges & kReadingPrivileges) != 0;
}

}  // namespace byname::xrd
