//! Pages: two rankings interleaved for a duel. Reads only memory and writes nothing: the `duel_id`
//! carries the data that crediting clicks needs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use utoipa::ToSchema;

use crate::service::Service;
use crate::service::change::refuse_archived;
use crate::service::duel_id::not_valid;
use crate::service::duels::{DuelPurpose, IssuedDuel};
use crate::service::error::ServiceError;
use crate::service::threads::is_long;
use crate::service::units::{NamedAudience, UnitHasher};
use interleaving::methods::optimized::{Instance, Plan};
use interleaving::{
    self, CreditSheet, DuelCoins, InvalidRequest, Method, Note, Page, Pin, PlanCache, Plans,
    Request, Team, alone, interleave,
};
use rankduel_engine::error::EngineError;
use rankduel_engine::experiment_spec::{FieldError, excerpt, pointer_part};
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::tokens::duel_token::DuelId;
use rankduel_engine::tokens::key_set::SigningKeySet;
use rankduel_engine::tokens::page_payload::{DuelSecrets, PagePayload, slot_token};

/// Longest document id, in bytes.
pub const MAX_DOCUMENT_BYTES: usize = 1024;
/// Approximate nanoseconds that a page takes for each document of its rankings.
const DOCUMENT_NANOSECONDS: usize = 100;
/// Approximate nanoseconds for each slot from the first to the last one of the page, mainly to
/// hash its document.
const SLOT_NANOSECONDS: usize = 1_000;
/// Approximate nanoseconds for each document that probabilistic interleaving chooses from in a
/// slot.
const CHOICE_NANOSECONDS: usize = 1;

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

#[derive(Debug, Clone, PartialEq)]
pub struct IssuedPage {
    /// The signed token of the duel, with the page in it.
    pub duel_id: String,
    pub self_duel: bool,
    /// Unix milliseconds.
    pub expires_at: i64,
    pub page: PageParts,
}

/// The slots of a page, and information about them.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PageParts {
    /// In display order; empty if the list ends before this page.
    pub slots: Vec<IssuedSlot>,
    /// Number of slots on all pages together.
    pub total: usize,
    pub repeats: Repeats,
    /// Whether clicks on the page can be a signal: `false` if both rankings are the same down to
    /// the end of the page, or if one ranker is shown alone.
    pub informative: bool,
    /// Version of the experiment's `interleaving` with which the page was made.
    pub interleaving_version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::schemas::Note>, nullable = false)]
    pub note: Option<Note>,
}

/// Approximate bytes of a page as JSON, without its slots and its id.
const PAGE_BYTES: usize = 256;
/// Approximate bytes of a slot as JSON, without its document.
const SLOT_BYTES: usize = 64;

impl PageParts {
    /// Approximate bytes as JSON.
    pub fn bytes(&self) -> usize {
        self.slots.iter().map(|slot| SLOT_BYTES + slot.document.len()).sum::<usize>() + PAGE_BYTES
    }
}

/// One slot of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SlotBody)]
pub struct IssuedSlot {
    /// In the shown list, from 0 on the first page.
    pub position: usize,
    #[schema(example = "doc-7")]
    pub document: String,
    /// Identifies the slot in feedback. It does not reveal which ranker the slot belongs to.
    #[schema(example = "q3hX0cJmTt2b")]
    pub token: String,
}

/// Number of repeated documents in each ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Repeats {
    pub left: usize,
    pub right: usize,
}

/// The data that a page is made of.
struct PageInputs {
    id: DuelId,
    keys: Arc<SigningKeySet>,
    secrets: DuelSecrets,
    /// Version of the experiment's `interleaving`, which is `method`.
    version: u32,
    method: interleaving::Spec,
    left: Vec<String>,
    right: Vec<String>,
    page: PageRequest,
    /// JSON pointers of the two rankings in the request.
    pointers: [String; 2],
}

struct MadePage {
    page: IssuedPage,
    /// Whether the first slot that can earn credit belongs to the left ranker. `None` without such
    /// a slot, and for optimized interleaving, where the rankings determine it.
    left_drafts_first: Option<bool>,
}

