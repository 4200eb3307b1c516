//! `byname key export` and `import`: keys and certificates in the formats of other NDN software.

use super::{Keychain, KeychainError, key_id, no_key};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use crate::typed::name;
use byname_io::Clock;
use byname_keychain::Import;
use byname_security::base64;
use byname_security::foreign::{self, FILE_BYTES_MAX, Item};
use byname_security::safe_bag::SafeBag;
use std::io::Read;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// The key, SHA256:…, or the name it signs for.
    key: String,
    /// Output format: the certificate as ndn-cxx or as NDNd (pem) writes it, or a SafeBag with the
    /// private key.
    #[arg(long, value_enum, default_value_t = Format::Base64)]
    format: Format,
    /// Print the private key too, in the clear (pem only).
    #[arg(long)]
    private: bool,
    /// File with the passphrase that encrypts a SafeBag.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Base64,
    Pem,
    Safebag,
}

#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// Certificates, private keys and SafeBags in any of the usual formats; a private key without
    /// a name is matched with the certificate beside it.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// File with the passphrase of SafeBags.
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Name to publish under, for a private key that has neither name nor certificate.
    #[arg(long)]
    name: Option<String>,
    /// Let the imported key sign from now on, though its name has a key already.
    #[arg(long)]
    current: bool,
}

pub(super) fn export(keychain: &Keychain, args: &ExportArgs) -> Outcome {
    let id = if args.key.starts_with('/') || args.key.starts_with("ndn:") {
        let identity = keychain.identity(name(&args.key)?.view())?;
        identity.ok_or_else(|| no_key(&args.key))?.certificate.key_id()
    } else {
        key_id(&args.key)?
    };
    if args.private && args.format != Format::Pem {
        return Err(Failure::usage("--private goes with --format pem")
            .hint("--format safebag holds the private key encrypted"));
    }
    let text = match args.format {
        Format::Base64 => keychain.export_certificate(id)?,
        Format::Pem => {
            let (key, certificate) = keychain.key_pair(id)?;
            let mut text = String::new();
            if args.private {
                let name = certificate.key_name();
                text += &foreign::key_to_pem(name, key)
                    .map_err(|error| Failure::new(Code::Other, error.to_string()))?;
            }
            text + &foreign::certificate_to_pem(&certificate)
        }
        Format::Safebag => {
            let passphrase = passphrase(args.passphrase_file.as_deref())?;
            let (key, certificate) = keychain.key_pair(id)?;
            let bag = SafeBag::seal(certificate, &key, &passphrase)
                .map_err(|error| Failure::new(Code::Other, error.to_string()))?;
            base64::encode_lines(&bag.encode())
        }
    };
    output::out_line(text.trim_end());
    Ok(())
}

pub(super) fn import(keychain: &Keychain, args: &ImportArgs) -> Outcome {
    let mut import = Import { make_current: args.current, ..Import::default() };
    import.identity = args.name.as_deref().map(name).transpose()?;
    for file in &args.files {
        let items = foreign::read(&read(file)?)
            .map_err(|error| Failure::new(Code::Other, format!("{}: {error}", file.display())))?;
        for item in items {
            match item {
                Item::Certificate(certificate) => import.certificates.push(certificate),
                Item::Key { name, key } => import.keys.push((name, key)),
                Item::SafeBag(bag) => {
                    let passphrase = passphrase(args.passphrase_file.as_deref())?;
                    let key = bag.open(&passphrase).map_err(|error| {
                        Failure::new(Code::Other, format!("{}: {error}", file.display()))
                    })?;
                    import.keys.push((None, key));
                    import.certificates.push(bag.certificate().clone());
                }
            }
        }
    }
    let names = keychain.import(import, Clock::new().unix_ns()).map_err(|error| {
        let hint = match error {
            KeychainError::Nameless => "give the file of its certificate too, or --name NAME",
            KeychainError::NotOurs { .. } => {
                "to trust the key of a certificate, use: byname trust add"
            }
            _ => return error.into(),
        };
        Failure::from(error).hint(hint)
    })?;
    for name in names {
        output::err_line(&format!("took in {}", output::name(name.view())));
    }
    Ok(())
}

/// Reads a file of bounded length.
fn read(file: &Path) -> Outcome<Vec<u8>> {
    let failed = |error| Failure::disk(file, error);
    let opened = std::fs::File::open(file).map_err(failed)?;
    let mut octets = Vec::new();
    // One more than is accepted, so that a longer one is noticed.
    opened.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut octets).map_err(failed)?;
    Ok(octets)
}

/// The first line of the passphrase file.
fn passphrase(file: Option<&Path>) -> Outcome<Vec<u8>> {
    let file = file.ok_or_else(|| {
        Failure::usage("a SafeBag needs a passphrase")
            .hint("--passphrase-file FILE, the first line of which is the passphrase")
    })?;
    let octets = read(file)?;
    let line = octets.split(|octet| *octet == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Err(Failure::usage(format!("{} holds no passphrase", file.display())));
    }
    Ok(line.to_vec())
}
