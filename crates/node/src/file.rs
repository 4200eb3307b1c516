//! The `[forwarder]` section of a configuration file.
//!
//! Every option is optional: what a file does not say stays as it is in the [`NodeConfig`] that it
//! is applied to. Unknown options are refused. deploy/byname-forward.toml is the manual.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use byname_forwarder::{CsPolicy, FaceOptions, TracePolicy};
use byname_io::Endpoint;
use byname_packet::Name;
use byname_packet::mgmt::{ROUTE_FLAG_CAPTURE, ROUTE_FLAG_CHILD_INHERIT};
use serde::Deserialize;

use crate::config::{NodeConfig, SocketAccess, StaticFace, StaticRoute};
use crate::strategies;

#[cfg(test)]
mod tests;

/// A FaceUri.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Uri(pub Endpoint);

impl TryFrom<String> for Uri {
    type Error = byname_io::EndpointError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

/// A name as users write it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Prefix(pub Name);

impl TryFrom<String> for Prefix {
    type Error = byname_packet::UriError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Name::from_user(&text).map(Self)
    }
}

/// The mode of a file, in octal as `chmod` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Mode(pub u32);

impl TryFrom<String> for Mode {
    type Error = ModeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match u32::from_str_radix(&text, 8) {
            Ok(mode) if mode <= 0o777 => Ok(Self(mode)),
            _ => Err(ModeError { text }),
        }
    }
}

/// A mode that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no mode: three octal digits are wanted, as in \"0660\"")]
pub struct ModeError {
    text: String,
}

/// Replacement policy of the content store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The packet not asked for the longest goes first.
    Lru,
    /// The packet that came first goes first.
    Fifo,
}

/// Whom the forwarder tells where answers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trace {
    /// Nobody.
    Off,
    /// Everybody; names and addresses only programs of this machine.
    Local,
    /// Everybody, with names and addresses.
    All,
}

/// The section. See deploy/byname-forward.toml for what each option means.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(missing_docs, reason = "the sample file is the manual")]
pub struct ForwarderFile {
    pub listen: Option<Vec<Uri>>,
    pub socket_mode: Option<Mode>,
    pub socket_group: Option<String>,
    pub authorized_group: Option<String>,
    pub websocket_origins: Option<Vec<String>>,
    pub metrics: Option<SocketAddr>,
    pub regions: Option<Vec<Prefix>>,
    pub trace: Option<Trace>,
    pub shards: Option<u64>,
    pub content_store_mib: Option<u64>,
    pub content_store_entries: Option<u64>,
    pub content_store_policy: Option<Policy>,
    pub content_store_admit: Option<bool>,
    pub content_store_serve: Option<bool>,
    pub pit_entries: Option<u64>,
    pub pit_mib: Option<u64>,
    pub routes_max: Option<u64>,
    pub dead_nonces: Option<u64>,
    pub faces_max: Option<u64>,
    pub silent_face_s: Option<u64>,
    pub stalled_face_s: Option<u64>,
    pub udp_faces_max: Option<u64>,
    pub udp_idle_s: Option<u64>,
    pub udp_unvalidated_kib_s: Option<u64>,
    pub udp_unvalidated_all_kib_s: Option<u64>,
    pub udp_mtu: Option<u64>,
    pub udp_mtu_loopback: Option<u64>,
    pub send_queue_kib: Option<u64>,
    pub connections_mib: Option<u64>,
    pub connect_timeout_s: Option<u64>,
    pub reconnect_min_ms: Option<u64>,
    pub reconnect_max_ms: Option<u64>,
    pub reliability: Option<bool>,
    pub congestion_marking: Option<bool>,
    pub congestion_interval_ms: Option<u64>,
    pub congestion_threshold_kib: Option<u64>,
    pub strategy: BTreeMap<String, String>,
    pub face: Vec<FaceEntry>,
    pub route: Vec<RouteEntry>,
    pub allow_register: Vec<AllowEntry>,
    pub allow_register_loopback: Option<bool>,
}

/// `[[forwarder.face]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the sample file is the manual")]
pub struct FaceEntry {
    pub to: Uri,
    pub mtu: Option<u64>,
    pub reliability: Option<bool>,
    pub congestion_marking: Option<bool>,
}

/// `[[forwarder.route]]`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the sample file is the manual")]
pub struct RouteEntry {
    pub prefix: Prefix,
    pub to: Uri,
    #[serde(default)]
    pub cost: u64,
    pub child_inherit: Option<bool>,
    #[serde(default)]
    pub capture: bool,
}

/// `[[forwarder.allow_register]]`: one of `key` and `certificate`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the sample file is the manual")]
pub struct AllowEntry {
    pub prefix: Prefix,
    pub key: Option<String>,
    pub certificate: Option<PathBuf>,
}

