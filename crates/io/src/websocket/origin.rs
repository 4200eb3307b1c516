//! Which web pages may connect.
//!
//! A browser connects wherever a page tells it to, also into the network behind a firewall, and
//! says in `Origin` whose page it was. Programs that are not browsers send no `Origin`, and could
//! send any: this protects the user of a browser, not the forwarder from strangers.

use tungstenite::handshake::server::Request;
use tungstenite::http::header::{HOST, ORIGIN};

/// Pages of which origins may connect to a WebSocket listener. Whoever sends no `Origin` is no
/// browser and always may.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum AllowedOrigins {
    /// Pages of the host that the browser believes it is connecting to, whatever the port.
    ///
    /// A page can make a name of its own lead to this machine (DNS rebinding) and then pass as
    /// such; where that matters, take [`AllowedOrigins::Only`].
    #[default]
    SameHost,
    /// [`AllowedOrigins::SameHost`], and these (`https://play.example`, as browsers write them;
    /// `null` stands for pages from files and for sandboxed ones, which may be anybody's).
    SameHostAnd(Vec<String>),
    /// These and no others.
    Only(Vec<String>),
    /// Any page that any user of this machine's network happens to open.
    Any,
}

impl AllowedOrigins {
    pub(super) fn admit(&self, request: &Request) -> bool {
        let mut origins = request.headers().get_all(ORIGIN).iter();
        let Some(origin) = origins.next() else { return true };
        if *self == AllowedOrigins::Any {
            return true;
        }
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        match (origin.to_str(), origins.next()) {
            (Ok(origin), None) => self.admits(origin, host.unwrap_or_default()),
            _ => false,
        }
    }

    fn admits(&self, origin: &str, host: &str) -> bool {
        let is_listed =
            |list: &[String]| list.iter().any(|listed| listed.eq_ignore_ascii_case(origin));
        match self {
            AllowedOrigins::SameHost => is_same_host(origin, host),
            AllowedOrigins::SameHostAnd(list) => is_same_host(origin, host) || is_listed(list),
            AllowedOrigins::Only(list) => is_listed(list),
            AllowedOrigins::Any => true,
        }
    }
}

/// `http://name:1` and `name:2` are of one host.
fn is_same_host(origin: &str, host: &str) -> bool {
    let Some((_, authority)) = origin.split_once("://") else { return false };
    let (page, own) = (without_port(authority), without_port(host));
    !own.is_empty() && page.eq_ignore_ascii_case(own)
}

fn without_port(authority: &str) -> &str {
    if authority.starts_with('[') {
        return authority.split_inclusive(']').next().unwrap_or(authority);
    }
    authority.split(':').next().unwrap_or(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_same_host_may_whatever_the_port() {
        let same = AllowedOrigins::SameHost;
        for (origin, host) in [
            ("http://localhost:8080", "localhost:9696"),
            ("https://Router.example", "router.example:9696"),
            ("http://[::1]:80", "[::1]:9696"),
            ("http://127.0.0.1", "127.0.0.1"),
        ] {
            assert!(same.admits(origin, host), "{origin} {host}");
        }
        for (origin, host) in [
            ("http://evil.example", "localhost:9696"),
            ("http://localhost.evil.example", "localhost:9696"),
            ("http://[::2]", "[::1]:9696"),
            ("null", "localhost:9696"),
            ("null", "null"),
            ("", ""),
            ("http://", ""),
            ("localhost", "localhost"),
        ] {
            assert!(!same.admits(origin, host), "{origin} {host}");
        }
    }

    #[test]
    fn lists_are_exact() {
        let page = String::from("https://play.example");
        let more = AllowedOrigins::SameHostAnd(vec![page.clone()]);
        let only = AllowedOrigins::Only(vec![page.clone()]);
        assert!(more.admits(&page, "router:9696") && only.admits("HTTPS://play.example", "x"));
        assert!(more.admits("http://router", "router:9696"));
        assert!(!only.admits("http://router", "router:9696"));
        assert!(!more.admits("http://play.example", "router:9696"), "another scheme");
        assert!(!more.admits("https://play.example:444", "router:9696"), "another port");
        assert!(AllowedOrigins::Any.admits("null", "router"));
    }
}
