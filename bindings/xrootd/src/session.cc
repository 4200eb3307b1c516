#include "session.hh"

#include "status.hh"

namespace byname::xrd {
namespace {

// A session that could not be opened is tried again after this time.
constexpr std::chrono::seconds kRetryAfter{1};
// Room for a name as a URI.
constexpr size_t kNameTextBytes = 8192;

uint32_t unknown_keys(UnknownKeys choice) {
  switch (choice) {
    case UnknownKeys::kFirstUse:
      return BYNAME_UNKNOWN_KEYS_FIRST_USE;
    case UnknownKeys::kInsecure:
      return BYNAME_UNKNOWN_KEYS_INSECURE;
    default:
      return BYNAME_UNKNOWN_KEYS_REFUSE;
  }
}

uint32_t freshness(Freshness choice) {
  switch (choice) {
    case Freshness::kRequired:
      return BYNAME_FRESHNESS_REQUIRED;
    case Freshness::kOffline:
      return BYNAME_FRESHNESS_OFFLINE;
    default:
      return BYNAME_FRESHNESS_PREFERRED;
  }
}

const char* text_or_null(const std::string& text) {
  return text.empty() ? nullptr : text.c_str();
}

byname_session_options options_of(const Settings& settings, bool is_bulk) {
  auto options = byname_init<byname_session_options>();
  options.unknown_keys = unknown_keys(settings.unknown_keys);
  options.freshness = freshness(settings.freshness);
  options.retries = settings.retries;
  options.link = text_or_null(settings.link);
  options.config_file = text_or_null(settings.config_file);
  options.home = text_or_null(settings.home);
  options.connect = text_or_null(settings.connect);
  options.timeout_ms = settings.timeout_ms;
  options.cache_bytes_max = settings.cache_bytes_max;
  options.node_bytes_max = settings.node_bytes_max;
  options.prefetch_bytes_max = settings.readahead_bytes_max;
  options.is_bulk = is_bulk ? 1 : 0;
  return options;
}

}  // namespace

Session::Session(const Settings& settings, bool is_bulk, Report report)
    : settings_(settings), is_bulk_(is_bulk), report_(std::move(report)) {}

Session::~Session() {
  doorkeeper_.reset();
  if (session_ > 0) {
    byname_session_close(session_, nullptr);
  }
}

std::optional<Failure> Session::open_now() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto opened = open_locked();
  if (const auto* failure = std::get_if<Failure>(&opened)) {
    if (failure->error != ENETUNREACH && failure->error != ETIME) {
      return *failure;
    }
  }
  return std::nullopt;
}

Outcome<byname_session> Session::handle() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return open_locked();
}

byname_session Session::handle_if_open() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return session_;
}

Outcome<byname_session> Session::open_locked() {
  if (session_ > 0) {
    return session_;
  }
  const auto now = std::chrono::steady_clock::now();
  if (last_failure_ && now < next_try_) {
    return *last_failure_;
  }
  const auto options = options_of(settings_, is_bulk_);
  auto error = no_error();
  const byname_session opened = byname_session_open(&options, BYNAME_ABI_VERSION, &error);
  if (opened < 0) {
    last_failure_ = failure_of(error);
    next_try_ = now + kRetryAfter;
    report_("cannot open a session: " + last_failure_->text);
    return *last_failure_;
  }
  last_failure_.reset();
  session_ = opened;
  return session_;
}

Failure Session::failure(const std::string& what, const std::string& name,
                         const byname_error& error) {
  // That there is no such file is an answer, and no news to whoever runs the server.
  if (error.code != ENOENT) {
    report_(what + " " + name + ": " + error.message);
  }
  return failure_of(error);
}

Outcome<Status> Session::stat(const std::string& name) {
  const auto session = handle();
  if (const auto* failure = std::get_if<Failure>(&session)) {
    return *failure;
  }
  auto attributes = byname_init<byname_attributes>();
  auto error = no_error();
  if (byname_stat(std::get<byname_session>(session), name.c_str(), &attributes, &error) < 0) {
    return failure("stat", name, error);
  }
  return status_of(attributes, name);
}

Outcome<std::unique_ptr<NamedFile>> Session::open_file(const std::string& name) {
  const auto session = handle();
  if (const auto* failure = std::get_if<Failure>(&session)) {
    return *failure;
  }
  auto error = no_error();
  const byname_file file = byname_open(std::get<byname_session>(session), name.c_str(), &error);
  if (file < 0) {
    return failure("open", name, error);
  }
  return std::make_unique<NamedFile>(file, name);
}

Outcome<std::unique_ptr<NamedListing>> Session::list(const std::string& name) {
  const auto session = handle();
  if (const auto* failure = std::get_if<Failure>(&session)) {
    return *failure;
  }
  auto error = no_error();
  const byname_listing listing =
      byname_list(std::get<byname_session>(session), name.c_str(), &error);
  if (listing < 0) {
    return failure("list", name, error);
  }
  return std::make_unique<NamedListing>(std::get<byname_session>(session), listing, name);
}

Outcome<std::shared_ptr<Doorkeeper>> Session::doorkeeper() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (doorkeeper_) {
    return doorkeeper_;
  }
  const auto session = open_locked();
  if (const auto* failure = std::get_if<Failure>(&session)) {
    return *failure;
  }
  auto options = byname_init<byname_door_options>();
  options.door = settings_.door.c_str();
  options.table = settings_.table.c_str();
  options.timeout_ms = settings_.timeout_ms;
  auto error = no_error();
  const byname_door door =
      byname_door_open(std::get<byname_session>(session), "/", &options, &error);
  if (door < 0) {
    report_("cannot open the door: " + std::string(error.message));
    return failure_of(error);
  }
  doorkeeper_ = std::make_shared<Doorkeeper>(door);
  return doorkeeper_;
}

std::optional<Failure> Session::open_door() {
  const auto opened = doorkeeper();
  const auto* failure = std::get_if<Failure>(&opened);
  return failure ? std::optional<Failure>(*failure) : std::nullopt;
}

Outcome<std::unique_ptr<Actor>> Session::actor(const Client& client) {
  const auto opened = doorkeeper();
  if (const auto* failure = std::get_if<Failure>(&opened)) {
    return *failure;
  }
  return std::get<std::shared_ptr<Doorkeeper>>(opened)->user(client);
}

std::optional<byname_counters> Session::counters() const {
  auto counters = byname_init<byname_counters>();
  const byname_session session = handle_if_open();
  if (session <= 0 || byname_session_counters(session, &counters, nullptr) < 0) {
    return std::nullopt;
  }
  return counters;
}

std::string Session::source() const {
  auto source = byname_init<byname_source>();
  const byname_session session = handle_if_open();
  if (session <= 0 || byname_session_source(session, &source, nullptr) < 0) {
    return "";
  }
  return source.endpoint;
}

std::string Session::whole_name(const std::string& name) const {
  char text[kNameTextBytes];
  const byname_session session = handle_if_open();
  const int64_t needed =
      session > 0 ? byname_session_name(session, name.c_str(), text, sizeof text, nullptr) : 0;
  return needed > 0 && needed <= static_cast<int64_t>(sizeof text) ? text : name;
}

void Session::keep_versions() {
  const byname_session session = handle_if_open();
  auto error = no_error();
  if (session > 0 && byname_session_keep_versions(session, &error) < 0) {
    report_(std::string("cannot keep the versions seen: ") + error.message);
  }
}

}  // namespace byname::xrd
