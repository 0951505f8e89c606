//! Pages: two rankings interleaved for a duel. Reads memory only, and writes nothing: what credit
//! needs goes out in the `duel_id`.

use std::collections::{BTreeMap, HashMap};

use crate::engine::error::ServiceError;
use crate::engine::experiment_spec::FieldError;
use crate::engine::loaded::LoadedExperiment;
use crate::service::feedback::{ANOTHER_EXPERIMENT, not_valid};
use crate::service::{IssuedDuel, Service};
use crate::telemetry::trace;
use crate::tokens::duel_token::{DuelId, TokenError};
use crate::tokens::page_payload::{DuelSecrets, PagePayload};
use interleaving::{
    self, DuelCoins, InvalidRequest, Method, Note, Page, Pin, Plans, Request, alone, interleave,
};

/// Longest id of a document, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 1024;
/// From so many documents on interleaving takes long enough to be done beside the requests that
/// wait for nothing.
const LONG: usize = 2000;

/// The part of the shown list that is asked for, and what is fixed in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Slots before this page.
    pub offset: usize,
    /// Slots of this page.
    pub length: usize,
    /// Documents at fixed positions.
    pub pinned: Vec<Pin<String>>,
}

/// One page as it is handed out.
#[derive(Debug, Clone, PartialEq)]
pub struct IssuedPage {
    /// The duel's signed name, with what was shown in it.
    pub duel_id: String,
    /// Whether one ranker is shown alone.
    pub self_duel: bool,
    /// Unix milliseconds.
    pub expires_at: i64,
    /// In the order they are shown.
    pub slots: Vec<IssuedSlot>,
    /// Slots that all pages together can have.
    pub total: usize,
    /// Repeats that were dropped from the left and from the right ranking.
    pub repeats: [usize; 2],
    /// Whether clicks can say anything.
    pub informative: bool,
    /// Version of the method.
    pub method: u32,
    /// Something out of the ordinary.
    pub note: Option<Note>,
}

/// One slot as it is handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedSlot {
    /// Position in the shown list, from 0 on the first page.
    pub position: usize,
    /// The document's id.
    pub document: String,
    /// Names the slot, and says nothing about whose it is.
    pub token: String,
}

/// Everything that one page is made of.
struct Order {
    id: DuelId,
    secrets: DuelSecrets,
    version: u32,
    method: interleaving::Spec,
    left: Vec<String>,
    right: Vec<String>,
    page: PageRequest,
    /// What the lists are called in the request.
    names: [String; 2],
}

impl Service {
    /// Interleave the rankings of a duel's left and right ranker. Of a self-duel only the left one
    /// is shown; the right one may be missing.
    pub async fn interleave(
        &self,
        name: &str,
        duel_id: &str,
        left: Vec<String>,
        right: Option<Vec<String>>,
        page: PageRequest,
    ) -> Result<IssuedPage, ServiceError> {
        let loaded = self.experiment(name).await?;
        if loaded.with_record(|record| record.archived_at.is_some()) {
            return Err(ServiceError::Archived(name.into()));
        }
        let id = self.open(&loaded, duel_id).await?;
        if self.clock.now_ms() > id.duel.expires_at {
            return Err(ServiceError::Expired(id.duel.expires_at));
        }
        let right = match right {
            Some(right) => right,
            None if id.duel.first == id.duel.second => Vec::new(),
            None => {
                let detail = "`right` is missing: the duel is between two rankers";
                return Err(ServiceError::Invalid(vec![FieldError::new("/right", detail)]));
            }
        };
        let names = ["/left", "/right"].map(str::to_owned);
        let order = self.order(&loaded, id, [left, right], page, names).await?;
        self.make(order).await
    }

