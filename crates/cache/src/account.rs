//! The account of what a cache holds: a small file to which every process adds what it wrote.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, Write};

use crate::map::Locked;
use crate::scan::{self, Usage};
use crate::state::Shared;

/// Age at which it is made anew.
const ACCOUNT_AGE_MAX_NS: u64 = 3_600_000_000_000;

/// Adds to the account; returns what it says then.
pub(crate) fn account(shared: &Shared, more: Usage) -> io::Result<Usage> {
    with_account(shared, |known| {
        let is_young =
            |known: &Account| scan::now_ns().saturating_sub(known.counted_ns) < ACCOUNT_AGE_MAX_NS;
        match known.filter(is_young) {
            Some(known) => Ok(Account { usage: known.usage.plus(more), ..known }),
            None => Account::counted(scan::usage(&shared.layout, &shared.config.disk)?),
        }
    })
}

/// Replaces the account by what was counted.
pub(crate) fn set_account(shared: &Shared, usage: Usage) -> io::Result<()> {
    with_account(shared, |_| Account::counted(usage)).map(drop)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    usage: Usage,
    counted_ns: u64,
}

impl Account {
    fn counted(usage: Usage) -> io::Result<Self> {
        Ok(Account { usage, counted_ns: scan::now_ns() })
    }

    fn encode(&self) -> String {
        let Account { usage: Usage { bytes, entries }, counted_ns } = self;
        format!("{bytes} {entries} {counted_ns}\n")
    }

    fn decode(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
        let mut next = || words.next().flatten();
        let usage = Usage { bytes: next()?, entries: next()? };
        Some(Account { usage, counted_ns: next()? })
    }
}

/// Changes the account while no other process does. A damaged one is none.
fn with_account(
    shared: &Shared,
    change: impl FnOnce(Option<Account>) -> io::Result<Account>,
) -> io::Result<Usage> {
    shared.layout.check_own()?;
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
    let mut file = options.open(shared.layout.account())?;
    let held = file.try_clone()?;
    let _locked = Locked::new(&held)?;
    let mut octets = Vec::new();
    file.read_to_end(&mut octets)?;
    let known = std::str::from_utf8(&octets).ok().and_then(Account::decode);
    let account = change(known)?;
    if known != Some(account) {
        file.rewind()?;
        file.set_len(0)?;
        file.write_all(account.encode().as_bytes())?;
    }
    Ok(account.usage)
}
