//! A forwarder to be looked at and commanded through NFD's management protocol; any forwarder that
//! speaks it will do.

use crate::exchange::Exchange;
use crate::exit::{Code, Failure, Outcome, chain};
use crate::face_uri::{canonical, to_peer};
use crate::output;
use crate::typed::{endpoint, name};
use crate::{forwarders, settings};
use byname_io::{Connection, Endpoint};
use byname_packet::mgmt::{
    ControlParameters, ControlResponse, CsInfo, FaceStatus, FibEntry, GeneralStatus, RibEntry,
    StrategyChoice, status_code,
};
use byname_packet::{DecodeError, Name};
use byname_profile::Paths;
use std::time::Duration;

/// Time-out of a command. Making a face over TCP includes connecting.
const PATIENCE: Duration = Duration::from_secs(8);

/// The flags of every command that talks with a forwarder.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ManagerArgs {
    /// Forwarder: a socket of this machine, `unix:///path`.
    #[arg(long, value_name = "URI")]
    connect: Option<String>,
    /// One JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A connection to a forwarder's management.
pub(crate) struct Manager {
    pub(crate) endpoint: Endpoint,
    exchange: Exchange,
    patience: Duration,
}

impl Manager {
    /// Connects to the forwarder that the flags, the settings or the usual places name.
    pub(crate) fn open(args: &ManagerArgs, paths: &Paths) -> Outcome<Self> {
        let profile = settings::profile(paths)?;
        let endpoints = match &args.connect {
            Some(uri) => vec![endpoint(uri)?],
            None => profile.forwarders(false)?,
        };
        Self::connect(&forwarders::first_answering(&endpoints)?)
    }

    /// Connects to a certain forwarder.
    ///
    /// # Errors
    /// At once, if it is one that cannot answer: NFD's protocol keeps status and commands to the
    /// machine of the forwarder (names below /localhost), and drops in silence what comes from
    /// elsewhere.
    pub(crate) fn connect(endpoint: &Endpoint) -> Outcome<Self> {
        let connection = Connection::connect(endpoint, Duration::from_secs(5))
            .map_err(|error| Failure::new(Code::NoRoute, error))?;
        let is_udp = matches!(endpoint, Endpoint::Udp { .. });
        if !connection.is_local() || is_udp {
            let message = format!(
                "{endpoint}: a forwarder shows its state to programs of its own machine only, and \
                 takes commands from them only"
            );
            return Err(Failure::new(Code::NoRoute, message).hint(
                "run this there; or tunnel its Unix socket here with `ssh -L SOCKET:SOCKET HOST` \
                 and name that with --connect unix:///SOCKET",
            ));
        }
        let (endpoint, exchange) = (endpoint.clone(), Exchange::new(connection)?);
        Ok(Self { endpoint, exchange, patience: PATIENCE })
    }

