//! Changes of an experiment: what can change after its creation, and by which rule.
//!
//! A [`Patch`] is the body of a request, and the entry of the log that records the change. The spec
//! after it is a function of the spec before it, so the newest spec is a fold over the log.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::schema::RefBuilder;
use utoipa::openapi::{RefOr, Schema};

use super::conclude_at::{ConcludeAt, ConcludeAtChange};
use super::errors::Errors;
use super::exclusions::Exclusion;
use super::field_error::{FieldError, excerpt};
use super::object::optional_map;
use super::or_never::{ConclusionChangeShape, OrNever};
use super::page_rules::MAX_METHOD_VERSIONS;
use super::ranker::Ranker;
use super::spec::{ExperimentSpec, RANKERS_MAX, WHOLE_COVERAGE};
use dueling_bandits::MIN_RANKERS;
use dueling_bandits::evidence::Target;
use rankduel_store::events::Status;
use rankduel_store::label::as_seen;

/// A change of an experiment. Members that are left out stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ExperimentChange)]
#[serde(deny_unknown_fields)]
pub struct Patch {
    /// `running` issues duels; `paused` issues none and still accepts feedback; `concluded` shows
    /// only the winner.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub status: Option<Status>,
    /// The ranker to conclude with. Only allowed with `status` `concluded`; the default is the
    /// leader of `/verdict`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub winner: Option<String>,
    /// Whether the change archives the experiment. A request that contains this is refused;
    /// [`Patch::read`] alone reads it.
    #[serde(skip_deserializing, skip_serializing_if = "std::ops::Not::not")]
    #[schema(ignore)]
    pub archived: bool,
    /// Why the service makes the change by itself. Read as `archived`.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub reason: Option<String>,
    /// The method of interleaving.
    #[serde(default, deserialize_with = "optional_map", skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = interleaving_schema)]
    pub interleaving: Option<Map<String, Value>>,
    /// The ranker that people see today. Claims are made against it, with the answers to duels
    /// issued after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub control: Option<String>,
    /// A ranker to add.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = ranker_schema)]
    pub enlist: Option<Ranker>,
    /// A ranker to retire. It is never chosen again; feedback on its duels that were issued before
    /// still counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retire: Option<String>,
    /// Purpose of the experiment, on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000, nullable = false)]
    pub description: Option<String>,
    /// The person or team to ask about the experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 200, nullable = false)]
    pub owner: Option<String>,
    /// When the experiment concludes by itself. The limits can change, the verdict's target cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ConclusionChangeShape>, nullable = false)]
    pub conclude_at: Option<OrNever<ConcludeAtChange>>,
    /// The answer window of duels that are issued after the change, which are counted after those
    /// before it. It changes neither from nor to 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 2_592_000, nullable = false)]
    pub answer_window_seconds: Option<u32>,
    /// Share of units that take part from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0.0, maximum = 1.0, nullable = false)]
    pub coverage: Option<f64>,
    /// Always refused: it is fixed at creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(ignore)]
    pub decide_by: Option<Value>,
    /// Units, such as machines, whose answers do not count, before and after the change.
    #[serde(
        default,
        deserialize_with = "super::object::optional",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(nullable = false)]
    pub exclude: Option<Exclusion>,
}

fn interleaving_schema() -> RefOr<Schema> {
    let description = "The method for duels chosen after the change. The state of the policy is kept; \
                       statistics are separate for each version.";
    let schema = RefBuilder::new().ref_location_from_schema_name("Interleaving");
    schema.description(Some(description)).into()
}

fn ranker_schema() -> RefOr<Schema> {
    let description = "A ranker to add. Adding a ranker that is already in the experiment, with \
                       the same description, changes nothing.";
    let schema = RefBuilder::new().ref_location_from_schema_name("RankerBody");
    schema.description(Some(description)).into()
}

/// Why an experiment does not change.
#[derive(Debug, Clone, PartialEq)]
pub enum Refused {
    /// The changed spec would be invalid.
    Invalid(Vec<FieldError>),
    /// The rankers cannot change in this way: the reason, with a remedy.
    FixedRankers(String),
    /// The setting is fixed at creation: which, with a remedy.
    Fixed(String),
}

