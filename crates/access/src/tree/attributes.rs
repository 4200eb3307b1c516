//! Attributes, extended ones, policies, and the room that is left.

use byname_catalog::{AttributeChanges, Command, Policy, PolicyChanges, Refusal, SetAcl, SetXattr};
use byname_packet::Name;
use serde_json::Value;

use super::Tree;
use crate::acl::{AccessLists, AclChanges};
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
    /// Entries that count for the quota of the fewest left: of the tree, the user or the group.
    pub inodes: u64,
    /// Most entries; `u64::MAX` for no limit.
    pub inodes_max: u64,
    /// Octets that count for the quota with the least room.
    pub used_bytes: u64,
    /// Octets that files may have there; `u64::MAX` for no limit.
    pub bytes_max: u64,
    /// The smaller of that and what the disks have room for.
    pub size_bytes: u64,
    /// Octets that are left.
    pub free_bytes: u64,
}

/// What somebody uses and may use. Beyond a soft limit nothing is left when its grace is over.
struct Quota {
    inodes: (u64, u64),
    bytes: (u64, u64),
    reserved_bytes: u64,
}

/// Somebody who is above a soft limit that counts at a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overdrawn {
    /// `user`, `group`, `tree` or `space`.
    pub kind: String,
    /// Who; a tree is the one that the name is in.
    pub name: String,
    /// Seconds for which he may still add; 0 for no more.
    pub grace_left_s: u64,
}

impl Quota {
    /// That of the tree, and those of the user, the group and the space as far as they have
    /// limits.
    fn all(answer: &Value) -> Option<Vec<Self>> {
        let others = answer["quotas"].as_array().map_or(&[][..], Vec::as_slice);
        let quota = |line: &Value| {
            let number = |key: &str| line[key].as_u64();
            let is_over = number("grace_left_s") == Some(0);
            let reserved = number("reserved_inodes").unwrap_or_default();
            // A head that knows of no soft limits says nothing of them.
            let least = |hard: u64, soft: &str| match number(soft) {
                Some(soft) if is_over => hard.min(soft),
                _ => hard,
            };
            Some(Self {
                inodes: (
                    number("inodes")?.saturating_add(reserved),
                    least(number("inodes_max")?, "soft_inodes"),
                ),
                bytes: (number("bytes")?, least(number("bytes_max")?, "soft_bytes")),
                reserved_bytes: number("reserved_bytes")?,
            })
        };
        std::iter::once(answer).chain(others).map(quota).collect()
    }

    /// What is left, used, and the limit.
    fn bytes_left(&self) -> (u64, u64, u64) {
        let (used, limit) = self.bytes;
        (limit.saturating_sub(used).saturating_sub(self.reserved_bytes), used, limit)
    }

    fn inodes_left(&self) -> (u64, u64, u64) {
        let (used, limit) = self.inodes;
        (limit.saturating_sub(used), used, limit)
    }
}

impl Room {
    fn of(answer: &Value) -> Option<Self> {
        let number = |key: &str| answer[key].as_u64();
        let replicas = number("replicas")?.max(1);
        let quotas = Quota::all(answer)?;
        let (_, used_bytes, limit) = quotas.iter().map(Quota::bytes_left).min()?;
        let left = quotas.iter().map(|quota| quota.bytes_left().0).min()?;
        let (_, inodes, inodes_max) = quotas.iter().map(Quota::inodes_left).min()?;
        Some(Self {
            space: answer["space"].as_str()?.to_owned(),
            replicas,
            receipts: number("receipts")?,
            disks: number("disks")?,
            inodes,
            inodes_max,
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

    /// Access control lists.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn access_lists(&mut self, name: &Name) -> Result<AccessLists, AccessError> {
        let lines = self.query("acl", name)?;
        let lists = |line: &Value| {
            Some(AccessLists {
                owner: line["owner"].as_str()?.to_owned(),
                group: line["group"].as_str()?.to_owned(),
                mode: u16::try_from(line["mode"].as_u64()?).ok()?,
                is_directory: line["directory"].as_bool()?,
                access: line["access"].as_str()?.parse().ok()?,
                default: line["default"].as_str().map(str::parse).transpose().ok()?,
            })
        };
        lines.first().and_then(lists).ok_or(AccessError::OtherAnswer)
    }

    /// Changes the list of a file or directory, or of what is made in it. Without any entry left
    /// that a mode has not, there is no default list any more.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn change_access_list(
        &mut self,
        name: &Name,
        is_default: bool,
        changes: &AclChanges,
    ) -> Result<(), AccessError> {
        let lists = self.access_lists(name)?;
        let goes = changes.clear && changes.set.is_empty() && changes.remove.is_empty();
        let acl = match is_default {
            true if goes && lists.default.is_none() => return Ok(()),
            true if goes => Ok(None),
            true => lists.changed_default(changes).map(Some),
            false => changes.of(&lists.access).map(Some),
        };
        let acl = acl.map_err(|refusal| AccessError::at(name.view(), refusal))?;
        let place = self.place(name)?;
        self.run(name, Command::SetAcl(SetAcl { place, is_default, acl }))
    }

    /// Who is above a soft limit, of all whose quotas count there for who asks.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn overdrawn(&mut self, name: &Name) -> Result<Vec<Overdrawn>, AccessError> {
        let lines = self.query("room", name)?;
        let answer = lines.first().ok_or(AccessError::OtherAnswer)?;
        let others = answer["quotas"].as_array().map_or(&[][..], Vec::as_slice);
        let overdrawn = |line: &Value| {
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            let grace_left_s = line["grace_left_s"].as_u64()?;
            Some(Overdrawn { kind: text("kind"), name: text("name"), grace_left_s })
        };
        Ok(others.iter().chain([answer]).filter_map(overdrawn).collect())
    }

    /// The room that is left below a name, by quotas and by the disks of its space.
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
        // Whoever has less than the tree has that.
        let mut own = answer(1000, 3000);
        own["quotas"] = json!([
            { "inodes": 9, "inodes_max": 10, "bytes": 70, "reserved_bytes": 10, "bytes_max": 90 },
            { "inodes": 5, "inodes_max": u64::MAX, "bytes": 0, "reserved_bytes": 0,
              "bytes_max": 5000 },
        ]);
        let room = Room::of(&own).unwrap();
        assert_eq!((room.size_bytes, room.used_bytes, room.free_bytes), (90, 70, 10));
        assert_eq!((room.inodes, room.inodes_max), (9, 10));
        // A soft limit counts when its grace is over, and what is reserved of entries always.
        let soft = |left: Option<u64>| {
            let mut answer = answer(1000, 3000);
            answer["soft_bytes"] = 200.into();
            answer["soft_inodes"] = 5.into();
            answer["reserved_inodes"] = 1.into();
            answer["grace_left_s"] = left.into();
            let room = Room::of(&answer).unwrap();
            (room.size_bytes, room.free_bytes, room.inodes, room.inodes_max)
        };
        assert_eq!(soft(None), (1000, 850, 4, u64::MAX));
        assert_eq!(soft(Some(1)), (1000, 850, 4, u64::MAX));
        assert_eq!(soft(Some(0)), (200, 50, 4, 5));
    }
}
