//! `byname explain`: each step of a read, who took it, and where it waits.
//!
//! A forwarder's decisions cannot be seen from outside, but its counters can: they are read
//! before and after each question, and the face and the store whose counters moved are those that
//! took part. On a busy forwarder other traffic moves them too; then all that moved are named.
//! Forwarders and servers that know path traces say where each answer came from themselves, hop by
//! hop.

use crate::exchange::{Ask, Exchange, Reply, Wanted};
use crate::exit::{Code, Failure, Outcome};
use crate::manager::Manager;
use crate::output::{self, short_time as time};
use crate::target::{Pace, ReadArgs, Session};
use crate::trace;
use byname_io::Connection;
use byname_packet::lp::nack_reason;
use byname_packet::mgmt::FaceStatus;
use byname_packet::{Name, NameRef, types};
use byname_profile::Paths;
use byname_security::trust::Trusted;
use byname_transfer::discovery::Discovered;
use byname_transfer::naming::manifest_name;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Time-out of one Interest.
const PATIENCE: Duration = Duration::from_secs(4);

/// Show each step of a read: forwarder, route, face, cache or origin, round trip, key and rule.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname explain /lab/run7/events.root
  byname explain 'byname:/lab,via=tcp://host,key=SHA256:…'")]
pub(crate) struct Args {
    /// Name or link.
    target: String,
    #[command(flatten)]
    read: ReadArgs,
    /// One JSON object per step.
    #[arg(long)]
    json: bool,
}

/// Bytes read from the beginning of a file to measure the path.
const PROBE_BYTES: u64 = 1 << 20;

/// A forwarder's counters at one moment.
struct Moment {
    hits: u64,
    faces: Vec<FaceStatus>,
}

/// One question and what became of it.
struct Asked {
    reply: Reply,
    rtt: Duration,
    /// The content store or faces that answered, as far as the forwarder's counters show.
    by: Vec<String>,
}

struct Explainer {
    json: bool,
    exchange: Exchange,
    /// `None` when the forwarder reports nothing about itself, as those of other machines.
    manager: Option<Manager>,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut session = Session::open(&args.target, &args.read, Pace::default(), paths)?;
    let endpoint = crate::forwarders::first_answering(session.endpoints())?;
    let started = Instant::now();
    let connection = Connection::connect(&endpoint, Duration::from_secs(5))
        .map_err(|error| Failure::new(Code::NoRoute, error))?;
    let connected = started.elapsed();
    // One elsewhere is not asked about itself: it would not answer.
    let mut manager = Manager::connect(&endpoint).ok();
    let general = manager.as_mut().and_then(|manager| manager.general().ok());
    let manager = manager.filter(|_| general.is_some());
    let exchange = Exchange::new(connection)?;
    let mut explainer = Explainer { json: args.json, exchange, manager };
    let version = general.map(|general| general.version);
    explainer.report(
        "forwarder",
        &format!(
            "{endpoint}, {}, connected in {}",
            version.as_deref().unwrap_or("reports nothing about itself to this machine"),
            time(connected)
        ),
        json!({ "endpoint": endpoint.to_string(), "version": version, "us": micros(connected) }),
    );
    let name = session.name.clone();
    explainer.route(name.view())?;
    explainer.discover(name.view())?;
    let started = Instant::now();
    let found = session.run(|client, name| client.lookup(name));
    let elapsed = started.elapsed();
    let found = match found {
        Ok(found) => found,
        Err(failure) => {
            let fields = json!({ "error": failure.message, "us": micros(elapsed) });
            explainer.report("signature", &failure.message, fields);
            return Err(failure);
        }
    };
    explainer.signature(&found, elapsed);
    explainer.content(&found)?;
    if found.metadata.is_directory() {
        return Ok(());
    }
    // Enough to measure the path.
    session.run(|client, name| {
        let file = client.open(name)?;
        let mut sink = |_: u64, _: &[u8]| Ok(());
        client.read_range(&file, 0..PROBE_BYTES, &mut sink).map(drop)
    })?;
    explainer.path(session.path());
    Ok(())
}

