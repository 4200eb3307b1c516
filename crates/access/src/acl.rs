//! Changes of access control lists, as setfacl(1) makes them: entries are added, replaced and
//! removed, and the mask follows unless it is told.

use byname_catalog::{Acl, AclEntry, AclWho, Named, Refusal};

/// The lists of a file or directory, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessLists {
    /// The owner.
    pub owner: String,
    /// The group.
    pub group: String,
    /// Permission bits, with set-user-id, set-group-id and the sticky bit.
    pub mode: u16,
    /// True for a directory.
    pub is_directory: bool,
    /// Who may do what.
    pub access: Acl,
    /// What is made in a directory begins with this.
    pub default: Option<Acl>,
}

impl AccessLists {
    /// The default list with these changes: without one it begins as what the mode says.
    ///
    /// # Errors
    /// [`Refusal::BadAcl`] if the outcome is no list, or rights are missing.
    pub fn changed_default(&self, changes: &AclChanges) -> Result<Acl, Refusal> {
        let only_mode = AclChanges { clear: true, ..AclChanges::default() };
        match &self.default {
            Some(default) => changes.of(default),
            None => changes.of(&only_mode.of(&self.access)?),
        }
    }
}

/// What is done with one list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AclChanges {
    /// Begin without any entry but the three that a mode has.
    pub clear: bool,
    /// Entries that are there afterwards.
    pub set: Vec<AclEntry>,
    /// Those whose entries go.
    pub remove: Vec<AclWho>,
    /// Leave the mask as it is, also where more is granted than it lets through.
    pub keep_mask: bool,
}

impl AclChanges {
    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        !self.clear && self.set.is_empty() && self.remove.is_empty()
    }

    /// The list with these changes.
    ///
    /// # Errors
    /// [`Refusal::BadAcl`] if the outcome is no list, or rights are missing.
    pub fn of(&self, acl: &Acl) -> Result<Acl, Refusal> {
        let mut acl = acl.clone();
        if self.clear {
            acl.named.users.clear();
            acl.named.groups.clear();
            acl.mask = None;
        }
        let mut mask_is_told = false;
        for who in &self.remove {
            match who {
                AclWho::User(name) => acl.named.users.retain(|(one, _)| one != name),
                AclWho::NamedGroup(name) => acl.named.groups.retain(|(one, _)| one != name),
                AclWho::Mask => (acl.mask, mask_is_told) = (None, true),
                AclWho::Owner | AclWho::Group | AclWho::Other => return Err(Refusal::BadAcl),
            }
        }
        for AclEntry { who, rights } in &self.set {
            let rights = rights.ok_or(Refusal::BadAcl)?;
            match who {
                AclWho::Owner => acl.owner = rights,
                AclWho::Group => acl.named.group = rights,
                AclWho::Other => acl.other = rights,
                AclWho::Mask => (acl.mask, mask_is_told) = (Some(rights), true),
                AclWho::User(name) => put(&mut acl.named.users, name, rights),
                AclWho::NamedGroup(name) => put(&mut acl.named.groups, name, rights),
            }
        }
        let names_anybody = !acl.named.users.is_empty() || !acl.named.groups.is_empty();
        let stays = mask_is_told || (self.keep_mask && acl.mask.is_some());
        if !stays && (names_anybody || acl.mask.is_some()) {
            acl.mask = Some(union(&acl.named));
        }
        acl.check()?;
        Ok(acl)
    }
}

fn put(list: &mut Vec<(String, u8)>, name: &str, rights: u8) {
    list.retain(|(one, _)| one != name);
    list.push((name.to_owned(), rights));
}

/// What all whom a mask binds are granted together.
fn union(named: &Named) -> u8 {
    let lists = named.users.iter().chain(&named.groups);
    lists.fold(named.group, |all, (_, rights)| all | rights)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(set: &str, remove: &str) -> AclChanges {
        let entries = |text: &str| -> Vec<AclEntry> {
            let given = text.split(',').filter(|entry| !entry.is_empty());
            given.map(|entry| entry.parse().unwrap()).collect()
        };
        let remove = entries(remove).into_iter().map(|entry| entry.who).collect();
        AclChanges { set: entries(set), remove, ..AclChanges::default() }
    }

    /// Each line is what setfacl(1) of Linux makes of the same.
    #[test]
    fn entries_change_as_setfacl_changes_them() {
        for (before, set, remove, after) in [
            ("u::rw-,g::r--,o::r--", "u:a:rwx", "", "u::rw-,u:a:rwx,g::r--,m::rwx,o::r--"),
            ("u::rw-,g::r--,o::r--", "o::-", "", "u::rw-,g::r--,o::---"),
            (
                "u::rw-,u:a:rwx,g::r--,m::r--,o::---",
                "g:c:w",
                "",
                "u::rw-,u:a:rwx,g::r--,g:c:-w-,m::rwx,o::---",
            ),
            (
                "u::rw-,u:a:rwx,g::r--,m::rwx,o::---",
                "u:b:w,m::r",
                "",
                "u::rw-,u:a:rwx,u:b:-w-,g::r--,m::r--,o::---",
            ),
            ("u::rw-,u:a:rwx,g::r--,m::rwx,o::---", "", "u:a", "u::rw-,g::r--,m::r--,o::---"),
            ("u::rw-,g::r--,m::r--,o::---", "", "m", "u::rw-,g::r--,o::---"),
        ] {
            let acl: Acl = before.parse().unwrap();
            let found = changes(set, remove).of(&acl).unwrap();
            assert_eq!(found.to_string(), after, "{before} + {set} - {remove}");
        }
        let acl: Acl = "u::rw-,u:a:rwx,g::r--,m::r--,o::---".parse().unwrap();
        let kept = AclChanges { keep_mask: true, ..changes("u:b:rwx", "") }.of(&acl).unwrap();
        assert_eq!(kept.mask, Some(4));
        let cleared = AclChanges { clear: true, ..AclChanges::default() }.of(&acl).unwrap();
        assert_eq!(cleared.to_string(), "u::rw-,g::r--,o::---");
        // The mask cannot go while somebody is named, nor what a mode has.
        assert_eq!(changes("", "m").of(&acl), Err(Refusal::BadAcl));
        assert_eq!(changes("", "o").of(&acl), Err(Refusal::BadAcl));
        assert_eq!(changes("u:a", "").of(&acl), Err(Refusal::BadAcl));
    }
}
