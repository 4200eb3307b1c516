//! Files that get another size.
//!
//! A size other than 0 is a new version. It is written by whoever wants it, from the verified
//! octets of the version before: the attempt is opened first, so that whoever rewrites the file
//! meanwhile makes the commit fail, and the next attempt begins with what is there then.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use byname_catalog::id::ContentId;
use byname_catalog::{AttributeChanges, Command, Create, PolicyChanges, Publish, Refusal};
use byname_client::{Client, Stop};
use byname_packet::Name;
use byname_profile::OpenOptions;
use byname_transfer::freshness::Freshness;
use byname_writer::{Source, WriterError};

use super::Tree;
use crate::described::Described;
use crate::error::AccessError;
use crate::spool;

/// Times that a file may be rewritten by others before this is given up.
const ROUNDS: u32 = 5;
/// Permission bits of a mode.
pub(super) const PERMISSIONS: u16 = 0o7777;

impl Tree {
    /// Makes a file shorter or longer; what is added are zeros.
    ///
    /// # Errors
    /// [`AccessError`]; [`AccessError::KeepsChanging`] if somebody goes on rewriting it.
    pub fn resize(&mut self, name: &Name, size: u64) -> Result<(), AccessError> {
        for _ in 0..ROUNDS {
            if (Resize { tree: self, name, size }).run()? {
                return Ok(());
            }
        }
        Err(AccessError::KeepsChanging { name: name.clone() })
    }
}

/// A file that gets another size.
struct Resize<'a> {
    tree: &'a mut Tree,
    name: &'a Name,
    size: u64,
}

impl Resize<'_> {
    /// False if somebody has rewritten the file meanwhile.
    fn run(&mut self) -> Result<bool, AccessError> {
        let before = self.tree.describe(self.name)?.stat();
        let at = |refusal| AccessError::at(self.name.view(), refusal);
        if before.is_directory() {
            return Err(at(Refusal::IsDirectory));
        }
        let place = self.tree.place(self.name)?;
        if self.size == 0 || Some(self.size) == before.size {
            let changes = AttributeChanges { size: Some(self.size), ..AttributeChanges::default() };
            return match self.tree.execute(Command::SetAttributes { place, changes })? {
                Ok(_) => Ok(true),
                Err(Refusal::SizeNeedsContent) => Ok(false),
                Err(refusal) => Err(at(refusal)),
            };
        }
        let create = Create {
            place,
            mode: before.mode.unwrap_or_default() & PERMISSIONS,
            size_max: self.size,
            publish: Publish::AtCommit,
            exclusive: false,
            policy: PolicyChanges::default(),
        };
        let ticket = self.tree.begin(self.name, create)?;
        let content = ticket.terms().content;
        let source = match self.source(content) {
            Ok(Some(source)) => source,
            Ok(None) => return self.abort(content).map(|()| false),
            Err(error) => return self.fail(content, error),
        };
        let stop = self.tree.stop.clone();
        let is_stopped = || stop.is_requested();
        let mut writer = match self.tree.account.writer(self.name, &is_stopped) {
            Ok(writer) => writer,
            Err(error) => return self.fail(content, error),
        };
        match writer.put_into(ticket, Arc::new(source), &is_stopped) {
            Ok(_) => Ok(true),
            Err(WriterError::Refused(Refusal::BaseChanged)) => Ok(false),
            Err(source) => Err(AccessError::write(self.name, source)),
        }
    }

    fn fail(&mut self, content: ContentId, error: AccessError) -> Result<bool, AccessError> {
        // The attempt ends by itself, should this fail as well.
        let _ = self.abort(content);
        Err(error)
    }

    fn abort(&mut self, content: ContentId) -> Result<(), AccessError> {
        self.tree.abort(self.name, content)
    }

    /// The new content, of the version that an attempt replaces; `None` if it cannot be had any
    /// more.
    fn source(&mut self, attempt: ContentId) -> Result<Option<Source>, AccessError> {
        // The base of the attempt is no later one, and the commit wants it to be the current one.
        let current = self.tree.describe(self.name)?;
        if current.inode != attempt.inode.0 {
            return Ok(None);
        }
        let file = spool::empty()?;
        file.set_len(self.size).map_err(spool::failed)?;
        self.fetch(&file, &current)?;
        let source = source_of((self.name, file), &self.tree.stop)?;
        Ok(Some(source.made_now(current.stat().mode.unwrap_or_default() & PERMISSIONS)))
    }

    /// Writes what stays of a version to a file.
    fn fetch(&self, file: &File, current: &Described) -> Result<(), AccessError> {
        let kept_bytes = self.size.min(current.stat().size.unwrap_or_default());
        if kept_bytes == 0 {
            return Ok(());
        }
        let failed =
            |source| AccessError::Read { name: self.name.clone(), source: Box::new(source) };
        let mut client = self.tree.client(self.name)?;
        let opened = client.open_entry(&current.entry()).map_err(failed)?;
        let mut sink = |offset: u64, octets: &[u8]| file.write_all_at(octets, offset);
        client.read_range(&opened, 0..kept_bytes, &mut sink).map(drop).map_err(failed)
    }
}

/// A spooled file as something that is written.
pub(super) fn source_of((name, file): (&Name, File), stop: &Stop) -> Result<Source, AccessError> {
    let source = Source::of_file(&spool::directory(), file, &|| stop.is_requested());
    source.map_err(|error| match error {
        WriterError::Local { source, .. } => spool::failed(source),
        source => AccessError::write(name, source),
    })
}

impl Tree {
    /// A client that reads a name anew.
    pub(super) fn client(&self, name: &Name) -> Result<Client, AccessError> {
        let account = &self.account;
        let options = OpenOptions {
            freshness: Freshness::Required,
            timeout: Some(account.patience),
            stop: self.stop.clone(),
            ..OpenOptions::default()
        };
        let link = account.link_to(name);
        let endpoints = account.endpoints();
        let config = account.profile.client_config(&link, &options)?;
        Ok(account.profile.connect(&endpoints, config)?.0)
    }
}