    /// The same with another time-out of a question.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    fn dataset<T>(
        &mut self,
        path: &str,
        decode: impl Fn(&[u8]) -> Result<T, DecodeError>,
    ) -> Outcome<T> {
        let payload = self.exchange.dataset(path, self.patience)?;
        decode(&payload)
            .map_err(|error| Failure::new(Code::Other, format!("{path}: {}", chain(&error))))
    }

    pub(crate) fn general(&mut self) -> Outcome<GeneralStatus> {
        self.dataset("status/general", GeneralStatus::decode)
    }

    pub(crate) fn faces(&mut self) -> Outcome<Vec<FaceStatus>> {
        self.dataset("faces/list", FaceStatus::decode_all)
    }

    pub(crate) fn routes(&mut self) -> Outcome<Vec<RibEntry>> {
        self.dataset("rib/list", RibEntry::decode_all)
    }

    pub(crate) fn fib(&mut self) -> Outcome<Vec<FibEntry>> {
        self.dataset("fib/list", FibEntry::decode_all)
    }

    pub(crate) fn strategies(&mut self) -> Outcome<Vec<StrategyChoice>> {
        self.dataset("strategy-choice/list", StrategyChoice::decode_all)
    }

    pub(crate) fn store(&mut self) -> Outcome<CsInfo> {
        self.dataset("cs/info", CsInfo::decode)
    }

    /// Sends a command and returns the fields of the answer, whatever its status.
    pub(crate) fn send(
        &mut self,
        path: &str,
        parameters: &ControlParameters,
    ) -> Outcome<(ControlResponse, ControlParameters)> {
        let response = self.exchange.command(path, parameters, self.patience)?;
        let fields = response.parameters().unwrap_or_default();
        Ok((response, fields))
    }

    /// Sends a command that has to succeed and returns the fields of the answer.
    pub(crate) fn command(
        &mut self,
        path: &str,
        parameters: &ControlParameters,
    ) -> Outcome<ControlParameters> {
        let (response, fields) = self.send(path, parameters)?;
        if response.status_code == status_code::OK {
            return Ok(fields);
        }
        Err(refused(path, &response))
    }

    /// The face that `text` means: its number, or the address of its peer. A face to an address is
    /// made if there is none and `create` says so.
    pub(crate) fn face(&mut self, text: &str, create: bool) -> Outcome<u64> {
        if let Ok(number) = text.parse() {
            return Ok(number);
        }
        if !text.contains("://") {
            let hint = "a face is a number of `byname face list` or an address such as udp4://h";
            return Err(Failure::usage(format!("{text}: not a face")).hint(hint));
        }
        if create {
            return self.create(&to_peer(text, None)?);
        }
        let uri = canonical(text)?;
        let faces = self.faces()?;
        let mut found = faces.iter().filter(|face| face.uri == uri || face.uri == text);
        match (found.next(), found.next()) {
            (Some(face), None) => Ok(face.face_id),
            (Some(_), Some(_)) => {
                Err(Failure::usage(format!("{text}: several faces, give one's number")))
            }
            (None, _) => Err(Failure::new(Code::NotFound, format!("no face to {text}"))),
        }
    }

    /// Makes a face, or finds the one that is there.
    pub(crate) fn create(&mut self, parameters: &ControlParameters) -> Outcome<u64> {
        let (response, fields) = self.send("faces/create", parameters)?;
        match (response.status_code, fields.face_id) {
            (status_code::OK | status_code::CONFLICT, Some(face)) => Ok(face),
            _ => Err(refused("faces/create", &response)),
        }
    }
}

fn refused(path: &str, response: &ControlResponse) -> Failure {
    let text = output::one_line(&response.status_text);
    let code = match response.status_code {
        status_code::NOT_FOUND | status_code::FACE_NOT_FOUND => Code::NotFound,
        status_code::BAD_REQUEST => Code::Usage,
        _ => Code::Other,
    };
    let failure = Failure::new(code, format!("{path}: {text} ({})", response.status_code));
    if response.status_code == status_code::UNAUTHORIZED {
        let hint = "a forwarder takes commands over its Unix socket from its own user or root";
        return failure.hint(hint);
    }
    failure
}

/// A prefix as users write it.
pub(crate) fn prefix(text: &str) -> Outcome<Name> {
    name(text)
}

/// Names of origins; numbers stand for themselves.
const ORIGINS: [(&str, u64); 7] = [
    ("app", 0),
    ("autoreg", 64),
    ("client", 65),
    ("autoconf", 66),
    ("nlsr", 128),
    ("prefixann", 129),
    ("static", 255),
];

/// The name of an origin, or its number.
pub(crate) fn origin_text(origin: u64) -> String {
    let known = ORIGINS.iter().find(|(_, number)| *number == origin);
    known.map_or_else(|| origin.to_string(), |(text, _)| (*text).to_owned())
}

/// The number of an origin given by name or number.
pub(crate) fn origin(text: &str) -> Option<u64> {
    let known = ORIGINS.iter().find(|(name, _)| *name == text).map(|(_, number)| *number);
    known.or_else(|| text.parse().ok())
}

/// Says what was done, for people or programs.
pub(crate) fn done(args: &ManagerArgs, line: &str, fields: serde_json::Value) {
    if args.json {
        output::json_line(fields);
    } else {
        output::out_line(line);
    }
}
