//! Doors, and for whom each may speak: a line for each door, then one for each name in its grant.

use byname_catalog::{Door, Failure, Grant, PAGE_ROWS_MAX, Reader, Refusal};
use serde_json::{Value, json};

use super::lines::{Lines, number};

/// Lines behind one of them, for operators.
pub(super) fn doors(reader: &Reader<'_>, after: &str) -> Result<Vec<u8>, Failure> {
    if !reader.is_operator() {
        return Err(Refusal::NotOperator.into());
    }
    let after: usize = if after.is_empty() { 0 } else { number(after)? as usize };
    let doors = reader.doors("", PAGE_ROWS_MAX)?;
    let lines = doors.iter().flat_map(|(name, door)| lines_of(name, door));
    let numbered = lines.enumerate().map(|(index, line)| ((index + 1).to_string(), line));
    Ok(Lines::of(numbered.skip(after)))
}

fn lines_of(name: &str, door: &Door) -> Vec<Value> {
    let Grant { is_for_all, users, groups, asserted } = &door.grant;
    let mut lines = vec![json!({ "door": name, "all": is_for_all })];
    for (kind, names) in [("user", users), ("group", groups), ("asserts", asserted)] {
        lines.extend(names.iter().map(|granted| json!({ "door": name, kind: granted })));
    }
    lines
}
