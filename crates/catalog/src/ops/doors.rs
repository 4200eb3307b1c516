//! Doors: which there are, and for whom each may speak.

use crate::command::{Answer, SetDoor};
use crate::engine::{Rows, Span, Table};
use crate::execution::Execution;
use crate::name::check_label;
use crate::record::{Door, GRANT_NAMES_MAX, Grant, Key, KeyHolder};
use crate::refusal::{Failure, Refusal};
use crate::view::decoded;

/// Most doors of a site.
const DOORS_MAX: usize = 256;

impl Execution<'_> {
    /// Adds a door, or grants one something else. What it was granted before counts no more.
    pub(super) fn set_door(&mut self, set: &SetDoor) -> Result<Answer, Failure> {
        check_label(&set.door)?;
        let Grant { users, groups, asserted, .. } = &set.grant;
        for names in [users, groups, asserted] {
            names.iter().try_for_each(|name| check_label(name))?;
            if names.len() > GRANT_NAMES_MAX {
                return Err(Refusal::TooMuchGranted.into());
            }
        }
        let key = set.door.as_bytes().to_vec();
        let is_new = !self.view.has(Table::Door, &key)?;
        if is_new && self.view.range(Table::Door, Span::ALL, DOORS_MAX)?.len() >= DOORS_MAX {
            return Err(Refusal::TooMuchGranted.into());
        }
        self.view.set(key, &Door { grant: set.grant.clone() });
        Ok(Answer::Done)
    }

    /// Removes a door with its keys: whoever has them speaks for nobody.
    pub(super) fn remove_door(&mut self, door: &str) -> Result<Answer, Failure> {
        self.view.record::<Door>(door.as_bytes())?.ok_or(Refusal::UnknownDoor)?;
        for (name, value) in self.view.range(Table::Key, Span::ALL, usize::MAX)? {
            let key: Key = decoded(&value)?;
            if matches!(key.holder, KeyHolder::Door(of) if of == door) {
                self.view.delete(Table::Key, name);
            }
        }
        self.view.delete(Table::Door, door.as_bytes().to_vec());
        Ok(Answer::Done)
    }
}