    /// Choose a duel and interleave its rankings out of those of all rankers, in one go.
    pub async fn next_page(
        &self,
        name: &str,
        mut rankings: HashMap<String, Vec<String>>,
        page: PageRequest,
    ) -> Result<(IssuedDuel, IssuedPage), ServiceError> {
        let loaded = self.experiment(name).await?;
        let errors = wrong_rankers(&loaded, &rankings);
        if !errors.is_empty() {
            return Err(ServiceError::Invalid(errors));
        }
        check_page(&page)?;
        let duel = self.choose(&loaded)?;
        let id = self.open(&loaded, &duel.duel_id).await?;
        let names = [&duel.left, &duel.right].map(|ranker| ranking_pointer(ranker));
        let left = rankings.remove(&duel.left).unwrap_or_default();
        let right = rankings.remove(&duel.right).unwrap_or_default();
        let order = self.order(&loaded, id, [left, right], page, names).await?;
        Ok((duel, self.make(order).await?))
    }

    /// The duel of this experiment that has this name.
    async fn open(&self, loaded: &LoadedExperiment, duel_id: &str) -> Result<DuelId, ServiceError> {
        let mut opened = self.keys.open(duel_id);
        if opened == Err(TokenError::UnknownKey) {
            // perhaps one that was added since this process read them
            self.keys.refresh_for_unknown().await?;
            opened = self.keys.open(duel_id);
        }
        let id = opened.map_err(|error| ServiceError::InvalidDuel(not_valid(error)))?;
        if id.duel.experiment == loaded.id {
            trace::about(id.duel.nonce);
            Ok(id)
        } else {
            Err(ServiceError::InvalidDuel(ANOTHER_EXPERIMENT.into()))
        }
    }

    async fn order(
        &self,
        loaded: &LoadedExperiment,
        id: DuelId,
        [left, right]: [Vec<String>; 2],
        page: PageRequest,
        names: [String; 2],
    ) -> Result<Order, ServiceError> {
        let secrets = self
            .keys
            .secrets(id.key, id.duel.nonce)
            .map_err(|error| ServiceError::InvalidDuel(not_valid(error)))?;
        let (version, method) = match id.shown.as_ref().map(|shown| shown.method) {
            None => loaded.fold()?.method_at(id.duel.chosen_at),
            Some(version) => {
                let mut method = loaded.fold()?.method(version);
                if method.is_none() {
                    // another process knows of a change that this one has not heard of yet
                    loaded.catch_up(&*self.store).await?;
                    method = loaded.fold()?.method(version);
                }
                let unknown = || {
                    ServiceError::InvalidDuel(format!(
                        "there is no version {version} of the method"
                    ))
                };
                (version, method.ok_or_else(unknown)?)
            }
        };
        Ok(Order { id, secrets, version, method, left, right, page, names })
    }

    async fn make(&self, order: Order) -> Result<IssuedPage, ServiceError> {
        let solves = matches!(order.method.method, Method::Optimized(_));
        let (id, made) = if solves || order.left.len() + order.right.len() > LONG {
            let plans = std::sync::Arc::clone(&self.plans);
            tokio::task::spawn_blocking(move || (order.id.clone(), order.make(&*plans)))
                .await
                .map_err(|error| {
                    ServiceError::Internal(format!("interleaving did not end: {error}"))
                })?
        } else {
            let made = order.make(&*self.plans);
            (order.id, made)
        };
        let (mut page, shown) = made?;
        page.duel_id = self
            .keys
            .seal(id.key, &id.duel, &shown)
            .map_err(|error| ServiceError::InvalidDuel(not_valid(error)))?;
        Ok(page)
    }
}

impl Order {
    /// The page but for its name, and what the name is to carry.
    fn make(&self, plans: &dyn Plans) -> Result<(IssuedPage, PagePayload), ServiceError> {
        let PageRequest { offset, length, ref pinned } = self.page;
        check_documents(&self.left, &self.names[0])?;
        check_documents(&self.right, &self.names[1])?;
        check_page(&self.page)?;
        let self_duel = self.id.duel.first == self.id.duel.second;
        let made = if self_duel {
            alone(&self.left, offset, length, pinned)
        } else {
            let request = Request { left: &self.left, right: &self.right, offset, length, pinned };
            interleave(&self.method, &request, &mut DuelCoins::drafting(self.secrets.seed()), plans)
        }
        .map_err(|error| ServiceError::Invalid(vec![self.refused(&error)]))?;
        let documents: Vec<_> =
            made.shown().iter().map(|slot| self.secrets.document(slot.document)).collect();
        let slots = made
            .slots
            .iter()
            .map(|slot| IssuedSlot {
                position: slot.position,
                document: slot.document.to_owned(),
                token: self.secrets.slot(slot.position, &documents[slot.position]),
            })
            .collect();
        let Page { total, repeats, note, sheet, .. } = made;
        let page = IssuedPage {
            duel_id: String::new(),
            self_duel,
            expires_at: self.id.duel.expires_at,
            slots,
            total,
            repeats,
            informative: sheet.informative,
            method: self.version,
            note,
        };
        Ok((page, PagePayload { method: self.version, sheet, documents }))
    }

