//! Figures of a node as Prometheus text. docs/metrics.md lists the names.
//!
//! Counters live where they are counted; a [`Snapshot`] copies them between two bursts, and
//! rendering happens on the thread of whoever asked. Labels are bounded: at most
//! [`FACES_MAX`] faces are shown, the busiest; the rest are summed up as face `other`.

use std::fmt::Write;

use byname_forwarder::{Counters, DropReason, FaceCounters, FaceId};
use byname_io::DatagramCounters;

/// Faces with labels of their own.
pub const FACES_MAX: usize = 256;

/// One face.
#[derive(Debug, Clone)]
pub struct FaceSnapshot {
    /// Its number; `None` for the sum of those that have no labels.
    pub face: Option<FaceId>,
    /// FaceUri of the peer.
    pub remote_uri: String,
    /// True if it has a link now.
    pub is_up: bool,
    /// Its counts.
    pub counters: FaceCounters,
}

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// The forwarder's totals.
    pub counters: Counters,
    /// Pending Interests.
    pub pending: usize,
    /// Faces, the busiest first.
    pub faces: Vec<FaceSnapshot>,
    /// All faces.
    pub face_count: usize,
    /// Packets dropped because the queue of a link was full.
    pub queue_full: u64,
    /// Packets dropped because a face had no link, or they did not fit it.
    pub unsendable: u64,
    /// Datagrams not sent because their peer had not shown that it receives.
    pub udp_unvalidated: u64,
    /// Connections closed at once because there were too many faces.
    pub surplus_connections: u64,
    /// Connections closed because nobody read from them while memory was short.
    pub stalled_connections: u64,
    /// Octets that the buffers of connections take.
    pub connection_bytes: u64,
    /// Counters of the UDP sockets that peers share.
    pub udp: DatagramCounters,
    /// Times the forwarder was woken.
    pub wakeups: u64,
    /// Seconds since the start.
    pub uptime_s: u64,
}

/// A name, what it means and whether it only grows.
struct Metric<'a> {
    name: &'a str,
    help: &'a str,
    kind: &'a str,
}

impl Snapshot {
    /// Keeps the busiest faces and sums the others up.
    pub(crate) fn bound_faces(&mut self) {
        let busy = |face: &FaceSnapshot| face.counters.in_bytes + face.counters.out_bytes;
        self.faces.sort_by_key(|face| std::cmp::Reverse(busy(face)));
        if self.faces.len() <= FACES_MAX {
            return;
        }
        let mut rest = FaceCounters::default();
        for face in self.faces.drain(FACES_MAX..) {
            add(&mut rest, &face.counters);
        }
        let remote_uri = String::from("other");
        self.faces.push(FaceSnapshot { face: None, remote_uri, is_up: true, counters: rest });
    }

    /// The text that Prometheus reads.
    pub fn to_prometheus(&self) -> String {
        let mut out = String::new();
        self.render_forwarder(&mut out);
        self.render_drops(&mut out);
        self.render_udp(&mut out);
        self.render_faces(&mut out);
        out
    }

    fn render_forwarder(&self, out: &mut String) {
        let c = &self.counters;
        let packets = "byname_forwarder_packets_total";
        head(out, &counter(packets, "Packets of the network layer."));
        for (direction, kind, value) in [
            ("in", "interest", c.in_interests),
            ("in", "data", c.in_data),
            ("in", "nack", c.in_nacks),
            ("out", "interest", c.out_interests),
            ("out", "data", c.out_data),
            ("out", "nack", c.out_nacks),
        ] {
            let _ = writeln!(out, "{packets}{{direction=\"{direction}\",type=\"{kind}\"}} {value}");
        }
        for (name, help, value) in [
            ("satisfied_interests_total", "Interests that were answered.", c.satisfied_interests),
            ("unsatisfied_interests_total", "Interests that expired.", c.unsatisfied_interests),
            ("content_store_hits_total", "Interests answered from memory.", c.cs_hits),
            ("content_store_misses_total", "Interests not answered from memory.", c.cs_misses),
            ("queue_full_total", "Packets dropped at the full queue of a link.", self.queue_full),
            ("unsendable_total", "Packets for a face without a link.", self.unsendable),
            ("surplus_connections_total", "Connections refused.", self.surplus_connections),
            (
                "stalled_connections_total",
                "Connections that nobody read.",
                self.stalled_connections,
            ),
            ("wakeups_total", "Times the forwarder was woken.", self.wakeups),
        ] {
            let name = format!("byname_forwarder_{name}");
            head(out, &counter(&name, help));
            let _ = writeln!(out, "{name} {value}");
        }
        for (name, help, value) in [
            ("pending_interests", "Interests that wait for an answer.", self.pending as u64),
            ("faces", "Faces of all kinds.", self.face_count as u64),
            ("connection_bytes", "Memory of the connections' buffers.", self.connection_bytes),
            ("uptime_seconds", "Time since the start.", self.uptime_s),
        ] {
            let name = format!("byname_forwarder_{name}");
            head(out, &Metric { name: &name, help, kind: "gauge" });
            let _ = writeln!(out, "{name} {value}");
        }
    }

    fn render_drops(&self, out: &mut String) {
        let name = "byname_forwarder_drops_total";
        head(out, &counter(name, "Packets that led to nothing, by reason."));
        for reason in DropReason::ALL {
            let (label, value) = (snake_case(reason), self.counters.drops(reason));
            let _ = writeln!(out, "{name}{{reason=\"{label}\"}} {value}");
        }
    }

