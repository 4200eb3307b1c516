//! An entry's standing with the eviction policy, kept with the entry so that it outlives processes.

use std::io;
use std::str::FromStr;

/// Standing of an entry. Times are nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// When it entered the queue that it is in.
    pub queued_ns: u64,
    /// When it was last used.
    pub used_ns: u64,
    /// Uses that count, at most 3.
    pub uses: u8,
    /// It is in the main queue: used again after it came, or removed not long ago and missed.
    pub is_main: bool,
}

/// Most uses that count.
pub const USES_MAX: u8 = 3;

impl Standing {
    /// Standing of what has just come.
    pub fn new(now_ns: u64, is_main: bool) -> Self {
        Standing { queued_ns: now_ns, used_ns: now_ns, uses: 0, is_main }
    }

    /// It is used once more.
    pub fn touch(&mut self, now_ns: u64) {
        self.used_ns = now_ns;
        self.uses = (self.uses + 1).min(USES_MAX);
    }

    pub(crate) fn encode(&self) -> String {
        let Standing { queued_ns, used_ns, uses, is_main } = self;
        format!("{queued_ns} {used_ns} {uses} {}\n", u8::from(*is_main))
    }

    /// Damaged text is no standing.
    pub(crate) fn decode(text: &str) -> io::Result<Self> {
        let damaged = || io::Error::from(io::ErrorKind::InvalidData);
        let mut words = text.split_ascii_whitespace();
        let mut next = || words.next().and_then(|word| u64::from_str(word).ok());
        let (queued_ns, used_ns) = (next().ok_or_else(damaged)?, next().ok_or_else(damaged)?);
        let uses = next().and_then(|uses| u8::try_from(uses).ok()).ok_or_else(damaged)?;
        let is_main = next().ok_or_else(damaged)? == 1;
        Ok(Standing { queued_ns, used_ns, uses: uses.min(USES_MAX), is_main })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standing_comes_back_and_damage_is_noticed() {
        let mut standing = Standing::new(7, true);
        (0..9).for_each(|at| standing.touch(at));
        assert_eq!(standing.uses, USES_MAX);
        assert_eq!(Standing::decode(&standing.encode()).ok(), Some(standing));
        for damaged in ["", "1 2 3", "a b c d", "1 2 999 0"] {
            assert!(Standing::decode(damaged).is_err(), "{damaged:?}");
        }
    }
}
