//! Receives notices of commits of other processes.

use async_trait::async_trait;
use sqlx::postgres::PgListener;

use super::notifier::CHANNEL;
use super::sessions::Sessions;
use super::store::PostgresStore;
use crate::store::{Notice, Notices, StoreError};

impl PostgresStore {
    pub(super) async fn open_listener(&self) -> Result<Option<Box<dyn Notices>>, StoreError> {
        let mut listener = PgListener::connect_with(&self.listening).await?;
        listener.listen(CHANNEL).await?;
        Ok(Some(Box::new(Listener { listener, own: self.sessions.clone() })))
    }
}

struct Listener {
    listener: PgListener,
    own: Sessions,
}

#[async_trait]
impl Notices for Listener {
    async fn next(&mut self) -> Result<Option<Notice>, StoreError> {
        loop {
            let Some(notification) = self.listener.try_recv().await? else { return Ok(None) };
            if self.own.contains(notification.process_id()) {
                continue;
            }
            // a payload that this program cannot parse still means that something happened
            return Ok(notification.payload().split_once(' ').and_then(|(experiment, head)| {
                Some(Notice { experiment: experiment.parse().ok()?, head: head.parse().ok()? })
            }));
        }
    }
}
