//! The segment of a page stays with its answer, and nothing else depends on it.

use dueling_bandits::Selection;
use interleaving::Team;
use rankduel_engine::experiment_spec::ExperimentSpec;
use rankduel_engine::fold::Fold;
use rankduel_store::audience::{Audience, Segment};
use rankduel_store::events::{ClicksEvent, ControlEvent, Event};
use serde_json::json;

use crate::events::{self, CREATED_AT, SEED, changed, entry, excludes, sheet};

const DUEL: u128 = 7;

fn spec() -> ExperimentSpec {
    let spec = json!({"rankers": ["a", "b"], "policy": {"kind": "d-ts"},
        "ties": "half", "duel_ttl_seconds": 60, "seed": SEED});
    serde_json::from_value(spec).expect("a spec")
}

fn segment(name: &str) -> Segment {
    name.try_into().expect("a segment")
}

fn clicks(audience: Audience) -> Event {
    let sheet = sheet([Team::Left, Team::Right].into_iter());
    let Audience { unit, segment } = audience;
    let event = events::clicks(Selection::of(0, 1), DUEL, 1, sheet, vec![0]);
    Event::Control(ControlEvent::Clicks(Box::new(ClicksEvent { unit, segment, ..event })))
}

/// A page is saved between its clicks and the entry that settles it.
#[test]
fn a_saved_page_keeps_its_audience() {
    let plain = spec();
    let excluding = plain.patched(&excludes(1)).expect("valid");
    for spec in [plain, excluding] {
        for unit in [None, Some(3)] {
            for name in [None, Some("mobile")] {
                let audience = Audience { unit, segment: name.map(segment) };
                let mut fold = Fold::start(&spec, SEED, CREATED_AT);
                let mut position = 0;
                let mut next = |nonce, event| {
                    position += 1;
                    entry(position, Some(nonce), event)
                };
                if spec.excluded_units().next().is_some() {
                    fold.apply(&next(1, changed(&excludes(1)))).expect("an exclusion");
                }
                fold.apply(&next(2, clicks(audience))).expect("clicks");
                // the audience that was named first stands
                let other = Audience { segment: Some(segment("desktop")), ..audience };
                if name.is_some() {
                    fold.apply(&next(3, clicks(other))).expect("clicks");
                }
                let saved = fold.save();
                let mut restored = Fold::restore(&spec, SEED, &saved).expect("a saved state");
                assert_eq!(restored.save(), saved);
                let settles = next(DUEL, Event::Control(ControlEvent::Settled {}));
                let answered = restored
                    .apply_chunk(|chunk| chunk.apply(&settles))
                    .expect("an entry that follows")
                    .expect("an answer");
                assert_eq!((answered.unit, answered.segment), (audience.unit, audience.segment));
                fold.apply(&settles).expect("an entry that follows");
                assert_eq!(restored.save(), fold.save());
            }
        }
    }
}

#[test]
fn no_state_depends_on_the_segment() {
    let folded = |segment| {
        let mut fold = Fold::start(&spec(), SEED, CREATED_AT);
        let audience = Audience { unit: Some(3), segment };
        fold.apply(&entry(1, Some(DUEL), clicks(audience))).expect("clicks that settle their duel");
        fold.save()
    };
    assert_eq!(folded(None), folded(Some(segment("mobile"))));
}
