//! Which databases make a set.
//!
//! The database with the keys lists all of them, and each of them names it. A list of URLs must
//! have them all: a process that does not know a database would not find the experiments there, and
//! could create one of them a second time. Each change of the set gets a new epoch in every
//! database, and a process creates experiments only in the epoch that it knows.

use crate::store::member::{KnownMember, Membership};

/// How a list of databases stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is a set, recorded in each of them.
    Complete { keys: usize, epoch: i64 },
    /// It can become one, with this epoch.
    Joining { keys: usize, epoch: i64 },
}

/// How the databases of a list stand, or why they cannot be a set. `places` names them.
pub(super) fn standing(found: &[Membership], places: &[&str]) -> Result<Standing, String> {
    let name = |index: usize| format!("database {} ({})", index + 1, places[index]);
    for (later, membership) in found.iter().enumerate() {
        if let Some(earlier) = found[..later].iter().position(|other| other.id == membership.id) {
            return Err(format!(
                "{} and {} are the same database, or one is a copy of the other",
                name(earlier),
                name(later)
            ));
        }
    }
    let mut named = found.iter().enumerate().filter_map(|(at, it)| Some((at, it.keys.as_ref()?)));
    let keys = match named.next() {
        None => 0,
        Some((first, keys)) => {
            if let Some((other, _)) = named.find(|(_, other)| other.id != keys.id) {
                return Err(format!(
                    "{} and {} belong to different sets of databases",
                    name(first),
                    name(other)
                ));
            }
            found.iter().position(|it| it.id == keys.id).ok_or_else(|| {
                format!(
                    "the keys of {} are in {}, which is not in the list: add it",
                    name(first),
                    keys.place
                )
            })?
        }
    };
    let members = &found[keys].members;
    let is_listed = |member: &&KnownMember| found.iter().any(|it| it.id == member.id);
    if let Some(missing) = members.iter().find(|member| !is_listed(member)) {
        return Err(format!(
            "{} belongs to the same set and is not in the list: add it",
            missing.place
        ));
    }
    let is_known = |it: &Membership| members.iter().any(|member| member.id == it.id);
    for (index, membership) in found.iter().enumerate() {
        if index != keys && !is_known(membership) && !membership.is_empty {
            let why = match membership.keys {
                Some(_) => "was in another set",
                None => "has experiments or keys of its own",
            };
            return Err(format!(
                "{} {why}: only an empty database can join. Put the database that has served until \
                 now first, or export the experiments and import them",
                name(index)
            ));
        }
    }
    let newest = found.iter().map(|it| it.epoch).max().unwrap_or_default();
    let keys_id = found[keys].id;
    let is_complete = found.iter().all(|it| {
        it.epoch == newest
            && it.keys.as_ref().is_some_and(|keys| keys.id == keys_id)
            && is_known(it)
    });
    Ok(match is_complete {
        true => Standing::Complete { keys, epoch: newest },
        false => Standing::Joining { keys, epoch: newest + 1 },
    })
}
