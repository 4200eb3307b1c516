//! Where a database is, and how its server proves that it is the one.
//!
//! A text is libpq's: `host=… dbname=…` or a URL. What is about TLS is taken out of it here, since
//! the library that connects knows less of it. Over a network there is TLS, and the server has to
//! have a certificate of its name: `sslmode=verify-full` is what holds unless `disable` is asked
//! for by name. Unix sockets and this machine's own addresses need none. The modes in between
//! encrypt to whoever answers, so they are refused.

use std::fmt;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::error::PostgresError;
use crate::tls::{self, Connector, Files};

/// Time that a server has to take a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
/// Time that a server has for what it was asked.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// The port where nothing else is said.
const PORT: u16 = 5432;
/// The mode that holds over a network.
const VERIFIED: &str = "verify-full";
/// The mode without TLS.
const PLAIN: &str = "disable";

/// Where a database is.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    /// None where no TLS is used.
    pub(crate) tls: Option<Connector>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").field("has_tls", &self.tls.is_some()).finish_non_exhaustive()
    }
}

impl Address {
    /// The database, and where it may be, for people.
    pub(crate) fn servers(&self) -> String {
        let config = &self.config;
        let ports = config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(PORT);
        let server = |(at, host): (usize, &Host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(at)),
            Host::Unix(path) => format!("{}/.s.PGSQL.{}", path.display(), port(at)),
        };
        let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(server).collect();
        let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
        format!("database {database} at {}", hosts.join(" or "))
    }

    /// Reads where a database is, and the certificates that are named there. Of several servers the
    /// one that can be written to is taken.
    pub(crate) fn parse(text: &str) -> Result<Self, PostgresError> {
        let (rest, wanted) = Wanted::split(text);
        let mut config: Config =
            rest.parse().map_err(|source| PostgresError::Malformed { source })?;
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_PATIENCE);
        }
        config.keepalives_idle(Duration::from_secs(5));
        config.tcp_user_timeout(PATIENCE);
        let tls = match wanted.is_verified(&config)? {
            true => Some(tls::connector(&wanted.files)?),
            false => None,
        };
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        Ok(Self { config, tls })
    }
}

/// What a text says about TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Wanted {
    mode: Option<String>,
    files: Files,
}

impl Wanted {
    /// Takes what is about TLS out of a text.
    fn split(text: &str) -> (String, Self) {
        match text.starts_with("postgres://") || text.starts_with("postgresql://") {
            true => Self::split_url(text),
            false => Self::split_words(text),
        }
    }

    fn split_url(text: &str) -> (String, Self) {
        let mut wanted = Self::default();
        let Some((place, query)) = text.split_once('?') else { return (text.to_owned(), wanted) };
        let rest: Vec<&str> = query
            .split('&')
            .filter(|part| {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                !wanted.take(key, decoded(value))
            })
            .collect();
        match rest.is_empty() {
            true => (place.to_owned(), wanted),
            false => (format!("{place}?{}", rest.join("&")), wanted),
        }
    }

    fn split_words(text: &str) -> (String, Self) {
        let (mut wanted, mut rest, mut left) = (Self::default(), String::new(), text);
        while let Some((key, value, behind)) = next_word(left) {
            if !wanted.take(key, value) {
                rest.push_str(&left[..left.len() - behind.len()]);
            }
            left = behind;
        }
        // What is no such word the library complains about.
        (rest + left, wanted)
    }

    /// True if a word is about TLS.
    fn take(&mut self, key: &str, value: String) -> bool {
        match key {
            "sslmode" => self.mode = Some(value),
            "sslrootcert" => self.files.roots = Some(value.into()),
            "sslcert" => self.files.certificate = Some(value.into()),
            "sslkey" => self.files.key = Some(value.into()),
            _ => return false,
        }
        true
    }

    /// True if servers have to prove who they are.
    fn is_verified(&self, config: &Config) -> Result<bool, PostgresError> {
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        match self.mode.as_deref() {
            Some(PLAIN) => Ok(false),
            Some(VERIFIED) if config.get_hosts().iter().any(is_socket) => {
                Err(PostgresError::SocketWithTls)
            }
            Some(VERIFIED) => Ok(true),
            Some(mode) => Err(PostgresError::TlsMode { mode: mode.to_owned() }),
            None if is_here(config) => Ok(false),
            None if config.get_hosts().iter().any(is_socket) => Err(PostgresError::SocketWithTls),
            None => Ok(true),
        }
    }
}

/// True if all servers are on this machine.
fn is_here(config: &Config) -> bool {
    let (hosts, addresses) = (config.get_hosts(), config.get_hostaddrs());
    let is_loopback = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
    };
    match addresses.is_empty() {
        true => hosts.iter().all(is_loopback),
        // Names only say what the certificates have then.
        false => addresses.iter().all(|address| address.is_loopback()),
    }
}

