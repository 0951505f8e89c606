//! The feedback of one request, checked and turned into events. Needs no I/O.
//!
//! The work is bounded by the size of the request: each `duel_id` is opened once, and the pieces of
//! a duel become one event, whose credit sheet came with the `duel_id`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::clicks::{clicks_event, read_clicks};
use super::content::{Feedback, FeedbackContent, IgnoredValue, Receipt, ShownOutcome};
use super::links::{Linking, Unlinked};
use super::opened::{OpenedDuel, OpenedDuels, OpenedPage};
use super::values::{self, ReadValues};
use crate::service::duel_id::{not_valid, other_experiment};
use crate::service::units::{NamedAudience, UnitHasher};
use dueling_bandits::Answer;
use rankduel_engine::experiment_spec::{ExperimentSpec, FieldError, WHOLE_COVERAGE};
use rankduel_engine::fold::open_pages::PageClicks;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_engine::tokens::duel_token::{DuelToken, TokenError};
use rankduel_engine::tokens::key_set::SigningKeySet;
use rankduel_store::audience::Audience;
use rankduel_store::events::{Event, OutcomeEvent, PageValues};
use rankduel_store::{ExperimentId, NewEvent, Nonce};

const NO_PAGE: &str = "the service did not interleave this duel, so it does not know what `clicks` are on: send \
     the `duel_id` that `interleave` answered, or an `outcome`";

const NO_OUTCOME: &str = "orders decide this experiment: send the `clicks` on the page that `interleave` made, \
     and the orders to `/orders`";

const AHEAD: &str = "the duel has a ranker or a method that the experiment does not have: the database has lost that \
     change";

/// An item of feedback after its `duel_id` was checked.
pub(super) enum CheckedItem {
    Counted {
        /// Index of the event with the content of the item, and whether earlier items of the
        /// request already have all of that content. `None` if the item has only values of metrics.
        event: Option<(usize, bool)>,
        /// Index of the item's values in [`CheckedRequest::values`].
        values: Option<usize>,
        /// Values of metrics that do not count.
        ignored: Vec<IgnoredValue>,
    },
    /// The item names no duel of this experiment, or its content is invalid or counts for nothing.
    Refused(Receipt),
}

pub(super) struct CheckedEvent {
    pub event: NewEvent,
    /// Unix milliseconds at which the duel of the event expires.
    pub expires_at: i64,
}

pub(super) struct CheckedRequest {
    /// The checked items, in the order of the request.
    pub items: Vec<CheckedItem>,
    /// The events to append, in this order.
    pub events: Vec<CheckedEvent>,
    /// Values of metrics to record.
    pub values: Vec<PageValues>,
    /// The duels that the items name.
    pub duels: BTreeSet<Nonce>,
    /// Whether a `duel_id` was signed with a key that is not known here.
    pub has_unknown_key: bool,
    /// Whether a duel names a ranker or a method that this process has not read from the log yet.
    pub needs_newer_log: bool,
}

/// The events of a request while its items are read.
#[derive(Default)]
struct Drafts {
    drafts: Vec<Draft>,
    values: Vec<PageValues>,
    /// Index in `drafts` of the clicks of each duel that later items can still add to.
    collecting: HashMap<Nonce, usize>,
}

enum Draft {
    Done(CheckedEvent),
    Clicks { page: Arc<OpenedPage>, clicks: PageClicks, last: bool, audience: Audience },
}

