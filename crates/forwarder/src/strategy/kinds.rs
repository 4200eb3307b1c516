//! The list of algorithms, and instances by name.

use std::sync::Arc;

use byname_packet::{Name, NameRef};

use super::access::Access;
use super::api::{Chosen, Strategy};
use super::asf::Asf;
use super::best_route::BestRoute;
use super::multicast::Multicast;
use super::parameters::Parameters;
use super::random::Random;

/// Makes an instance from what its name says; `None` for parameters that it does not know.
pub(super) type Build = fn(Parameters) -> Option<Chosen>;

/// Every algorithm with its version; the first is the default.
pub(super) const KINDS: [(&str, u64, Build); 5] = [
    ("best-route", 5, BestRoute::build),
    ("multicast", 5, Multicast::build),
    ("asf", 5, Asf::build),
    ("random", 1, Random::build),
    ("access", 1, Access::build),
];

/// The names of all algorithms, the default one first.
pub fn labels() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(label, ..)| *label)
}

/// Prefix of strategy instance names.
pub(super) const PREFIX: &str = "/localhost/nfd/strategy";

/// The strategy of prefixes for which none was chosen.
pub fn default_strategy() -> Chosen {
    Arc::new(BestRoute::default())
}

/// The full instance name with its version and parameters.
pub fn instance_name(strategy: &dyn Strategy) -> Name {
    let (label, version) = strategy.label();
    let prefix: Name = PREFIX.parse().expect("a constant name");
    let name = prefix.with_generic(label.as_bytes()).with_version(version);
    strategy
        .parameters()
        .into_iter()
        .fold(name, |name, (key, value)| name.with_generic(format!("{key}~{value}").as_bytes()))
}

/// The strategy that `name` means: an algorithm, its version (or none), and parameters like
/// `retx-suppression-initial~10`. `None` for one that there is not.
pub fn by_name(name: NameRef<'_>) -> Option<Chosen> {
    let prefix: Name = PREFIX.parse().expect("a constant name");
    let start = prefix.view().count();
    if !prefix.view().is_prefix_of(name) {
        return None;
    }
    let label = name.get(start)?;
    let (_, version, build) =
        KINDS.into_iter().find(|(known, _, _)| known.as_bytes() == label.value)?;
    let rest = match name.get(start + 1).and_then(|component| component.version()) {
        None => name.suffix(start + 1),
        // As in NFD: an older version means the next one there is.
        Some(wanted) if wanted <= version => name.suffix(start + 2),
        Some(_) => return None,
    };
    build(Parameters::parse(rest)?)
}
