//! A single-flight cache: concurrent requests for the same result share one computation.

use std::sync::Arc;

use tokio::sync::Mutex;

use crate::service::error::ServiceError;

/// The newest result of one computation, under its key. A key has a log position, so a result stays
/// valid until the log grows.
#[derive(Debug)]
pub(super) struct SingleFlight<K, T>(Mutex<Option<(K, Arc<T>)>>);

impl<K, T> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<K: Send + 'static, T: Send + Sync + 'static> SingleFlight<K, T> {
    /// The cached result if its key is `good_enough`. Otherwise the result of `compute`, which runs
    /// on a blocking thread and also returns the key; concurrent callers wait for it.
    pub async fn get(
        &self,
        good_enough: impl FnOnce(&K) -> bool,
        compute: impl FnOnce() -> Result<(K, T), ServiceError> + Send + 'static,
    ) -> Result<Arc<T>, ServiceError> {
        let mut cached = self.0.lock().await;
        if let Some((key, result)) = &*cached
            && good_enough(key)
        {
            return Ok(Arc::clone(result));
        }
        let computed = tokio::task::spawn_blocking(compute).await.map_err(|error| {
            ServiceError::internal(format!("a report was not computed: {error}"))
        })?;
        let (key, result) = computed?;
        let result = Arc::new(result);
        *cached = Some((key, Arc::clone(&result)));
        Ok(result)
    }
}
