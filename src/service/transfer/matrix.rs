//! The preference matrix of an experiment, for simulations of it.

use std::io::Write;

use super::log::FoldedLog;
use rankduel_store::Store;

/// Write the preferences between the active rankers as `lab simulate` reads them: CSV with a
/// header, row beats column. An entry is `(wins + 1) / (duels + 2)`, with wins by the tie rule of
/// the experiment, so a pair without duels has 1/2. Returns the number of rankers.
pub async fn write_matrix(
    store: &dyn Store,
    name: &str,
    out: &mut (dyn Write + Send),
) -> Result<usize, anyhow::Error> {
    let log = FoldedLog::open(store, name).await?;
    let spec = log.spec.clone();
    let fold = log.fold(store, |_, _, _| Ok(())).await?;
    let tally = fold.policy().tally();
    let active = fold.roster().active();
    let entry = |i: usize, j: usize| match i == j {
        true => 0.5,
        false => (tally.wins(i, j) + 1.0) / (tally.plays(i, j) + 2.0),
    };
    let duels: f64 = active
        .iter()
        .flat_map(|&i| active.iter().map(move |&j| (i, j)))
        .filter(|(i, j)| i < j)
        .map(|(i, j)| tally.plays(i, j))
        .sum();
    writeln!(out, "# {name}: {duels} answered duels; an entry is (wins + 1) / (duels + 2)")?;
    let mut csv = csv::Writer::from_writer(out);
    let ids = active.iter().map(|&i| spec.rankers.get(i).map_or("", |ranker| ranker.id.as_str()));
    csv.write_record(std::iter::once("").chain(ids.clone()))?;
    for (&i, id) in active.iter().zip(ids) {
        let numbers = active.iter().map(|&j| entry(i, j).to_string());
        csv.write_record(std::iter::once(id.to_string()).chain(numbers))?;
    }
    csv.flush()?;
    Ok(active.len())
}
