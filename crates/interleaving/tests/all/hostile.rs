//! Unusual requests: repeats, empty rankings, ten thousand documents, and unusual ids, pins and
//! pages.

use interleaving::{
    Click, DuelCoins, InvalidClick, InvalidRequest, NoSignal, Note, Outcome, Page, Pin, PlanCache,
    Plans, Request, Spec, Uncached, alone, credit, interleave,
};

const METHODS: [&str; 5] =
    ["team-draft", "balanced", "balanced:credit=debiased", "probabilistic", "optimized"];

fn spec(text: &str) -> Spec {
    Spec::from_text(text).expect(text)
}

fn page<'a>(method: &str, request: &Request<'a, &'a str>) -> Result<Page<'a>, InvalidRequest> {
    interleave(&spec(method), request, &mut DuelCoins::drafting([3; 32]), &Uncached)
}

fn request<'a>(left: &'a [&'a str], right: &'a [&'a str]) -> Request<'a, &'a str> {
    Request { left, right, offset: 0, length: 10, pinned: &[] }
}

/// Documents `l0`, `l1` and so on.
fn numbered(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}")).collect()
}

/// The first `length` documents of a page of two lists.
fn top<'a>(left: &'a [String], right: &'a [String], length: usize) -> Request<'a, String> {
    Request { left, right, offset: 0, length, pinned: &[] }
}

fn shown<'a>(page: &Page<'a>) -> Vec<&'a str> {
    page.slots.iter().map(|slot| slot.document).collect()
}

#[test]
fn repeats_are_dropped_and_counted() {
    for method in METHODS {
        let page = page(method, &request(&["a", "a", "b", "a"], &["b", "b", "a"])).unwrap();
        assert_eq!(page.repeats, [2, 1], "{method}");
        assert_eq!(page.slots.len(), 2);
        let of_a = page.slots.iter().find(|slot| slot.document == "a").unwrap();
        assert_eq!((of_a.rank_left, of_a.rank_right), (Some(1), Some(2)));
    }
}

#[test]
fn two_empty_rankings_give_an_empty_page_and_one_gives_a_page_without_credit() {
    for method in METHODS {
        let empty = page(method, &request(&[], &[])).unwrap();
        assert!(empty.slots.is_empty() && !empty.is_informative() && empty.total == 0);
        for (left, right) in [(&["a", "b"][..], &[][..]), (&[], &["a", "b"])] {
            let page = page(method, &request(left, right)).unwrap();
            assert_eq!(shown(&page), ["a", "b"], "{method}");
            assert!(page.slots.iter().all(|slot| !slot.competitive));
            let clicked = credit(
                &spec(method),
                &page.sheet,
                &[Click::at(0)],
                &mut DuelCoins::crediting([3; 32]),
            )
            .unwrap();
            assert_eq!(clicked.outcome, Outcome::None);
            assert_eq!(clicked.no_signal, Some(NoSignal::NotInformative));
        }
    }
}

#[test]
fn a_ranker_shown_alone_earns_no_credit() {
    let page = alone(&["a", "b", "c"], 1, 5, &[]).unwrap();
    assert_eq!(shown(&page), ["b", "c"]);
    assert!(!page.is_informative());
    assert!(page.slots.iter().all(|slot| !slot.competitive));
}

#[test]
fn ten_thousand_documents_are_accepted_and_more_are_refused() {
    let left = numbered("document ", 10_000);
    let right: Vec<String> = left.iter().rev().cloned().collect();
    for method in METHODS {
        let request = Request { offset: 990, ..top(&left, &right, 10) };
        let mut coins = DuelCoins::drafting([3; 32]);
        let page = interleave(&spec(method), &request, &mut coins, &Uncached).unwrap();
        assert_eq!((page.slots.len(), page.total), (10, 10_000), "{method}");
        let clicks = [Click::at(0), Click::at(999)];
        let earned =
            credit(&spec(method), &page.sheet, &clicks, &mut DuelCoins::crediting([3; 32]))
                .unwrap();
        assert!(earned.left.is_finite() && earned.right.is_finite());
    }
    let longer = numbered("", 10_001);
    let request = top(&left, &longer, 10);
    let refused =
        interleave(&spec("balanced"), &request, &mut DuelCoins::drafting([3; 32]), &Uncached);
    assert_eq!(refused, Err(InvalidRequest::TooManyDocuments { side: "right", documents: 10_001 }));
}