impl Service {
    /// Interleave the rankings of the left and right ranker of a duel. For a self-duel, only the
    /// left ranking is shown and the right one may be missing. `finish` turns the page into the
    /// result, on the thread that makes the page.
    pub async fn interleave<T: Send + 'static>(
        &self,
        name: &str,
        duel_id: &str,
        [left, right]: [Option<Vec<String>>; 2],
        page: PageRequest,
        audience: NamedAudience<'_>,
        finish: impl FnOnce(IssuedPage) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let loaded = self.experiment(name).await?;
        loaded.with_record(refuse_archived)?;
        let mut id = self.open_duel_id(&loaded, duel_id).await?;
        id.duel.audience = id.duel.audience.or(UnitHasher::of(&loaded).audience(audience));
        if self.now_ms() > id.duel.expires_at {
            return Err(ServiceError::Expired(id.duel.expires_at));
        }
        if right.is_none() && id.duel.first != id.duel.second {
            let detail = "`right` is missing: the duel is between two rankers";
            return Err(ServiceError::field("/right", detail));
        }
        let rankings = [left, right].map(Option::unwrap_or_default);
        let pointers = ["/left", "/right"].map(str::to_owned);
        let inputs = self.page_inputs(&loaded, id, rankings, page, pointers).await?;
        self.make_page(&loaded, inputs, finish).await
    }

    /// Issue a duel and interleave its two rankings, given the rankings of all rankers. `finish` is
    /// that of [`Service::interleave`].
    pub async fn next_page<T: Send + 'static>(
        &self,
        name: &str,
        mut rankings: HashMap<String, Vec<String>>,
        page: PageRequest,
        audience: NamedAudience<'_>,
        finish: impl FnOnce(IssuedDuel, IssuedPage) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let loaded = self.experiment(name).await?;
        ServiceError::unless_valid(wrong_rankers(&loaded, &rankings))?;
        check_page(&page)?;
        let duel = self.select_and_issue(&loaded, audience, DuelPurpose::Page)?;
        let id = self.open_duel_id(&loaded, &duel.duel_id).await?;
        let pointers = [&duel.left, &duel.right].map(|ranker| ranking_pointer(ranker));
        let left = rankings.remove(&duel.left).unwrap_or_default();
        let right = rankings.remove(&duel.right).unwrap_or_default();
        let inputs = self.page_inputs(&loaded, id, [left, right], page, pointers).await?;
        let finish = move |mut page: IssuedPage| {
            // freed on the thread that makes the page, because that takes long as well
            drop(rankings);
            let duel =
                IssuedDuel { duel_id: std::mem::take(&mut page.duel_id), ..duel }.for_caller();
            finish(duel, page)
        };
        self.make_page(&loaded, inputs, finish).await
    }

    /// Find the secrets and the method of a page: on later pages of a duel, the method of the
    /// first.
    async fn page_inputs(
        &self,
        loaded: &Arc<LoadedExperiment>,
        id: DuelId,
        [left, right]: [Vec<String>; 2],
        page: PageRequest,
        pointers: [String; 2],
    ) -> Result<PageInputs, ServiceError> {
        let keys = self.engine.signing_keys.current();
        let secrets = keys
            .secrets(id.key, id.duel.nonce)
            .map_err(|error| ServiceError::InvalidDuel(not_valid(error)))?
            .with_names(loaded.document_names());
        let (version, method) = match id.page.as_ref().map(|page| page.method) {
            None => loaded.fold()?.state().methods.at(id.duel.chosen_at),
            Some(version) => {
                let mut method = loaded.fold()?.state().methods.version(version);
                if method.is_none() {
                    // another process may have folded a change that this one has not
                    loaded.catch_up(&*self.engine.store).await?;
                    method = loaded.fold()?.state().methods.version(version);
                }
                let unknown = || {
                    ServiceError::InvalidDuel(format!(
                        "there is no version {version} of the method"
                    ))
                };
                (version, method.ok_or_else(unknown)?)
            }
        };
        let drafted = match &id.page {
            // slots beyond the depth of the shorter ranking have no team
            Some(page) => page.sheet.slots.iter().filter(|slot| slot.team.is_some()).count(),
            None => {
                let length = page.length;
                length - page.pinned.iter().filter(|pin| pin.position < length).count().min(length)
            }
        };
        let method = method.for_first_page(drafted);
        Ok(PageInputs { id, keys, secrets, version, method, left, right, page, pointers })
    }

    /// Make a page and count it. `finish` is that of [`Service::interleave`].
    async fn make_page<T: Send + 'static>(
        &self,
        loaded: &LoadedExperiment,
        inputs: PageInputs,
        finish: impl FnOnce(IssuedPage) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (duel, is_first) = (inputs.id.duel, inputs.id.page.is_none());
        let nanoseconds = inputs.nanoseconds();
        let (result, left_first) = if inputs.is_optimized() && !is_long(nanoseconds) {
            (finish(self.make_optimized(inputs).await?), None)
        } else {
            let plans = self.plans_for(&inputs);
            let make = move || {
                let MadePage { page, left_drafts_first } = inputs.make(&*plans)?;
                Ok::<_, ServiceError>((finish(page), left_drafts_first))
            };
            self.run_by_cost(nanoseconds, make).await??
        };
        if is_first {
            loaded.note_page(&duel);
        }
        if let Some(left_first) = left_first {
            let drafts_first = if left_first == duel.first_left { duel.first } else { duel.second };
            let is_lower = drafts_first == duel.first.min(duel.second);
            loaded.traffic().drafted(duel.nonce, duel.expires_at, self.now_ms(), is_lower);
        }
        Ok(result)
    }

    /// Make a short page with optimized interleaving. A plan that is not in the cache is solved on
    /// the threads for long work. If too much waits for them, a first page is a team draft.
    async fn make_optimized(&self, inputs: PageInputs) -> Result<IssuedPage, ServiceError> {
        let (plans, is_first) = (self.plans_for(&inputs), inputs.id.page.is_none());
        let cached = CachedPlans { cache: &self.plans, missed: AtomicBool::new(false) };
        // a team draft, if the plan is not in the cache
        let made = inputs.make(&cached);
        if !cached.missed.into_inner() {
            return Ok(made?.page);
        }
        match self.bodies.run(move || inputs.make(&*plans)).await {
            Err(ServiceError::Engine(EngineError::Overloaded)) if is_first => Ok(made?.page),
            solved => Ok(solved??.page),
        }
    }

    /// The plans for a page of optimized interleaving: none if it continues a list that is a team
    /// draft.
    fn plans_for(&self, inputs: &PageInputs) -> Arc<dyn Plans + Send + Sync> {
        match &inputs.id.page {
            Some(first) if first.sheet.fell_back => Arc::new(NoPlans),
            _ => Arc::<PlanCache>::clone(&self.plans),
        }
    }
}

