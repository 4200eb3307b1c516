#include <cerrno>

#include "check.hh"
#include "errors.hh"
#include "routes.hh"
#include "settings.hh"
#include "units.hh"

using namespace byname::xrd;

namespace {

std::string taken(SettingsParser& parser, const std::string& directive,
                  const std::vector<std::string>& words) {
  return parser.take(directive, words).value_or("");
}

std::string refused(const std::string& directive, const std::vector<std::string>& words,
                    bool has_local = true) {
  SettingsParser parser(has_local);
  return taken(parser, directive, words);
}

std::string routed(const std::vector<Prefix>& prefixes, const std::string& path) {
  const auto route = Routes(prefixes).find(path);
  return route ? route->name : "none";
}

}  // namespace

TEST(sizes_and_durations_are_read_with_their_units) {
  CHECK_EQUAL(parse_bytes("4096").value_or(0), 4096u);
  CHECK_EQUAL(parse_bytes("64k").value_or(0), 65536u);
  CHECK_EQUAL(parse_bytes("2G").value_or(0), 2ull << 30);
  for (const char* bad :
       {"", "k", "1kb", "-1", "0", "1.5m", "18446744073709551616", "99999999999999g"}) {
    CHECK(!parse_bytes(bad));
  }
  CHECK_EQUAL(parse_milliseconds("500ms").value_or(0), 500u);
  CHECK_EQUAL(parse_milliseconds("4s").value_or(0), 4000u);
  CHECK_EQUAL(parse_milliseconds("2m").value_or(0), 120000u);
  for (const char* bad : {"", "4", "0s", "4h", "s"}) {
    CHECK(!parse_milliseconds(bad));
  }
}

TEST(without_lines_everything_is_a_name_and_local_files_come_first) {
  const Settings stacked = SettingsParser(true).finish();
  CHECK_EQUAL(stacked.prefixes.size(), 1u);
  CHECK_EQUAL(stacked.prefixes[0].path, "/");
  CHECK_EQUAL(stacked.prefixes[0].name, "/");
  CHECK(stacked.prefixes[0].order == Order::kLocalFirst);
  CHECK(SettingsParser(false).finish().prefixes[0].order == Order::kNameOnly);
}

TEST(whether_xrootd_asks_the_plug_in_is_seen_in_its_own_lines) {
  const auto asks = [](const std::vector<std::vector<std::string>>& lines) {
    SettingsParser parser(false);
    for (const auto& line : lines) {
      parser.take_foreign(line);
    }
    return parser.finish().is_authorizer;
  };
  const std::vector<std::string> on{"ofs.authorize", "1"};
  const std::vector<std::string> ours{"ofs.authlib", "libXrdByname.so"};
  const std::vector<std::string> other{"ofs.authlib", "libXrdAccSciTokens.so"};
  CHECK(asks({on, ours}));
  CHECK(asks({{"ofs.authorize"}, other, {"ofs.authlib", "++", "libXrdByname.so"}}));
  CHECK(!asks({on}));
  CHECK(!asks({ours}));
  CHECK(!asks({on, ours, other}));
  CHECK(!asks({on, ours, {"ofs.authlib", "++", "libXrdAccSciTokens.so"}}));
  CHECK(!asks({{"ofs.authorize", "0"}, ours}));
}

