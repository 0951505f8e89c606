//! Sessions of the dashboard that were ended before their time, cached by this process.
//!
//! A session is a signed cookie and is kept nowhere. Its end is in the database, so that every
//! server refuses the cookie: the one that ended it at once, the others when they read again.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use rankduel_store::{KeyStore, SessionId, StoreError};

/// How long after the expiry of a session its end is remembered: the clocks of servers differ.
const CLOCKS_DIFFER_MS: i64 = 3_600_000;

/// Caches the ended sessions of the database.
pub struct EndedSessions {
    store: Arc<dyn KeyStore>,
    ended: RwLock<Ended>,
}

#[derive(Default)]
struct Ended {
    /// As of the last read.
    stored: HashSet<SessionId>,
    /// Ended by this process and not seen in the database yet. A read may be older than the end,
    /// and the database may have refused it.
    here: HashSet<SessionId>,
}

impl EndedSessions {
    /// Read the ended sessions of `store`.
    pub async fn load(store: Arc<dyn KeyStore>) -> Result<Self, StoreError> {
        let sessions = Self { store, ended: RwLock::default() };
        sessions.refresh().await?;
        Ok(sessions)
    }

    fn ended(&self) -> RwLockWriteGuard<'_, Ended> {
        self.ended.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this session was ended.
    pub fn contains(&self, session: &SessionId) -> bool {
        let ended = self.ended.read().unwrap_or_else(PoisonError::into_inner);
        ended.stored.contains(session) || ended.here.contains(session)
    }

    /// Read the ended sessions again.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let stored: HashSet<_> = self.store.ended_sessions().await?.into_iter().collect();
        let mut ended = self.ended();
        ended.here.retain(|session| !stored.contains(session));
        ended.stored = stored;
        Ok(())
    }

    /// End a session that expires at `expires_at`: here at once, and for all servers once the
    /// database has it. Times in unix milliseconds.
    pub async fn end(
        &self,
        session: SessionId,
        expires_at: i64,
        now: i64,
    ) -> Result<(), StoreError> {
        self.ended().here.insert(session);
        self.store.end_session(&session, expires_at, now - CLOCKS_DIFFER_MS).await
    }
}
