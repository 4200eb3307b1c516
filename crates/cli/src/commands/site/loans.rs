//! `byname site user lend`, `loans` and `recall`: keys that sign for a user for a while.

use super::account::{Account, SiteArgs};
use super::session::SiteSession;
use crate::exit::{Failure, Outcome};
use crate::output;
use byname_catalog::LOAN_NS_MAX;
use byname_io::Clock;
use byname_keychain::Keychain;
use byname_profile::{Paths, Profile, units};
use byname_security::cert::Certificate;
use byname_security::key::{Algorithm, KeyId};
use byname_site::SiteName;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, clap::Subcommand)]
pub(super) enum LoanCommand {
    /// Make a directory with a new key that signs for oneself for a while: for a job elsewhere.
    #[command(after_help = "Examples:
  byname site user lend ./job-key --for 12h
  byname site user lend ./job-key --for 2d

Whoever has the directory acts as its user until the time is over, with BYNAME_HOME=DIR, or with
fs.ndn.home in a Hadoop job. Said once more of the same directory, it is lent for longer. The key
lends no others, and ends with the key that lent it.")]
    Lend {
        /// The directory, which is made; only its owner can read it.
        dir: PathBuf,
        /// How long, such as 12h; 7d at most.
        #[arg(long = "for", value_name = "TIME", default_value = "1d", value_parser = time)]
        time: Duration,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// List the keys that are lent, and until when.
    Loans {
        /// Another user, for operators.
        #[arg(long = "as", value_name = "USER")]
        other: Option<String>,
        /// One JSON object per key.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// End a loan now: what its key signs counts no more.
    Recall {
        /// The directory, or the digest that `loans` shows.
        #[arg(value_name = "DIR|KEY")]
        key: String,
        #[command(flatten)]
        site: SiteArgs,
    },
}

pub(super) fn run(command: &LoanCommand, paths: &Paths) -> Outcome {
    match command {
        LoanCommand::Lend { dir, time, site } => lend(dir, *time, site, paths),
        LoanCommand::Loans { other, json, site } => list(other.as_deref(), *json, site, paths),
        LoanCommand::Recall { key, site } => recall(key, site, paths),
    }
}

fn lend(dir: &Path, time: Duration, args: &SiteArgs, paths: &Paths) -> Outcome {
    let account = args.account(paths)?;
    let mut session = SiteSession::open(&account)?;
    // Asked first, so that nothing is made for a site that cannot be reached.
    session.query("whoami")?;
    let site_key = session.site_certificate()?.key_id();
    let is_new = !dir.exists();
    if is_new {
        let made = std::fs::DirBuilder::new().mode(0o700).create(dir);
        made.map_err(|error| Failure::disk(dir, error))?;
    }
    let lent = put_key(dir, &account.site, &account.user, site_key).and_then(|certificate| {
        let expires_ns = byname_access::lend(&mut session, &certificate, time)?;
        Ok((certificate.key_id(), expires_ns))
    });
    match lent {
        Ok((key, expires_ns)) => {
            output::err_line(&format!(
                "{} acts as {} of {} until {}: use it with BYNAME_HOME",
                dir.display(),
                account.user,
                output::name(account.site.view()),
                output::time_utc(expires_ns)
            ));
            output::out_line(&key.to_string());
            Ok(())
        }
        Err(failure) => {
            if is_new {
                let _ = std::fs::remove_dir_all(dir);
            }
            Err(failure)
        }
    }
}

/// A key of the user's in a directory, and there whose answers count; the one that is there, if
/// there is one.
fn put_key(dir: &Path, site: &SiteName, user: &str, site_key: KeyId) -> Outcome<Certificate> {
    let profile = Profile::below(dir)?;
    profile.trust(&site.view().to_name(), site_key)?;
    let keychain = Keychain::open(&profile.paths().keys)?;
    let now_ns = Clock::new().unix_ns();
    let identity =
        keychain.create_identity(site.user(user).view(), Algorithm::default(), now_ns)?;
    Ok(identity.certificate)
}

fn list(of: Option<&str>, json: bool, args: &SiteArgs, paths: &Paths) -> Outcome {
    let account = args.account(paths)?;
    let of = of.unwrap_or(&account.user);
    let loans = SiteSession::open(&account)?.query(&format!("loans {of}"))?;
    if json {
        loans.into_iter().for_each(output::json_line);
        return Ok(());
    }
    let row = |loan: &serde_json::Value| {
        let until_ns = loan["until_ns"].as_u64().unwrap_or_default();
        let key = output::one_line(loan["key"].as_str().unwrap_or_default());
        vec![key, output::time_utc(until_ns)]
    };
    output::table(&["KEY", "UNTIL"], &loans.iter().map(row).collect::<Vec<_>>());
    Ok(())
}

fn recall(key: &str, args: &SiteArgs, paths: &Paths) -> Outcome {
    let account = args.account(paths)?;
    let digest = match Path::new(key).is_dir() {
        true => key_in(Path::new(key), &account)?.to_string(),
        false => key.to_owned(),
    };
    let mut session = SiteSession::open(&account)?;
    match byname_access::recall(&mut session, &account.user, &digest)? {
        true => Ok(()),
        false => Err(Failure::usage(format!("{key}: no key that you have lent"))),
    }
}

/// The key that signs for a user in a directory that was lent.
fn key_in(dir: &Path, account: &Account) -> Outcome<KeyId> {
    let keychain = Keychain::open(&Paths::below(dir).keys)?;
    let identity = keychain.identity(account.site.user(&account.user).view())?;
    let none = || {
        let of = &account.user;
        Failure::usage(format!("{}: there is no key of {of} in it", dir.display()))
    };
    Ok(identity.ok_or_else(none)?.certificate.key_id())
}

fn time(text: &str) -> Result<Duration, &'static str> {
    let most = Duration::from_nanos(LOAN_NS_MAX);
    let is_fit = |time: &Duration| !time.is_zero() && *time <= most;
    units::age(text).ok().filter(is_fit).ok_or("a time of 7 days or less, such as 12h or 2d")
}
