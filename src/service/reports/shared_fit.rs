//! The fit of the posterior, shared by the reports that are computed at the same time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use dueling_bandits::Tally;
use dueling_bandits::evidence::posterior::Fit;
use rankduel_engine::loaded::LoadedExperiment;

/// The fit at one log position. With many rankers it takes megabytes, so it lives only as long as a
/// report that needs it is waited for.
#[derive(Debug, Default)]
pub(super) struct SharedFit(Mutex<Option<(u64, Fit)>>);

impl SharedFit {
    /// The fit to `tally`, which is that of the experiment at this log position. Concurrent callers
    /// wait for the first.
    pub fn at(&self, position: u64, tally: &Tally) -> Fit {
        let mut known = lock(&self.0);
        if let Some((_, fit)) = known.as_ref().filter(|(of, _)| *of == position) {
            return fit.clone();
        }
        let fit = Fit::to(tally);
        *known = Some((position, fit.clone()));
        fit
    }
}

/// The fit that reports of an experiment share now, if there are any.
#[derive(Debug, Default)]
struct Present(Mutex<Weak<SharedFit>>);

/// The fit that all who ask share while one of them has it.
pub(super) fn shared_fit(loaded: &LoadedExperiment) -> Arc<SharedFit> {
    let present = loaded.extensions().get::<Present>();
    let mut present = lock(&present.0);
    present.upgrade().unwrap_or_else(|| {
        let shared = Arc::default();
        *present = Arc::downgrade(&shared);
        shared
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // the value is replaced as a whole
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