impl Explainer {
    fn report(&self, step: &str, line: &str, fields: Value) {
        if self.json {
            let mut object = json!({ "step": step });
            if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
                object.extend(fields);
            }
            output::json_line(object);
        } else {
            output::out_line(&format!("{step:<10} {}", output::one_line(line)));
        }
    }

    /// The route and the strategy that the forwarder has for a name.
    fn route(&mut self, name: NameRef<'_>) -> Outcome {
        let Some(manager) = &mut self.manager else { return Ok(()) };
        let (fib, faces, strategies) =
            (manager.fib()?, manager.faces()?, manager.strategies().ok());
        let entry = fib
            .iter()
            .filter(|entry| entry.name.view().is_prefix_of(name))
            .max_by_key(|entry| entry.name.view().count());
        let strategy = strategies.iter().flatten();
        let strategy = strategy
            .filter(|choice| choice.name.view().is_prefix_of(name))
            .max_by_key(|choice| choice.name.view().count())
            .map(|choice| choice.strategy.to_string());
        let Some(entry) = entry else {
            let line = "none: nobody has registered a prefix of this name here";
            self.report("route", line, json!({ "prefix": null, "strategy": strategy }));
            return Ok(());
        };
        let remote = |id: u64| {
            let face = faces.iter().find(|face| face.face_id == id)?;
            Some((face.uri.as_str(), face.is_down))
        };
        let hops: Vec<Value> = entry
            .next_hops
            .iter()
            .map(|hop| {
                let (remote, is_down) = remote(hop.face_id).unzip();
                json!({
                    "face": hop.face_id, "cost": hop.cost, "remote": remote, "is_down": is_down,
                })
            })
            .collect();
        let text: Vec<String> = entry
            .next_hops
            .iter()
            .map(|hop| {
                let (remote, is_down) = remote(hop.face_id).unwrap_or(("gone", false));
                let down = if is_down { ", down" } else { "" };
                format!("face {} {remote} (cost {}{down})", hop.face_id, hop.cost)
            })
            .collect();
        let prefix = output::name(entry.name.view());
        let by = strategy.clone().unwrap_or_else(|| "an unknown strategy".to_owned());
        let line = format!("{prefix} → {}, by {by}", text.join(", "));
        self.report(
            "route",
            &line,
            json!({ "prefix": prefix, "next_hops": hops, "strategy": strategy }),
        );
        Ok(())
    }

    /// Looks up the name: who answers with its metadata. A mirror has no fresh answers, and of what
    /// was fetched as a part of a tree only a manifest: that of the directory it is in, or its own.
    fn discover(&mut self, name: NameRef<'_>) -> Outcome {
        let is_entry = name.last().is_some_and(|last| last.typ == types::GENERIC);
        let directories = if is_entry { vec![name.without_last(1), name] } else { Vec::new() };
        let manifests = directories.into_iter().map(|it| ("manifest", manifest_name(it)));
        for (step, object) in [("metadata", name.to_name())].into_iter().chain(manifests) {
            let question = object.with_keyword(b"metadata");
            for wanted in [Wanted::Fresh, Wanted::Older] {
                let asked = self.ask(Ask::new(question.view(), wanted, PATIENCE))?;
                self.report_asked(step, wanted, &asked);
                match asked.reply {
                    Reply::Data { .. } => return Ok(()),
                    Reply::Nack(nack_reason::NO_ROUTE) => {}
                    Reply::Nack(reason) => return Err(refused(name, reason)),
                    Reply::Silence => return Err(unanswered(name)),
                }
            }
        }
        Err(Failure::new(Code::NoRoute, format!("no route to {}", output::name(name)))
            .hint("is the name right, and is its publisher running?"))
    }

    fn signature(&self, found: &Discovered, elapsed: Duration) {
        let (line, key, rule) = match &found.trust {
            Trusted::Anchored { key, anchor } => {
                let rule = output::name(anchor.prefix.view());
                let via = if anchor.key == *key {
                    String::new()
                } else {
                    format!(", vouched for by {}", anchor.key)
                };
                (format!("{key}{via}, trusted for {rule}"), Some(key), Some(rule))
            }
            Trusted::FirstUse { key, identity } => {
                let rule = output::name(identity.view());
                (format!("{key}, met for the first time for {rule}"), Some(key), Some(rule))
            }
            Trusted::Insecure => ("nobody's signature was checked".to_owned(), None, None),
        };
        let line = format!("{line} ({})", time(elapsed));
        let key = key.map(ToString::to_string);
        self.report("signature", &line, json!({ "key": key, "rule": rule, "us": micros(elapsed) }));
        let mut fields = super::ls::describe(found);
        if let Value::Object(fields) = &mut fields {
            fields.insert("name".into(), found.metadata.name.to_string().into());
        }
        let size = found.metadata.size.or(found.metadata.listing_size).unwrap_or(0);
        let line = format!("{}, {}", found.metadata.name, output::size(size));
        self.report("version", &line, fields);
    }

    /// The first segment, twice: the second time a store on the path may have it.
    fn content(&mut self, found: &Discovered) -> Outcome {
        let segment: Name = found.metadata.name.with_segment(0);
        for _ in 0..2 {
            let asked = self.ask(Ask::new(segment.view(), Wanted::Exact, PATIENCE))?;
            self.report_asked("content", Wanted::Exact, &asked);
            if !matches!(asked.reply, Reply::Data { .. }) {
                let text = "it waits here: the first segment did not come";
                return Err(Failure::new(Code::NoRoute, text));
            }
        }
        Ok(())
    }

    /// Transport statistics after the beginning of the file.
    fn path(&self, path: Value) {
        let number = |field: &str| path[field].as_u64().unwrap_or(0);
        let pace = match path["bytes_per_s"].as_u64() {
            Some(bytes) => format!(", {}/s", output::size(bytes)),
            None => String::new(),
        };
        let line = format!(
            "{}, window {}, round trip {}{pace}; of {} requests {} overtaken, {} timed out, {} \
             refused for congestion; {} marks",
            path["controller"].as_str().unwrap_or_default(),
            number("window"),
            time(Duration::from_micros(number("rtt_us"))),
            number("requests"),
            number("overtaken"),
            number("timed_out"),
            number("congested"),
            number("marks"),
        );
        self.report("path", &line, path);
    }

    fn moment(&mut self) -> Option<Moment> {
        let manager = self.manager.as_mut()?;
        Some(Moment { hits: manager.store().ok()?.hit_count, faces: manager.faces().ok()? })
    }

    fn ask(&mut self, ask: Ask<'_>) -> Outcome<Asked> {
        let before = self.moment();
        let started = Instant::now();
        let reply = self.exchange.request(&Ask { is_traced: true, ..ask })?;
        let rtt = started.elapsed();
        let after = self.moment();
        let by = match (&before, &after) {
            (Some(before), Some(after)) => difference(before, after),
            _ => Vec::new(),
        };
        Ok(Asked { reply, rtt, by })
    }

    fn report_asked(&self, step: &str, wanted: Wanted, asked: &Asked) {
        let outcome = match asked.reply {
            Reply::Data { .. } if wanted == Wanted::Older => {
                "answered with what is older".to_owned()
            }
            Reply::Data { .. } => "answered".to_owned(),
            Reply::Nack(reason) => format!("refused ({})", nack_text(reason)),
            Reply::Silence => "no answer".to_owned(),
        };
        let by =
            if asked.by.is_empty() { String::new() } else { format!(", {}", asked.by.join(", ")) };
        let line = format!("{outcome} after {}{by}", time(asked.rtt));
        let hops = match &asked.reply {
            Reply::Data { trace, .. } => trace::nearest_first(trace),
            Reply::Nack(_) | Reply::Silence => Vec::new(),
        };
        let shown: Vec<Value> = hops.iter().map(trace::json).collect();
        let fields = json!({
            "outcome": outcome, "us": micros(asked.rtt), "by": asked.by, "hops": shown,
        });
        self.report(step, &line, fields);
        if !self.json {
            for text in trace::texts(&hops) {
                output::out_line(&format!("{:<10} {}", "", output::one_line(&text)));
            }
        }
    }
}

