//! `byname truncate`: files of a site are made shorter or longer.
//!
//! A size other than 0 is a new version. It is written by whoever wants it, from the verified
//! octets of the version before: the attempt is opened first, so that whoever rewrites the file
//! meanwhile makes the commit fail, and the next attempt begins with what is there then.

use super::{CACHED, Tree, about, each};
use crate::commands::put::{self, failure};
use crate::commands::site::account::SiteArgs;
use crate::commands::spool;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::target::watch_signals;
use byname_catalog::id::ContentId;
use byname_catalog::{AttributeChanges, Command, Create, PolicyChanges, Publish, Refusal};
use byname_client::Stop;
use byname_packet::Name;
use byname_profile::{Paths, units};
use byname_site::SiteAnswer;
use byname_writer::{Source, WriterError};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Times that a file may be rewritten by others before this is given up.
const ROUNDS: u32 = 5;

/// Make files of a site shorter or longer; what is added are zeros.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname truncate /lab/run7/a.root                 empty
  byname truncate -s 1M /lab/run7/a.root

A size other than 0 is a new version: what stays is read and written anew, by way of $TMPDIR.")]
pub(crate) struct Args {
    /// The new size.
    #[arg(short, long, value_name = "SIZE", default_value = "0", value_parser = units::size)]
    size: u64,
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    site: SiteArgs,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let stop = Stop::default();
    watch_signals(&stop)?;
    let (mut tree, names) = Tree::open(&args.site, &args.names, paths)?;
    each(&names, |name| {
        for _ in 0..ROUNDS {
            let mut resize = Resize { tree: &mut tree, name, size: args.size, stop: &stop };
            if resize.run()? {
                return Ok(());
            }
        }
        let shown = output::name(name.view());
        Err(Failure::new(Code::Other, format!("{shown}: somebody goes on rewriting it")))
    })
}

/// The state of a file, as the head has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Current {
    inode: u64,
    version: u64,
    size: u64,
    mode: u16,
}

impl Current {
    fn of(answer: &Value) -> Option<Self> {
        let number = |key: &str| answer[key].as_u64();
        let (inode, version, size) = (number("inode")?, number("version")?, number("size")?);
        Some(Self { inode, version, size, mode: u16::try_from(number("mode")?).ok()? })
    }
}

/// A file that gets another size.
struct Resize<'a> {
    tree: &'a mut Tree,
    name: &'a Name,
    size: u64,
    stop: &'a Stop,
}

impl Resize<'_> {
    /// False if somebody has rewritten the file meanwhile.
    fn run(&mut self) -> Outcome<bool> {
        let before = self.current()?;
        let place = self.tree.place(self.name)?;
        if self.size == 0 || self.size == before.size {
            let changes = AttributeChanges { size: Some(self.size), ..AttributeChanges::default() };
            let command = Command::SetAttributes { place, changes };
            return match self.tree.execute(command)? {
                Ok(_) => Ok(true),
                Err(Refusal::SizeNeedsContent) => Ok(false),
                Err(refusal) => Err(about(self.name, refusal)),
            };
        }
        let create = Create {
            place,
            mode: before.mode,
            size_max: self.size,
            publish: Publish::AtCommit,
            exclusive: false,
            policy: PolicyChanges::default(),
        };
        let answer = self.tree.execute(Command::Create(create))?;
        let SiteAnswer::Ticket(ticket) = answer.map_err(|refusal| about(self.name, refusal))?
        else {
            return Err(Failure::new(Code::Other, "the head answered something else"));
        };
        let content = ticket.terms().content;
        match self.source(content) {
            Ok(Some(source)) => {
                let stop = self.stop;
                let is_stopped = || stop.is_requested();
                let mut writer = match put::writer(&self.tree.account, self.name, &is_stopped) {
                    Ok(writer) => writer,
                    Err(failure) => return self.fail(content, failure),
                };
                match writer.put_into(ticket, Arc::new(source), &is_stopped) {
                    Ok(_) => Ok(true),
                    Err(WriterError::Refused(Refusal::BaseChanged)) => Ok(false),
                    Err(error) => Err(failure::of(self.name, error)),
                }
            }
            Ok(None) => self.abort(content).map(|()| false),
            Err(failure) => self.fail(content, failure),
        }
    }

    fn fail(&mut self, content: ContentId, failure: Failure) -> Outcome<bool> {
        // The attempt ends by itself, should this fail as well.
        let _ = self.abort(content);
        Err(failure)
    }

    fn abort(&mut self, content: ContentId) -> Outcome {
        self.tree.run(self.name, Command::Abort { content })
    }

    fn current(&mut self) -> Outcome<Current> {
        let answer = self.tree.query("content", self.name)?;
        let current = answer.first().and_then(Current::of);
        current.ok_or_else(|| Failure::new(Code::Other, "the head answered something else"))
    }

    /// The new content, of the version that an attempt replaces; `None` if it cannot be had any
    /// more.
    fn source(&mut self, attempt: ContentId) -> Outcome<Option<Source>> {
        // The base of the attempt is no later one, and the commit wants it to be the current one.
        let current = self.current()?;
        if current.inode != attempt.inode.0 {
            return Ok(None);
        }
        let file = spool::empty()?;
        file.set_len(self.size).map_err(spool::failed)?;
        if !self.fetch(&file, current)? {
            return Ok(None);
        }
        let path = std::env::temp_dir();
        let source = Source::of_file(&path, file, &|| self.stop.is_requested());
        let source = source.map_err(|error| failure::local(&path, error))?;
        Ok(Some(source.made_now(current.mode)))
    }

    /// Writes what stays of a version to a file. False if readers are not given that version.
    fn fetch(&self, file: &File, current: Current) -> Outcome<bool> {
        let kept_bytes = self.size.min(current.size);
        let mut reader = self.tree.account.reader(self.name)?;
        let mut fetch = || {
            reader.run(|client, name| {
                let opened = client.open(name)?;
                if opened.stat().version != current.version {
                    return Ok(false);
                }
                let mut sink = |offset: u64, octets: &[u8]| file.write_all_at(octets, offset);
                if kept_bytes > 0 {
                    client.read_range(&opened, 0..kept_bytes, &mut sink)?;
                }
                Ok(true)
            })
        };
        if fetch()? {
            return Ok(true);
        }
        // What readers are told may be as old as caches keep it.
        std::thread::sleep(CACHED);
        fetch()
    }
}
