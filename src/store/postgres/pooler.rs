//! Finds a pooler that does not keep sessions, if the URL does not say that there is one.

use sqlx::postgres::PgConnectOptions;
use sqlx::{Executor as _, PgConnection, Row as _};

use super::sessions::connect;
use crate::store::StoreError;
use crate::store::error::POOLED;

/// A pooler that picks its server sessions at random may pick different ones at first.
const ROUNDS: usize = 4;

/// Refuse connections that share the sessions of the server: what one prepares, another finds, and
/// its settings are those of another.
pub(super) async fn require_own_sessions(options: &PgConnectOptions) -> Result<(), StoreError> {
    let (mut one, mut two) = (connect(options).await?, connect(options).await?);
    let own = (backend(&mut one).await?, backend(&mut two).await?);
    for _ in 0..ROUNDS {
        let now = (backend(&mut one).await?, backend(&mut two).await?);
        if now != own || now.0 == now.1 {
            return Err(StoreError::Pooled(POOLED));
        }
    }
    Ok(())
}

/// The number of the server process, asked without preparing a statement.
async fn backend(connection: &mut PgConnection) -> Result<i32, StoreError> {
    let row = connection.fetch_one("select pg_backend_pid()").await?;
    Ok(row.try_get(0)?)
}