#[test]
fn ids_are_returned_unchanged() {
    let odd = ["", "\"", "a\nb", "\u{0}", "☃", "a b", "'; --", "\\", "\u{202e}x", "a"];
    let turned: Vec<&str> = odd.iter().rev().copied().collect();
    for method in METHODS {
        let page = page(method, &request(&odd, &turned)).unwrap();
        let mut found = shown(&page);
        found.sort_unstable();
        let mut expected = odd;
        expected.sort_unstable();
        assert_eq!(found, expected, "{method}");
        for slot in &page.slots {
            assert_eq!(page.position_of(slot.document), Ok(slot.position));
        }
    }
}

#[test]
fn pins_keep_their_positions_and_earn_no_credit() {
    let pin = |document, position| Pin { document, position };
    for method in METHODS {
        let pinned = [pin("ad", 1), pin("b", 3), pin("late", 40)];
        let request = Request { pinned: &pinned, ..request(&["a", "b", "c"], &["c", "b", "d"]) };
        let page = page(method, &request).unwrap();
        let ids = shown(&page);
        // `late` comes last because there are fewer than forty results.
        assert_eq!((ids[1], ids[3], ids[ids.len() - 1]), ("ad", "b", "late"), "{method}: {ids:?}");
        assert_eq!(ids.iter().filter(|&&id| id == "b").count(), 1);
        for slot in &page.slots {
            assert_eq!(slot.pinned, slot.team.is_none());
            assert!(!(slot.pinned && slot.competitive));
        }
        let clicks = [Click::at(1), Click::at(3)];
        let earned =
            credit(&spec(method), &page.sheet, &clicks, &mut DuelCoins::crediting([3; 32]))
                .unwrap();
        assert_eq!((earned.outcome, earned.ignored), (Outcome::None, 2));
        assert_eq!(earned.no_signal, Some(NoSignal::NothingCreditable));
        // Ranks are those in the rankings without the pinned documents.
        let of_c = page.slots.iter().find(|slot| slot.document == "c").unwrap();
        assert_eq!((of_c.rank_left, of_c.rank_right), (Some(2), Some(1)));
    }
}