TEST(every_line_is_taken) {
  SettingsParser parser(true);
  CHECK_EQUAL(taken(parser, "reads", {"open"}), "");
  CHECK(parser.finish().reads_are_open);
  CHECK(refused("reads", {"all"}) != "");
  CHECK_EQUAL(taken(parser, "link", {"byname:/lab?key=SHA256:x"}), "");
  CHECK_EQUAL(taken(parser, "config", {"/etc/byname/byname.toml"}), "");
  CHECK_EQUAL(taken(parser, "home", {"/var/lib/byname"}), "");
  CHECK_EQUAL(taken(parser, "connect", {"unix:///run/nfd.sock"}), "");
  CHECK_EQUAL(taken(parser, "unknown_keys", {"first-use"}), "");
  CHECK_EQUAL(taken(parser, "freshness", {"required"}), "");
  CHECK_EQUAL(taken(parser, "timeout", {"3s"}), "");
  CHECK_EQUAL(taken(parser, "recheck", {"5s"}), "");
  CHECK_EQUAL(taken(parser, "retries", {"5"}), "");
  CHECK_EQUAL(taken(parser, "cache", {"64m"}), "");
  CHECK_EQUAL(taken(parser, "nodes", {"8m"}), "");
  CHECK_EQUAL(taken(parser, "readahead", {"none"}), "");
  CHECK_EQUAL(taken(parser, "openlog", {"/var/log/opens.json"}), "");
  CHECK_EQUAL(taken(parser, "metrics", {"/run/byname.prom", "30"}), "");
  CHECK_EQUAL(taken(parser, "prefix", {"/store", "/cms//store/", "name", "only"}), "");
  CHECK_EQUAL(taken(parser, "prefix", {"/user"}), "");
  CHECK_EQUAL(taken(parser, "order", {"name", "first"}), "");
  const Settings settings = parser.finish();
  CHECK_EQUAL(settings.link, "byname:/lab?key=SHA256:x");
  CHECK(settings.unknown_keys == UnknownKeys::kFirstUse);
  CHECK(settings.freshness == Freshness::kRequired);
  CHECK_EQUAL(settings.timeout_ms, 3000u);
  CHECK_EQUAL(settings.recheck_ms, 5000u);
  CHECK_EQUAL(settings.retries, 5u);
  CHECK_EQUAL(settings.cache_bytes_max, 64ull << 20);
  CHECK_EQUAL(settings.node_bytes_max, 8ull << 20);
  CHECK_EQUAL(settings.readahead_bytes_max, kNoBytes);
  CHECK_EQUAL(settings.metrics_seconds, 30u);
  CHECK_EQUAL(settings.prefixes.size(), 2u);
  CHECK_EQUAL(settings.prefixes[0].name, "/cms/store");
  CHECK(settings.prefixes[0].order == Order::kNameOnly);
  CHECK_EQUAL(settings.prefixes[1].name, "/user");
  CHECK(settings.prefixes[1].order == Order::kNameFirst);
}

TEST(mistakes_are_refused_with_a_reason) {
  CHECK_EQUAL(refused("order", {"sideways"}),
              "the order is 'local first', 'name first' or 'name only'");
  CHECK_EQUAL(refused("lnik", {"/lab"}), "there is no such parameter");
  CHECK_EQUAL(refused("link", {}), "a value is missing");
  CHECK_EQUAL(refused("link", {"/lab", "/x"}), "one value is expected, '/x' is too much");
  CHECK_EQUAL(refused("timeout", {"4"}), "'4' is no duration such as 500ms, 4s or 2m");
  CHECK_EQUAL(refused("retries", {"0"}), "'0' is no number from 1 to 1000");
  CHECK_EQUAL(refused("cache", {"much"}),
              "'much' is no size such as 4096, 64k, 16m or 2g, nor 'none'");
  CHECK_EQUAL(refused("home", {"here"}), "'here' is no absolute path");
  CHECK_EQUAL(refused("unknown_keys", {"yes"}), "'yes' is none of refuse, first-use, insecure");
  CHECK_EQUAL(refused("freshness", {"yes"}), "'yes' is none of preferred, required, offline");
  CHECK_EQUAL(refused("prefix", {"store"}), "'store' is no absolute path without '.' and '..'");
  CHECK_EQUAL(refused("prefix", {"/store", "cms"}), "'cms' is no name that begins with '/'");
  CHECK_EQUAL(refused("prefix", {"/a", "/b", "local", "last"}),
              "the order is 'local first', 'name first' or 'name only'");
  CHECK_EQUAL(refused("prefix", {"/a", "/b", "name", "only", "x"}),
              "expected: PATH [NAME] [local first|name first|name only]");
  CHECK_EQUAL(refused("metrics", {"/a", "0"}), "'0' is no number of seconds from 1 to 86400");
}