/// A value that no node can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// The prefix of a strategy is no name.
    #[error("strategy: {prefix:?} is no name: {source}")]
    Prefix {
        /// Text that stands there.
        prefix: String,
        /// Fault of it.
        source: byname_packet::UriError,
    },
    /// There is no such strategy.
    #[error("strategy of {prefix:?}: there is none called {strategy:?}")]
    Strategy {
        /// The prefix.
        prefix: String,
        /// Text that stands there.
        strategy: String,
    },
    /// A number outside of what makes sense.
    #[error("{option} must be {least} to {most}, not {value}")]
    Range {
        /// The option.
        option: &'static str,
        /// Its smallest value.
        least: u64,
        /// Its largest value.
        most: u64,
        /// Text that stands there.
        value: u64,
    },
    /// An entry that names no key, or two.
    #[error("allow_register of {prefix}: exactly one of `key` and `certificate` is wanted")]
    Allow {
        /// The prefix.
        prefix: String,
    },
    /// A route or face towards something that only listens.
    #[error("{uri} is no peer to forward to")]
    NoPeer {
        /// Text that stands there.
        uri: String,
    },
}

const MILLISECOND_NS: u64 = 1_000_000;
const SECOND_NS: u64 = 1000 * MILLISECOND_NS;

/// Takes an option over where the file has it, within its bounds.
macro_rules! take {
    ($self:ident.$option:ident in $least:literal..=$most:expr => $($at:ident).+, $unit:expr) => {
        if let Some(value) = $self.$option {
            let most: u64 = $most;
            if !($least..=most).contains(&value) {
                let option = stringify!($option);
                return Err(FileError::Range { option, least: $least, most, value });
            }
            $($at).+ = (value * $unit) as _;
        }
    };
}

impl ForwarderFile {
    /// Puts what the file says into `config`. Groups and keys are left to the caller, who knows
    /// about users and anchors.
    ///
    /// # Errors
    /// [`FileError`]; `config` is then of no further use.
    pub fn apply(&self, config: &mut NodeConfig) -> Result<(), FileError> {
        self.apply_tables(config)?;
        self.apply_links(config)?;
        if let Some(listen) = &self.listen {
            config.listen = listen.iter().map(|uri| uri.0.clone()).collect();
        }
        if let Some(Mode(mode)) = self.socket_mode {
            config.socket_access = SocketAccess { mode, ..config.socket_access };
        }
        if let Some(origins) = &self.websocket_origins {
            config.websocket_origins.clone_from(origins);
        }
        if let Some(regions) = &self.regions {
            config.forwarder.regions = regions.iter().map(|prefix| prefix.0.clone()).collect();
        }
        if let Some(trace) = self.trace {
            config.forwarder.trace = match trace {
                Trace::Off => TracePolicy::Off,
                Trace::Local => TracePolicy::Local,
                Trace::All => TracePolicy::All,
            };
        }
        for (prefix, strategy) in &self.strategy {
            let name = Name::from_user(prefix)
                .map_err(|source| FileError::Prefix { prefix: prefix.clone(), source })?;
            if !strategies::is_strategy(strategy) {
                let (prefix, strategy) = (prefix.clone(), strategy.clone());
                return Err(FileError::Strategy { prefix, strategy });
            }
            config.strategies.push((name, strategy.clone()));
        }
        for entry in &self.face {
            config.faces.push(entry.face(&config.face_defaults)?);
        }
        for entry in &self.route {
            config.routes.push(entry.route()?);
        }
        if let Some(allow) = self.allow_register_loopback {
            config.forwarder.allow_register_loopback = allow;
        }
        for entry in &self.allow_register {
            if entry.key.is_some() == entry.certificate.is_some() {
                let prefix = entry.prefix.0.view().to_user();
                return Err(FileError::Allow { prefix });
            }
        }
        Ok(())
    }

    fn apply_tables(&self, config: &mut NodeConfig) -> Result<(), FileError> {
        const COUNT_MAX: u64 = 1 << 32;
        const MIB_MAX: u64 = 1 << 24;
        take!(self.shards in 1..=byname_forwarder::SHARDS_MAX as u64 => config.shards, 1);
        let tables = &mut config.forwarder;
        take!(self.content_store_mib in 0..=MIB_MAX => tables.cs_bytes_max, 1 << 20);
        take!(self.content_store_entries in 0..=COUNT_MAX => tables.cs_entries_max, 1);
        take!(self.pit_entries in 16..=COUNT_MAX => tables.pit_entries_max, 1);
        take!(self.pit_mib in 1..=MIB_MAX => tables.pit_bytes_max, 1 << 20);
        take!(self.routes_max in 1..=COUNT_MAX => tables.routes_max, 1);
        take!(self.dead_nonces in 0..=COUNT_MAX => tables.dead_nonces_max, 1);
        if let Some(policy) = self.content_store_policy {
            tables.cs_policy = match policy {
                Policy::Lru => CsPolicy::Lru,
                Policy::Fifo => CsPolicy::Fifo,
            };
        }
        config.cs_admit = self.content_store_admit.unwrap_or(config.cs_admit);
        config.cs_serve = self.content_store_serve.unwrap_or(config.cs_serve);
        Ok(())
    }