#[test]
fn pins_stay_in_place_on_every_page() {
    let (left, right) = (numbered("l", 20), numbered("r", 20));
    let pinned: Vec<Pin<String>> =
        [0, 9, 10, 19].map(|position| Pin { document: format!("pin {position}"), position }).into();
    for method in METHODS {
        let page = |offset, length| {
            let request = Request { left: &left, right: &right, offset, length, pinned: &pinned };
            interleave(&spec(method), &request, &mut DuelCoins::drafting([9; 32]), &Uncached)
                .unwrap()
        };
        let whole = page(0, 30);
        for pin in &pinned {
            assert_eq!(whole.slots[pin.position].document, pin.document);
        }
        let pieces: Vec<String> = (0..30)
            .step_by(10)
            .flat_map(|offset| {
                page(offset, 10).slots.iter().map(|s| s.document.to_string()).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(shown(&whole), pieces, "{method}");
    }
}

#[test]
fn invalid_requests_have_an_error_each() {
    fn pin(document: &str, position: usize) -> Pin<&str> {
        Pin { document, position }
    }
    let base = request(&["a"], &["b"]);
    let refused = |request: Request<'_, &str>| page("team-draft", &request).unwrap_err();
    let with = |pinned: &[Pin<&str>]| refused(Request { pinned, ..base });
    assert_eq!(refused(Request { length: 0, ..base }), InvalidRequest::NoLength);
    for offset in [991, usize::MAX] {
        let error = InvalidRequest::TooDeep { offset, length: 10 };
        assert_eq!(refused(Request { offset, ..base }), error);
    }
    let out = InvalidRequest::PinOutOfRange { index: 0, position: 1000 };
    assert_eq!(with(&[pin("x", 1000)]), out);
    let collide = InvalidRequest::PinsCollide { first: 0, second: 1, position: 2 };
    assert_eq!(with(&[pin("x", 2), pin("y", 2)]), collide);
    let twice = InvalidRequest::PinnedTwice { first: 0, second: 1 };
    assert_eq!(with(&[pin("x", 2), pin("x", 3)]), twice);
    let many = numbered("", 101);
    let pins: Vec<Pin<&str>> =
        many.iter().enumerate().map(|(at, id)| pin(id.as_str(), at)).collect();
    assert_eq!(
        refused(Request { pinned: &pins, ..base }),
        InvalidRequest::TooManyPins { pins: 101 }
    );
}

#[test]
fn a_page_beyond_the_end_is_empty() {
    for method in METHODS {
        let request = Request { offset: 500, ..request(&["a", "b"], &["b", "c"]) };
        let page = page(method, &request).unwrap();
        assert!(page.slots.is_empty());
        assert_eq!(page.total, 3, "{method}");
        // The sheet still has the slots before it.
        assert_eq!(page.sheet.slots.len(), 3);
    }
}

#[test]
fn invalid_clicks_are_refused() {
    let page = page("team-draft", &request(&["a", "b"], &["b", "a"])).unwrap();
    let earned = |click| {
        credit(&spec("team-draft"), &page.sheet, &[click], &mut DuelCoins::crediting([3; 32]))
    };
    assert_eq!(earned(Click::at(2)), Err(InvalidClick::Outside { position: 2, shown: 2 }));
    assert_eq!(
        earned(Click::at(usize::MAX)),
        Err(InvalidClick::Outside { position: usize::MAX, shown: 2 })
    );
    for weight in [0, 101, u32::MAX] {
        assert_eq!(
            earned(Click { position: 0, weight }),
            Err(InvalidClick::Weight { position: 0, weight })
        );
    }
    assert_eq!(page.position_of("z"), Err(InvalidClick::Document("z".into())));
}

#[test]
fn a_sheet_survives_serialization() {
    for method in METHODS {
        let page = page(method, &request(&["a", "b", "c"], &["c", "x", "a"])).unwrap();
        let bytes = serde_json::to_vec(&page.sheet).unwrap();
        assert_eq!(
            serde_json::from_slice::<interleaving::CreditSheet>(&bytes).unwrap(),
            page.sheet
        );
    }
}

#[test]
fn too_many_lists_fall_back_to_team_draft_with_a_note() {
    let (left, right) = (numbered("l", 10), numbered("r", 10));
    let request = top(&left, &right, 10);
    let capped = spec("optimized:max_lists=1023");
    let page = |spec: &Spec| {
        interleave(spec, &request, &mut DuelCoins::drafting([5; 32]), &Uncached).unwrap()
    };
    let fallen = page(&capped);
    assert_eq!(fallen.note, Some(Note::FellBack));
    assert!(fallen.sheet.fell_back);
    assert_eq!(fallen.slots, page(&spec("team-draft")).slots);
    // Clicks are credited as in team draft.
    let clicks = [Click::at(0)];
    let earned = |spec: &Spec, page: &Page<'_>| {
        credit(spec, &page.sheet, &clicks, &mut DuelCoins::crediting([5; 32])).unwrap()
    };
    assert_eq!(earned(&capped, &fallen), earned(&spec("team-draft"), &fallen));
}

#[test]
fn a_cache_changes_no_page_and_keeps_its_capacity() {
    let cache = PlanCache::new(2000);
    let optimized = spec("optimized:depth=4");
    let left = numbered("", 4);
    for turn in 0..3 {
        for shift in 0..8 {
            let right: Vec<String> =
                (0..4).map(|n| ((n + shift) % (shift + 3)).to_string()).collect();
            let request = top(&left, &right, 4);
            let with = |plans: &dyn Plans| {
                interleave(&optimized, &request, &mut DuelCoins::drafting([turn; 32]), plans)
                    .unwrap()
            };
            assert_eq!(with(&cache), with(&Uncached));
            assert!(cache.len() <= 5);
        }
    }
    assert!(!cache.is_empty());
}

#[test]
fn lists_with_the_same_permutation_share_a_plan() {
    let cache = PlanCache::new(10_000);
    for ids in [["a", "b", "c"], ["x", "y", "z"]] {
        let right = [ids[1], ids[2], ids[0]];
        let request = Request { left: &ids[..], right: &right, offset: 0, length: 3, pinned: &[] };
        interleave(&spec("optimized"), &request, &mut DuelCoins::drafting([1; 32]), &cache)
            .unwrap();
    }
    assert_eq!(cache.len(), 1);
}

#[test]
fn the_first_page_bounds_the_depth_of_a_list_and_its_sheet_carries_it() {
    let left = numbered("", 8);
    let right: Vec<String> = [2, 9, 0, 4, 1, 8, 3, 7].iter().map(i32::to_string).collect();
    let whole = spec("optimized");
    let (first, stated) = (whole.for_first_page(3), spec("optimized:depth=3"));
    for turn in 0..20 {
        for length in [3, 8] {
            let request = top(&left, &right, length);
            let page = |spec: &Spec| {
                let mut coins = DuelCoins::drafting([turn; 32]);
                interleave(spec, &request, &mut coins, &Uncached).unwrap()
            };
            assert_eq!(page(&first), page(&stated));
            let sheet = page(&first).sheet;
            for clicks in [vec![0], vec![1, 4], vec![2, 7], vec![5]] {
                let clicks: Vec<_> = clicks.into_iter().map(Click::at).collect();
                let earned = |spec: &Spec| {
                    credit(spec, &sheet, &clicks, &mut DuelCoins::crediting([turn; 32])).ok()
                };
                assert_eq!(earned(&whole), earned(&stated));
            }
        }
    }
}