struct NoPlans;

impl Plans for NoPlans {
    fn plan(&self, _: &Instance) -> Option<Arc<Plan>> {
        None
    }
}

/// The plans that are solved already.
struct CachedPlans<'a> {
    cache: &'a PlanCache,
    /// Whether one was not in the cache.
    missed: AtomicBool,
}

impl Plans for CachedPlans<'_> {
    fn plan(&self, instance: &Instance) -> Option<Arc<Plan>> {
        let cached = self.cache.cached(instance);
        self.missed.fetch_or(cached.is_none(), Ordering::Relaxed);
        cached.flatten()
    }
}

impl PageInputs {
    fn is_optimized(&self) -> bool {
        matches!(self.method.method, Method::Optimized(_))
    }

    /// Approximate nanoseconds to make the page, without solving a plan of optimized interleaving.
    fn nanoseconds(&self) -> usize {
        let documents = self.left.len() + self.right.len() + self.page.pinned.len();
        let end = self.page.offset.saturating_add(self.page.length).min(documents);
        let chosen = match self.method.method {
            Method::Probabilistic(_) => end * documents,
            _ => 0,
        };
        documents * DOCUMENT_NANOSECONDS + end * SLOT_NANOSECONDS + chosen * CHOICE_NANOSECONDS
    }

    fn make(&self, plans: &dyn Plans) -> Result<MadePage, ServiceError> {
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
                token: slot_token(slot.position as u32, &documents[slot.position]),
            })
            .collect();
        let Page { total, repeats: [left, right], note, sheet, .. } = made;
        let informative = sheet.informative;
        let payload = PagePayload { method: self.version, sheet, documents };
        let page = IssuedPage {
            duel_id: self
                .keys
                .seal(self.id.key, &self.id.duel, &payload)
                .map_err(|error| ServiceError::InvalidDuel(not_valid(error)))?,
            self_duel,
            expires_at: self.id.duel.expires_at,
            page: PageParts {
                slots,
                total,
                repeats: Repeats { left, right },
                informative,
                interleaving_version: self.version,
                note,
            },
        };
        let sheet = (!self.is_optimized()).then_some(&payload.sheet);
        Ok(MadePage { page, left_drafts_first: sheet.and_then(left_drafts_first) })
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
    // a body can have a hundred thousand of them, and the map has them in random order
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
