//! `byname getfacl`, `byname setfacl`: access control lists of what a site has.

use super::{each, each_below, open_tree};
use crate::commands::site::account::SiteArgs;
use crate::exit::{Failure, Outcome};
use crate::output;
use byname_access::{AccessLists, AclChanges, Tree};
use byname_catalog::{Acl, AclEntry, SetAcl};
use byname_packet::Name;
use byname_profile::Paths;
use serde_json::json;

/// Show who may do what with files and directories of a site.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname getfacl /lab/run7
  byname getfacl /lab/run7 --json")]
pub(crate) struct GetArgs {
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// One JSON object per name.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// Change access control lists of files and directories of a site.
///
/// ENTRIES are written as for setfacl(1): u:NAME:rwx, g:NAME:r-x, m::r-x, o::---, with commas
/// between; `d:` before one makes it one of the default list of a directory, with which begins what
/// is made there. X is execute for directories and for what somebody may execute already.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname setfacl -m u:bert:rwx /lab/run7
  byname setfacl -R -m g:cms:rX /lab/run7            the directory and all below it
  byname setfacl -m d:g:cms:rwx,g:cms:rwx /lab/run7  and what will be made in it
  byname setfacl -x u:bert /lab/run7
  byname setfacl -b /lab/run7                        only the mode counts")]
pub(crate) struct SetArgs {
    /// Add these entries, or replace them.
    #[arg(short = 'm', long, value_name = "ENTRIES", allow_hyphen_values = true)]
    modify: Vec<String>,
    /// Remove these entries; they are written without rights.
    #[arg(short = 'x', long, value_name = "ENTRIES")]
    remove: Vec<String>,
    /// The list has these entries and no others.
    #[arg(long, value_name = "ENTRIES", conflicts_with_all = ["modify", "remove", "remove_all"])]
    set: Vec<String>,
    /// Remove all entries but those of the mode, and the default list.
    #[arg(short = 'b', long)]
    remove_all: bool,
    /// Remove the default list.
    #[arg(short = 'k', long)]
    remove_default: bool,
    /// All entries are of the default list.
    #[arg(short = 'd', long)]
    default: bool,
    /// Do not compute the mask anew.
    #[arg(short = 'n', long)]
    no_mask: bool,
    /// Change all that is in directories too. Symbolic links are not followed, and have no list.
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Names or links.
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Entries as they were given: X means nothing before it is known what they are for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Given {
    is_default: bool,
    text: String,
}

impl Given {
    fn entry(&self, may_execute: bool) -> Outcome<AclEntry> {
        let (who, rights) = self.text.rsplit_once(':').unwrap_or((&self.text, ""));
        let rights = rights.replace('X', if may_execute { "x" } else { "" });
        // Rights of which nothing is left are none, not missing.
        let rights = if rights.is_empty() && self.text.ends_with('X') { "-" } else { &rights };
        let text = if self.text.contains(':') { format!("{who}:{rights}") } else { who.to_owned() };
        let wrong = |_| Failure::usage(format!("`{}` is no entry, such as u:anna:r-x", self.text));
        text.parse().map_err(wrong)
    }
}

fn given(texts: &[String], all_default: bool) -> Vec<Given> {
    let entries = texts.iter().flat_map(|text| text.split(',')).map(str::trim);
    let given = |entry: &str| {
        let rest = entry.strip_prefix("d:").or_else(|| entry.strip_prefix("default:"));
        let (is_default, text) = (all_default || rest.is_some(), rest.unwrap_or(entry).to_owned());
        Given { is_default, text }
    };
    entries.filter(|entry| !entry.is_empty()).map(given).collect()
}

/// What is asked, for everything alike.
struct Wanted<'a> {
    args: &'a SetArgs,
    set: Vec<Given>,
    remove: Vec<Given>,
}

impl Wanted<'_> {
    /// Changes of one of the lists.
    fn changes(&self, is_default: bool, may_execute: bool) -> Outcome<AclChanges> {
        let of = |list: &[Given]| {
            let entries = list.iter().filter(|given| given.is_default == is_default);
            entries.map(|given| given.entry(may_execute)).collect::<Outcome<Vec<_>>>()
        };
        let (set, remove) = (of(&self.set)?, of(&self.remove)?);
        let replaces = !self.args.set.is_empty() && !set.is_empty();
        Ok(AclChanges {
            clear: replaces || (self.args.remove_all && !is_default),
            set,
            remove: remove.into_iter().map(|entry| entry.who).collect(),
            keep_mask: self.args.no_mask,
        })
    }

