//! The databases of a set: opening them, and knowing which they are.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::{join_all, try_join_all};

use super::home::home;
use super::membership::{Standing, standing};
use crate::store::connect::{ConnectError, open};
use crate::store::member::{DatabaseId, KnownMember, Member, Membership};
use crate::store::{ExperimentId, StoreError};

/// Rounds in which other processes may change the set while this one joins.
const JOIN_ROUNDS: usize = 8;

/// One of the databases.
pub(super) struct Shard {
    /// Its position, and its host or path: for messages.
    pub label: Arc<str>,
    pub store: Arc<dyn Member>,
}

impl Shard {
    /// The result of a call, whose error names this database.
    pub fn of<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        result.map_err(|error| self.error(error))
    }

    pub fn error(&self, error: StoreError) -> StoreError {
        StoreError::Of { database: Arc::clone(&self.label), error: Box::new(error) }
    }
}

/// What is known of the set once it was checked.
#[derive(Debug)]
pub(super) struct KnownSet {
    /// The identities of the databases, in the order of the list.
    pub ids: Vec<DatabaseId>,
    /// The one with the keys.
    pub keys: usize,
}

/// Several databases that serve together. It is a store.
pub struct DatabaseSet {
    pub(super) shards: Vec<Shard>,
    known: RwLock<Option<Arc<KnownSet>>>,
    /// Where experiments were last found.
    pub(super) places: RwLock<HashMap<ExperimentId, usize>>,
}

impl DatabaseSet {
    /// Open the databases of these URLs, as [`connect_with`](crate::store::connect_with) does.
    /// `direct` is empty or has a URL without a pooler for each of them. An error names the
    /// position.
    pub async fn open(urls: &[String], direct: &[String]) -> Result<Self, ConnectError> {
        let mut shards = Vec::with_capacity(urls.len());
        for (index, url) in urls.iter().enumerate() {
            let direct = direct.get(index).map(String::as_str);
            let store = open(url, direct).await.map_err(|error| error.of(index + 1))?;
            let label = format!("{} ({})", index + 1, store.place());
            shards.push(Shard { label: label.into(), store });
        }
        Ok(Self { shards, known: RwLock::default(), places: RwLock::default() })
    }

    /// What is known of the set. Checks it at the first call.
    pub(super) async fn known(&self) -> Result<Arc<KnownSet>, StoreError> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        match known {
            Some(known) => Ok(known),
            None => self.verify().await,
        }
    }

    /// The database with the keys.
    pub(super) async fn keys(&self) -> Result<&Shard, StoreError> {
        let known = self.known().await?;
        Ok(&self.shards[known.keys])
    }

    /// The database in which an experiment with this name is created.
    pub(super) async fn home(&self, name: &str) -> Result<usize, StoreError> {
        Ok(home(&self.known().await?.ids, name))
    }

    /// Check that the databases are a whole set, and remember it.
    pub(super) async fn verify(&self) -> Result<Arc<KnownSet>, StoreError> {
        let found = self.memberships().await?;
        match self.standing(&found)? {
            Standing::Complete { keys, epoch } => Ok(self.accept(&found, keys, epoch)),
            Standing::Joining { .. } => Err(StoreError::Set(
                "the databases are not recorded as one set yet: run `rankduel migrate` with all of \
                 them"
                    .into(),
            )),
        }
    }

    /// Make the databases a set, unless they are one.
    pub(super) async fn join(&self) -> Result<(), StoreError> {
        for _ in 0..JOIN_ROUNDS {
            let found = self.memberships().await?;
            let (keys, epoch) = match self.standing(&found)? {
                Standing::Complete { keys, epoch } => {
                    self.accept(&found, keys, epoch);
                    return Ok(());
                }
                Standing::Joining { keys, epoch } => (keys, epoch),
            };
            let members: Vec<_> = found
                .iter()
                .zip(&self.shards)
                .map(|(it, shard)| KnownMember { id: it.id, place: shard.store.place().into() })
                .collect();
            // The list first: from then on a shorter one is refused. Then the others, so that a
            // process which knows a shorter list creates nothing any more.
            let with_keys = &self.shards[keys];
            with_keys.of(with_keys.store.enter_set(&members[keys], epoch, &members).await)?;
            let others = self.shards.iter().enumerate().filter(|(index, _)| *index != keys);
            let entering = others.map(|(_, shard)| {
                let keys = &members[keys];
                async move { shard.of(shard.store.enter_set(keys, epoch, &[]).await) }
            });
            try_join_all(entering).await?;
        }
        Err(StoreError::Set(
            "other processes keep changing the set of databases: start again with the same list in \
             each of them"
                .into(),
        ))
    }

    async fn memberships(&self) -> Result<Vec<Membership>, StoreError> {
        let each = self.shards.iter().map(|shard| async move {
            let membership = shard.store.membership().await;
            shard.of(membership)
        });
        join_all(each).await.into_iter().collect()
    }

    fn standing(&self, found: &[Membership]) -> Result<Standing, StoreError> {
        let places: Vec<_> = self.shards.iter().map(|shard| shard.store.place()).collect();
        standing(found, &places).map_err(StoreError::Set)
    }

    fn accept(&self, found: &[Membership], keys: usize, epoch: i64) -> Arc<KnownSet> {
        self.shards.iter().for_each(|shard| shard.store.expect_epoch(epoch));
        let known = Arc::new(KnownSet { ids: found.iter().map(|it| it.id).collect(), keys });
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&known));
        known
    }
}