impl CheckedRequest {
    /// Check the items of a request, at the time `now` in Unix milliseconds. Pieces of a duel
    /// become one event, unless an item between them settles the duel. `knows` tells whether the
    /// rankers and the method of a duel are known here, `name_of` which experiment has an id.
    pub fn check(
        keys: &SigningKeySet,
        loaded: &LoadedExperiment,
        now: i64,
        knows: impl Fn(&OpenedDuel) -> bool,
        name_of: impl Fn(ExperimentId) -> Option<String>,
        linking: Option<&Linking>,
        feedback: &[Feedback],
    ) -> Self {
        let (spec, units) = (&loaded.spec, UnitHasher::of(loaded));
        // shortly after it became 1, pages are shown that had no part
        let has_outside = spec.coverage < WHOLE_COVERAGE || loaded.traffic().has_outside();
        let mut opened = OpenedDuels::new(keys, linking.map(|linking| linking.seed));
        let mut request = Self {
            items: Vec::with_capacity(feedback.len()),
            events: Vec::new(),
            values: Vec::new(),
            duels: BTreeSet::new(),
            has_unknown_key: false,
            needs_newer_log: false,
        };
        let mut drafts = Drafts::default();
        for item in feedback {
            if item.duel_id.is_empty() && has_outside {
                request.items.push(CheckedItem::Refused(Receipt::outside()));
                continue;
            }
            let number = opened.open(&item.duel_id);
            let checked = match opened.get(number) {
                Ok(opened) if opened.duel.experiment != loaded.id => {
                    let owner = name_of(opened.duel.experiment);
                    CheckedItem::Refused(Receipt::invalid(other_experiment(owner.as_deref())))
                }
                Ok(opened) if !knows(opened) => {
                    request.needs_newer_log = true;
                    CheckedItem::Refused(Receipt::invalid(AHEAD))
                }
                Ok(opened) => {
                    request.duels.insert(opened.duel.nonce);
                    let named = NamedAudience { unit: item.unit.as_deref(), segment: item.segment };
                    // the audience that the duel was issued for stands
                    let audience = opened.duel.audience.or(units.audience(named));
                    let values = item.metrics.as_ref().map(|metrics| {
                        values::read(spec, &opened.duel, metrics, audience.unit, now)
                    });
                    drafts.add_item(
                        opened,
                        item.content.as_ref(),
                        audience,
                        (spec, linking),
                        values,
                    )
                }
                Err(error) => {
                    request.has_unknown_key |= *error == TokenError::UnknownKey;
                    CheckedItem::Refused(Receipt::invalid(not_valid(*error)))
                }
            };
            request.items.push(checked);
        }
        request.events = drafts.drafts.into_iter().map(Draft::event).collect();
        request.values = drafts.values;
        request
    }
}

impl Drafts {
    /// Add an item about a duel.
    fn add_item(
        &mut self,
        opened: &OpenedDuel,
        content: Option<&FeedbackContent>,
        audience: Audience,
        (spec, linking): (&ExperimentSpec, Option<&Linking>),
        values: Option<ReadValues>,
    ) -> CheckedItem {
        let ReadValues { counted, mut ignored, mut is_late, mistake } = values.unwrap_or_default();
        let weights = &spec.pages.event_weights;
        let add = |content| match linking {
            None => self.add_content(opened, content, audience, weights).map(|it| Ok(Some(it))),
            Some(linking) => self.add_links(opened, content, audience, (weights, linking)),
        };
        let mut links_nothing = false;
        let event = match content.map(add).transpose() {
            Ok(None) => None,
            Ok(Some(Ok(event))) => {
                links_nothing = event.is_none();
                event
            }
            Ok(Some(Err((detail, came_late)))) => {
                let ignored_clicks =
                    IgnoredValue { pointer: "/clicks".into(), detail: detail.into() };
                ignored.insert(0, ignored_clicks);
                is_late |= came_late;
                None
            }
            Err(error) => return CheckedItem::Refused(Receipt::refused(error)),
        };
        let values = counted.map(|page| {
            self.values.push(page);
            self.values.len() - 1
        });
        if event.is_some() || values.is_some() {
            return CheckedItem::Counted { event, values, ignored };
        }
        CheckedItem::Refused(match mistake {
            Some(mistake) => Receipt::refused(mistake),
            None if links_nothing && ignored.is_empty() => Receipt::nothing(),
            None => Receipt::ignored(ignored, is_late),
        })
    }

