//! The home of an experiment: the database in which it is created.

use sha2::{Digest as _, Sha256};

use crate::store::member::DatabaseId;

/// Rendezvous hashing: the database whose hash with the name is the largest. The order of the list
/// does not matter, and a database that is added takes an equal share of new experiments from each
/// other one.
pub(super) fn home(databases: &[DatabaseId], name: &str) -> usize {
    let hash = |id: &DatabaseId| Sha256::new().chain_update(id).chain_update(name).finalize();
    let hashes = databases.iter().map(hash).enumerate();
    hashes.max_by(|(_, one), (_, other)| one.cmp(other)).map_or(0, |(index, _)| index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_are_shared_equally_and_a_new_database_takes_only_its_share() {
        let two = [[1; 16], [2; 16]];
        let three = [[3; 16], [2; 16], [1; 16]];
        let (mut first, mut moved) = (0, 0);
        for number in 0..3000 {
            let name = format!("experiment-{number}");
            let (before, after) = (two[home(&two, &name)], three[home(&three, &name)]);
            first += u32::from(before == two[0]);
            moved += u32::from(before != after);
            assert!(before == after || after == [3; 16], "{name} changed between old databases");
        }
        assert!((1350..1650).contains(&first), "{first}");
        assert!((850..1150).contains(&moved), "{moved}");
    }
}
