//! Versions of a file: listed, read, and made the current one again.
//!
//! An old version becomes a new one with the same octets. Its disks have them already and take them
//! from there; the hash tree is proved to them by whoever brings it back, who reads it for that.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use byname_catalog::{Command, Create, PolicyChanges, Publish, Refusal};
use byname_packet::Name;
use byname_writer::{Source, WriterError};

use super::Tree;
use super::resize::{PERMISSIONS, source_of};
use crate::described::Described;
use crate::error::AccessError;
use crate::spool;

/// A version of a file.
#[derive(Debug, Clone)]
pub struct FileVersion {
    /// Its number.
    pub version: u64,
    /// Octets.
    pub size: u64,
    /// Time of last modification, in nanoseconds since 1970.
    pub modified_ns: u64,
    /// Root of its hash tree, in hexadecimal digits.
    pub root: String,
    /// When it was replaced and who did it; none of the current version.
    pub replaced: Option<(u64, String)>,
    described: Described,
}

impl Tree {
    /// Versions of a file, the oldest first, the current one at last.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn versions(&mut self, name: &Name) -> Result<Vec<FileVersion>, AccessError> {
        let lines = self.query("versions", name)?;
        let trust = self.head.trusted()?;
        let version = |line: &serde_json::Value| {
            let number = |key: &str| line[key].as_u64().ok_or(AccessError::OtherAnswer);
            let text = |key: &str| line[key].as_str().map(str::to_owned);
            Ok(FileVersion {
                version: number("version")?,
                size: number("size")?,
                modified_ns: number("modified_ns")?,
                root: text("root").ok_or(AccessError::OtherAnswer)?,
                replaced: line["replaced_ns"].as_u64().zip(text("replaced_by")),
                described: Described::of(name.clone(), line, trust.clone())?,
            })
        };
        lines.iter().map(version).collect()
    }

    /// One of them.
    ///
    /// # Errors
    /// [`AccessError`]; [`Refusal::NoContent`] if it is not kept.
    pub fn version(&mut self, name: &Name, version: u64) -> Result<FileVersion, AccessError> {
        let found = self.versions(name)?.into_iter().find(|it| it.version == version);
        found.ok_or_else(|| AccessError::at(name.view(), Refusal::NoContent))
    }

    /// Reads a version, verified, in the order of its octets.
    ///
    /// # Errors
    /// [`AccessError`], also of the sink.
    pub fn read_version(&mut self, name: &Name, of: &FileVersion) -> Result<File, AccessError> {
        let file = spool::empty()?;
        if of.size == 0 {
            return Ok(file);
        }
        let failed = |source| AccessError::Read { name: name.clone(), source: Box::new(source) };
        let mut client = self.client(name)?;
        let opened = client.open_entry(&of.described.entry()).map_err(failed)?;
        let mut sink = |offset: u64, octets: &[u8]| file.write_all_at(octets, offset);
        client.read_range(&opened, 0..of.size, &mut sink).map_err(failed)?;
        Ok(file)
    }

    /// Makes an old version the current one again, as a new version.
    ///
    /// # Errors
    /// [`AccessError`]; [`Refusal::BaseChanged`] if somebody rewrites the file meanwhile.
    pub fn restore_version(&mut self, name: &Name, version: u64) -> Result<(), AccessError> {
        let of = self.version(name, version)?;
        let mode = of.described.stat().mode.unwrap_or_default() & PERMISSIONS;
        let create = Create {
            place: self.place(name)?,
            mode,
            size_max: of.size,
            publish: Publish::AtCommit,
            exclusive: false,
            policy: PolicyChanges::default(),
        };
        let ticket = self.begin(name, create)?;
        let content = ticket.terms().content;
        let written = self.write_version(name, &of, ticket);
        if written.is_err() {
            // The attempt ends by itself, should this fail as well.
            let _ = self.run(name, Command::Abort { content });
        }
        written
    }

    fn write_version(
        &mut self,
        name: &Name,
        of: &FileVersion,
        ticket: byname_site::Ticket,
    ) -> Result<(), AccessError> {
        let file = self.read_version(name, of)?;
        let source: Source = source_of((name, file), &self.stop)?;
        let stop = self.stop.clone();
        let is_stopped = || stop.is_requested();
        let mut writer = self.account.writer(name, &is_stopped)?;
        match writer.put_into(ticket, Arc::new(source), &is_stopped) {
            Ok(_) => Ok(()),
            Err(WriterError::Refused(refusal)) => Err(AccessError::at(name.view(), refusal)),
            Err(source) => Err(AccessError::write(name, source)),
        }
    }
}
