//! Which statuses an experiment can have.

use rankduel_store::events::Status;

/// The fault of a status, with a winner among this many rankers; `None` if there is none.
pub(crate) fn status_error(
    status: Status,
    winner: Option<u16>,
    archived: bool,
    rankers: usize,
) -> Option<String> {
    match (status, winner) {
        (Status::Concluded, None) => Some("it is concluded without a winner".into()),
        (Status::Concluded, Some(winner)) if usize::from(winner) >= rankers => {
            Some(format!("its winner is ranker {winner}, and the experiment has {rankers} rankers"))
        }
        (Status::Concluded, Some(_)) => None,
        (_, Some(_)) => Some("it has a winner and is not concluded".into()),
        (_, None) if archived => Some("it is archived and not concluded".into()),
        (_, None) => None,
    }
}
