//! Threads for sources that are asked side by side; see
//! [`striped`](crate::download::striped).

use std::rc::Rc;
use std::sync::Arc;

use byname_io::{Endpoint, Waker};

use crate::config::ClientConfig;
use crate::download::striped::{PIECES_AT_ONCE, StripeRunner, StripeSource};
use crate::error::ClientError;
use crate::session::driver::Driver;

/// Threads of all downloads of a session; a download that gets none has one source.
const THREADS_MAX: usize = 32;

/// Runs sources on threads of their own.
pub(crate) struct StripeThreads {
    endpoints: Vec<Endpoint>,
    /// Of the engine that waits for them.
    waker: Waker,
    /// Each thread has one more of it.
    running: Arc<()>,
}

impl StripeThreads {
    /// For the endpoints of this driver, if there are several.
    pub(crate) fn waking(driver: &mut Driver) -> Result<Option<Self>, ClientError> {
        if driver.net.endpoints().len() < 2 {
            return Ok(None);
        }
        let endpoints = driver.net.endpoints().to_vec();
        let waker = driver.net.waker()?;
        Ok(Some(StripeThreads { endpoints, waker, running: Arc::default() }))
    }

    pub(crate) fn into_runner(self) -> Rc<dyn StripeRunner> {
        Rc::new(self)
    }
}

impl StripeRunner for StripeThreads {
    fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    fn start(&self, source: StripeSource, endpoint: Endpoint, config: ClientConfig) {
        if Arc::strong_count(&self.running) > THREADS_MAX {
            return;
        }
        let (waker, running) = (self.waker.clone(), Arc::clone(&self.running));
        let thread = std::thread::Builder::new().name("byname-source".to_owned());
        let spawned = thread.spawn(move || {
            run(source, &endpoint, &config);
            drop(running);
            waker.wake();
        });
        if let Err(error) = spawned {
            tracing::debug!(%error, "no thread for a source");
        }
    }
}

/// Until nothing is left to do, or the source is no good.
fn run(mut source: StripeSource, endpoint: &Endpoint, config: &ClientConfig) {
    if let Err(error) = fetch(&mut source, endpoint, config) {
        source.leave(&error);
    }
}

fn fetch(
    source: &mut StripeSource,
    endpoint: &Endpoint,
    config: &ClientConfig,
) -> Result<(), ClientError> {
    let mut driver = Driver::connect(std::slice::from_ref(endpoint), config)?;
    let ended = fetch_through(&mut driver, source, config);
    source.take_paths(driver.path().answer_paths);
    ended
}

fn fetch_through(
    driver: &mut Driver,
    source: &mut StripeSource,
    config: &ClientConfig,
) -> Result<(), ClientError> {
    loop {
        driver.run(&mut *source, PIECES_AT_ONCE)?;
        if !source.wait(&config.stop) {
            return Ok(());
        }
    }
}
