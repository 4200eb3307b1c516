//! Attributes: what metadata and manifests say, as the flat struct of the interface.

use byname_client::{FileKind, ListedEntry, Listing, Stat, TrustLevel};
use byname_security::trust::Trusted;
use byname_transfer::attributes::{Checksums, ObjectKind};

use crate::abi;
use crate::fault::Fault;
use crate::memory::{Place, TextRoom, zeroed};

/// A status whose texts have no place yet.
pub(crate) struct Described {
    pub(crate) fixed: abi::Attributes,
    owner: Option<Vec<u8>>,
    group: Option<Vec<u8>>,
    link_target: Option<Vec<u8>>,
    publisher: Option<Vec<u8>>,
}

impl Described {
    /// The status of a name.
    pub(crate) fn of_stat(stat: &Stat) -> Self {
        let mut made = Members::default();
        made.fixed.kind = match stat.kind {
            FileKind::Directory => abi::BYNAME_KIND_DIRECTORY,
            FileKind::Symlink => abi::BYNAME_KIND_SYMLINK,
            _ => abi::BYNAME_KIND_FILE,
        };
        made.fixed.trust = match stat.trust {
            TrustLevel::Anchored => abi::BYNAME_TRUST_ANCHORED,
            TrustLevel::FirstUse => abi::BYNAME_TRUST_FIRST_USE,
            _ => abi::BYNAME_TRUST_INSECURE,
        };
        made.fixed.age_ns = stat.age_ns;
        made.set(abi::BYNAME_HAS_VERSION, Some(stat.version), |it| &mut it.version);
        made.set(abi::BYNAME_HAS_SIZE, stat.size, |it| &mut it.size);
        made.set(abi::BYNAME_HAS_MTIME, stat.mtime_ns, |it| &mut it.mtime_ns);
        made.set(abi::BYNAME_HAS_MODE, stat.mode.map(u32::from), |it| &mut it.mode);
        made.set(abi::BYNAME_HAS_ROOT, stat.root.map(|root| root.0), |it| &mut it.root);
        made.set(abi::BYNAME_HAS_SEGMENT_BYTES, stat.segment_bytes, |it| &mut it.segment_bytes);
        let key = stat.publisher_key.map(|key| key.0);
        made.set(abi::BYNAME_HAS_PUBLISHER_KEY, key, |it| &mut it.publisher_key);
        made.flag(abi::BYNAME_ROOT_PENDING, stat.is_root_pending);
        made.flag(abi::BYNAME_IS_FRESH, stat.is_fresh);
        made.set_checksums(&stat.checksums);
        Described {
            fixed: made.fixed,
            owner: stat.owner.clone().map(String::into_bytes),
            group: stat.group.clone().map(String::into_bytes),
            link_target: stat.link_target.clone(),
            publisher: stat.publisher_name.as_ref().map(|name| name.to_string().into_bytes()),
        }
    }

    /// The same, of a site that wants so many replicas.
    pub(crate) fn with_replicas(mut self, replicas: u8) -> Self {
        self.fixed.present |= abi::BYNAME_HAS_REPLICAS;
        self.fixed.replicas = u32::from(replicas);
        self
    }

