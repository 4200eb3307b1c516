//! A client of the measurement, with a directory of its own.

use super::many::each_of_many;
use crate::commands::put::failure;
use crate::commands::site::account::{Account, SiteArgs};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_access::place;
use byname_catalog::{Command, Create, EntryName, Place, PolicyChanges, Publish, Rename};
use byname_packet::Name;
use byname_security::base64;
use byname_site::SiteAnswer;
use byname_transfer::metadata::Metadata;
use byname_writer::{CommandList, QuestionList, Writer, WriterError};
use std::time::Instant;

/// See the module.
pub(super) struct Client {
    writer: Writer,
    reader: byname_client::Session,
    directory: Name,
    at: Place,
    file_count: usize,
    in_flight: usize,
}

/// What is done with one file after the other.
enum Step {
    Create,
    Rename,
    Remove,
}

impl Client {
    /// Connects twice: to write, and to read.
    pub(super) fn open(
        (args, account): (&SiteArgs, &Account),
        directory: &Name,
        (file_count, in_flight): (u32, u16),
    ) -> Outcome<Self> {
        Ok(Self {
            writer: account.writer(directory, &|| false)?,
            reader: args.reader(account, directory)?.into_client()?,
            directory: directory.clone(),
            at: place(&account.site, directory.view())?,
            file_count: file_count as usize,
            in_flight: usize::from(in_flight),
        })
    }

    pub(super) fn file_count(&self) -> usize {
        self.file_count
    }

    /// Sends one command.
    pub(super) fn run(&mut self, command: Command) -> Outcome {
        let answer = self.writer.execute(command, &|| false);
        answer.map(drop).map_err(|error| failure::of(&self.directory, error))
    }

    pub(super) fn remove_directory(&mut self) -> Outcome {
        self.run(Command::RemoveDirectory { place: self.at.clone() })
    }

    /// Makes empty files.
    pub(super) fn create(&mut self) -> Outcome<Vec<u64>> {
        self.commands(Step::Create)
    }

    /// Renames them, in their directory.
    pub(super) fn rename(&mut self) -> Outcome<Vec<u64>> {
        self.commands(Step::Rename)
    }

    /// Removes what was renamed.
    pub(super) fn remove(&mut self) -> Outcome<Vec<u64>> {
        self.commands(Step::Remove)
    }

    /// Asks for the status of each, and verifies it.
    pub(super) fn stat(&mut self) -> Outcome<Vec<u64>> {
        let name = |number| self.directory.with_generic(created(number).as_bytes());
        let begin = |number| self.reader.stat_later(&name(number));
        let ended = each_of_many(self.file_count, self.in_flight, begin);
        Ok(ended?)
    }

    /// Asks the head for the status of each, under the keys of the session.
    pub(super) fn ask(&mut self) -> Outcome<Vec<u64>> {
        let Self { writer, directory, file_count, in_flight, .. } = self;
        let mut questions = Questions {
            directory,
            next: 0,
            began: vec![None; *file_count],
            times_ns: Vec::with_capacity(*file_count),
            error: None,
        };
        let asked = writer.ask_all(&mut questions, *in_flight, &|| false);
        match questions.error.or(asked.err()) {
            None => Ok(questions.times_ns),
            Some(error) => Err(failure::of(directory, error)),
        }
    }

    /// Lists the directory with all attributes; this is one operation.
    pub(super) fn list(&mut self) -> Outcome<Vec<u64>> {
        let began = Instant::now();
        let listing = self.reader.list_resolved(&self.directory)?;
        let (found, wanted) = (listing.entry_count(), self.file_count);
        if found != wanted {
            let shown = output::name(self.directory.view());
            let text = format!("{shown} has {found} entries in place of {wanted}");
            return Err(Failure::new(Code::Other, text));
        }
        Ok(vec![nanoseconds(began)])
    }

