//! `byname bench traffic`: made-up Interests and answers, and what became of them.
//!
//! `produce` answers until it is stopped, `consume` asks and prints a report, `both` does both on
//! threads of their own, with a forwarder between them that is started for the occasion unless one
//! is named.

mod parse;
mod show;
mod surroundings;

use crate::exit::{Code, Failure, Outcome, chain};
use crate::output;
use crate::{forwarders, settings, typed};
use byname_io::{Clock, Connection, Endpoint};
use byname_packet::Name;
use byname_profile::Paths;
use byname_traffic::{
    Consumer, ConsumerConfig, ConsumerReport, Distribution, Load, NumberKind, Numbers, Pattern,
    Producer, ProducerConfig, ProducerReport, Routes, Signature, Sizes, Stop, TrafficError,
    run_consumer, run_producer,
};
use parse::Part;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::time::Duration;
use surroundings::{Forwarder, Interruption};

/// The first number where runs shall ask for the same names; below, numbers have fewer octets.
const FIRST_NUMBER: u64 = 1 << 32;
/// Interests at a time by default, and the most that wait with a fixed rate.
const WINDOW: usize = 64;
const OUTSTANDING: usize = 16_384;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Ask for made-up names, answer them, and count.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname bench traffic both --size 8000 --duration 3
  byname bench traffic produce --prefix /a --prefix /b --size 100=1,1000-8000=3
  byname bench traffic consume --mix '/a=3,/b=1' --window 256 --duration 10 --json
  byname bench traffic consume --mix /a --rate 20000 --duration 10      latency under a fixed load
  byname bench traffic consume --mix /a --range 1000 --zipf 0.9         what a cache is asked for

The content of an answer follows from its name, so every answer is checked byte by byte.
Nothing is sent again: a time-out is a result.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Ask, and report what was answered.
    Consume(ConsumeArgs),
    /// Answer until stopped.
    Produce(ProduceArgs),
    /// Ask and answer, through a forwarder in this process unless one is named.
    Both(BothArgs),
}

#[derive(Debug, clap::Args)]
struct LinkArgs {
    /// Forwarder to use; default as for all commands (`both`: one in this process).
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// JSON objects instead of a table.
    #[arg(long)]
    json: bool,
}

/// Interests to send.
#[derive(Debug, clap::Args)]
struct AskArgs {
    /// Prefixes with weights. The weight is what follows the last `=`.
    #[arg(long, value_name = "NAME[=WEIGHT],…", default_value = "/bench/traffic")]
    mix: String,
    /// Interests that wait at any time [default: 64].
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    window: Option<usize>,
    /// Interests per second, whatever the answers. Times count from when an Interest was due.
    #[arg(long, value_name = "N")]
    rate: Option<f64>,
    /// Interests that may wait with --rate; more are skipped and counted.
    #[arg(long, value_name = "N", requires = "rate", default_value_t = OUTSTANDING)]
    outstanding: usize,
    /// End after this many seconds [default: 5, unless --count].
    #[arg(long, value_name = "S")]
    duration: Option<f64>,
    /// End after this many Interests.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Ask for this many different names under each prefix [default: every name once].
    #[arg(long, value_name = "N")]
    range: Option<u64>,
    /// Ask for the k-th name of the range in proportion to 1/k^S.
    #[arg(long, value_name = "S", requires = "range", conflicts_with = "uniform")]
    zipf: Option<f64>,
    /// Ask for the names of the range at random.
    #[arg(long, requires = "range")]
    uniform: bool,
    /// First number [default: 4294967296 with --range, else one that no earlier run asked for].
    #[arg(long, value_name = "N")]
    first: Option<u64>,
    /// Number segments, as files do, rather than generic components.
    #[arg(long)]
    segments: bool,
    /// CanBePrefix.
    #[arg(long)]
    can_be_prefix: bool,
    /// MustBeFresh.
    #[arg(long)]
    must_be_fresh: bool,
    /// Milliseconds an Interest lives.
    #[arg(long, value_name = "MS", default_value_t = 4000)]
    lifetime: u64,
    /// Do not look at the content of answers.
    #[arg(long)]
    no_check: bool,
}

