//! `byname site trash`: what was removed, and how it comes back.

use super::account::SiteArgs;
use crate::commands::writing::{about, open_tree};
use crate::exit::{Code, Failure, Outcome};
use crate::output;
use byname_access::Tree;
use byname_catalog::id::InodeId;
use byname_catalog::{Command, Refusal, RestoreTrash, TrashPolicy};
use byname_packet::Name;
use byname_profile::{Paths, units};
use serde_json::{Value, json};
use std::time::Duration;

/// What stays of it where only one of time and size is given: a week, any size.
const KEEP_NS: u64 = 7 * 86_400_000_000_000;

/// What was removed and can be brought back.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: TrashCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TrashCommand {
    /// Say what becomes of what is removed: of the whole site, or of a tree with a quota.
    #[command(after_help = "Examples:
  byname site trash set --keep 7d --max 1T
  byname site trash set /lab/scratch --off

What is in the trash counts for quota as before. With --off nothing more goes there, and what is
there stays for its time. A tree with a quota of its own has the site's policy until it gets its
own; --max is of each tree.")]
    Set {
        /// Name or link of a tree with a quota of its own. Default: the site.
        #[arg(value_name = "NAME")]
        name: Option<String>,
        /// How long things stay, such as 12h or 7d. At first: 7d.
        #[arg(long, value_name = "TIME", value_parser = keep)]
        keep: Option<Duration>,
        /// Most octets of files there, such as 1T, or `none`: the oldest go for it. At first: none.
        #[arg(long, value_name = "SIZE", value_parser = most)]
        max: Option<u64>,
        /// Nothing goes to the trash.
        #[arg(long, conflicts_with_all = ["keep", "max"])]
        off: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Show what becomes of what is removed from a name.
    #[command(after_help = "Examples:
  byname site trash show
  byname site trash show /lab/scratch --json")]
    Show {
        /// Name or link. Default: the site.
        #[arg(value_name = "NAME")]
        name: Option<String>,
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// List what was removed: one's own things, and for operators everybody's.
    #[command(after_help = "Examples:
  byname site trash ls
  byname site trash ls --json

The size of a directory is known some seconds after it was removed.")]
    Ls {
        #[command(flatten)]
        site: SiteArgs,
        /// One JSON object a thing.
        #[arg(long)]
        json: bool,
    },
    /// Bring something back, a directory with all that is in it.
    #[command(after_help = "Examples:
  byname site trash restore /lab/run7/a.root            to where it was
  byname site trash restore 4711 --to /lab/run7/b.root

By its name the last one of this name comes back; `byname site trash ls` has the numbers. Nothing
is replaced by it.")]
    Restore {
        /// Its number, or the name it had.
        #[arg(value_name = "WHAT")]
        what: String,
        /// Another name for it.
        #[arg(long, value_name = "NAME")]
        to: Option<String>,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Remove things from the trash for good.
    #[command(after_help = "Examples:
  byname site trash purge /lab/run7/a.root --yes
  byname site trash purge --all --yes

Without --yes it says what would go. --all is all that `ls` shows.")]
    Purge {
        /// Their numbers, or the names they had: of several with one name the last.
        #[arg(value_name = "WHAT", required_unless_present = "all", conflicts_with = "all")]
        what: Vec<String>,
        /// All that is there.
        #[arg(long)]
        all: bool,
        /// Do it. Without this nothing is changed.
        #[arg(short, long)]
        yes: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
}

pub(super) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        TrashCommand::Set { name, keep, max, off, site } => {
            let change = |old: TrashPolicy| TrashPolicy {
                is_on: !off,
                keep_ns: keep.map_or(old.keep_ns, |keep| keep.as_nanos() as u64),
                bytes_max: max.unwrap_or(old.bytes_max),
            };
            set(name.as_deref(), site, &change, paths)
        }
        TrashCommand::Show { name, site, json } => show(name.as_deref(), site, *json, paths),
        TrashCommand::Ls { site, json } => list(site, *json, paths),
        TrashCommand::Restore { what, to, site } => restore(what, to.as_deref(), site, paths),
        TrashCommand::Purge { what, all, yes, site } => purge(what, (*all, *yes), site, paths),
    }
}

fn keep(text: &str) -> Result<Duration, &'static str> {
    let most = Duration::from_secs(100 * 365 * 86_400);
    let is_fit =
        |keep: &Duration| keep.as_nanos() >= TrashPolicy::KEEP_NS_MIN.into() && *keep <= most;
    units::age(text).ok().filter(is_fit).ok_or("a time of a minute or more, such as 12h or 7d")
}

