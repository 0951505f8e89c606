//! How a `duel_id` of a request is checked.

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::telemetry::duels;
use rankduel_engine::error::EngineError;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::tokens::duel_token::{DuelId, TokenError};

impl Service {
    /// Read the signing keys again, because another process may have added the one that a
    /// `duel_id` names.
    pub(super) async fn refresh_signing_keys(&self) -> Result<(), ServiceError> {
        let refreshed = self.engine.signing_keys.refresh_for_unknown().await;
        Ok(refreshed.map_err(EngineError::from)?)
    }

    /// The duel of this experiment that `duel_id` names.
    pub(super) async fn open_duel_id(
        &self,
        loaded: &LoadedExperiment,
        duel_id: &str,
    ) -> Result<DuelId, ServiceError> {
        if duel_id.is_empty() {
            let detail = "`duel_id` is empty: the page takes no part; show the ranking of `left`";
            return Err(ServiceError::InvalidDuel(detail.into()));
        }
        let mut opened = self.engine.signing_keys.current().open(duel_id);
        if opened == Err(TokenError::UnknownKey) {
            self.refresh_signing_keys().await?;
            opened = self.engine.signing_keys.current().open(duel_id);
        }
        let id = opened.map_err(|error| ServiceError::InvalidDuel(not_valid(error)))?;
        if id.duel.experiment != loaded.id {
            let owner = self.engine.registry.name_of(id.duel.experiment);
            return Err(ServiceError::InvalidDuel(other_experiment(owner.as_deref())));
        }
        duels::mention(id.duel.nonce);
        Ok(id)
    }
}

/// Why a valid `duel_id` of another experiment is refused. It has a name here if it is in memory.
pub(super) fn other_experiment(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("`duel_id` belongs to experiment `{name}`: send it there"),
        None => "`duel_id` belongs to another experiment".to_owned(),
    }
}

pub(super) fn not_valid(error: TokenError) -> String {
    format!("`duel_id` is not valid: {error}")
}