/// Data to answer with.
#[derive(Debug, clap::Args)]
struct AnswerArgs {
    /// Milliseconds for which answers are fresh; 0 does not say.
    #[arg(long, value_name = "MS", default_value_t = 0)]
    freshness: u64,
    /// Put a SHA-256 digest where a signature belongs.
    #[arg(long)]
    digest: bool,
}

#[derive(Debug, clap::Args)]
struct ConsumeArgs {
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    ask: AskArgs,
    /// Octets that contents must have, as given to the producer: N, MIN-MAX, or weighted,
    /// 100=3,1000-8000=1 [default: any].
    #[arg(long, value_name = "SIZES")]
    size: Option<String>,
    /// Names are spread over this many routes below each prefix.
    #[arg(long, value_name = "N")]
    spread: Option<u64>,
}

#[derive(Debug, clap::Args)]
struct ProduceArgs {
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    answer: AnswerArgs,
    /// Answer names below this (repeatable).
    #[arg(long, value_name = "NAME", default_value = "/bench/traffic")]
    prefix: Vec<String>,
    /// Octets of content: N, MIN-MAX, or weighted, 100=3,1000-8000=1.
    #[arg(long, value_name = "SIZES", default_value = "1000")]
    size: String,
    /// Register this many routes below each prefix rather than the prefix.
    #[arg(long, value_name = "N")]
    spread: Option<u64>,
    /// Register nothing: the other side sends everything here.
    #[arg(long)]
    no_register: bool,
    /// Register over this other link, for links over which the forwarder takes no commands (UDP).
    #[arg(long, value_name = "URI", conflicts_with = "no_register")]
    manage: Option<String>,
}

#[derive(Debug, clap::Args)]
struct BothArgs {
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    ask: AskArgs,
    #[command(flatten)]
    answer: AnswerArgs,
    /// Octets of content: N, MIN-MAX, or weighted, 100=3,1000-8000=1.
    #[arg(long, value_name = "SIZES", default_value = "1000")]
    size: String,
    /// Spread names over this many routes below each prefix.
    #[arg(long, value_name = "N")]
    spread: Option<u64>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    match &args.command {
        Command::Consume(args) => consume(args, paths),
        Command::Produce(args) => produce(args, paths),
        Command::Both(args) => both(args, paths),
    }
}

impl LinkArgs {
    fn endpoint(&self, paths: &Paths) -> Outcome<Endpoint> {
        match &self.connect {
            Some(uri) => typed::endpoint(uri),
            None => forwarders::first_answering(&settings::profile(paths)?.forwarders(false)?),
        }
    }
}

impl AskArgs {
    fn parts(&self) -> Outcome<Vec<Part>> {
        parse::mix(&self.mix)
    }

    fn config(&self, sizes: Option<Sizes>, spread: Option<u64>) -> Outcome<ConsumerConfig> {
        let distribution = match (self.zipf, self.uniform) {
            (Some(exponent), _) => Distribution::Zipf(exponent),
            (None, true) => Distribution::Uniform,
            (None, false) => Distribution::Sequential,
        };
        let first = self.first.unwrap_or_else(|| match self.range {
            Some(_) => FIRST_NUMBER,
            None => Clock::new().unix_ns(),
        });
        let pattern = |part: Part| Pattern {
            weight: part.weight,
            spread,
            numbers: Numbers { first, range: self.range, distribution },
            number_kind: match self.segments {
                true => NumberKind::Segment,
                false => NumberKind::Generic,
            },
            can_be_prefix: self.can_be_prefix,
            must_be_fresh: self.must_be_fresh,
            lifetime_ms: self.lifetime,
            ..Pattern::new(part.prefix)
        };
        let duration = match (self.duration, self.count) {
            (Some(seconds), _) => Some(parse::duration(seconds)?),
            (None, Some(_)) => None,
            (None, None) => Some(Duration::from_secs(5)),
        };
        Ok(ConsumerConfig {
            patterns: self.parts()?.into_iter().map(pattern).collect(),
            load: match self.rate {
                Some(per_second) => Load::Rate { per_second, outstanding_max: self.outstanding },
                None => Load::Window(self.window.unwrap_or(WINDOW)),
            },
            duration_ns: duration.map(|it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX)),
            count: self.count,
            sizes,
            checks_content: !self.no_check,
        })
    }
}

