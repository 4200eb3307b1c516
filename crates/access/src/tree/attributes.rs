//! Attributes, extended ones, policies, and the room that is left.

use byname_catalog::{AttributeChanges, Command, Policy, PolicyChanges, Refusal, SetXattr};
use byname_packet::Name;
use serde_json::Value;

use super::Tree;
use crate::described::octets;
use crate::error::AccessError;

/// Name and value of an extended attribute.
pub type Xattr = (Vec<u8>, Vec<u8>);

/// Room at one name, in octets of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// Space of the disks.
    pub space: String,
    /// Replicas of each file.
    pub replicas: u64,
    /// Receipts that a file needs.
    pub receipts: u64,
    /// Disks of the space.
    pub disks: u64,
    /// Entries in the tree that has a quota.
    pub inodes: u64,
    /// Most entries; `u64::MAX` for no limit.
    pub inodes_max: u64,
    /// Octets of the files there.
    pub used_bytes: u64,
    /// Octets that files may have there; `u64::MAX` for no limit.
    pub bytes_max: u64,
    /// The smaller of that and what the disks have room for.
    pub size_bytes: u64,
    /// Octets that are left.
    pub free_bytes: u64,
}

impl Room {
    fn of(answer: &Value) -> Option<Self> {
        let number = |key: &str| answer[key].as_u64();
        let replicas = number("replicas")?.max(1);
        let limit = number("bytes_max")?;
        let (used_bytes, reserved) = (number("bytes")?, number("reserved_bytes")?);
        let left = limit.saturating_sub(used_bytes).saturating_sub(reserved);
        Some(Self {
            space: answer["space"].as_str()?.to_owned(),
            replicas,
            receipts: number("receipts")?,
            disks: number("disks")?,
            inodes: number("inodes")?,
            inodes_max: number("inodes_max")?,
            used_bytes,
            bytes_max: limit,
            size_bytes: (number("capacity_bytes")? / replicas).min(limit),
            free_bytes: (number("free_bytes")? / replicas).min(left),
        })
    }

    /// The policy that holds there.
    pub fn policy(&self) -> Option<Policy> {
        Some(Policy {
            space: self.space.clone(),
            replica_count: u8::try_from(self.replicas).ok()?,
            receipt_count: u8::try_from(self.receipts).ok()?,
        })
    }
}

impl Tree {
    /// Changes attributes.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn set_attributes(
        &mut self,
        name: &Name,
        changes: AttributeChanges,
    ) -> Result<(), AccessError> {
        let place = self.place(name)?;
        self.run(name, Command::SetAttributes { place, changes })
    }

    /// Sets an extended attribute: with `must_exist` only if it is there, or only if not.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn set_xattr(
        &mut self,
        name: &Name,
        (key, value): (&[u8], &[u8]),
        must_exist: Option<bool>,
    ) -> Result<(), AccessError> {
        let place = self.place(name)?;
        let set = SetXattr { place, name: key.to_vec(), value: value.to_vec(), must_exist };
        self.run(name, Command::SetXattr(set))
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn remove_xattr(&mut self, name: &Name, key: &[u8]) -> Result<(), AccessError> {
        let place = self.place(name)?;
        self.run(name, Command::RemoveXattr { place, name: key.to_vec() })
    }

    /// Names and values of extended attributes, in order.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn xattrs(&mut self, name: &Name) -> Result<Vec<Xattr>, AccessError> {
        let lines = self.query("xattrs", name)?;
        let pairs =
            lines.iter().map(|line| Some((octets(&line["name"])?, octets(&line["value"])?)));
        pairs.collect::<Option<Vec<_>>>().ok_or(AccessError::OtherAnswer)
    }

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn xattr(&mut self, name: &Name, key: &[u8]) -> Result<Vec<u8>, AccessError> {
        let found = self.xattrs(name)?.into_iter().find(|(name, _)| name == key);
        let (_, value) = found.ok_or_else(|| AccessError::at(name.view(), Refusal::NoAttribute))?;
        Ok(value)
    }

    /// The room that is left below a name, by the quota of its tree and by the disks of its space.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn room(&mut self, name: &Name) -> Result<Room, AccessError> {
        let lines = self.query("room", name)?;
        lines.first().and_then(Room::of).ok_or(AccessError::OtherAnswer)
    }

    /// Changes the policy of a directory or file; what is not given stays as it is.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn set_policy(&mut self, name: &Name, changes: &PolicyChanges) -> Result<(), AccessError> {
        let place = self.place(name)?;
        let policy = self.room(name)?.policy().ok_or(AccessError::OtherAnswer)?;
        self.run(name, Command::SetPolicy { place, policy: changes.of(&policy) })
    }
}

#[cfg(test)]
mod tests {
    use super::Room;
    use serde_json::json;

    #[test]
    fn room_is_what_quota_and_disks_leave() {
        let answer = |bytes_max: u64, free: u64| {
            json!({
                "space": "default", "replicas": 2, "receipts": 2, "inodes": 3,
                "inodes_max": u64::MAX, "bytes": 100, "reserved_bytes": 50, "bytes_max": bytes_max,
                "disks": 4, "capacity_bytes": 4000, "free_bytes": free,
            })
        };
        let room = |limit, free| {
            let room = Room::of(&answer(limit, free)).unwrap();
            (room.size_bytes, room.free_bytes)
        };
        assert_eq!(room(u64::MAX, 3000), (2000, 1500), "two replicas of each octet");
        assert_eq!(room(1000, 3000), (1000, 850), "the quota, less what is reserved");
        assert_eq!(room(1000, 10), (1000, 5), "the disks have less");
        assert_eq!(room(120, 3000), (120, 0), "more is used than may be");
        assert_eq!(Room::of(&json!({})), None);
    }
}
