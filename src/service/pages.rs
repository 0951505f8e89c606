//! Pages: two rankings interleaved for a duel. Reads only memory and writes nothing: the `duel_id`
//! carries the data that crediting clicks needs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::service::Service;
use crate::service::change::refuse_archived;
use crate::service::duel_id::not_valid;
use crate::service::duels::IssuedDuel;
use crate::service::error::ServiceError;
use crate::service::units::{NamedAudience, UnitHasher};
use interleaving::{
    self, CreditSheet, DuelCoins, InvalidRequest, Method, Note, Page, Pin, Plans, Request, Team,
    alone, interleave,
};
use rankduel_engine::experiment_spec::{FieldError, excerpt, pointer_part};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::tokens::duel_token::DuelId;
use rankduel_engine::tokens::page_payload::{DuelSecrets, PagePayload};

/// Longest document id, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 1024;
/// From this many documents on, interleaving runs on a blocking thread, so that it does not hold up
/// other requests.
const BLOCKING_DOCUMENTS: usize = 2000;

/// The requested part of the shown list, and its pinned documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// Number of slots before this page.
    pub offset: usize,
    /// Number of slots of this page.
    pub length: usize,
    /// Documents at fixed positions.
    pub pinned: Vec<Pin<String>>,
}

/// An issued page.
#[derive(Debug, Clone, PartialEq)]
pub struct IssuedPage {
    /// The signed token of the duel, with the page in it.
    pub duel_id: String,
    /// Whether both rankers of the duel are the same, so that one ranking is shown alone.
    pub self_duel: bool,
    /// Unix milliseconds.
    pub expires_at: i64,
    /// In display order.
    pub slots: Vec<IssuedSlot>,
    /// Number of slots that all pages together can have.
    pub total: usize,
    /// Repeated documents that were dropped from the left and from the right ranking.
    pub repeats: [usize; 2],
    /// Whether clicks can show a preference.
    pub informative: bool,
    /// Version of the method.
    pub method: u32,
    /// A remark about an unusual page.
    pub note: Option<Note>,
}

/// A slot of an issued page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuedSlot {
    /// Position in the shown list, from 0 on the first page.
    pub position: usize,
    /// The document's id.
    pub document: String,
    /// Identifies the slot without showing which ranker it belongs to.
    pub token: String,
}

/// The inputs of one page.
struct PageInputs {
    id: DuelId,
    secrets: DuelSecrets,
    version: u32,
    method: interleaving::Spec,
    left: Vec<String>,
    right: Vec<String>,
    page: PageRequest,
    /// JSON pointers of the two rankings in the request.
    pointers: [String; 2],
}

impl Service {
    /// Interleave the rankings of the left and right ranker of a duel. For a self-duel, only the
    /// left ranking is shown and the right one may be missing.
    pub async fn interleave(
        &self,
        name: &str,
        duel_id: &str,
        left: Vec<String>,
        right: Option<Vec<String>>,
        page: PageRequest,
        audience: NamedAudience<'_>,
    ) -> Result<IssuedPage, ServiceError> {
        let loaded = self.experiment(name).await?;
        loaded.with_record(refuse_archived)?;
        let mut id = self.open_duel_id(&loaded, duel_id).await?;
        id.duel.audience = id.duel.audience.or(UnitHasher::of(&loaded).audience(audience));
        if self.now_ms() > id.duel.expires_at {
            return Err(ServiceError::Expired(id.duel.expires_at));
        }
        let right = match right {
            Some(right) => right,
            None if id.duel.first == id.duel.second => Vec::new(),
            None => {
                let detail = "`right` is missing: the duel is between two rankers";
                return Err(ServiceError::field("/right", detail));
            }
        };
        let pointers = ["/left", "/right"].map(str::to_owned);
        let inputs = self.page_inputs(&loaded, id, [left, right], page, pointers).await?;
        self.make_page(&loaded, inputs).await
    }

    /// Issue a duel and interleave its two rankings, given the rankings of all rankers.
    pub async fn next_page(
        &self,
        name: &str,
        mut rankings: HashMap<String, Vec<String>>,
        page: PageRequest,
        audience: NamedAudience<'_>,
    ) -> Result<(IssuedDuel, IssuedPage), ServiceError> {
        let loaded = self.experiment(name).await?;
        let errors = wrong_rankers(&loaded, &rankings);
        if !errors.is_empty() {
            return Err(ServiceError::Invalid(errors));
        }
        check_page(&page)?;
        let duel = self.choose(&loaded, audience)?;
        let id = self.open_duel_id(&loaded, &duel.duel_id).await?;
        let pointers = [&duel.left, &duel.right].map(|ranker| ranking_pointer(ranker));
        let left = rankings.remove(&duel.left).unwrap_or_default();
        let right = rankings.remove(&duel.right).unwrap_or_default();
        let inputs = self.page_inputs(&loaded, id, [left, right], page, pointers).await?;
        Ok((duel, self.make_page(&loaded, inputs).await?))
    }

