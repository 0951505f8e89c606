//! The engine: everything a process needs to serve experiments from memory.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::clock::SharedClock;
use crate::error::EngineError;
use crate::loaded::{LoadedExperiment, Process};
use crate::metrics::Metrics;
use crate::registry::Registry;
use crate::settings::EngineSettings;
use crate::tokens::signing::SigningKeys;
use crate::writer::{Writer, only};
use rankduel_store::entropy;
use rankduel_store::events::{ControlEvent, Event};
use rankduel_store::{Appended, ExperimentId, NewEvent, Nonce, SharedStore};

/// The experiments of a process and what they share.
pub struct Engine {
    pub store: SharedStore,
    pub(crate) clock: SharedClock,
    pub registry: Arc<Registry>,
    pub writer: Writer,
    pub signing_keys: SigningKeys,
    pub metrics: Arc<Metrics>,
    pub(crate) idle_after_ms: i64,
    pub settings: EngineSettings,
    /// High half of the nonces of this process.
    process: u64,
    /// Low half of the next nonce.
    steps: AtomicU64,
    /// Experiments that may conclude, until the background work takes them over.
    pub(super) due: Mutex<Option<mpsc::UnboundedReceiver<ExperimentId>>>,
    /// Aborted at shutdown.
    pub(super) background: Mutex<JoinSet<()>>,
}

impl Engine {
    /// An engine on `store`, whose schema must be current. Starts the writer on the running tokio
    /// runtime.
    pub async fn start(
        store: SharedStore,
        clock: SharedClock,
        metrics: Arc<Metrics>,
        settings: EngineSettings,
    ) -> Result<Arc<Self>, EngineError> {
        let signing_keys = SigningKeys::load(Arc::clone(&store), clock.now_ms()).await?;
        // the highest bit is reserved for nonces that are not random
        let process = entropy::number()? >> 1;
        let (sends_due, due) = mpsc::unbounded_channel();
        let registry = Arc::new(Registry::new(
            Arc::clone(&store),
            Process { id: process, since_ms: clock.now_ms() },
            Arc::clone(&metrics),
            clock.now_ms(),
            settings.memory_bytes,
            sends_due,
        ));
        let writer =
            Writer::start(Arc::clone(&store), Arc::clone(&clock), Arc::clone(&metrics), &settings);
        Ok(Arc::new(Self {
            store,
            clock,
            registry,
            writer,
            signing_keys,
            metrics,
            idle_after_ms: i64::try_from(settings.idle_after.as_millis()).unwrap_or(i64::MAX),
            settings,
            process,
            steps: AtomicU64::new(0),
            due: Mutex::new(Some(due)),
            background: Mutex::default(),
        }))
    }

    /// Unix milliseconds.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// The number of a new selection or event of this process.
    pub fn next_step(&self) -> u64 {
        self.steps.fetch_add(1, Ordering::Relaxed)
    }

    /// The nonce of a step of this process.
    pub fn nonce(&self, step: u64) -> Nonce {
        u128::from(self.process) << 64 | u128::from(step)
    }

    pub fn fresh_nonce(&self) -> Nonce {
        self.nonce(self.next_step())
    }

    /// Append a control event.
    pub async fn append_control(
        &self,
        loaded: &Arc<LoadedExperiment>,
        nonce: Nonce,
        event: ControlEvent,
    ) -> Result<Appended, EngineError> {
        let event = NewEvent::new(nonce, Event::Control(event));
        only(self.writer.append(loaded, vec![event]).await?)
    }
}