/// The first `key = value` of a text, and what is behind it.
fn next_word(text: &str) -> Option<(&str, String, &str)> {
    let (key, value) = text.split_once('=')?;
    let key = key.trim();
    if key.is_empty() || key.contains(char::is_whitespace) {
        return None;
    }
    let value = value.trim_start();
    let (quoted, inside) = match value.strip_prefix('\'') {
        Some(inside) => (true, inside),
        None => (false, value),
    };
    let (mut out, mut chars) = (String::new(), inside.char_indices());
    while let Some((at, letter)) = chars.next() {
        match letter {
            '\\' => out.push(chars.next()?.1),
            '\'' if quoted => return Some((key, out, &inside[at + 1..])),
            _ if !quoted && letter.is_whitespace() => return Some((key, out, &inside[at..])),
            _ => out.push(letter),
        }
    }
    (!quoted).then_some((key, out, ""))
}

/// A part of a URL without its escapes.
fn decoded(text: &str) -> String {
    let (mut out, mut left) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let [first, behind @ ..] = left {
        let escaped = behind.get(..2).filter(|_| *first == b'%');
        let octet = escaped
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(octet.unwrap_or(*first));
        left = if octet.is_some() { &behind[2..] } else { behind };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Address, Wanted};
    use crate::error::PostgresError;
    use crate::tls::Files;

    #[test]
    fn the_servers_are_named_for_people() {
        for (text, servers) in [
            ("host=a.lab,b.lab port=5441,5442 dbname=lab", "lab at a.lab:5441 or b.lab:5442"),
            ("host=a.lab,b.lab port=5441 user=byname", "byname at a.lab:5441 or b.lab:5441"),
            ("host=/run/pg dbname=lab", "lab at /run/pg/.s.PGSQL.5432"),
        ] {
            let address = Address::parse(&format!("{text} sslmode=disable")).unwrap();
            assert_eq!(address.servers(), format!("database {servers}"), "{text}");
        }
    }

    #[test]
    fn what_is_about_tls_is_taken_out_of_a_text_and_nothing_else() {
        let text = r"host = db.lab sslmode=verify-full password='a\'b c' sslrootcert='/r oot.pem'
            sslcert=/c.pem dbname=lab sslkey=/k.pem";
        let (rest, wanted) = Wanted::split(text);
        let files = Files {
            roots: Some("/r oot.pem".into()),
            certificate: Some("/c.pem".into()),
            key: Some("/k.pem".into()),
        };
        assert_eq!(wanted, Wanted { mode: Some("verify-full".into()), files });
        let config: tokio_postgres::Config = rest.parse().unwrap();
        assert_eq!(config.get_password(), Some(b"a'b c".as_slice()), "{rest}");
        assert_eq!(config.get_dbname(), Some("lab"));
        let text = "postgres://u:p@db.lab/lab?sslmode=disable&connect_timeout=3&sslrootcert=%2Fr";
        let (rest, wanted) = Wanted::split(text);
        assert_eq!(rest, "postgres://u:p@db.lab/lab?connect_timeout=3");
        assert_eq!(wanted.mode.as_deref(), Some("disable"));
        assert_eq!(wanted.files.roots, Some("/r".into()));
        assert_eq!(
            Wanted::split("postgres://db.lab/lab?sslmode=disable").0,
            "postgres://db.lab/lab"
        );
        for text in ["", "host", "host='a", "=x", "sslmode", r"host=\"] {
            assert_eq!(Wanted::split(text).0.trim(), text, "left to who reads the rest");
        }
    }

    #[test]
    fn over_a_network_a_server_proves_who_it_is_unless_that_is_waived_by_name() {
        let has_tls = |text: &str| Address::parse(text).map(|address| address.tls.is_some());
        for text in [
            "host=/run/postgresql dbname=lab",
            "host=/run/a,/run/b dbname=lab",
            "host=localhost",
            "host=127.0.0.1,::1",
            "host=db.lab hostaddr=127.0.0.1",
            "host=db.lab sslmode=disable",
            "postgres://u@localhost/lab",
        ] {
            assert!(!has_tls(text).unwrap(), "{text}");
        }
        for text in [
            "host=db.lab",
            "host=localhost hostaddr=10.0.0.1",
            "host=localhost,db.lab",
            "postgres://u@db.lab/lab",
            "host=localhost sslmode=verify-full",
        ] {
            assert!(has_tls(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn what_would_encrypt_to_whoever_answers_is_refused() {
        for mode in ["prefer", "allow", "require", "verify-ca", ""] {
            let refused = Address::parse(&format!("host=db.lab sslmode='{mode}'"));
            assert!(matches!(refused, Err(PostgresError::TlsMode { .. })), "{mode}: {refused:?}");
        }
        for text in ["host=/run sslmode=verify-full", "host=/run,db.lab"] {
            let refused = Address::parse(text);
            assert!(matches!(refused, Err(PostgresError::SocketWithTls)), "{text}: {refused:?}");
        }
        for file in ["sslrootcert", "sslcert", "sslkey"] {
            let refused = Address::parse(&format!("host=db.lab {file}=/nowhere"));
            assert!(refused.is_err(), "{file}: {refused:?}");
        }
    }
}
