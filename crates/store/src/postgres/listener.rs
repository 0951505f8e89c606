//! Receives notices of commits.

use async_trait::async_trait;
use sqlx::postgres::PgListener;

use super::notifier::CHANNEL;
use super::store::PostgresStore;
use crate::{Notice, Notices, StoreError};

impl PostgresStore {
    pub(super) async fn open_notices(&self) -> Result<Option<Box<dyn Notices>>, StoreError> {
        let Some(listening) = &self.listening else {
            tracing::info!(
                "the pooler delivers no notifications: polling; --listen-database-url names the \
                 database itself"
            );
            return Ok(None);
        };
        if self.same_database.get() != Some(&true) {
            self.require_same_database().await?;
        }
        let mut listener = PgListener::connect_with(listening).await?;
        listener.listen(CHANNEL).await?;
        Ok(Some(Box::new(Listener(listener))))
    }
}

struct Listener(PgListener);

#[async_trait]
impl Notices for Listener {
    async fn next(&mut self) -> Result<Option<Notice>, StoreError> {
        let Some(notification) = self.0.try_recv().await? else { return Ok(None) };
        // a payload that this program cannot parse still means that something happened
        Ok(notification.payload().split_once(' ').and_then(|(experiment, head)| {
            Some(Notice { experiment: experiment.parse().ok()?, head: head.parse().ok()? })
        }))
    }
}