fn most(text: &str) -> Result<u64, units::UnitError> {
    if text == "none" { Ok(u64::MAX) } else { units::size(text) }
}

/// The site above a name, and this name; the site itself without one.
fn open(name: Option<&str>, site: &SiteArgs, paths: &Paths) -> Outcome<(Tree, Name)> {
    match name {
        Some(name) => {
            let (tree, names) = open_tree(site, &[name.to_owned()], paths)?;
            let name = names.into_iter().next().ok_or_else(|| Failure::usage("one name"))?;
            Ok((tree, name))
        }
        None => {
            let tree = Tree::open(site.account(paths)?)?;
            let name = tree.account().site.view().to_name();
            Ok((tree, name))
        }
    }
}

fn set(
    name: Option<&str>,
    site: &SiteArgs,
    change: &dyn Fn(TrashPolicy) -> TrashPolicy,
    paths: &Paths,
) -> Outcome {
    let (mut tree, name) = open(name, site, paths)?;
    let known = tree.query("trash-of", &name)?.into_iter().next().unwrap_or_default();
    let old = TrashPolicy {
        is_on: false,
        keep_ns: known["keep_ns"].as_u64().unwrap_or(KEEP_NS),
        bytes_max: known["bytes_max"].as_u64().unwrap_or(u64::MAX),
    };
    let place = tree.place(&name)?;
    let set = tree.execute(Command::SetTrash { place, policy: change(old) })?;
    set.map(drop).map_err(|refusal| match refusal {
        Refusal::NotTree => about(&name, refusal)
            .hint("a tree gets one by `byname site quota set NAME`; without NAME it is the site"),
        _ => about(&name, refusal),
    })
}

fn show(name: Option<&str>, site: &SiteArgs, json: bool, paths: &Paths) -> Outcome {
    let (mut tree, name) = open(name, site, paths)?;
    let known = tree.query("trash-of", &name)?.into_iter().next().unwrap_or_default();
    let keep_s = known["keep_ns"].as_u64().map(|keep_ns| keep_ns / 1_000_000_000);
    let most = known["bytes_max"].as_u64().filter(|most| *most < u64::MAX);
    if json {
        output::json_line(json!({
            "name": output::name(name.view()),
            "on": known["on"],
            "own": known["own"],
            "keep_s": keep_s,
            "bytes_max": most,
            "items": known["items"],
            "bytes": known["bytes"],
        }));
        return Ok(());
    }
    let number = |key: &str| known[key].as_u64().unwrap_or_default();
    let kept = match (known["on"] == true, keep_s) {
        (true, Some(keep_s)) => format!(
            "what is removed stays for {}, {}",
            output::duration(keep_s),
            most.map_or_else(
                || "whatever its size".to_owned(),
                |most| { format!("up to {} in all", output::size(most)) }
            ),
        ),
        _ => "off: what is removed is gone".to_owned(),
    };
    output::out_line(&kept);
    let things = output::count(number("items"), "thing");
    output::out_line(&format!("there: {things}, {}", output::size(number("bytes"))));
    Ok(())
}

/// The name that something had.
fn shown(item: &Value) -> String {
    let name = output::one_line(item["name"].as_str().unwrap_or_default());
    match item["directory"].as_u64() {
        Some(directory) => format!("#{directory}{name}"),
        None => name,
    }
}

fn list(site: &SiteArgs, json: bool, paths: &Paths) -> Outcome {
    let mut items = site.session(paths)?.query("trash")?;
    items.sort_by_key(|item| item["removed_ns"].as_u64());
    if json {
        for item in &items {
            output::json_line(json!({
                "number": item["inode"],
                "name": shown(item),
                "type": item["kind"],
                "owner": item["owner"],
                "removed_by": item["removed_by"],
                "removed_ns": item["removed_ns"],
                "until_ns": item["until_ns"],
                "size": item["bytes"],
                "entries": item["inodes"],
            }));
        }
        return Ok(());
    }
    let row = |item: &Value| {
        let text = |key: &str| output::one_line(item[key].as_str().unwrap_or_default());
        let time = |key: &str| item[key].as_u64().map_or_else(|| "-".to_owned(), output::time_utc);
        vec![
            item["inode"].as_u64().unwrap_or_default().to_string(),
            time("removed_ns"),
            time("until_ns"),
            text("removed_by"),
            item["bytes"].as_u64().map_or_else(|| "-".to_owned(), output::size),
            shown(item),
        ]
    };
    let rows: Vec<_> = items.iter().map(row).collect();
    output::table(&["NUMBER", "REMOVED", "UNTIL", "BY", "SIZE", "NAME"], &rows);
    Ok(())
}

