//! Time to interleave one page, by method and length: `cargo bench -p interleaving`. The plans of
//! `optimized` are cached, those of `optimized-cold` are not: each page has new patterns.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use interleaving::{DuelCoins, PlanCache, Plans, Request, Spec, Uncached, interleave};

/// The right ranking of a page: half of the left one's documents, in an order that depends on
/// `turn`, and as many others.
fn right(length: usize, turn: usize) -> Vec<String> {
    let mut numbers: Vec<usize> = (length / 2..length + length / 2).collect();
    let mut state = turn as u64 + 1;
    for at in (1..length).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        numbers.swap(at, (state >> 33) as usize % (at + 1));
    }
    numbers.into_iter().map(|n| format!("document-{n}")).collect()
}

fn pages(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("page");
    for name in ["team-draft", "balanced", "probabilistic", "optimized", "optimized-cold"] {
        let spec = Spec::from_text(name.trim_end_matches("-cold")).expect("a valid method");
        for length in [10, 100] {
            let left: Vec<String> = (0..length).map(|n| format!("document-{n}")).collect();
            let rights: Vec<_> = (0..256).map(|turn| right(length, turn)).collect();
            let cache = PlanCache::new(1 << 20);
            let plans: &dyn Plans = if name.ends_with("-cold") { &Uncached } else { &cache };
            let mut turn = 0_u8;
            group.bench_function(BenchmarkId::new(name, length), |bench| {
                bench.iter(|| {
                    turn = turn.wrapping_add(1);
                    let right = &rights[usize::from(turn)];
                    let request = Request { left: &left, right, offset: 0, length, pinned: &[] };
                    let mut coins = DuelCoins::drafting([turn; 32]);
                    let page = interleave(&spec, black_box(&request), &mut coins, plans);
                    page.expect("valid rankings").slots.len()
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, pages);
criterion_main!(benches);
