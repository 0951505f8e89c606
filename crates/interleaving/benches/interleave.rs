//! Time to interleave one page, by method and length: `cargo bench -p interleaving`.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use interleaving::{DuelCoins, PlanCache, Request, Spec, interleave};

fn pages(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("page");
    for method in ["team-draft", "balanced", "probabilistic", "optimized"] {
        let spec = Spec::from_text(method).expect("a valid method");
        for length in [10, 100] {
            let left: Vec<String> = (0..length).map(|n| format!("document-{n}")).collect();
            // The right ranking has half of the left one's documents, in another order.
            let right: Vec<String> =
                (0..length).map(|n| format!("document-{}", (n * 7 + 3) % (2 * length))).collect();
            let plans = PlanCache::new(1000);
            let mut seed = [0_u8; 32];
            group.bench_function(BenchmarkId::new(method, length), |bench| {
                bench.iter(|| {
                    seed[0] = seed[0].wrapping_add(1);
                    let request =
                        Request { left: &left, right: &right, offset: 0, length, pinned: &[] };
                    let page = interleave(
                        &spec,
                        black_box(&request),
                        &mut DuelCoins::drafting(seed),
                        &plans,
                    );
                    page.expect("valid rankings").slots.len()
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, pages);
criterion_main!(benches);