/// Counters that moved between two moments: a hit in the store, faces that were asked.
fn difference(before: &Moment, after: &Moment) -> Vec<String> {
    let mut by = Vec::new();
    if after.hits > before.hits {
        by.push("from the content store".to_owned());
    }
    for face in &after.faces {
        let Some(was) = before.faces.iter().find(|was| was.face_id == face.face_id) else {
            continue;
        };
        if face.out_interest_count > was.out_interest_count {
            let answer = if face.in_data_count > was.in_data_count {
                "which answered"
            } else if face.in_nack_count > was.in_nack_count {
                "which refused"
            } else {
                "which did not answer"
            };
            by.push(format!("by face {} {}, {answer}", face.face_id, face.uri));
        }
    }
    by
}

fn refused(name: NameRef<'_>, reason: u64) -> Failure {
    let text = format!("{} was refused with a Nack ({})", output::name(name), nack_text(reason));
    Failure::new(Code::NoRoute, text)
}

fn unanswered(name: NameRef<'_>) -> Failure {
    let (name, patience) = (output::name(name), time(PATIENCE));
    let text = format!("it waits here: nobody answered for {name} within {patience}");
    Failure::new(Code::NoRoute, text)
        .hint("the face above took the question and did not answer: look at its other end")
}

fn nack_text(reason: u64) -> String {
    match reason {
        nack_reason::NONE => "no reason given".to_owned(),
        nack_reason::CONGESTION => "congestion".to_owned(),
        nack_reason::DUPLICATE => "a loop".to_owned(),
        nack_reason::NO_ROUTE => "no route".to_owned(),
        other => format!("reason {other}"),
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