    /// Add the content of an item. Returns the index of its event, and whether earlier items of the
    /// request already have all of it.
    fn add_content(
        &mut self,
        opened: &OpenedDuel,
        content: &FeedbackContent,
        audience: Audience,
        event_weights: &BTreeMap<String, u32>,
    ) -> Result<(usize, bool), FieldError> {
        let nonce = opened.duel.nonce;
        match content {
            FeedbackContent::Outcome(outcome) => {
                self.collecting.remove(&nonce);
                let event = outcome_event(&opened.duel, *outcome, audience);
                Ok((self.push_done(opened, event), false))
            }
            FeedbackContent::Clicks { clicks, last } => {
                let no_page = || FieldError::new("/duel_id", NO_PAGE);
                let page = opened.page.as_ref().ok_or_else(no_page)?;
                let clicks = read_clicks(event_weights, page, clicks)?;
                if *last {
                    self.collecting.remove(&nonce);
                } else if let Some(&event) = self.collecting.get(&nonce) {
                    return Ok((event, !self.drafts[event].merge(page, &clicks)));
                } else {
                    self.collecting.insert(nonce, self.drafts.len());
                }
                let page = Arc::clone(page);
                self.drafts.push(Draft::Clicks { page, clicks, last: *last, audience });
                Ok((self.drafts.len() - 1, false))
            }
        }
    }

    /// Add the clicks of an item, where orders decide.
    fn add_links(
        &mut self,
        opened: &OpenedDuel,
        content: &FeedbackContent,
        audience: Audience,
        (event_weights, linking): (&BTreeMap<String, u32>, &Linking),
    ) -> Result<Result<Option<(usize, bool)>, Unlinked>, FieldError> {
        let FeedbackContent::Clicks { clicks, .. } = content else {
            return Err(FieldError::new("/outcome", NO_OUTCOME));
        };
        let page = opened.page.as_ref().ok_or_else(|| FieldError::new("/duel_id", NO_PAGE))?;
        let clicks = read_clicks(event_weights, page, clicks)?;
        let event = linking.event(page, &clicks, audience);
        Ok(event.map(|event| Some((self.push_done(opened, event?), false))))
    }

    fn push_done(&mut self, opened: &OpenedDuel, event: NewEvent) -> usize {
        self.drafts.push(Draft::Done(CheckedEvent { event, expires_at: opened.duel.expires_at }));
        self.drafts.len() - 1
    }
}

impl Draft {
    fn event(self) -> CheckedEvent {
        match self {
            Self::Done(event) => event,
            Self::Clicks { page, clicks, last, audience } => CheckedEvent {
                event: clicks_event(&page, &clicks, last, audience),
                expires_at: page.duel.expires_at,
            },
        }
    }

    /// Add clicks of the same duel. Returns whether they add anything.
    fn merge(&mut self, piece_of: &Arc<OpenedPage>, piece: &PageClicks) -> bool {
        let Self::Clicks { page, clicks, .. } = self else { return false };
        let mut adds = piece_of.shown() > page.shown();
        if adds {
            *page = Arc::clone(piece_of);
        }
        for (position, weight) in piece.iter() {
            adds |= clicks.add(position, weight);
        }
        adds
    }
}

fn outcome_event(
    token: &DuelToken,
    outcome: ShownOutcome,
    Audience { unit, segment }: Audience,
) -> NewEvent {
    let answer = match (outcome, token.first_left) {
        (ShownOutcome::Left, true) | (ShownOutcome::Right, false) => Answer::First,
        (ShownOutcome::Left, false) | (ShownOutcome::Right, true) => Answer::Second,
        (ShownOutcome::Tie, _) => Answer::Tie,
        (ShownOutcome::None, _) => Answer::None,
    };
    let event = Event::Outcome(OutcomeEvent {
        first: token.first,
        second: token.second,
        first_left: token.first_left,
        answer,
        batch: token.batch,
        ticket: token.ticket,
        chosen_at: token.chosen_at,
        issued_at: token.issued_at,
        unit,
        segment,
    });
    NewEvent::new(token.nonce, event)
}