impl AnswerArgs {
    fn config(&self, prefixes: Vec<Name>, sizes: Sizes) -> ProducerConfig {
        let signature = if self.digest { Signature::Digest } else { Signature::Null };
        ProducerConfig { prefixes, sizes, freshness_ms: self.freshness, signature }
    }
}

fn consume(args: &ConsumeArgs, paths: &Paths) -> Outcome {
    let sizes = args.size.as_deref().map(parse::sizes).transpose()?;
    let config = args.ask.config(sizes, args.spread)?;
    let connection = connect(&args.link.endpoint(paths)?)?;
    let interruption = Interruption::watch()?;
    let (report, cpu_ns) = ask(config, connection, &interruption.stop)?;
    show::consumer(&args.ask.parts()?, &report, cpu_ns, args.link.json);
    if interruption.came() {
        return Err(Failure::new(Code::Interrupted, "interrupted"));
    }
    judge(&report)
}

fn produce(args: &ProduceArgs, paths: &Paths) -> Outcome {
    let prefixes: Vec<Name> =
        args.prefix.iter().map(|prefix| typed::name(prefix)).collect::<Outcome<_>>()?;
    let config = args.answer.config(prefixes.clone(), parse::sizes(&args.size)?);
    let mut routes = Routes { prefixes, spread: args.spread, face: None };
    let mut connection = connect(&args.link.endpoint(paths)?)?;
    let interruption = Interruption::watch()?;
    let (clock, count) = (Clock::new(), if args.no_register { 0 } else { routes.count() });
    let started_ns = clock.now_ns();
    let is_json = args.link.json;
    let mut ready = || {
        let seconds = (clock.now_ns() - started_ns) as f64 / 1e9;
        if is_json {
            output::json_line(json!({ "kind": "ready", "routes": count, "seconds": seconds }));
        } else {
            output::err_line(&format!("ready: {count} routes registered in {seconds:.2} s"));
        }
    };
    let registers_itself = !args.no_register && args.manage.is_none();
    if let Some(uri) = &args.manage {
        let endpoint = typed::endpoint(uri)?;
        routes.face = Some(surroundings::face_of(&mut connection, &routes.prefixes, &endpoint)?);
        let other = connect(&endpoint)?;
        byname_traffic::register(other, routes.clone(), &interruption.stop)
            .map_err(|error| failure(&error))?;
    }
    let routes = registers_itself.then_some(routes);
    let (report, cpu_ns) = answer(config, connection, routes, &interruption.stop, &mut ready)?;
    show::producer(&report, cpu_ns, is_json);
    Ok(())
}

fn both(args: &BothArgs, paths: &Paths) -> Outcome {
    let sizes = parse::sizes(&args.size)?;
    let asking = args.ask.config(Some(sizes.clone()), args.spread)?;
    let parts = args.ask.parts()?;
    let prefixes: Vec<Name> = parts.iter().map(|part| part.prefix.clone()).collect();
    let answering = args.answer.config(prefixes.clone(), sizes);
    let forwarder = match &args.link.connect {
        Some(_) => None,
        None => Some(Forwarder::start(settings::profile(paths)?.settings())?),
    };
    let endpoint = match &forwarder {
        Some(forwarder) => forwarder.endpoint.clone(),
        None => args.link.endpoint(paths)?,
    };
    let routes = Routes { prefixes, spread: args.spread, face: None };
    let interruption = Interruption::watch()?;
    let asking = End { config: asking, connection: connect(&endpoint)? };
    let answering = End { config: answering, connection: connect(&endpoint)? };
    let cpu_before_ns = cpu_ns(ClockId::ProcessCPUTime);
    let (asked, answered) = run_both(asking, answering, routes, &interruption)?;
    let cpu_ns = cpu_ns(ClockId::ProcessCPUTime) - cpu_before_ns;
    show::consumer(&parts, &asked.0, asked.1, args.link.json);
    show::producer(&answered.0, answered.1, args.link.json);
    if forwarder.is_some() {
        let forwarder_ns = cpu_ns.saturating_sub(asked.1 + answered.1);
        show::forwarder(forwarder_ns, asked.0.total().data, args.link.json);
    }
    if interruption.came() {
        return Err(Failure::new(Code::Interrupted, "interrupted"));
    }
    judge(&asked.0)
}

