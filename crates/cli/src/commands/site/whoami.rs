//! `byname site user whoami`: who somebody is to the site, or by a table of a door.

use super::account::SiteArgs;
use super::user::show;
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_access::{Denial, Mapped, MappingError, MappingTable, Method, Presented};
use byname_profile::Paths;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Print who one is to the site: user and groups; or whom a door's table makes of somebody.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname site user whoami
  byname site user whoami --as anna                          for operators
  byname site user whoami --as krb5:anna --table FILE
  byname site user whoami --as 'gsi:/DC=ch/CN=Anna' --vo cms --role production --table FILE

With a table nobody is asked: it says whom the table makes of somebody, and by which row. VO, role
and group go together: the first of each, the second of each.")]
pub(super) struct Args {
    /// Another user, for operators; with a table, somebody as a door has authenticated him.
    #[arg(long = "as", value_name = "USER|METHOD:NAME")]
    other: Option<String>,
    /// Table of a door: who is which user.
    #[arg(long, value_name = "FILE", requires = "other")]
    table: Option<PathBuf>,
    /// A group that he is in there (repeatable).
    #[arg(long, value_name = "GROUP", requires = "table")]
    group: Vec<String>,
    /// A virtual organisation of his (repeatable).
    #[arg(long, value_name = "NAME", requires = "table")]
    vo: Vec<String>,
    /// A role of his (repeatable).
    #[arg(long, value_name = "ROLE", requires = "table")]
    role: Vec<String>,
    #[command(flatten)]
    site: SiteArgs,
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    let other = args.other.as_deref().unwrap_or_default();
    if let Some(table) = &args.table {
        return by_table(args, other, table);
    }
    let subject = format!("whoami {other}");
    show(args.site.session(paths)?.query(subject.trim_end())?, args.json)
}

fn by_table(args: &Args, other: &str, path: &Path) -> Outcome {
    let table = MappingTable::read(path).map_err(failed)?;
    let methods = "krb5, token, gsi, unix, sss or host";
    let presented = other.split_once(':').and_then(|(method, name)| {
        let method = Method::of(method)?;
        let who = (method, name.to_owned());
        Some(Presented::with_columns(who, &args.vo, &args.role, &args.group))
    });
    let who = presented.ok_or_else(|| {
        Failure::usage(format!("{}: with a table, METHOD:NAME is wanted", output::one_line(other)))
            .hint(format!("METHOD is {methods}"))
    })?;
    match (table.map(&who), args.json) {
        (Ok(mapped), true) => output::json_line(json!({
            "user": mapped.user,
            "groups": mapped.groups,
            "row": mapped.row.number,
            "line": mapped.row.line,
        })),
        (Ok(mapped), false) => print(&mapped, path),
        (Err(denial), json) => {
            if json {
                let row = match &denial {
                    Denial::Row(row) | Denial::BadLabel { row, .. } => Some(*row),
                    Denial::NoRow | Denial::TooLong => None,
                };
                output::json_line(json!({
                    "user": null,
                    "row": row.map(|row| row.number),
                    "line": row.map(|row| row.line),
                    "denied": denial.to_string(),
                }));
            }
            let text = format!("{} is nobody: {denial}", output::one_line(other));
            return Err(Failure::new(Code::UnknownKey, text));
        }
    }
    Ok(())
}

fn print(mapped: &Mapped, path: &Path) {
    let groups = match mapped.groups.as_slice() {
        [] => "those that the site has the user in".to_owned(),
        groups => output::one_line(&groups.join(",")),
    };
    let by = format!("{} of {}", mapped.row, path.display());
    let row = vec![output::one_line(&mapped.user), groups, by];
    output::table(&["USER", "GROUPS", "BY"], &[row]);
}

fn failed(error: MappingError) -> Failure {
    match error {
        MappingError::Unreadable { path, source } => Failure::disk(&path, source),
        error => Failure::usage(error),
    }
}
