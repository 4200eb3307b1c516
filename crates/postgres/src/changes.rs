//! The changes of one transaction as octets: for each key its length, the key, and its new value
//! or none, so that others bring what they know to the new stand without reading it.

/// A key with its new value, or none.
pub(crate) type Change = (Vec<u8>, Option<Vec<u8>>);

/// A length that no value has: the row is gone.
const GONE: u32 = u32::MAX;

/// Encodes changes; a value longer than 4 GiB cannot be a row.
pub(crate) fn encode(changes: &[Change]) -> Vec<u8> {
    let mut out = Vec::new();
    for (key, value) in changes {
        put(&mut out, key);
        match value {
            Some(value) => put(&mut out, value),
            None => out.extend(GONE.to_be_bytes()),
        }
    }
    out
}

fn put(out: &mut Vec<u8>, octets: &[u8]) {
    let length = u32::try_from(octets.len()).unwrap_or(GONE - 1);
    out.extend(length.to_be_bytes());
    out.extend_from_slice(&octets[..length as usize]);
}

/// Decodes changes; none if the octets are not those of changes.
pub(crate) fn decode(mut octets: &[u8]) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    while !octets.is_empty() {
        let key = take(&mut octets)??.to_vec();
        let value = take(&mut octets)?.map(<[u8]>::to_vec);
        changes.push((key, value));
    }
    Some(changes)
}

fn take<'a>(octets: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let (length, rest) = octets.split_first_chunk::<4>()?;
    let length = u32::from_be_bytes(*length);
    if length == GONE {
        *octets = rest;
        return Some(None);
    }
    let (taken, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *octets = rest;
    Some(Some(taken))
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn changes_come_back_and_cut_ones_are_refused() {
        let changes = vec![
            (b"a".to_vec(), Some(b"1".to_vec())),
            (b"b".to_vec(), None),
            (Vec::new(), Some(Vec::new())),
        ];
        let octets = encode(&changes);
        assert_eq!(decode(&octets), Some(changes));
        let cut = (1..octets.len()).filter(|end| decode(&octets[..*end]).is_none()).count();
        assert_eq!(cut, octets.len() - 3, "but for the ends of the first two changes");
        assert_eq!(decode(&[255; 8]), None, "no key is gone");
    }
}