TEST(what_needs_local_storage_is_refused_without) {
  const std::string reason =
      "there is no local storage to look into: load the plug-in with 'ofs.osslib ++'";
  CHECK_EQUAL(refused("order", {"local", "first"}, false), reason);
  CHECK_EQUAL(refused("prefix", {"/a", "name", "first"}, false), reason);
  CHECK_EQUAL(refused("order", {"name", "only"}, false), "");
}

TEST(a_prefix_is_given_once_and_not_too_often) {
  SettingsParser parser(true);
  CHECK_EQUAL(taken(parser, "prefix", {"/store"}), "");
  CHECK_EQUAL(taken(parser, "prefix", {"/store/"}), "prefix /store is given twice");
  for (size_t index = 1; index < kPrefixesMax; ++index) {
    CHECK_EQUAL(taken(parser, "prefix", {"/" + std::to_string(index)}), "");
  }
  CHECK_EQUAL(taken(parser, "prefix", {"/more"}), "there are more than 256 prefixes");
}

TEST(paths_have_one_form) {
  CHECK_EQUAL(normal_path("//a///b c/%2F/").value_or("-"), "/a/b c/%2F");
  CHECK_EQUAL(normal_path("/").value_or("-"), "/");
  CHECK_EQUAL(normal_path("/a/..b/...").value_or("-"), "/a/..b/...");
  for (const char* bad : {"", "a", "/a/../b", "/.", "/a/."}) {
    CHECK(!normal_path(bad));
  }
}

TEST(the_longest_prefix_wins_and_ends_at_a_component) {
  const std::vector<Prefix> prefixes{{"/store", "/cms/store", Order::kLocalFirst},
                                     {"/store/user", "/", Order::kNameOnly},
                                     {"/top", "/t", Order::kNameOnly}};
  CHECK_EQUAL(routed(prefixes, "/store"), "/cms/store");
  CHECK_EQUAL(routed(prefixes, "/store/a//b"), "/cms/store/a/b");
  CHECK_EQUAL(routed(prefixes, "/store/user"), "/");
  CHECK_EQUAL(routed(prefixes, "/store/user/x"), "/x");
  CHECK_EQUAL(routed(prefixes, "/store/users"), "/cms/store/users");
  CHECK_EQUAL(routed(prefixes, "/stores"), "none");
  CHECK_EQUAL(routed(prefixes, "/"), "none");
  CHECK_EQUAL(routed(prefixes, "/store/../top"), "none");
  CHECK_EQUAL(routed({{"/", "/", Order::kNameOnly}}, "/"), "/");
  CHECK_EQUAL(routed({{"/", "/lab", Order::kNameOnly}}, "/"), "/lab");
  CHECK_EQUAL(routed({{"/", "/lab", Order::kNameOnly}}, "/x"), "/lab/x");
}

// XRootD 5.5.3 delivers ETIMEDOUT and EBUSY of a read as 30 or 5 octets of garbage.
TEST(no_errno_reaches_xrootd_that_it_takes_for_a_promise) {
  for (int error = -10; error < 20000; ++error) {
    const int given = errno_for_xrootd(error);
    CHECK(given > 0 && given < 200);
    for (const int promise : {ETIMEDOUT, EBUSY, EINPROGRESS, EALREADY, EDESTADDRREQ, EAGAIN}) {
      CHECK(given != promise);
    }
  }
}

TEST(errors_keep_their_meaning) {
  CHECK_EQUAL(errno_for_xrootd(ENOENT), ENOENT);
  CHECK_EQUAL(errno_for_xrootd(ENOKEY), ENOKEY);
  CHECK_EQUAL(errno_for_xrootd(EIO), EIO);
  CHECK_EQUAL(errno_for_xrootd(EHOSTUNREACH), ENETUNREACH);
  CHECK_EQUAL(errno_for_xrootd(ECONNREFUSED), ENETUNREACH);
  CHECK_EQUAL(errno_for_xrootd(ETIMEDOUT), ETIME);
  CHECK_EQUAL(errno_for_xrootd(EBUSY), ETXTBSY);
  CHECK_EQUAL(errno_for_xrootd(10001), EIO);
}
