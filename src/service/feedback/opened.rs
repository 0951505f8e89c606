//! The `duel_id`s of a request, each opened once, however many items of the request name it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::content::Clicked;
use rankduel_engine::experiment_spec::excerpt;
use rankduel_engine::tokens::duel_token::{DuelId, DuelToken, TokenError};
use rankduel_engine::tokens::key_set::SigningKeySet;
use rankduel_engine::tokens::page_payload::{DocumentName, DuelSecrets, PagePayload, slot_token};

/// The opened `duel_id`s of a request.
///
/// Opening one takes time in proportion to its length. Items of a request may share the text of
/// their `duel_id`; then they also share its place in memory, and finding it does not read it.
pub(super) struct OpenedDuels<'a> {
    keys: &'a SigningKeySet,
    /// See [`DuelSecrets::with_names`].
    names: Option<u64>,
    by_place: HashMap<usize, usize>,
    by_text: HashMap<&'a str, usize>,
    opened: Vec<Result<OpenedDuel, TokenError>>,
}

impl<'a> OpenedDuels<'a> {
    pub fn new(keys: &'a SigningKeySet, names: Option<u64>) -> Self {
        Self { keys, names, by_place: HashMap::new(), by_text: HashMap::new(), opened: Vec::new() }
    }

    /// The number of the opened `duel_id` with this text.
    pub fn open(&mut self, text: &'a Arc<str>) -> usize {
        let place = text.as_ptr() as usize;
        if let Some(&known) = self.by_place.get(&place) {
            return known;
        }
        let number = *self.by_text.entry(text).or_insert_with(|| {
            self.opened.push(OpenedDuel::open(self.keys, text, self.names));
            self.opened.len() - 1
        });
        self.by_place.insert(place, number);
        number
    }

    pub fn get(&self, number: usize) -> &Result<OpenedDuel, TokenError> {
        &self.opened[number]
    }
}

/// A valid `duel_id`.
pub(super) struct OpenedDuel {
    pub duel: DuelToken,
    /// Its page, if the service interleaved it.
    pub page: Option<Arc<OpenedPage>>,
}

impl OpenedDuel {
    fn open(keys: &SigningKeySet, text: &str, names: Option<u64>) -> Result<Self, TokenError> {
        let DuelId { duel, key, page } = keys.open(text)?;
        let page = match page {
            Some(payload) => {
                let secrets = keys.secrets(key, duel.nonce)?.with_names(names);
                Some(Arc::new(OpenedPage::new(duel, payload, secrets)))
            }
            None => None,
        };
        Ok(Self { duel, page })
    }

    /// Whether so many rankers and versions of the method include those of this duel.
    pub fn needs_at_most(&self, rankers: usize, methods: usize) -> bool {
        usize::from(self.duel.first.max(self.duel.second)) < rankers
            && self.page.as_ref().is_none_or(|page| page.payload.method as usize <= methods)
    }
}

/// The page of a valid `duel_id`.
pub(super) struct OpenedPage {
    pub duel: DuelToken,
    /// Method, credit sheet and documents.
    pub payload: PagePayload,
    secrets: DuelSecrets,
    /// Positions by document and by slot token, computed when the first click needs them.
    documents: OnceLock<HashMap<DocumentName, usize>>,
    slots: OnceLock<HashMap<String, usize>>,
}

impl OpenedPage {
    fn new(duel: DuelToken, payload: PagePayload, secrets: DuelSecrets) -> Self {
        let (documents, slots) = (OnceLock::new(), OnceLock::new());
        Self { duel, payload, secrets, documents, slots }
    }

    pub fn shown(&self) -> usize {
        self.payload.documents.len()
    }

    pub fn position(&self, on: &Clicked) -> Result<usize, String> {
        let (names, shown) = (&self.payload.documents, self.shown());
        match on {
            Clicked::Position(position) => usize::try_from(*position)
                .ok()
                .filter(|&position| position < shown)
                .ok_or_else(|| {
                    format!(
                        "there is no position {position}: {shown} results were shown, counted from 0"
                    )
                }),
            Clicked::Document(id) => {
                let documents =
                    self.documents.get_or_init(|| first_positions(names.iter().copied()));
                documents
                    .get(&self.secrets.document(id))
                    .copied()
                    .ok_or_else(|| format!("document `{}` was not shown", excerpt(id)))
            }
            Clicked::Slot(token) => {
                let tokens = || first_positions((0..).zip(names).map(token_of));
                let slots = self.slots.get_or_init(tokens);
                slots
                    .get(token.as_str())
                    .copied()
                    .ok_or_else(|| format!("slot `{}` was not shown", excerpt(token)))
            }
        }
    }
}

fn token_of((position, name): (u32, &DocumentName)) -> String {
    slot_token(position, name)
}

fn first_positions<K: std::hash::Hash + Eq>(keys: impl Iterator<Item = K>) -> HashMap<K, usize> {
    let mut positions = HashMap::new();
    for (position, key) in keys.enumerate() {
        positions.entry(key).or_insert(position);
    }
    positions
}