/// Something in the trash as it was given: a number, or the name it had.
enum What {
    Number(u64),
    Name(Name),
}

/// What was given, and the site that it is of.
fn named(what: &[String], site: &SiteArgs, paths: &Paths) -> Outcome<(Tree, Vec<What>)> {
    let texts: Vec<String> =
        what.iter().filter(|text| text.parse::<u64>().is_err()).cloned().collect();
    let (tree, mut names) = match texts.is_empty() {
        true => (Tree::open(site.account(paths)?)?, Vec::new().into_iter()),
        false => open_tree(site, &texts, paths).map(|(tree, names)| (tree, names.into_iter()))?,
    };
    let mut found = Vec::with_capacity(what.len());
    for text in what {
        found.push(match text.parse() {
            Ok(number) => What::Number(number),
            Err(_) => What::Name(names.next().ok_or_else(|| Failure::usage("one name each"))?),
        });
    }
    Ok((tree, found))
}

/// The line of what was meant: of several things of one name that which was removed the last.
fn find<'a>(items: &'a [Value], what: &What) -> Outcome<&'a Value> {
    let (found, shown) = match what {
        What::Number(number) => {
            (items.iter().find(|item| item["inode"] == *number), number.to_string())
        }
        What::Name(name) => {
            let uri = name.to_string();
            let is_it = |item: &&Value| item["name"] == uri && item["directory"].is_null();
            let last = items.iter().filter(is_it).max_by_key(|item| item["removed_ns"].as_u64());
            (last, output::name(name.view()))
        }
    };
    found.ok_or_else(|| {
        let message = format!("{shown}: nothing of yours in the trash");
        Failure::new(Code::NotFound, message).hint("`byname site trash ls` shows what is there")
    })
}

fn restore(what: &str, to: Option<&str>, site: &SiteArgs, paths: &Paths) -> Outcome {
    let given: Vec<String> = [Some(what), to].into_iter().flatten().map(str::to_owned).collect();
    let (mut tree, given) = named(&given, site, paths)?;
    let target = match given.get(1) {
        None => None,
        Some(What::Name(name)) => Some(name),
        Some(What::Number(_)) => return Err(Failure::usage("--to wants a name")),
    };
    let items = tree.ask("trash")?;
    let item = match given.first() {
        Some(what) => find(&items, what)?,
        None => return Err(Failure::usage("what?")),
    };
    let place = target.map(|name| tree.place(name)).transpose()?;
    let number = InodeId(item["inode"].as_u64().unwrap_or_default());
    let back = tree.execute(Command::RestoreTrash(RestoreTrash { item: number, to: place }))?;
    let name = target.map_or_else(|| shown(item), |name| output::name(name.view()));
    back.map(drop).map_err(|refusal| {
        let failure = Failure::new(super::failure::code(refusal), format!("{name}: {refusal}"));
        match refusal {
            Refusal::NotFound if target.is_none() => {
                failure.hint("the directory it was in is gone: --to NAME puts it elsewhere")
            }
            Refusal::Exists => failure.hint("--to NAME puts it beside that"),
            Refusal::OtherTree => {
                failure.hint("a directory comes back to the tree whose quota it counts for")
            }
            _ => failure,
        }
    })
}

fn purge(what: &[String], (all, yes): (bool, bool), site: &SiteArgs, paths: &Paths) -> Outcome {
    let (mut tree, what) = named(what, site, paths)?;
    let items = tree.ask("trash")?;
    let chosen: Vec<&Value> = match all {
        true => items.iter().collect(),
        false => what.iter().map(|what| find(&items, what)).collect::<Outcome<_>>()?,
    };
    for item in &chosen {
        let number = InodeId(item["inode"].as_u64().unwrap_or_default());
        if !yes {
            output::out_line(&format!("{} {} would go", number.0, shown(item)));
            continue;
        }
        match tree.execute(Command::PurgeTrash { item: number })? {
            // Somebody else, or its time, came first.
            Ok(_) | Err(Refusal::NotInTrash) => {}
            Err(refusal) => {
                let message = format!("{}: {refusal}", shown(item));
                return Err(Failure::new(super::failure::code(refusal), message));
            }
        }
    }
    match yes || chosen.is_empty() {
        true => Ok(()),
        false => Err(Failure::usage("nothing was purged").hint("say --yes")),
    }
}
