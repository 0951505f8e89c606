//! The part of a record beside its spec: whether the experiment runs, its winner, its archive.

use serde::{Deserialize, Serialize};

use crate::experiment_spec::{ExperimentSpec, FieldError, Patch, Refused, excerpt};
use rankduel_store::ExperimentRecord;
use rankduel_store::events::Status;

/// Whether an experiment runs, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifecycle {
    /// Running, paused or concluded.
    pub status: Status,
    /// Index of the winner of a concluded experiment.
    pub winner: Option<u16>,
    /// Unix milliseconds.
    pub archived_at: Option<i64>,
}

impl Lifecycle {
    /// That of a new experiment.
    pub const NEW: Self = Self { status: Status::Running, winner: None, archived_at: None };

    /// Whether the experiment is concluded.
    pub fn is_concluded(self) -> bool {
        self.status == Status::Concluded
    }

    /// That of a record.
    pub fn of(record: &ExperimentRecord) -> Self {
        let &ExperimentRecord { status, winner, archived_at, .. } = record;
        Self { status, winner, archived_at }
    }

    /// That after a change at this time. `specs` are before and after it.
    pub fn patched(
        self,
        patch: &Patch,
        specs: (&ExperimentSpec, &ExperimentSpec),
        at: i64,
    ) -> Result<Self, Refused> {
        if patch.archived {
            return Ok(Self { archived_at: Some(at), ..self });
        }
        let (_, spec) = specs;
        let status = patch.status.unwrap_or(self.status);
        if self.status == Status::Concluded && status == Status::Concluded {
            refuse_while_concluded(specs)?;
        }
        let winner = match (status, patch.winner.as_deref()) {
            (Status::Concluded, Some(id)) if patch.status.is_some() => Some(winner(spec, id)?),
            (Status::Concluded, None) => self.winner,
            (_, None) => None,
            (_, Some(_)) => {
                let detail = "`winner` goes with `status` `concluded` alone; send both";
                return Err(refused("/winner", detail));
            }
        };
        Ok(Self { status, winner, ..self })
    }

    /// The fault of a lifecycle in an experiment of this many rankers; `None` if there is none.
    pub(crate) fn error(self, rankers: usize) -> Option<String> {
        match (self.status, self.winner) {
            (Status::Concluded, None) => Some("it is concluded without a winner".into()),
            (Status::Concluded, Some(winner)) if usize::from(winner) >= rankers => Some(format!(
                "its winner is ranker {winner}, and the experiment has {rankers} rankers"
            )),
            (Status::Concluded, Some(_)) => None,
            (_, Some(_)) => Some("it has a winner and is not concluded".into()),
            (_, None) if self.archived_at.is_some() => {
                Some("it is archived and not concluded".into())
            }
            (_, None) => None,
        }
    }
}

/// The index of a winner, who is not retired.
fn winner(spec: &ExperimentSpec, id: &str) -> Result<u16, Refused> {
    let detail = match spec.ranker_index(id) {
        Some(index) if !spec.is_retired(index) => return Ok(index as u16),
        Some(_) => format!("ranker `{id}` is retired; name an active one"),
        None => format!("the experiment has no ranker `{}`", excerpt(id)),
    };
    Err(refused("/winner", detail))
}

/// An experiment that stays concluded keeps its rankers and its control.
fn refuse_while_concluded(
    (before, after): (&ExperimentSpec, &ExperimentSpec),
) -> Result<(), Refused> {
    let why = "the experiment is concluded; set it running again first";
    if before.rankers != after.rankers || before.retired != after.retired {
        return Err(Refused::FixedRankers(why.into()));
    }
    if before.control != after.control {
        let detail = format!("nothing meets a control while {why}");
        return Err(refused("/control", detail));
    }
    Ok(())
}

fn refused(pointer: &str, detail: impl Into<String>) -> Refused {
    Refused::Invalid(vec![FieldError::new(pointer, detail)])
}