impl Refused {
    fn at(pointer: &str, detail: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError::new(pointer, detail)])
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::FixedRankers(why) | Self::Fixed(why) => f.write_str(why),
            Self::Invalid(errors) => {
                let mut details = errors.iter().map(|error| &error.detail);
                f.write_str(details.next().map_or("it is invalid", |detail| detail))
            }
        }
    }
}

impl Patch {
    /// The change as the log keeps it.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("strings, numbers and lists always serialise")
    }

    /// The inverse of [`Patch::to_json`].
    pub fn read(patch: &Value) -> Result<Self, String> {
        let members = || {
            let mut members = Map::deserialize(patch)?;
            let [archived, reason] = ["archived", "reason"].map(|name| members.remove(name));
            let archived = archived.map(bool::deserialize).transpose()?.unwrap_or_default();
            let reason = reason.map(String::deserialize).transpose()?;
            Ok(Self { archived, reason, ..Self::deserialize(Value::Object(members))? })
        };
        members()
            .map_err(|error: serde_json::Error| format!("this version cannot read it: {error}"))
    }

    /// Whether the patch changes the status, the winner or the archive: the record, and not the
    /// spec.
    fn changes_lifecycle(&self) -> bool {
        self.status.is_some() || self.winner.is_some() || self.archived
    }

    /// Whether the patch changes the spec. A patch that does not is a change of the status.
    pub fn changes_spec(&self) -> bool {
        let Self { status: _, winner: _, archived: _, reason: _, .. } = self;
        let lifecycle = Self {
            status: self.status,
            winner: self.winner.clone(),
            archived: self.archived,
            reason: self.reason.clone(),
            ..Self::default()
        };
        *self != lifecycle
    }

    /// Whether the patch asks for nothing.
    pub fn is_empty(&self) -> bool {
        !self.changes_lifecycle() && !self.changes_spec()
    }
}

impl ExperimentSpec {
    /// The spec after a change, which is equal to this one if nothing changes.
    pub fn patched(&self, patch: &Patch) -> Result<Self, Refused> {
        if let Some(fixed) = self.fixed_by_orders(patch) {
            let why = format!(
                "`{fixed}` is fixed at creation, because it says which orders count: create \
                 another experiment"
            );
            return Err(Refused::Fixed(why));
        }
        let mut spec = self.clone();
        spec.set_texts(patch);
        spec.set_answers(patch)?;
        spec.set_interleaving(patch)?;
        if let Some(ranker) = &patch.enlist {
            spec.enlist(ranker)?;
        }
        if let Some(id) = &patch.control {
            spec.control = Some(id.clone());
        }
        if let Some(id) = &patch.retire {
            // what is wrong without the retirement is not its fault
            spec.refuse_errors(self)?;
            spec.retire(id)?;
        }
        if let Some(id) = &patch.control {
            spec.refuse_retired(id)?;
        }
        if let Some(exclusion) = &patch.exclude {
            spec.exclude(exclusion)?;
        }
        spec.refuse_errors(self)?;
        Ok(spec)
    }