    fn act(&self, tree: &mut Tree, name: &Name) -> Outcome {
        let lists = tree.access_lists(name)?;
        let may_execute = lists.is_directory || lists.mode & 0o111 != 0;
        let changes = self.changes(false, may_execute)?;
        if !changes.is_empty() {
            let acl = changes.of(&lists.access).map_err(refused(name))?;
            set(tree, name, (false, Some(acl)))?;
        }
        self.act_on_default(tree, name, &lists)
    }

    fn act_on_default(&self, tree: &mut Tree, name: &Name, lists: &AccessLists) -> Outcome {
        let SetArgs { remove_all, remove_default, recursive, .. } = self.args;
        let changes = self.changes(true, true)?;
        let goes = *remove_all || *remove_default;
        if changes.is_empty() {
            return match goes && lists.default.is_some() {
                true => set(tree, name, (true, None)),
                false => Ok(()),
            };
        }
        // Of all that is below a directory only directories have one.
        if !lists.is_directory && *recursive {
            return Ok(());
        }
        let default = lists.default.clone().filter(|_| !goes);
        let before = AccessLists { default, ..lists.clone() };
        let acl = before.changed_default(&changes).map_err(refused(name))?;
        set(tree, name, (true, Some(acl)))
    }
}

fn refused(name: &Name) -> impl Fn(byname_catalog::Refusal) -> Failure {
    let name = output::name(name.view());
    move |refusal| Failure::usage(format!("{name}: {refusal}"))
}

fn set(tree: &mut Tree, name: &Name, (is_default, acl): (bool, Option<Acl>)) -> Outcome {
    let place = tree.place(name)?;
    Ok(tree.run(name, byname_catalog::Command::SetAcl(SetAcl { place, is_default, acl }))?)
}

pub(crate) fn setfacl(args: &SetArgs, paths: &Paths) -> Outcome {
    let texts = if args.set.is_empty() { &args.modify } else { &args.set };
    let (set, remove) = (given(texts, args.default), given(&args.remove, args.default));
    let is_nothing = set.is_empty() && remove.is_empty();
    if is_nothing && !args.remove_all && !args.remove_default {
        return Err(Failure::usage("what? -m, -x, --set, -b or -k"));
    }
    // What is no entry is said before anything is changed.
    for given in set.iter().chain(&remove) {
        given.entry(true)?;
    }
    let wanted = Wanted { args, set, remove };
    let (mut tree, names) = open_tree(&args.site, &args.names, paths)?;
    each(&names, |name| match args.recursive {
        false => wanted.act(&mut tree, name),
        true => each_below((&mut tree, name), false, &mut |tree, name, is_link| match is_link {
            true => Ok(()),
            false => wanted.act(tree, name),
        }),
    })
}

pub(crate) fn getfacl(args: &GetArgs, paths: &Paths) -> Outcome {
    let (mut tree, names) = open_tree(&args.site, &args.names, paths)?;
    each(&names, |name| {
        let lists = tree.access_lists(name)?;
        let shown = output::name(name.view());
        if args.json {
            output::json_line(json!({
                "name": shown,
                "owner": lists.owner,
                "group": lists.group,
                "mode": lists.mode,
                "access": lists.access.to_string(),
                "default": lists.default.map(|acl| acl.to_string()),
            }));
            return Ok(());
        }
        output::out_line(&format!("# file: {shown}"));
        output::out_line(&format!("# owner: {}", lists.owner));
        output::out_line(&format!("# group: {}", lists.group));
        lines("", &lists.access);
        lists.default.iter().for_each(|acl| lines("default:", acl));
        output::out_line("");
        Ok(())
    })
}

/// The entries of a list as getfacl(1) shows them, with what the mask leaves of each.
fn lines(prefix: &str, acl: &Acl) {
    for entry in acl.to_string().split(',') {
        let (kind, rest) = entry.split_once(':').unwrap_or((entry, ""));
        let kind = match kind {
            "u" => "user",
            "g" => "group",
            "m" => "mask",
            _ => "other",
        };
        let is_bound = kind == "group" || (kind == "user" && !rest.starts_with(':'));
        let rights = rest.rsplit(':').next().unwrap_or_default();
        let mask = acl.mask.filter(|_| is_bound).unwrap_or(0o7);
        let keeps = [4, 2, 1].map(|bit| mask & bit != 0);
        let left: String =
            rights.chars().zip(keeps).map(|(char, keeps)| if keeps { char } else { '-' }).collect();
        let note = if left == rights { String::new() } else { format!("  #effective:{left}") };
        output::out_line(&format!("{prefix}{kind}:{rest}{note}"));
    }
}