    fn apply_links(&self, config: &mut NodeConfig) -> Result<(), FileError> {
        const FACES_MAX: u64 = 1 << 20;
        const DAY_S: u64 = 86_400;
        take!(self.faces_max in 1..=FACES_MAX => config.faces_max, 1);
        take!(self.silent_face_s in 1..=DAY_S => config.silent_face_ns, SECOND_NS);
        take!(self.stalled_face_s in 1..=DAY_S => config.stalled_face_ns, SECOND_NS);
        take!(self.udp_faces_max in 0..=FACES_MAX => config.udp_faces_max, 1);
        take!(self.udp_idle_s in 1..=DAY_S => config.udp_idle_ns, SECOND_NS);
        const KIB_MAX: u64 = 1 << 32;
        let rates = &mut config.udp_unvalidated;
        take!(self.udp_unvalidated_kib_s in 0..=KIB_MAX => rates.machine_bytes_s, 1 << 10);
        take!(self.udp_unvalidated_all_kib_s in 0..=KIB_MAX => rates.all_bytes_s, 1 << 10);
        let mut udp_mtu_bytes = 0usize;
        take!(self.udp_mtu in 576..=8800 => udp_mtu_bytes, 1);
        config.udp_mtu_bytes = self.udp_mtu.map(|_| udp_mtu_bytes).or(config.udp_mtu_bytes);
        take!(self.udp_mtu_loopback in 576..=8800 => config.udp_mtu_loopback_bytes, 1);
        take!(self.send_queue_kib in 64..=4_194_304 => config.send_bytes_max, 1 << 10);
        take!(self.connections_mib in 1..=1_048_576 => config.connection_bytes_max, 1 << 20);
        take!(self.connect_timeout_s in 1..=3600 => config.connect_timeout_ns, SECOND_NS);
        take!(self.reconnect_min_ms in 1..=3_600_000 => config.reconnect_min_ns, MILLISECOND_NS);
        take!(self.reconnect_max_ms in 1..=3_600_000 => config.reconnect_max_ns, MILLISECOND_NS);
        let defaults = &mut config.face_defaults;
        defaults.reliability = self.reliability.unwrap_or(defaults.reliability);
        defaults.congestion_marking =
            self.congestion_marking.unwrap_or(defaults.congestion_marking);
        let (mut interval_ns, mut threshold) = (0u64, 0u64);
        take!(self.congestion_interval_ms in 1..=60_000 => interval_ns, MILLISECOND_NS);
        take!(self.congestion_threshold_kib in 1..=4_194_304 => threshold, 1 << 10);
        let given = |value: u64, before| if value > 0 { Some(value) } else { before };
        defaults.base_congestion_marking_interval_ns =
            given(interval_ns, defaults.base_congestion_marking_interval_ns);
        defaults.default_congestion_threshold_bytes =
            given(threshold, defaults.default_congestion_threshold_bytes);
        Ok(())
    }
}

impl FaceEntry {
    fn face(&self, defaults: &FaceOptions) -> Result<StaticFace, FileError> {
        if let Some(value) = self.mtu
            && !(576..=8800).contains(&value)
        {
            return Err(FileError::Range { option: "mtu", least: 576, most: 8800, value });
        }
        let options = FaceOptions {
            mtu_bytes: self.mtu,
            reliability: self.reliability.unwrap_or(defaults.reliability),
            congestion_marking: self.congestion_marking.unwrap_or(defaults.congestion_marking),
            ..defaults.clone()
        };
        Ok(StaticFace { endpoint: peer(&self.to)?, options })
    }
}

impl RouteEntry {
    fn route(&self) -> Result<StaticRoute, FileError> {
        let inherit = if self.child_inherit.unwrap_or(true) { ROUTE_FLAG_CHILD_INHERIT } else { 0 };
        let capture = if self.capture { ROUTE_FLAG_CAPTURE } else { 0 };
        let (prefix, endpoint) = (self.prefix.0.clone(), peer(&self.to)?);
        Ok(StaticRoute { prefix, endpoint, cost: self.cost, flags: inherit | capture })
    }
}

fn peer(uri: &Uri) -> Result<Endpoint, FileError> {
    let is_wildcard = match &uri.0 {
        Endpoint::Tcp { host, .. } | Endpoint::Udp { host, .. } => host.is_any(),
        _ => false,
    };
    if is_wildcard { Err(FileError::NoPeer { uri: uri.0.to_string() }) } else { Ok(uri.0.clone()) }
}
