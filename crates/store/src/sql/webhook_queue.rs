//! [`WebhookQueue`], for both databases.

use async_trait::async_trait;

use super::backend::Backend;
use super::numbers::from_column;
use super::statements;
use super::value::values;
use crate::{StoreError, WebhookNotice, WebhookQueue};

#[async_trait]
impl<B: Backend> WebhookQueue for B {
    async fn take_notice(
        &self,
        is_retry: bool,
        now: i64,
        until: i64,
    ) -> Result<Option<WebhookNotice>, StoreError> {
        let (least, most): (i64, i64) = if is_retry { (1, i64::MAX) } else { (0, 0) };
        loop {
            let mut due: Vec<WebhookNotice> =
                self.fetch(&statements::DUE_NOTICE, values![now, least, most]).await?;
            let Some(notice) = due.pop() else { return Ok(None) };
            let taken = values![&notice.id, until, notice.attempts];
            if self.run(&statements::TAKE_NOTICE, taken).await? > 0 {
                return Ok(Some(WebhookNotice { attempts: notice.attempts + 1, ..notice }));
            }
        }
    }

    async fn postpone_notice(&self, id: &str, until: i64) -> Result<(), StoreError> {
        self.run(&statements::POSTPONE_NOTICE, values![id, until]).await.map(drop)
    }

    async fn remove_notice(&self, id: &str) -> Result<(), StoreError> {
        self.run(&statements::REMOVE_NOTICE, values![id]).await.map(drop)
    }

    async fn waiting_notices(&self) -> Result<u64, StoreError> {
        let rows: Vec<(i64,)> = self.fetch(&statements::COUNT_NOTICES, &[]).await?;
        rows.first().map_or(Ok(0), |(count,)| from_column("number of notices", *count))
    }
}
