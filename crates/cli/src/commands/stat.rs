//! `byname stat`: what the publisher signed about a file or directory.

use super::ls::describe;
use crate::exit::{Failure, Outcome};
use crate::output;
use crate::target::{Pace, ReadArgs, Session};
use byname_profile::Paths;
use byname_security::tree::Hash;
use byname_security::trust::Trusted;
use byname_transfer::discovery::Discovered;
use byname_transfer::metadata::ContentRoot;
use serde_json::{Value, json};
use sha2::Digest;
use std::fmt::Write as _;

/// Show what is signed about a file or directory.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname stat /lab/run7/events.root
  byname stat --checksum b3 /lab/run7/events.root       as b3sum prints it; reads nothing
  byname stat --checksum sha256 /lab/run7/events.root   reads and verifies the file")]
pub(crate) struct Args {
    /// Name or link.
    target: String,
    /// Print a checksum of the content only. All but b3 read the file.
    #[arg(long, value_enum, value_name = "ALGORITHM")]
    checksum: Option<Algorithm>,
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
    Crc32c,
    Adler32,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut session = Session::open(&args.target, &args.read, Pace::default(), paths)?;
    let shown = output::name(session.name.view());
    if let Some(algorithm) = args.checksum {
        let sum = checksum(&mut session, algorithm)?;
        output::out_line(&format!("{sum}  {shown}"));
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
        print(&fields, session.is_insecure());
    }
    Ok(())
}

fn key(found: &Discovered) -> Option<String> {
    match &found.trust {
        Trusted::Anchored { key, .. } | Trusted::FirstUse { key, .. } => Some(key.to_string()),
        Trusted::Insecure => None,
    }
}

fn print(fields: &serde_json::Map<String, Value>, insecure: bool) {
    for (key, value) in fields {
        let text = match (key.as_str(), value) {
            ("mtime_ns", Value::Number(ns)) => {
                output::out_line(&format!(
                    "{:<14} {}",
                    "modified",
                    output::time(ns.as_u64().unwrap_or(0))
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

fn checksum(session: &mut Session, algorithm: Algorithm) -> Outcome<String> {
    if algorithm == Algorithm::B3 {
        let found = session.run(|client, name| client.lookup(name))?;
        if found.metadata.is_directory() {
            return Err(Failure::new(crate::exit::Code::Other, "a directory has no checksum"));
        }
        if let ContentRoot::Known(root) = found.metadata.root {
            return Ok(Hash(root).to_string());
        }
    }
    let mut sum = Sum::new(algorithm);
    session.run(|client, name| {
        let file = client.open(name)?;
        let mut sink = |_: u64, bytes: &[u8]| {
            sum.update(bytes);
            Ok(())
        };
        client.read_range(&file, 0..u64::MAX, &mut sink)
    })?;
    Ok(sum.finish())
}

enum Sum {
    B3(Box<blake3::Hasher>),
    Sha256(sha2::Sha256),
    Md5(md5::Md5),
    Crc32c(u32),
    Adler32(adler2::Adler32),
}

impl Sum {
    fn new(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::B3 => Self::B3(Box::default()),
            Algorithm::Sha256 => Self::Sha256(sha2::Sha256::new()),
            Algorithm::Md5 => Self::Md5(md5::Md5::new()),
            Algorithm::Crc32c => Self::Crc32c(0),
            Algorithm::Adler32 => Self::Adler32(adler2::Adler32::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::B3(hasher) => {
                hasher.update(bytes);
            }
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Md5(hasher) => hasher.update(bytes),
            Self::Crc32c(sum) => *sum = crc32c::crc32c_append(*sum, bytes),
            Self::Adler32(sum) => sum.write_slice(bytes),
        }
    }

    fn finish(self) -> String {
        let hex = |octets: &[u8]| {
            octets.iter().fold(String::new(), |mut text, octet| {
                let _ = write!(text, "{octet:02x}");
                text
            })
        };
        match self {
            Self::B3(hasher) => hasher.finalize().to_hex().to_string(),
            Self::Sha256(hasher) => hex(&hasher.finalize()),
            Self::Md5(hasher) => hex(&hasher.finalize()),
            Self::Crc32c(sum) => format!("{sum:08x}"),
            Self::Adler32(sum) => format!("{:08x}", sum.checksum()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Algorithm, Sum};

    #[test]
    fn known_sums_of_123456789() {
        for (algorithm, expected) in [
            (Algorithm::Md5, "25f9e794323b453885f5181f1b624d0b"),
            (Algorithm::Crc32c, "e3069283"),
            (Algorithm::Adler32, "091e01de"),
            (Algorithm::Sha256, "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"),
        ] {
            let mut sum = Sum::new(algorithm);
            sum.update(b"1234");
            sum.update(b"56789");
            assert_eq!(sum.finish(), expected);
        }
    }
}
