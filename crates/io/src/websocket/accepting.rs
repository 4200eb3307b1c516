//! The server's half of a handshake: the client's request is looked at once it is complete, in
//! whatever pieces it comes.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use socket2::Socket;
use tungstenite::handshake::server::{Callback, ErrorResponse, Request, Response, ServerHandshake};
use tungstenite::handshake::{HandshakeError, MidHandshake};
use tungstenite::http::StatusCode;

use super::{AllowedOrigins, WebSocket, Wire, config};
use crate::connection::prepare_tcp;
use crate::limits::Limits;
use crate::pending::{self, Progress};

/// A connection that is being made.
#[derive(Debug)]
pub(crate) struct Handshake {
    state: MidHandshake<ServerHandshake<Wire, Doorkeeper>>,
    limits: Limits,
}

/// Looks at the request once it is complete.
#[derive(Debug)]
struct Doorkeeper(Arc<AllowedOrigins>);

impl Callback for Doorkeeper {
    // The size of the error is tungstenite's choice.
    #[allow(clippy::result_large_err)]
    fn on_request(self, request: &Request, response: Response) -> Result<Response, ErrorResponse> {
        if self.0.admit(request) {
            return Ok(response);
        }
        let mut refusal = ErrorResponse::new(Some(String::from("This page may not connect.\n")));
        *refusal.status_mut() = StatusCode::FORBIDDEN;
        Err(refusal)
    }
}

impl Handshake {
    /// Listens to a client that has just connected; `None` if it is gone already.
    pub(crate) fn begin(
        client: Socket,
        origins: &Arc<AllowedOrigins>,
        limits: Limits,
    ) -> Option<Self> {
        prepare_tcp(&client).ok()?;
        let doorkeeper = Doorkeeper(Arc::clone(origins));
        let wire = Wire::new(client.into());
        let state = ServerHandshake::start(wire, doorkeeper, Some(config(limits)));
        Some(Self { state, limits })
    }
}

impl pending::Handshake for Handshake {
    type Connection = WebSocket;

    /// A request and a response, over whatever network.
    const TIMEOUT: Duration = Duration::from_secs(5);

    fn socket(&self) -> BorrowedFd<'_> {
        self.state.get_ref().get_ref().as_fd()
    }

    fn socket_of(socket: &WebSocket) -> BorrowedFd<'_> {
        socket.as_fd()
    }

    fn advance(self) -> Progress<Self> {
        match self.state.handshake() {
            Ok(socket) => Progress::Done(WebSocket::new(socket, true, self.limits)),
            Err(HandshakeError::Interrupted(state)) => Progress::Waits(Self { state, ..self }),
            Err(HandshakeError::Failure(_)) => Progress::Failed,
        }
    }
}