    /// Where in the request what is wrong stands.
    fn refused(&self, error: &InvalidRequest) -> FieldError {
        let pointer = match error {
            InvalidRequest::TooManyDocuments { side: "left", .. } => self.names[0].clone(),
            InvalidRequest::TooManyDocuments { .. } => self.names[1].clone(),
            error => page_pointer(error),
        };
        FieldError::new(pointer, error.to_string())
    }
}

fn page_pointer(error: &InvalidRequest) -> String {
    match error {
        InvalidRequest::TooManyDocuments { .. } => String::new(),
        InvalidRequest::NoLength => "/length".into(),
        InvalidRequest::TooDeep { offset: 0, .. } => "/length".into(),
        InvalidRequest::TooDeep { .. } => "/offset".into(),
        InvalidRequest::TooManyPins { .. } => "/pinned".into(),
        InvalidRequest::PinOutOfRange { index, .. } => format!("/pinned/{index}/position"),
        InvalidRequest::PinsCollide { second, .. } => format!("/pinned/{second}/position"),
        InvalidRequest::PinnedTwice { second, .. } => format!("/pinned/{second}/document"),
    }
}

/// What can be said of a page before there are rankings.
fn check_page(page: &PageRequest) -> Result<(), ServiceError> {
    let pinned: Vec<_> = page.pinned.iter().map(|pin| pin.document.clone()).collect();
    check_documents(&pinned, "/pinned")?;
    let nothing: &[String] = &[];
    let PageRequest { offset, length, ref pinned } = *page;
    alone(nothing, offset, length, pinned).map(drop).map_err(|error| {
        ServiceError::Invalid(vec![FieldError::new(page_pointer(&error), error.to_string())])
    })
}

fn check_documents(ids: &[String], pointer: &str) -> Result<(), ServiceError> {
    match ids.iter().position(|id| !(1..=MAX_DOCUMENT_BYTES).contains(&id.len())) {
        None => Ok(()),
        Some(index) => {
            let bytes = ids[index].len();
            let detail = format!(
                "the id of a document has 1 to {MAX_DOCUMENT_BYTES} bytes; this one has {bytes}"
            );
            Err(ServiceError::Invalid(vec![FieldError::new(format!("{pointer}/{index}"), detail)]))
        }
    }
}

/// Rankers that take part without a ranking, and then rankings without a ranker. Where nobody's
/// ranking is missing, more of them do no harm: that is how the ranking of one that is about to be
/// enlisted, or was retired, can be sent all the while.
fn wrong_rankers(
    loaded: &LoadedExperiment,
    rankings: &HashMap<String, Vec<String>>,
) -> Vec<FieldError> {
    let mut errors = BTreeMap::new();
    for (index, ranker) in loaded.spec.rankers.iter().enumerate() {
        if !rankings.contains_key(&ranker.id) && !loaded.spec.is_retired(index) {
            let detail =
                format!("the ranking of ranker `{}` is missing; send [] if it has none", ranker.id);
            errors.insert(ranking_pointer(&ranker.id), detail);
        }
    }
    if errors.is_empty() {
        return Vec::new();
    }
    for id in rankings.keys() {
        if loaded.spec.ranker_index(id).is_none() {
            let shown: String = id.chars().take(100).collect();
            errors
                .insert(ranking_pointer(&shown), format!("the experiment has no ranker `{shown}`"));
        }
    }
    errors.into_iter().take(20).map(|(pointer, detail)| FieldError::new(pointer, detail)).collect()
}

fn ranking_pointer(ranker: &str) -> String {
    format!("/rankings/{}", ranker.replace('~', "~0").replace('/', "~1"))
}