    fn render_udp(&self, out: &mut String) {
        /// Name, meaning, label, and its values with their counts.
        type Series<'a> = (&'a str, &'a str, &'a str, &'a [(&'a str, u64)]);
        let u = &self.udp;
        let series: [Series<'_>; 4] = [
            (
                "byname_udp_datagrams_total",
                "Datagrams over shared sockets.",
                "direction",
                &[("in", u.received), ("out", u.sent)],
            ),
            (
                "byname_udp_segmented_messages_total",
                "System messages that were several datagrams.",
                "direction",
                &[("in", u.coalesced_receives), ("out", u.segmented_sends)],
            ),
            (
                "byname_udp_segmentation_refused_total",
                "Messages that had to be sent as single datagrams.",
                "direction",
                &[("out", u.segmentation_refused)],
            ),
            (
                "byname_udp_dropped_total",
                "Datagrams lost at this end, by reason.",
                "reason",
                &[
                    ("too_long", u.receive_dropped),
                    ("receive_buffer_full", u.receive_overflows),
                    ("send_refused", u.send_dropped),
                    ("unvalidated", self.udp_unvalidated),
                ],
            ),
        ];
        for (name, help, label, values) in series {
            head(out, &counter(name, help));
            for (value, count) in values {
                let _ = writeln!(out, "{name}{{{label}=\"{value}\"}} {count}");
            }
        }
    }

    fn render_faces(&self, out: &mut String) {
        let up = "byname_face_up";
        head(out, &Metric { name: up, help: "Whether a face has a link.", kind: "gauge" });
        for face in &self.faces {
            let _ = writeln!(out, "{up}{{{}}} {}", labels(face), u8::from(face.is_up));
        }
        type Column = (&'static str, &'static str, fn(&FaceCounters) -> u64);
        let tables: [(&str, &str, &[Column]); 2] = [
            (
                "byname_face_packets_total",
                "Packets of the network layer by face.",
                &[
                    ("in", ",type=\"interest\"", |c| c.in_interests),
                    ("in", ",type=\"data\"", |c| c.in_data),
                    ("in", ",type=\"nack\"", |c| c.in_nacks),
                    ("out", ",type=\"interest\"", |c| c.out_interests),
                    ("out", ",type=\"data\"", |c| c.out_data),
                    ("out", ",type=\"nack\"", |c| c.out_nacks),
                ],
            ),
            (
                "byname_face_bytes_total",
                "Octets of the network layer by face.",
                &[("in", "", |c| c.in_bytes), ("out", "", |c| c.out_bytes)],
            ),
        ];
        for (name, help, columns) in tables {
            head(out, &counter(name, help));
            for face in &self.faces {
                let labels = labels(face);
                for (direction, more, read) in columns {
                    let value = read(&face.counters);
                    let _ =
                        writeln!(out, "{name}{{{labels},direction=\"{direction}\"{more}}} {value}");
                }
            }
        }
    }
}

fn counter<'a>(name: &'a str, help: &'a str) -> Metric<'a> {
    Metric { name, help, kind: "counter" }
}

fn head(out: &mut String, metric: &Metric<'_>) {
    let Metric { name, help, kind } = metric;
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn labels(face: &FaceSnapshot) -> String {
    let number = face.face.map_or(String::from("other"), |face| face.0.to_string());
    format!("face=\"{number}\",remote=\"{}\"", escaped(&face.remote_uri))
}

/// A label's value: backslash, quote and line feed are escaped, as the format demands.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// `PitFull` as `pit_full`.
fn snake_case(reason: DropReason) -> String {
    let mut out = String::new();
    for letter in format!("{reason:?}").chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

fn add(sum: &mut FaceCounters, other: &FaceCounters) {
    sum.in_interests += other.in_interests;
    sum.in_data += other.in_data;
    sum.in_nacks += other.in_nacks;
    sum.out_interests += other.out_interests;
    sum.out_data += other.out_data;
    sum.out_nacks += other.out_nacks;
    sum.in_bytes += other.in_bytes;
    sum.out_bytes += other.out_bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn face(number: u64, bytes: u64) -> FaceSnapshot {
        let counters = FaceCounters { in_bytes: bytes, ..FaceCounters::default() };
        let remote_uri = format!("unix:///a\"{number}");
        FaceSnapshot { face: Some(FaceId(number)), remote_uri, is_up: true, counters }
    }

    #[test]
    fn every_line_is_one_that_prometheus_reads() {
        let udp = DatagramCounters { receive_overflows: 5, ..DatagramCounters::default() };
        let snapshot = Snapshot { faces: vec![face(256, 7)], udp, ..Snapshot::default() };
        let text = snapshot.to_prometheus();
        assert!(text.contains("byname_udp_dropped_total{reason=\"receive_buffer_full\"} 5\n"));
        assert!(text.contains("byname_forwarder_drops_total{reason=\"pit_full\"} 0\n"), "{text}");
        let line = "byname_face_bytes_total{face=\"256\",remote=\"unix:///a\\\"256\",\
                    direction=\"in\"} 7\n";
        assert!(text.contains(line), "{text}");
        let mut named = std::collections::HashSet::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(named.insert(name.to_owned()), "{name} twice");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let name = series.split('{').next().unwrap();
                assert!(named.contains(name), "{name} has no type");
                assert!(value.parse::<u64>().is_ok(), "{line}");
            }
        }
    }

    #[test]
    fn labels_are_bounded_and_nothing_is_lost() {
        let count = 3 * FACES_MAX as u64;
        let faces = (0..count).map(|number| face(number, number)).collect();
        let mut snapshot = Snapshot { faces, ..Snapshot::default() };
        snapshot.bound_faces();
        assert_eq!(snapshot.faces.len(), FACES_MAX + 1);
        assert_eq!(snapshot.faces[0].face, Some(FaceId(count - 1)), "the busiest");
        let sum: u64 = snapshot.faces.iter().map(|face| face.counters.in_bytes).sum();
        assert_eq!(sum, count * (count - 1) / 2);
    }
}