    /// The member of a patch that cannot change because of `decide_by`.
    fn fixed_by_orders(&self, patch: &Patch) -> Option<&'static str> {
        let sets_window = self.decide_by.is_some() && patch.answer_window_seconds.is_some();
        let window = sets_window.then_some("answer_window_seconds");
        patch.decide_by.as_ref().map(|_| "decide_by").or(window)
    }

    /// Refuse a change of `before` to an invalid spec.
    fn refuse_errors(&self, before: &Self) -> Result<(), Refused> {
        match self.errors() {
            errors if errors.is_empty() || self == before => Ok(()),
            errors => Err(Refused::Invalid(errors)),
        }
    }

    fn set_texts(&mut self, patch: &Patch) {
        if let Some(description) = &patch.description {
            self.description.clone_from(description);
        }
        if let Some(owner) = &patch.owner {
            self.owner.clone_from(owner);
        }
        self.coverage = patch.coverage.unwrap_or(self.coverage);
    }

    fn set_answers(&mut self, patch: &Patch) -> Result<(), Refused> {
        if let Some(window) = patch.answer_window_seconds {
            if (window == 0) != self.counts_at_once() {
                let detail = format!(
                    "`answer_window_seconds` is {}, and changes neither from nor to 0: answers that \
                     count as they arrive follow another rule; create another experiment",
                    self.answer_window_seconds
                );
                return Err(Refused::at("/answer_window_seconds", detail));
            }
            self.answer_window_seconds = window;
        }
        if let Some(OrNever(change)) = patch.conclude_at {
            self.conclude_at =
                concluded_at(change, self).map_err(|error| Refused::Invalid(vec![error]))?;
        }
        Ok(())
    }

    fn set_interleaving(&mut self, patch: &Patch) -> Result<(), Refused> {
        let Some(method) = &patch.interleaving else { return Ok(()) };
        let method = interleaving::Spec::from_json(method.clone())
            .and_then(|method| method.validate().map(|()| method))
            .map_err(|error| {
                let pointer = match error.parameter.as_str() {
                    "" => "/interleaving".to_owned(),
                    name => format!("/interleaving/{}", super::pointer_part(name)),
                };
                Refused::at(&pointer, error.detail)
            })?;
        if self.pages.interleaving == method {
            return Ok(());
        }
        if self.pages.interleaving_version >= MAX_METHOD_VERSIONS {
            let detail = format!(
                "the experiment has had {MAX_METHOD_VERSIONS} methods, which is the limit; create \
                 a new experiment"
            );
            return Err(Refused::at("/interleaving", detail));
        }
        self.pages.interleaving = method;
        self.pages.interleaving_version += 1;
        Ok(())
    }

    /// Refuse to name a control that is retired after the change.
    fn refuse_retired(&self, control: &str) -> Result<(), Refused> {
        if self.ranker_index(control).is_some_and(|ranker| self.is_retired(ranker)) {
            let detail = format!("ranker `{control}` is retired; name an active one");
            return Err(Refused::at("/control", detail));
        }
        Ok(())
    }

    fn enlist(&mut self, ranker: &Ranker) -> Result<(), Refused> {
        if let Some(index) = self.ranker_index(&ranker.id) {
            return match (self.is_retired(index), self.rankers[index] == *ranker) {
                (false, true) => Ok(()),
                (true, _) => Err(Refused::FixedRankers(format!(
                    "ranker `{}` was retired, and its id names its answers; enlist it under another id",
                    ranker.id
                ))),
                (false, false) => Err(Refused::FixedRankers(format!(
                    "the experiment has a ranker `{}` with another description; enlist this one under \
                     another id",
                    ranker.id
                ))),
            };
        }
        self.refuse_fixed_rankers()?;
        if self.rankers.iter().any(|other| as_seen(&other.id) == as_seen(&ranker.id)) {
            let detail = format!("ranker `{}` looks the same as another one", ranker.id);
            return Err(Refused::at("/enlist/id", detail));
        }
        let index = self.rankers.len();
        if self.decide_by.is_some() && index == MIN_RANKERS {
            return Err(Refused::FixedRankers(
                "orders decide this experiment of two rankers, whose pages may have had no `unit` \
                 when they were requested; create another one with all rankers"
                    .into(),
            ));
        }
        if index >= RANKERS_MAX {
            return Err(Refused::FixedRankers(format!(
                "the experiment has had {RANKERS_MAX} rankers, including retired ones, which is the \
                 limit; create another experiment with those that are still of interest"
            )));
        }
        self.rankers.push(ranker.clone());
        let own = format!("/rankers/{index}");
        let errors = self.errors().into_iter().filter_map(|error| {
            let at = error.pointer.strip_prefix(&own)?;
            Some(FieldError::new(format!("/enlist{at}"), error.detail))
        });
        match errors.collect::<Vec<_>>() {
            errors if errors.is_empty() => Ok(()),
            errors => Err(Refused::Invalid(errors)),
        }
    }

    fn retire(&mut self, id: &str) -> Result<(), Refused> {
        let Some(index) = self.ranker_index(id) else {
            let detail = format!("the experiment has no ranker `{}`", excerpt(id));
            return Err(Refused::at("/retire", detail));
        };
        if self.is_retired(index) {
            return Ok(());
        }
        let refuse = |why: String| Err(Refused::FixedRankers(why));
        let is_shown = self.coverage < WHOLE_COVERAGE || self.alone > 0.0;
        // without its pages, a difference to it would stay open for good
        let is_compared = self.metrics.iter().any(|metric| metric.difference.is_some());
        if (is_shown || is_compared) && self.control.as_deref() == Some(id) {
            let why = match is_shown {
                true => "is shown alone (`coverage`, `alone`)",
                false => "metrics compare with (`difference`)",
            };
            return refuse(format!(
                "ranker `{id}` is the control, which {why}; name another control first"
            ));
        }
        if self.held_out() == Some(index) {
            return refuse(format!(
                "ranker `{id}` is the second id of the canary and takes no part in the tournament; \
                 retire its first id to end the comparison"
            ));
        }
        if self.roster().is_none_or(|roster| roster.active().len() <= MIN_RANKERS) {
            return refuse(format!(
                "without ranker `{id}`, there would be fewer than {MIN_RANKERS} rankers; enlist \
                 another one first, or conclude the experiment"
            ));
        }
        self.refuse_fixed_rankers()?;
        self.retired.push(index as u16);
        match self.errors().into_iter().next() {
            Some(error) => refuse(format!("without ranker `{id}`, {}", error.detail)),
            None => Ok(()),
        }
    }

    /// Refuse any change of the rankers that the policy does not allow.
    fn refuse_fixed_rankers(&self) -> Result<(), Refused> {
        let Some(why) = self.policy.description().fixed_rankers else { return Ok(()) };
        Err(Refused::FixedRankers(format!(
            "policy `{}` cannot add or retire rankers: {why}",
            self.policy.kind()
        )))
    }

    /// Units that are excluded already are left out; without another one, nothing changes.
    fn exclude(&mut self, exclusion: &Exclusion) -> Result<(), Refused> {
        let mut wanted = exclusion.clone();
        wanted.hashes.sort_unstable();
        wanted.hashes.dedup();
        let known: std::collections::BTreeSet<_> = self.excluded_units().collect();
        let is_named = !wanted.hashes.is_empty();
        wanted.hashes.retain(|unit| !known.contains(unit));
        if !is_named {
            let detail = "name at least one unit, in `units` or `hashes`";
            return Err(Refused::at("/exclude", detail));
        }
        if !wanted.hashes.is_empty() {
            self.exclusions.push(wanted);
        }
        Ok(())
    }
}

