//! What is dear to compute and the same for everybody who asks at one log position: computed once.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::engine::error::ServiceError;

/// The newest result of one computation, under the key that it was made for.
#[derive(Debug)]
pub(crate) struct SingleFlight<K, T>(Mutex<Option<(K, Arc<T>)>>);

impl<K, T> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<K, T: Send + Sync + 'static> SingleFlight<K, T> {
    /// The kept result if its key is `good_enough`, else what `compute` makes, on a thread where it
    /// holds nothing up, and its key. Those who ask meanwhile wait for it.
    pub async fn get(
        &self,
        good_enough: impl FnOnce(&K) -> bool,
        compute: impl FnOnce() -> Result<(K, T), ServiceError> + Send + 'static,
    ) -> Result<Arc<T>, ServiceError>
    where
        K: Send + 'static,
    {
        let mut kept = self.0.lock().await;
        if let Some((key, result)) = &*kept
            && good_enough(key)
        {
            return Ok(Arc::clone(result));
        }
        let computed = tokio::task::spawn_blocking(compute).await.map_err(|error| {
            ServiceError::Internal(format!("an estimate was not made: {error}"))
        })?;
        let (key, result) = computed?;
        let result = Arc::new(result);
        *kept = Some((key, Arc::clone(&result)));
        Ok(result)
    }
}
