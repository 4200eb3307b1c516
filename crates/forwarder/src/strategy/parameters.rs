//! Parameters in the name of a strategy instance: components like `retx-suppression-initial~10`.

use byname_packet::NameRef;

/// Parameters not yet taken by the algorithm they are for.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    pairs: Vec<(String, u64)>,
}

impl Parameters {
    /// Reads the components after the version; `None` when one is malformed or stands twice.
    pub(super) fn parse(rest: NameRef<'_>) -> Option<Self> {
        let mut parameters = Self::default();
        for component in rest.components() {
            let text = std::str::from_utf8(component.value).ok()?;
            let (key, value) = text.split_once('~')?;
            if parameters.pairs.iter().any(|(known, _)| known == key) {
                return None;
            }
            parameters.pairs.push((key.to_owned(), value.parse().ok()?));
        }
        Some(parameters)
    }

    /// Takes out the value of one.
    pub(super) fn take(&mut self, key: &str) -> Option<u64> {
        let at = self.pairs.iter().position(|(known, _)| known == key)?;
        Some(self.pairs.swap_remove(at).1)
    }

    /// Returns whether all were taken: others are unknown.
    pub(super) fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}
