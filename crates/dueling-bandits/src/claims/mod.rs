//! Claims: statements about an experiment, each with an error that holds whenever somebody looks.
//!
//! The verdict says which ranker is best. A team that acts on it asks more: is the winner better
//! than what we run, is it worse for some users, is the answer still true? Each answer is a *claim*
//! with four parts:
//!
//! - *What* it says, about which rankers.
//! - Its *error* δ: the claim is ever made although it is false in at most a share δ of
//!   experiments.
//! - Its *evidence*, a nonnegative process `E`. If the claim is false, `E` is at most a
//!   supermartingale that starts at 1 at most, so it ever reaches `1/δ` with a probability of at
//!   most δ (Ville's inequality). It may therefore be read after every answer.
//! - *Decided at*: the position at which the evidence reached `1/δ`. It is [latched](Latch): later
//!   answers do not take it back, because the guarantee is for the first time.
//!
//! # Order
//!
//! The proofs are about the sequence of issued duels: each answer has its mean given all duels that
//! were issued before it. Two rules follow, and each process of this module relies on them.
//!
//! - Evidence grows, stakes are chosen and claims are checked only when a cohort was counted as a
//!   whole. Within a cohort the answers have no order.
//! - What a person does takes effect with the first cohort that was issued after it, and drops no
//!   answer.
//!
//! People see the answers that wait. Let `G_c` be all answers to duels issued before the end of
//! cohort `c`, counted or waiting. Whoever acts during cohort `c` (enlists or retires a ranker,
//! names a control, concludes) has seen nothing beyond `G_c`, and given `G_c` each answer from cohort
//! `c + 1` on has its mean. So whatever an act starts, such as a stretch of the verdict, a control
//! or a stake, starts between the cohorts `c` and `c + 1` in the order of counting, and after what
//! was started before it ([`Run`](crate::run::Run)). A claim that goes on counts all cohorts. To end
//! one early only stops a supermartingale. Which units are excluded must not depend on who won
//! (`docs/verdict.md`).
//!
//! A policy may select duels in any way that depends on earlier answers. Answers without a winner
//! are steps without evidence.
//!
//! # Errors
//!
//! Each claim has its own error. That any of several claims is wrong has the sum of their errors.
//! Claims of one kind, such as "better than the control" of each ranker, share one error: their
//! [capital] comes from one reserve.
//!
//! # Overview
//!
//! | claim | see |
//! | --- | --- |
//! | better, not worse or worse than the control, and by how much | [`control`], [`ladder`] |
//! | the winner loses in a segment, or in none | [`segments`] |
//! | preferences have changed | [`drift`] |
//! | units are not split evenly between two arms | [`alone`] |
//! | a ranker does harm by a metric, or is safe | [`guardrails`], [`betting`] |

pub mod alone;
pub mod betting;
pub mod capital;
pub mod control;
pub mod drift;
pub mod guardrails;
pub mod ladder;
pub mod segments;

/// When a claim was decided, if it was. Decided claims stay decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Latch(Option<u64>);

impl Latch {
    /// The position at which the claim was decided.
    pub fn decided_at(self) -> Option<u64> {
        self.0
    }

    /// The evidence is `ln E` at this position, and the claim has this error. Returns whether the
    /// claim is decided now and was not before.
    pub fn check(&mut self, ln_evidence: f64, error: f64, position: u64) -> bool {
        let is_new = self.0.is_none() && ln_evidence >= -libm::log(error);
        if is_new {
            self.0 = Some(position);
        }
        is_new
    }
}
