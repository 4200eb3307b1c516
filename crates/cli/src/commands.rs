//! One module per command.

use byname_profile::{Environment, Paths};
mod bench;
mod cache;
mod cached;
mod cat;
mod catalog;
mod config;
mod counted;
mod cs;
pub(crate) mod daemon;
mod decode;
mod df;
mod disk;
mod du;
mod explain;
mod face;
mod filter;
mod find;
mod forward;
mod get;
mod hadoop_conf;
mod key;
mod ls;
mod mirror;
mod mount;
mod ping;
mod prepare;
mod put;
pub(crate) mod reachable;
mod remote;
mod route;
mod segments;
pub(crate) mod serve;
mod server_metrics;
mod serving;
mod shell;
mod sign;
mod site;
mod stat;
mod status;
mod strategy;
pub(crate) mod trust;
mod umount;
pub(crate) mod up;
mod verify;
mod versions;
mod writing;

use crate::exit::Outcome;

/// The verbs.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Up(up::Args),
    Get(Box<get::Args>),
    Cat(cat::Args),
    Ls(ls::Args),
    Stat(stat::Args),
    Find(find::Args),
    Du(du::Args),
    Df(df::Args),
    Verify(verify::Args),
    Put(Box<put::Args>),
    Mkdir(writing::mkdir::Args),
    Rm(writing::rm::Args),
    Mv(writing::mv::Args),
    Ln(writing::ln::Args),
    Chmod(writing::attributes::ChmodArgs),
    Chown(writing::attributes::ChownArgs),
    Getfacl(writing::acl::GetArgs),
    Setfacl(writing::acl::SetArgs),
    Touch(writing::touch::Args),
    Truncate(writing::truncate::Args),
    Xattr(writing::xattr::Args),
    Versions(versions::Args),
    Cache(cache::Args),
    Cached(cached::Args),
    Mount(Box<mount::Args>),
    Umount(umount::Args),
    HadoopConf(hadoop_conf::Args),
    Serve(serve::Args),
    Sign(sign::Args),
    Site(site::Args),
    Catalog(catalog::Args),
    Disk(disk::Args),
    Prepare(prepare::Args),
    Forward(forward::Args),
    Key(key::Args),
    Trust(trust::Args),
    Remote(remote::Args),
    Status(status::Args),
    Explain(explain::Args),
    Face(face::Args),
    Route(route::Args),
    Strategy(strategy::Args),
    Cs(cs::Args),
    Ping(ping::Args),
    Decode(decode::Args),
    Config(config::Args),
    Bench(bench::Args),
    Completions(shell::CompletionArgs),
    Man(shell::ManArgs),
}

impl Command {
    /// Runs the command. `program` describes all of them.
    pub(crate) fn run(&self, quiet: bool, program: fn() -> clap::Command) -> Outcome {
        let paths = Paths::new(&Environment::of_process());
        match self {
            Self::Up(args) => up::run(args, &paths),
            Self::Get(args) => get::run(args, &paths, quiet),
            Self::Cat(args) => cat::run(args, &paths),
            Self::Ls(args) => ls::run(args, &paths),
            Self::Stat(args) => stat::run(args, &paths),
            Self::Find(args) => find::run(args, &paths),
            Self::Du(args) => du::run(args, &paths),
            Self::Df(args) => df::run(args, &paths),
            Self::Verify(args) => verify::run(args, &paths),
            Self::Put(args) => put::run(args, &paths, quiet),
            Self::Mkdir(args) => writing::mkdir::run(args, &paths),
            Self::Rm(args) => writing::rm::run(args, &paths),
            Self::Mv(args) => writing::mv::run(args, &paths),
            Self::Ln(args) => writing::ln::run(args, &paths),
            Self::Chmod(args) => writing::attributes::chmod(args, &paths),
            Self::Chown(args) => writing::attributes::chown(args, &paths),
            Self::Getfacl(args) => writing::acl::getfacl(args, &paths),
            Self::Setfacl(args) => writing::acl::setfacl(args, &paths),
            Self::Touch(args) => writing::touch::run(args, &paths),
            Self::Truncate(args) => writing::truncate::run(args, &paths),
            Self::Xattr(args) => writing::xattr::run(args, &paths),
            Self::Versions(args) => versions::run(args, &paths),
            Self::Cache(args) => cache::run(args, &paths),
            Self::Cached(args) => cached::run(args, &paths),
            Self::Mount(args) => mount::run(args, &paths),
            Self::Umount(args) => umount::run(args),
            Self::HadoopConf(args) => hadoop_conf::run(args, &paths),
            Self::Prepare(args) => prepare::run(args, &paths, quiet),
            Self::Serve(args) => serve::run(args, &paths),
            Self::Sign(args) => sign::run(args, &paths),
            Self::Site(args) => site::run(args, &paths),
            Self::Catalog(args) => catalog::run(args, &paths),
            Self::Disk(args) => disk::run(args, &paths),
            Self::Forward(args) => forward::run(args, &paths),
            Self::Key(args) => key::run(args, &paths),
            Self::Trust(args) => trust::run(args, &paths),
            Self::Remote(args) => remote::run(args, &paths),
            Self::Status(args) => status::run(args, &paths),
            Self::Explain(args) => explain::run(args, &paths),
            Self::Face(args) => face::run(args, &paths),
            Self::Route(args) => route::run(args, &paths),
            Self::Strategy(args) => strategy::run(args, &paths),
            Self::Cs(args) => cs::run(args, &paths),
            Self::Ping(args) => ping::run(args, &paths),
            Self::Decode(args) => decode::run(args),
            Self::Config(args) => config::run(args, &paths),
            Self::Bench(args) => bench::run(args, &paths),
            Self::Completions(args) => shell::completions(args, program()),
            Self::Man(args) => shell::man(args, program()),
        }
    }
}
