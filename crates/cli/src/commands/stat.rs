//! `byname stat`: what the publisher signed about a file or directory.

use super::ls::{describe, hex};
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::target::{Pace, ReadArgs, Session};
use byname_profile::Paths;
use byname_security::tree::Hash;
use byname_security::trust::Trusted;
use byname_transfer::checksums::{self, Summing};
use byname_transfer::discovery::Discovered;
use byname_transfer::metadata::ContentRoot;
use serde_json::{Value, json};

/// Show what is signed about a file or directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname stat /lab/run7/events.root
  byname stat --checksum b3 /lab/run7/events.root       as b3sum prints it; reads nothing
  byname stat --checksum sha256 /lab/run7/events.root   reads and verifies the file, unless its
                                                        publisher has signed that checksum too")]
pub(crate) struct Args {
    /// Name or link.
    target: String,
    /// Print a checksum of the content only: the one that the publisher has signed, or one that is
    /// computed here of the verified file.
    #[arg(long, value_enum, value_name = "ALGORITHM")]
    checksum: Option<Algorithm>,
    #[command(flatten)]
    time: output::TimeArgs,
    #[command(flatten)]
    read: ReadArgs,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Algorithm {
    B3,
    Sha256,
    Md5,
    Crc32,
    Crc32c,
    Adler32,
}

impl Algorithm {
    /// The one that metadata may carry; b3 is the content root.
    fn of_metadata(self) -> Option<checksums::Algorithm> {
        match self {
            Self::B3 => None,
            Self::Sha256 => Some(checksums::Algorithm::Sha256),
            Self::Md5 => Some(checksums::Algorithm::Md5),
            Self::Crc32 => Some(checksums::Algorithm::Crc32),
            Self::Crc32c => Some(checksums::Algorithm::Crc32c),
            Self::Adler32 => Some(checksums::Algorithm::Adler32),
        }
    }

    fn name(self) -> &'static str {
        self.of_metadata().map_or("b3", checksums::Algorithm::name)
    }
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut session = Session::open(&args.target, &args.read, Pace::default(), paths)?;
    let shown = output::name(session.name.view());
    if let Some(algorithm) = args.checksum {
        let Found { sum, is_signed } = checksum(&mut session, algorithm)?;
        match args.json {
            true => output::json_line(json!({
                "name": shown,
                "algorithm": algorithm.name(),
                "checksum": sum,
                "signed": is_signed,
            })),
            false => output::out_line(&format!("{sum}  {shown}")),
        }
        return Ok(());
    }
    let found = session.run(|client, name| client.lookup(name))?;
    let key = key(&found);
    let mut fields = json!({ "name": shown });
    if let (Value::Object(fields), Value::Object(more)) = (&mut fields, describe(&found)) {
        fields.extend(more);
        if let Some(key) = key {
            fields.insert("key".into(), key.into());
        }
        if let Some(age_ms) = session.age_ms() {
            fields.insert("age_ms".into(), age_ms.into());
        }
    }
    if args.json {
        output::json_line(fields);
    } else if let Value::Object(fields) = fields {
        print(&fields, session.is_insecure(), args.time);
    }
    Ok(())
}

fn key(found: &Discovered) -> Option<String> {
    match &found.trust {
        Trusted::Anchored { key, .. } | Trusted::FirstUse { key, .. } => Some(key.to_string()),
        Trusted::Insecure => None,
    }
}

fn print(fields: &serde_json::Map<String, Value>, insecure: bool, zone: output::TimeArgs) {
    for (key, value) in fields {
        let text = match (key.as_str(), value) {
            ("mtime_ns", Value::Number(ns)) => {
                output::out_line(&format!(
                    "{:<14} {}",
                    "modified",
                    output::time(ns.as_u64().unwrap_or(0), zone)
                ));
                continue;
            }
            ("size", Value::Number(bytes)) => {
                format!("{bytes} ({})", output::size(bytes.as_u64().unwrap_or(0)))
            }
            (_, Value::String(text)) => text.clone(),
            (_, other) => other.to_string(),
        };
        output::out_line(&format!("{key:<14} {text}"));
    }
    if insecure {
        output::out_line(&format!("{:<14} nobody's signature was checked", "key"));
    }
}

/// A checksum, and whether the publisher has signed it, rather than the content it is computed of.
struct Found {
    sum: String,
    is_signed: bool,
}

fn checksum(session: &mut Session, algorithm: Algorithm) -> Outcome<Found> {
    let found = session.run(|client, name| client.lookup(name))?;
    if found.metadata.is_directory() {
        return Err(Failure::new(crate::exit::Code::Other, "a directory has no checksum"));
    }
    let signed = match (algorithm.of_metadata(), found.metadata.root) {
        (Some(algorithm), _) => found.metadata.attributes().checksums.get(algorithm).map(hex),
        (None, ContentRoot::Known(root)) => Some(Hash(root).to_string()),
        (None, _) => None,
    };
    if let Some(sum) = signed {
        return Ok(Found { sum, is_signed: true });
    }
    let mut computed = Sum::new(algorithm);
    let meter = crate::progress::Meter::new();
    session.run(|client, name| {
        let file = client.open(name)?;
        let mut sink = |_: u64, bytes: &[u8]| {
            computed.update(bytes);
            meter.add(bytes.len());
            Ok(())
        };
        client.read_range(&file, 0..u64::MAX, &mut sink)
    })?;
    Ok(Found { sum: computed.finish(), is_signed: false })
}

enum Sum {
    B3(Box<blake3::Hasher>),
    Other(Box<Summing>, checksums::Algorithm),
}

impl Sum {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm.of_metadata() {
            None => Self::B3(Box::default()),
            Some(algorithm) => Self::Other(Box::new(Summing::new(&[algorithm])), algorithm),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::B3(hasher) => {
                hasher.update(bytes);
            }
            Self::Other(summing, _) => summing.update(bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            Self::B3(hasher) => hasher.finalize().to_hex().to_string(),
            Self::Other(summing, algorithm) => {
                summing.finish().get(algorithm).map(hex).unwrap_or_default()
            }
        }
    }
}