    fn commands(&mut self, step: Step) -> Outcome<Vec<u64>> {
        let Self { writer, at, directory, file_count, in_flight, .. } = self;
        let mut files = Files {
            step,
            at,
            next: 0,
            began: vec![None; *file_count],
            times_ns: Vec::with_capacity(*file_count),
            error: None,
        };
        let executed = writer.execute_all(&mut files, *in_flight, &|| false);
        match files.error.or(executed.err()) {
            None => Ok(files.times_ns),
            Some(error) => Err(failure::of(directory, error)),
        }
    }
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

fn created(number: usize) -> String {
    format!("file{number}")
}

fn renamed(number: usize) -> String {
    format!("renamed{number}")
}

/// Commands about all files of a client, with the time that each file takes.
struct Files<'a> {
    step: Step,
    at: &'a Place,
    next: usize,
    began: Vec<Option<Instant>>,
    times_ns: Vec<u64>,
    /// The first failure; nothing is begun after it.
    error: Option<WriterError>,
}

/// Questions about all files of a client, with the time that each takes.
struct Questions<'a> {
    directory: &'a Name,
    next: usize,
    began: Vec<Option<Instant>>,
    times_ns: Vec<u64>,
    /// The first failure; nothing is asked after it.
    error: Option<WriterError>,
}

impl QuestionList for Questions<'_> {
    fn next(&mut self) -> Option<(usize, Vec<u8>)> {
        let number = self.next;
        if self.error.is_some() || number == self.began.len() {
            return None;
        }
        self.next += 1;
        self.began[number] = Some(Instant::now());
        let name = self.directory.with_generic(created(number).as_bytes());
        Some((number, format!("describe {name}").into_bytes()))
    }

    fn handle_told(&mut self, number: usize, told: Result<Vec<u8>, WriterError>) {
        match told.map(|line| described_size(&line)) {
            Ok(Some(0)) => {
                let began = self.began.get_mut(number).and_then(Option::take);
                self.times_ns.extend(began.map(nanoseconds));
            }
            Ok(_) => drop(self.error.get_or_insert(WriterError::OtherAnswer)),
            Err(error) => drop(self.error.get_or_insert(error)),
        }
    }
}

/// Size of the file that the head describes.
fn described_size(line: &[u8]) -> Option<u64> {
    let line: serde_json::Value = serde_json::from_slice(line).ok()?;
    let metadata = base64::decode_url(line["metadata"].as_str()?).ok()?;
    Metadata::decode(&metadata).ok()?.size
}

impl Files<'_> {
    fn place(&self, name: &str) -> Option<Place> {
        let mut place = self.at.clone();
        place.names.push(EntryName::new(name.as_bytes()).ok()?);
        Some(place)
    }

    fn command(&self, number: usize) -> Option<Command> {
        let old = self.place(&created(number))?;
        let new = self.place(&renamed(number))?;
        Some(match self.step {
            Step::Create => Command::Create(Create {
                place: old,
                mode: 0o644,
                size_max: 0,
                publish: Publish::Whole,
                exclusive: true,
                policy: PolicyChanges::default(),
            }),
            Step::Rename => Command::Rename(Rename { from: old, to: new, no_replace: true }),
            Step::Remove => Command::Unlink { place: new },
        })
    }
}

impl CommandList for Files<'_> {
    fn next(&mut self) -> Option<(usize, Command)> {
        let number = self.next;
        if self.error.is_some() || number == self.began.len() {
            return None;
        }
        self.next += 1;
        let command = self.command(number)?;
        self.began[number] = Some(Instant::now());
        Some((number, command))
    }

    fn handle_answer(
        &mut self,
        number: usize,
        answer: Result<SiteAnswer, WriterError>,
    ) -> Option<Command> {
        match answer {
            Err(error) => {
                self.error.get_or_insert(error);
                None
            }
            Ok(_) => {
                let began = self.began.get_mut(number).and_then(Option::take);
                self.times_ns.extend(began.map(nanoseconds));
                None
            }
        }
    }
}