    /// The status that a listing gives of an entry.
    pub(crate) fn of_entry(listing: &Listing, listed: &ListedEntry<'_>) -> Self {
        let mut made = Members::default();
        let found = &listing.discovered;
        made.fixed.trust = match found.trust {
            Trusted::Anchored { .. } => abi::BYNAME_TRUST_ANCHORED,
            Trusted::FirstUse { .. } => abi::BYNAME_TRUST_FIRST_USE,
            Trusted::Insecure => abi::BYNAME_TRUST_INSECURE,
        };
        made.fixed.age_ns = found.age_ns;
        made.flag(abi::BYNAME_IS_FRESH, found.is_fresh);
        let Some(entry) = &listed.details else {
            let is_directory = listed.entry.is_directory;
            made.fixed.kind =
                if is_directory { abi::BYNAME_KIND_DIRECTORY } else { abi::BYNAME_KIND_FILE };
            return Described::without_texts(made.fixed);
        };
        made.fixed.kind = match entry.kind() {
            ObjectKind::File => abi::BYNAME_KIND_FILE,
            ObjectKind::Directory => abi::BYNAME_KIND_DIRECTORY,
            ObjectKind::Link => abi::BYNAME_KIND_SYMLINK,
        };
        made.set(abi::BYNAME_HAS_SIZE, entry.size, |it| &mut it.size);
        made.set(abi::BYNAME_HAS_MTIME, entry.mtime_ns, |it| &mut it.mtime_ns);
        made.set(abi::BYNAME_HAS_MODE, Some(u32::from(entry.mode)), |it| &mut it.mode);
        let version = entry.version.or(entry.content.map(|content| content.version));
        made.set(abi::BYNAME_HAS_VERSION, version.map(|it| it.number), |it| &mut it.version);
        let root = version.and_then(|version| version.root);
        made.set(abi::BYNAME_HAS_ROOT, root, |it| &mut it.root);
        let segment_bytes = version.map(|version| version.segment_bytes);
        made.set(abi::BYNAME_HAS_SEGMENT_BYTES, segment_bytes, |it| &mut it.segment_bytes);
        made.set_checksums(&entry.attributes.checksums);
        let octets = |text: &str| text.as_bytes().to_vec();
        Described {
            owner: entry.attributes.owner.map(octets),
            group: entry.attributes.group.map(octets),
            link_target: entry.attributes.link_target.map(<[u8]>::to_vec),
            ..Described::without_texts(made.fixed)
        }
    }

    fn without_texts(fixed: abi::Attributes) -> Self {
        Described { fixed, owner: None, group: None, link_target: None, publisher: None }
    }

    /// The struct, with its texts in `room`.
    pub(crate) fn with_texts(self, room: &mut TextRoom) -> abi::Attributes {
        abi::Attributes {
            owner: room.push_if(self.owner.as_deref()),
            group: room.push_if(self.group.as_deref()),
            link_target: room.push_if(self.link_target.as_deref()),
            publisher: room.push_if(self.publisher.as_deref()),
            ..self.fixed
        }
    }

    /// Fills the struct of a caller, whose texts go where it says.
    pub(crate) fn write_to(self, place: &Place<abi::Attributes>) -> Result<i64, Fault> {
        let abi::Attributes { struct_size, text, text_size, .. } = place.read();
        // SAFETY: byname.h demands that `text` has `text_size` octets and is left alone until the
        // call has ended, which is after this.
        let mut room = unsafe { TextRoom::new(text, text_size) };
        let made = self.with_texts(&mut room);
        let text_bytes = room.needed();
        place.write(abi::Attributes { struct_size, text, text_size, text_bytes, ..made });
        Ok(0)
    }
}

/// Members that are known so far.
struct Members {
    fixed: abi::Attributes,
}

impl Default for Members {
    fn default() -> Self {
        let struct_size = size_of::<abi::Attributes>() as u32;
        Members { fixed: abi::Attributes { struct_size, ..zeroed() } }
    }
}

impl Members {
    fn set<T>(
        &mut self,
        bit: u32,
        value: Option<T>,
        member: impl FnOnce(&mut abi::Attributes) -> &mut T,
    ) {
        if let Some(value) = value {
            self.fixed.present |= bit;
            *member(&mut self.fixed) = value;
        }
    }

    fn flag(&mut self, bit: u32, is_so: bool) {
        if is_so {
            self.fixed.present |= bit;
        }
    }

    fn set_checksums(&mut self, checksums: &Checksums) {
        self.set(abi::BYNAME_HAS_ADLER32, checksums.adler32, |it| &mut it.adler32);
        self.set(abi::BYNAME_HAS_CRC32, checksums.crc32, |it| &mut it.crc32);
        self.set(abi::BYNAME_HAS_CRC32C, checksums.crc32c, |it| &mut it.crc32c);
        self.set(abi::BYNAME_HAS_MD5, checksums.md5, |it| &mut it.md5);
        self.set(abi::BYNAME_HAS_SHA256, checksums.sha256, |it| &mut it.sha256);
    }
}