/// A report and the processor time of the thread that made it.
type Timed<Report> = (Report, u64);

/// One end of the traffic and its connection to the forwarder.
struct End<Config> {
    config: Config,
    connection: Connection,
}

/// Answers on another thread while this one asks.
fn run_both(
    asking: End<ConsumerConfig>,
    answering: End<ProducerConfig>,
    routes: Routes,
    interruption: &Interruption,
) -> Outcome<(Timed<ConsumerReport>, Timed<ProducerReport>)> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let until = Stop::new();
    let stop = until.clone();
    let producing = std::thread::spawn(move || {
        let mut on_ready = || {
            let _ = ready.send(());
        };
        answer(answering.config, answering.connection, Some(routes), &stop, &mut on_ready)
    });
    let asked = match is_ready.recv() {
        Ok(()) => Some(ask(asking.config, asking.connection, &interruption.stop)),
        // The producer has failed and says why when it is joined.
        Err(_) => None,
    };
    until.stop();
    let answered = producing.join().map_err(|_| Failure::new(Code::Other, "a thread panicked"))?;
    match asked {
        Some(asked) => Ok((asked?, answered?)),
        None => Err(answered.err().unwrap_or_else(|| Failure::new(Code::Other, "stopped early"))),
    }
}

fn ask(
    config: ConsumerConfig,
    connection: Connection,
    stop: &Stop,
) -> Outcome<Timed<ConsumerReport>> {
    let mut consumer = Consumer::new(config, Clock::new().unix_ns()).map_err(Failure::usage)?;
    let before_ns = cpu_ns(ClockId::ThreadCPUTime);
    let report = run_consumer(connection, &mut consumer, stop).map_err(|e| failure(&e))?;
    Ok((report, cpu_ns(ClockId::ThreadCPUTime) - before_ns))
}

fn answer(
    config: ProducerConfig,
    connection: Connection,
    routes: Option<Routes>,
    stop: &Stop,
    on_ready: &mut dyn FnMut(),
) -> Outcome<Timed<ProducerReport>> {
    let mut producer = Producer::new(config);
    let mut before_ns = 0;
    let mut ready = || {
        before_ns = cpu_ns(ClockId::ThreadCPUTime);
        on_ready();
    };
    let report = run_producer(connection, &mut producer, routes, stop, &mut ready);
    let report = report.map_err(|error| failure(&error))?;
    Ok((report, cpu_ns(ClockId::ThreadCPUTime) - before_ns))
}

fn connect(endpoint: &Endpoint) -> Outcome<Connection> {
    Connection::connect(endpoint, CONNECT_TIMEOUT)
        .map_err(|error| Failure::new(Code::NoRoute, chain(&error)))
}

fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Processor times are neither negative nor centuries long.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn failure(error: &TrafficError) -> Failure {
    let code = match error {
        TrafficError::Closed | TrafficError::Io(_) | TrafficError::Register(_) => Code::NoRoute,
        TrafficError::Timer(_) => Code::Other,
        _ => Code::Usage,
    };
    Failure::new(code, chain(error))
}

/// True if what came back is what was asked for.
fn judge(report: &ConsumerReport) -> Outcome {
    let total = report.total();
    if total.mismatches > 0 {
        let message =
            format!("{} answers had other content than their names say", total.mismatches);
        return Err(Failure::new(Code::NotVerified, message)
            .hint("consumer and producer must be given the same --size"));
    }
    if total.data == 0 {
        return Err(Failure::new(Code::NoRoute, "nothing was answered")
            .hint("answer with: byname bench traffic produce"));
    }
    Ok(())
}