    async fn page_inputs(
        &self,
        loaded: &Arc<LoadedExperiment>,
        id: DuelId,
        [left, right]: [Vec<String>; 2],
        page: PageRequest,
        pointers: [String; 2],
    ) -> Result<PageInputs, ServiceError> {
        let secrets = self
            .engine
            .signing_keys
            .secrets(id.key, id.duel.nonce)
            .map_err(|error| ServiceError::InvalidDuel(not_valid(error)))?;
        let (version, method) = match id.page.as_ref().map(|page| page.method) {
            None => loaded.fold()?.method_at(id.duel.chosen_at),
            Some(version) => {
                let mut method = loaded.fold()?.method(version);
                if method.is_none() {
                    // another process may have folded a change that this one has not
                    loaded.catch_up(&*self.engine.store).await?;
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
        Ok(PageInputs { id, secrets, version, method, left, right, page, pointers })
    }

    async fn make_page(
        &self,
        loaded: &LoadedExperiment,
        inputs: PageInputs,
    ) -> Result<IssuedPage, ServiceError> {
        let solves = matches!(inputs.method.method, Method::Optimized(_));
        let documents = inputs.left.len() + inputs.right.len();
        let (id, made) = if solves || documents > BLOCKING_DOCUMENTS {
            let plans = Arc::clone(&self.plans);
            tokio::task::spawn_blocking(move || (inputs.id.clone(), inputs.make(&*plans)))
                .await
                .map_err(|error| {
                    ServiceError::internal(format!("a page was not interleaved: {error}"))
                })?
        } else {
            let made = inputs.make(&*self.plans);
            (inputs.id, made)
        };
        let (mut page, payload) = made?;
        if id.page.is_none() {
            loaded.note_page(&id.duel);
        }
        // optimized interleaving gives the first slot to the ranker that the rankings say
        if !solves && let Some(left_first) = left_drafts_first(&payload.sheet) {
            let lower_is_left = (id.duel.first < id.duel.second) == id.duel.first_left;
            loaded.traffic().drafted(
                id.duel.nonce,
                id.duel.expires_at,
                self.now_ms(),
                left_first == lower_is_left,
            );
        }
        page.duel_id = self
            .engine
            .signing_keys
            .seal(id.key, &id.duel, &payload)
            .map_err(|error| ServiceError::InvalidDuel(not_valid(error)))?;
        Ok(page)
    }
}

impl PageInputs {
    /// The page without its `duel_id`, and the payload that the `duel_id` must carry.
    fn make(&self, plans: &dyn Plans) -> Result<(IssuedPage, PagePayload), ServiceError> {
        let PageRequest { offset, length, ref pinned } = self.page;
        check_documents(&self.left, &self.pointers[0])?;
        check_documents(&self.right, &self.pointers[1])?;
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

    /// The error with its pointer into the request.
    fn refused(&self, error: &InvalidRequest) -> FieldError {
        let pointer = match error {
            InvalidRequest::TooManyDocuments { side: "left", .. } => self.pointers[0].clone(),
            InvalidRequest::TooManyDocuments { .. } => self.pointers[1].clone(),
            error => page_pointer(error),
        };
        FieldError::new(pointer, error.to_string())
    }
}

/// Whether the first slot that can earn credit belongs to the left ranker; `None` without such a
/// slot.
fn left_drafts_first(sheet: &CreditSheet) -> Option<bool> {
    let mut sides = sheet.slots.iter().filter(|slot| slot.competitive).map(|slot| slot.team);
    sides.find(|team| *team != Some(Team::Both)).map(|team| team == Some(Team::Left))
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

/// Check the parts of a page request that do not depend on the rankings.
fn check_page(page: &PageRequest) -> Result<(), ServiceError> {
    let pinned: Vec<_> = page.pinned.iter().map(|pin| pin.document.clone()).collect();
    check_documents(&pinned, "/pinned")?;
    let no_documents: &[String] = &[];
    let PageRequest { offset, length, ref pinned } = *page;
    alone(no_documents, offset, length, pinned)
        .map(drop)
        .map_err(|error| ServiceError::field(page_pointer(&error), error.to_string()))
}

fn check_documents(ids: &[String], pointer: &str) -> Result<(), ServiceError> {
    match ids.iter().position(|id| !(1..=MAX_DOCUMENT_BYTES).contains(&id.len())) {
        None => Ok(()),
        Some(index) => {
            let bytes = ids[index].len();
            let detail = format!(
                "the id of a document has 1 to {MAX_DOCUMENT_BYTES} bytes; this one has {bytes}"
            );
            Err(ServiceError::field(format!("{pointer}/{index}"), detail))
        }
    }
}

/// Most errors of rankings that a refusal lists.
const LISTED: usize = 20;

/// Errors of the rankings in a request: each active ranker must have one. If one is missing,
/// rankings of unknown rankers are reported too. If none is missing, other rankings are ignored, so
/// that callers can send the ranking of a ranker before it is enlisted and after it is retired.
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
    let known: HashSet<&str> = loaded.spec.rankers.iter().map(|ranker| &*ranker.id).collect();
    let mut unknown: Vec<&str> =
        rankings.keys().map(String::as_str).filter(|id| !known.contains(id)).collect();
    // A body can have a hundred thousand of them, in an order that changes.
    unknown.sort_unstable();
    for id in unknown.into_iter().take(LISTED) {
        let shown = excerpt(id);
        errors.insert(ranking_pointer(&shown), format!("the experiment has no ranker `{shown}`"));
    }
    let listed = errors.into_iter().take(LISTED);
    listed.map(|(pointer, detail)| FieldError::new(pointer, detail)).collect()
}

fn ranking_pointer(ranker: &str) -> String {
    format!("/rankings/{}", pointer_part(ranker))
}
