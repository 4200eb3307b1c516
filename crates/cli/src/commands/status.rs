//! `byname status`: what a forwarder on this machine is doing.

use crate::exit::Outcome;
use crate::manager::{Manager, ManagerArgs};
use crate::output;
use byname_packet::mgmt::{CsInfo, FaceStatus, GeneralStatus, RibEntry};
use byname_profile::Paths;
use serde_json::json;

/// Show a forwarder's faces, routes and counters. Any forwarder that speaks NFD management will do.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  byname status
  byname status --connect unix:///run/nfd/nfd.sock --json")]
pub(crate) struct Args {
    #[command(flatten)]
    manager: ManagerArgs,
}

struct Status {
    endpoint: String,
    general: GeneralStatus,
    faces: Vec<FaceStatus>,
    routes: Vec<RibEntry>,
    store: CsInfo,
}

pub(crate) fn run(args: &Args, paths: &Paths) -> Outcome {
    let mut manager = Manager::open(&args.manager, paths)?;
    let status = Status {
        endpoint: manager.endpoint.to_string(),
        general: manager.general()?,
        faces: manager.faces()?,
        routes: manager.routes()?,
        store: manager.store()?,
    };
    if args.manager.json {
        status.print_json()
    } else {
        status.print()
    }
    Ok(())
}

impl Status {
    fn print_json(&self) {
        let general = &self.general;
        output::json_line(json!({
            "kind": "forwarder", "endpoint": self.endpoint, "version": general.version,
            "started_ms": general.start_timestamp_ms, "pending": general.pit_entry_count,
            "in_interests": general.in_interest_count, "in_data": general.in_data_count,
            "in_nacks": general.in_nack_count, "out_interests": general.out_interest_count,
            "out_data": general.out_data_count, "out_nacks": general.out_nack_count,
            "satisfied": general.satisfied_interest_count,
            "unsatisfied": general.unsatisfied_interest_count,
        }));
        for face in &self.faces {
            output::json_line(json!({
                "kind": "face", "face": face.face_id, "remote": face.uri, "local": face.local_uri,
                "in_interests": face.in_interest_count, "in_data": face.in_data_count,
                "in_nacks": face.in_nack_count, "out_interests": face.out_interest_count,
                "out_data": face.out_data_count, "out_nacks": face.out_nack_count,
                "in_bytes": face.in_bytes, "out_bytes": face.out_bytes,
            }));
        }
        for entry in &self.routes {
            for route in &entry.routes {
                output::json_line(json!({
                    "kind": "route", "prefix": output::name(entry.name.view()),
                    "face": route.face_id, "cost": route.cost, "origin": route.origin,
                }));
            }
        }
        output::json_line(json!({
            "kind": "store", "entries": self.store.entry_count, "capacity": self.store.capacity,
            "hits": self.store.hit_count, "misses": self.store.miss_count,
        }));
    }

    fn print(&self) {
        let general = &self.general;
        let up_ms = general.current_timestamp_ms.saturating_sub(general.start_timestamp_ms);
        output::out_line(&format!(
            "{} at {}, up {} s: {} Interests in, {} satisfied, {} not, {} pending",
            general.version,
            self.endpoint,
            up_ms / 1000,
            general.in_interest_count,
            general.satisfied_interest_count,
            general.unsatisfied_interest_count,
            general.pit_entry_count,
        ));
        output::out_line(&format!(
            "content store: {} packets, {} hits, {} misses\n",
            self.store.entry_count, self.store.hit_count, self.store.miss_count,
        ));
        let rows: Vec<Vec<String>> = self.faces.iter().map(face_row).collect();
        output::table(&["FACE", "REMOTE", "INTERESTS IN/OUT", "DATA IN/OUT", "IN", "OUT"], &rows);
        output::out_line("");
        let mut rows = Vec::new();
        for entry in &self.routes {
            for route in &entry.routes {
                let prefix = output::name(entry.name.view());
                rows.push(vec![prefix, route.face_id.to_string(), route.cost.to_string()]);
            }
        }
        output::table(&["ROUTE", "FACE", "COST"], &rows);
    }
}

fn face_row(face: &FaceStatus) -> Vec<String> {
    vec![
        face.face_id.to_string(),
        face.uri.clone(),
        format!("{}/{}", face.in_interest_count, face.out_interest_count),
        format!("{}/{}", face.in_data_count, face.out_data_count),
        output::size(face.in_bytes),
        output::size(face.out_bytes),
    ]
}
