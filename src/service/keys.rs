//! API keys of the database: making, listing, replacing and revoking them.

use crate::service::Service;
use crate::service::error::ServiceError;
use rankduel_engine::access::{self, Actor, KEY_DAYS_MAX, KeyChangeError, KeyRequest, NewKey};
use rankduel_engine::experiment_spec::{FieldError, FirstErrors, name_error};
use rankduel_store::ApiKeyRecord;

/// The API keys of the database by time of creation, the newest first.
pub async fn api_keys(service: &Service) -> Result<Vec<ApiKeyRecord>, ServiceError> {
    let mut keys = service.engine.store.api_keys().await?;
    keys.sort_by(|a, b| (b.created_at, &a.id).cmp(&(a.created_at, &b.id)));
    Ok(keys)
}

pub async fn api_key(service: &Service, id: &str) -> Result<Option<ApiKeyRecord>, ServiceError> {
    match access::find_key(&*service.engine.store, id).await {
        Ok(key) => Ok(Some(key)),
        Err(KeyChangeError::Unknown(_)) => Ok(None),
        Err(error) => Err(of_key_change(error)),
    }
}

/// Make an API key. This server accepts it at once. The text of the key is kept nowhere.
pub async fn create_api_key(
    service: &Service,
    request: &KeyRequest,
    by: &Actor,
) -> Result<(NewKey, ApiKeyRecord), ServiceError> {
    ServiceError::unless_valid(key_errors(request))?;
    let made =
        access::create_key(&*service.engine.store, request, by, service.now_ms(), |_, _| Ok(()))
            .await;
    let made = made.map_err(of_key_change)?;
    read_keys_again(service).await;
    Ok(made)
}

/// Revoke an API key: this server refuses it at once, others within ten seconds. Returns
/// whether it was not revoked before.
pub async fn revoke_api_key(service: &Service, id: &str, by: &Actor) -> Result<bool, ServiceError> {
    let revoked = access::revoke_key(&*service.engine.store, id, by, service.now_ms()).await;
    let revoked = revoked.map_err(of_key_change)?;
    read_keys_again(service).await;
    Ok(revoked)
}

/// The change is durable, so an error here is logged only: the keys are read again soon.
async fn read_keys_again(service: &Service) {
    if let Err(error) = service.access.refresh().await {
        tracing::warn!(%error, "cannot read the API keys");
    }
}

pub fn key_errors(request: &KeyRequest) -> Vec<FieldError> {
    let mut errors = FirstErrors::default();
    let mut add = |pointer: &str, detail: String| errors.push(FieldError::new(pointer, detail));
    if let Some(error) = KeyRequest::name_error(&request.name) {
        add("/name", error);
    }
    if request.scopes.iter().next().is_none() {
        add("/scopes", "a key needs at least one scope".into());
    }
    if let Some(names) = &request.experiments {
        for error in names.iter().filter_map(|name| name_error(name)) {
            add("/experiments", error.detail);
        }
    }
    if request.expires_in_days.is_some_and(|days| !(1..=KEY_DAYS_MAX).contains(&days)) {
        add("/expires_in_days", format!("a key expires after 1 to {KEY_DAYS_MAX} days"));
    }
    errors.into_vec()
}

fn of_key_change(error: KeyChangeError) -> ServiceError {
    match error {
        KeyChangeError::Store(error) => error.into(),
        KeyChangeError::NoRandomness(error) => {
            rankduel_engine::error::EngineError::from(error).into()
        }
        KeyChangeError::Unknown(_) | KeyChangeError::Ended(_) => {
            ServiceError::field("/id", error.to_string())
        }
    }
}
