//! What the head says of files and directories, as readers of metadata know it.

use byname_client::{ResolvedEntry, Stat};
use byname_packet::Name;
use byname_security::base64;
use byname_security::trust::Trusted;
use byname_transfer::discovery::Discovered;
use byname_transfer::metadata::Metadata;
use serde_json::Value;

use crate::error::AccessError;
use crate::place::below;

/// What a name of a site leads to, as the head has it now.
#[derive(Debug, Clone)]
pub struct Described {
    name: Name,
    discovered: Discovered,
    /// Replicas that it shall have; of a directory those of what is made in it.
    pub replica_count: u8,
    /// Number of the file or directory, which no other has.
    pub inode: u64,
}

/// Entries of a directory, as many as one answer has.
#[derive(Debug, Clone)]
pub struct Entries {
    /// In the order of their names.
    pub entries: Vec<(Vec<u8>, Described)>,
    /// True if there are none behind them.
    pub is_last: bool,
}

impl Described {
    /// What a line of the head says of a name.
    pub(crate) fn of(name: Name, line: &Value, trust: Trusted) -> Result<Self, AccessError> {
        let malformed = || AccessError::OtherAnswer;
        let octets = octets(&line["metadata"]).ok_or_else(malformed)?;
        let metadata = Metadata::decode(&octets)?;
        let number = |key: &str| line[key].as_u64().ok_or_else(malformed);
        let version = match metadata.version() {
            Some(version) => version,
            None => number("binding")?,
        };
        let discovered = Discovered {
            metadata,
            version,
            trust,
            packet: Vec::new(),
            certificates: Vec::new(),
            is_fresh: true,
            age_ns: 0,
        };
        let replica_count = u8::try_from(number("replicas")?).map_err(|_| malformed())?;
        Ok(Self { name, discovered, replica_count, inode: number("inode")? })
    }

    /// Lines about the entries of a directory.
    pub(crate) fn entries(
        directory: &Name,
        lines: &[Value],
        trust: &Trusted,
    ) -> Result<Vec<(Vec<u8>, Self)>, AccessError> {
        let entry = |line: &Value| {
            let name = octets(&line["name"]).ok_or(AccessError::OtherAnswer)?;
            let described = Self::of(below(directory, &name), line, trust.clone())?;
            Ok((name, described))
        };
        lines.iter().map(entry).collect()
    }

    /// The name.
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// Its version; of a directory the number of its last change.
    pub fn version(&self) -> u64 {
        self.discovered.version
    }

    /// Its status.
    pub fn stat(&self) -> Stat {
        Stat::new(self.name.clone(), &self.discovered)
    }

    /// True if it is a directory.
    pub fn is_directory(&self) -> bool {
        self.discovered.metadata.is_directory()
    }

    /// The file, to be opened in this very version.
    pub fn entry(&self) -> ResolvedEntry {
        ResolvedEntry::stated(self.name.clone(), self.discovered.clone())
    }
}

/// Octets that a line has as text.
pub(crate) fn octets(value: &Value) -> Option<Vec<u8>> {
    base64::decode_url(value.as_str()?).ok()
}
