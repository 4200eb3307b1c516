//! HTTP for those who watch: `GET /metrics` for Prometheus, `GET /healthz` for supervisors.
//!
//! One thread with a runtime of its own, far from the data path; what it shows comes from a
//! function that its caller gives, so this crate knows no other room. Whoever reaches the address
//! can read: bind it to loopback unless that is meant.
//!
//! Invariants: at most [`CONNECTIONS_MAX`] connections, each for [`CONNECTION_LIFETIME`] at most
//! and with [`REQUEST_TIME`] for each request; when there is no room the one that has been idle
//! longest gives way, so that nobody keeps others out. Only `GET`, only these two paths.

mod listener;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use listener::{Bounded, Bounds};

/// Connections served at a time. One more takes the place of an idle one, or waits while none is.
pub const CONNECTIONS_MAX: usize = 32;

/// Time that one connection lives, whatever it does.
pub const CONNECTION_LIFETIME: Duration = Duration::from_secs(30);

/// Time limit for a request to arrive and to be answered.
pub const REQUEST_TIME: Duration = Duration::from_secs(5);

/// Renders the metrics; `None` when they cannot be had. May block for a moment.
pub type Render = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The thread or its runtime cannot be had.
    #[error("no thread to serve with: {0}")]
    Thread(#[source] std::io::Error),
}

/// Serves until the process ends, on a thread of its own. Returns the address bound.
///
/// # Errors
/// [`ServeError`] when the address is taken or forbidden, or the system is out of threads.
pub fn serve(address: SocketAddr, render: Render) -> Result<SocketAddr, ServeError> {
    let failed = |source| ServeError::Bind { address, source };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(2)
        .build()
        .map_err(ServeError::Thread)?;
    let run = move || {
        if let Err(error) = runtime.block_on(run(listener, render)) {
            tracing::warn!(%error, "metrics are served no more");
        }
    };
    std::thread::Builder::new().name("byname-web".into()).spawn(run).map_err(ServeError::Thread)?;
    Ok(bound)
}

async fn run(listener: TcpListener, render: Render) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let bounds = Bounds {
        connections: CONNECTIONS_MAX,
        lifetime: CONNECTION_LIFETIME,
        request: REQUEST_TIME,
    };
    let listener = Bounded::new(listener, bounds);
    axum::serve(listener, router(render.into())).await
}

type SharedRender = Arc<dyn Fn() -> Option<String> + Send + Sync>;

fn router(render: SharedRender) -> Router {
    Router::new().route("/metrics", get(metrics)).route("/healthz", get(healthz)).with_state(render)
}

async fn rendered(render: SharedRender) -> Option<String> {
    tokio::task::spawn_blocking(move || render()).await.ok().flatten()
}

async fn metrics(State(render): State<SharedRender>) -> Response {
    match rendered(render).await {
        Some(text) => {
            // spec: Prometheus exposition formats, text version 0.0.4
            ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
                .into_response()
        }
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// Healthy is who answers.
async fn healthz(State(render): State<SharedRender>) -> Response {
    match rendered(render).await {
        Some(_) => "ok\n".into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "no answer\n").into_response(),
    }
}
