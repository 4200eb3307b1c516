//! Names of strategies as configurations write them.

use byname_forwarder::strategy;
use byname_packet::Name;

/// Returns whether `text` names a strategy, by its full instance name or just its label.
pub fn is_strategy(text: &str) -> bool {
    strategy_name(text).is_some()
}

/// The labels of all strategies, the default one first.
pub fn strategy_labels() -> Vec<&'static str> {
    strategy::labels().collect()
}

/// The instance name that `text` stands for.
pub(crate) fn strategy_name(text: &str) -> Option<Name> {
    let name = match text.starts_with('/') {
        true => text.parse().ok()?,
        false => "/localhost/nfd/strategy".parse::<Name>().ok()?.with_generic(text.as_bytes()),
    };
    strategy::by_name(name.view()).map(|_| name)
}
