//! Rankings, pins and clicks with every method: pages keep their guarantees, and credit does not
//! depend on the order of clicks.

use std::collections::BTreeSet;

use interleaving::{
    Click, DuelCoins, Outcome, Page, Pin, PlanCache, Plans, Request, Spec, Uncached, alone, credit,
    interleave,
};

use super::bytes::Bytes;

/// Each method, with several values of its parameters.
const METHODS: [&str; 20] = [
    "team-draft",
    "team-draft:shared=credit-all",
    "team-draft:shared=ignore-prefix",
    "team-draft:shared=ignore-same-rank",
    "team-draft:shared=ignore-round",
    "team-draft:depth_policy=max",
    "balanced:depth_policy=uncut",
    "probabilistic",
    "probabilistic:verdict=drawn",
    "probabilistic:credit=expected-clicks,tau=1",
    "optimized:depth=4",
    "optimized:depth=3,credit=linear",
    "optimized:depth=10,max_lists=2",
    "optimized",
    "optimized:verdict=sign",
    "probabilistic:verdict=sign",
    "probabilistic:credit=expected-clicks,click_weights={\"lowest\":3,\"only\":100}",
    "team-draft:verdict=score",
    "balanced",
    "balanced:credit=debiased,verdict=score",
];

/// The input is `method · coins · offset · length · lists · pins · clicks`. The method is one byte.
/// After the byte 255, it is text up to the end of the line.
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let which = bytes.byte();
    let text = if which == u8::MAX {
        let end = bytes.0.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.0.len());
        let Ok(text) = std::str::from_utf8(bytes.take(end)) else { return };
        bytes.byte();
        text
    } else {
        METHODS[usize::from(which) % METHODS.len()]
    };
    let Ok(spec) = Spec::from_text(text) else {
        assert_eq!(which, u8::MAX, "{text}");
        return;
    };
    let written = serde_json::to_string(&spec).expect("JSON");
    assert_eq!(serde_json::from_str::<Spec>(&written).expect("the written spec"), spec);

    let seed = [bytes.byte(); 32];
    let (offset, length) = (bytes.below(8), bytes.below(16));
    let [left, right] = [(); 2].map(|()| {
        let count = bytes.below(24);
        bytes.take(count).iter().map(u8::to_string).collect::<Vec<_>>()
    });
    let pins = bytes.below(4);
    let pinned: Vec<_> = (0..pins)
        .map(|_| Pin {
            document: bytes.byte().to_string(),
            position: usize::from(bytes.byte()) * 4,
        })
        .collect();
    let request = Request { left: &left, right: &right, offset, length, pinned: &pinned };
    let drawn = |request: &Request<'_, String>, plans: &dyn Plans| {
        interleave(&spec, request, &mut DuelCoins::drafting(seed), plans)
            .map(|page| OwnedPage::of(&page))
    };
    let Ok(page) = interleave(&spec, &request, &mut DuelCoins::drafting(seed), &Uncached) else {
        assert!(length == 0 || pins > 0, "{request:?}");
        return;
    };
    check(&page, &request);

    // the same request again, with a cache; and one page that covers all positions
    let shown = OwnedPage::of(&page);
    let cache = PlanCache::new(1);
    assert_eq!(drawn(&request, &cache).as_ref(), Ok(&shown));
    assert_eq!(drawn(&request, &cache).as_ref(), Ok(&shown));
    let whole = drawn(&Request { offset: 0, length: offset + length, ..request }, &Uncached);
    assert_eq!(whole.expect("one page of the same list").all, shown.all, "{text}");
    if let Ok(page) = alone(&left, offset, length, &pinned) {
        assert!(!page.is_informative());
    }

    let clicks: Vec<_> = std::iter::from_fn(|| (!bytes.is_empty()).then(|| bytes.byte()))
        .take(40)
        .map(|byte| Click { position: usize::from(byte & 31), weight: u32::from(byte >> 5) })
        .collect();
    check_credit(&spec, &page, &clicks, seed);
}

/// The content of a page, without borrows.
#[derive(Debug, PartialEq)]
struct OwnedPage {
    all: Vec<(String, usize, bool)>,
    here: usize,
    total: usize,
}

impl OwnedPage {
    fn of(page: &Page<'_>) -> Self {
        let all = page.shown().iter();
        Self {
            all: all
                .map(|slot| (slot.document.to_owned(), slot.position, slot.competitive))
                .collect(),
            here: page.slots.len(),
            total: page.total,
        }
    }
}

fn check(page: &Page<'_>, request: &Request<'_, String>) {
    let Request { left, right, offset, length, pinned } = *request;
    let known: BTreeSet<&str> = left
        .iter()
        .chain(right)
        .chain(pinned.iter().map(|pin| &pin.document))
        .map(String::as_str)
        .collect();
    let shown: BTreeSet<&str> = page.shown().iter().map(|slot| slot.document).collect();
    assert_eq!(shown.len(), page.shown().len(), "a document appears twice: {page:?}");
    assert!(shown.is_subset(&known), "a document that is in no list and not pinned: {page:?}");
    assert!(page.total <= known.len(), "{page:?}");
    assert_eq!(page.shown().len(), page.total.min(offset + length), "a slot is missing: {page:?}");
    assert_eq!(page.slots.len(), page.shown().len().saturating_sub(offset));
    assert_eq!(page.sheet.slots.len(), page.shown().len());
    for (position, slot) in page.shown().iter().enumerate() {
        assert_eq!((slot.position, page.position_of(slot.document)), (position, Ok(position)));
        assert_eq!(slot.pinned, pinned.iter().any(|pin| pin.document == slot.document));
        assert!(
            !(slot.competitive && slot.team.is_none()),
            "a competitive slot without a team: {slot:?}"
        );
    }
}

fn check_credit(spec: &Spec, page: &Page<'_>, clicks: &[Click], seed: [u8; 32]) {
    let credited =
        |clicks: &[Click]| credit(spec, &page.sheet, clicks, &mut DuelCoins::crediting(seed));
    let earned = credited(clicks);
    let good = clicks.iter().all(|click| click.position < page.shown().len() && click.weight > 0);
    assert_eq!(earned.is_ok(), good, "{clicks:?}");
    let Ok(earned) = earned else { return };
    assert!(earned.left.is_finite() && earned.right.is_finite(), "{earned:?}");
    assert_eq!(earned.outcome == Outcome::None, earned.no_signal.is_some(), "{earned:?}");
    assert!(page.is_informative() || earned.outcome == Outcome::None, "{earned:?}");
    let turned: Vec<Click> = clicks.iter().chain(clicks.iter().rev()).copied().collect();
    assert_eq!(credited(&turned).as_ref(), Ok(&earned), "order or repeats matter");
}