/// `conclude_at` of this spec after the change; `None` is never. The evidence of an experiment was
/// collected for one target of the verdict, so that stays.
fn concluded_at(
    change: Option<ConcludeAtChange>,
    spec: &ExperimentSpec,
) -> Result<Option<ConcludeAt>, FieldError> {
    let at = change.map(|change| change.applied_to(spec.conclude_at)).transpose()?;
    let own = spec.verdict_target();
    let target = Errors::targets(spec.errors, at).verdict;
    if own != target {
        let detail = format!(
            "the verdict has confidence {} and margin {}, which cannot change, and without \
             `conclude_at` it would have {} and {}",
            own.confidence, own.margin, target.confidence, target.margin
        );
        return Err(FieldError::new("/conclude_at", detail));
    }
    match at.and_then(|_| other_target(spec, target)) {
        Some(error) => Err(error),
        None => Ok(at),
    }
}

/// The error of a rule that concludes at another target than the policy works towards.
fn other_target(spec: &ExperimentSpec, target: Target) -> Option<FieldError> {
    let policy = serde_json::to_value(&spec.policy).unwrap_or_default();
    let values = [("confidence", target.confidence), ("margin", target.margin)];
    values.into_iter().find_map(|(name, value)| {
        let own = policy[name].as_f64().filter(|own| *own != value)?;
        let detail = format!(
            "the experiment would conclude at `{name}` {value}, and its policy works towards {own}: \
             create another experiment"
        );
        Some(FieldError::new("/conclude_at", detail))
    })
}
