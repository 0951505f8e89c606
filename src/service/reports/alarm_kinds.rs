//! The kinds of alarms, with the likely cause and the action to take.

/// A kind of alarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlarmKind {
    /// Its name, here and in docs/operations.md.
    pub slug: &'static str,
    /// The problem, in a few words.
    pub title: &'static str,
    /// The likely cause.
    pub cause: &'static str,
    /// The action to take.
    pub action: &'static str,
}

macro_rules! alarms {
    ($($name:ident: $slug:literal, $title:literal, $cause:literal, $action:literal;)*) => {
        $(pub(super) const $name: AlarmKind = AlarmKind { slug: $slug, title: $title, cause: $cause, action: $action };)*
        /// All kinds.
        pub const KINDS: &[AlarmKind] = &[$($name),*];
    };
}

// Name: slug, title, likely cause, action.
alarms! {
    NO_FEEDBACK: "no-feedback", "Duels are issued and no feedback arrives",
        "The backend requests duels but does not send feedback, sends it to another server, or its click queue is stuck.",
        "Look for calls of the feedback endpoint in the log of the backend, and for 4xx answers to them in the log of this server.";
    LATE: "late-feedback", "Much feedback arrives too late",
        "The backend sends feedback in batches, or its queue lags: feedback arrives after the duel has expired and is not counted.",
        "Send feedback sooner, or create the experiment with a larger `duel_ttl_seconds`.";
    INVALID: "invalid-feedback", "Much feedback is refused",
        "`duel_id` is truncated or mixed up on its way, belongs to another experiment or database, or its signing key was retired; or \
         clicks are sent for a duel whose page was not made by `interleave`.",
        "The answer to each piece says what is wrong with it. Compare a refused `duel_id` with one from next-duel; see `rankduel signing-keys list`.";
    CONFLICTS: "conflicting-feedback", "Duels get two different answers",
        "Several processes answer the same duel, or the outcome is computed again from later clicks.",
        "Send one final answer for each duel; the first one stands.";
    REPEATS: "repeated-feedback", "Most feedback is sent more than once",
        "A client repeats at once, or does not read the answer to its first attempt. Nothing is counted twice.",
        "Repeat only requests that were not answered with 200, and wait between attempts.";
    UNANSWERED: "unanswered-duels", "Many duels are never answered",
        "Pages without a click are not reported, or duels are requested that are never shown.",
        "Send `none` for a page without a click. It teaches nothing about the rankers, but shows that feedback works.";
    UNEVEN: "uneven-answers", "Answers are missing for some rankers more often than for others",
        "A ranker fails or times out, on all pages or on one side of them, so its pages are not shown or not reported. The \
         comparison is then biased: this is the sample-ratio check for adaptive allocation. Or, where pages are not made by \
         `interleave`, pages without a click are not reported and one ranker gets fewer clicks.",
        "Report `none` for pages without a click. Look at the errors of the backend for the rankers of the named pair, fix \
         them, and start a new experiment.";
    SIDES: "side-imbalance", "One side of the page wins more often than the other",
        "The side of each ranker is random, so both sides must win equally often. The interleaving favours one side, or left \
         and right are swapped somewhere.",
        "Check how the two lists are interleaved and how clicks are credited; if in doubt, use `/interleave`.";
    DRAFTS: "draft-imbalance", "One ranker of a pair drafts first too often",
        "Who drafts first is a coin that this server tosses for each page, so it must be each ranker of a pair equally often. The \
         coins are not fair, which is a defect of this program or of its signing keys.",
        "Report it with the method of interleaving, and do not trust the results of this experiment.";
    NO_CLICKS: "few-clicks", "Few pages get a click",
        "Searchers find nothing to click, or clicks are not tracked, or the outcome `none` is sent for pages that had a click.",
        "Check the click tracking. Pages without a click teach nothing, so the experiment takes longer.";
    NO_CREDIT: "clicks-without-credit", "Clicks on many pages earn no credit",
        "Searchers click documents that both rankings have at the same place, or pinned ones. Such a click favours neither ranker.",
        "Send rankings that are at least as long as the page, and compare rankers that differ on top. If few documents differ, the \
         experiment needs more pages.";
    SAME_RANKINGS: "same-rankings", "Many pages are made of two equal rankings",
        "The two rankers return the same documents in the same order for these queries, or the backend sends one ranking twice.",
        "Check that each side has the ranking of its own ranker. If it has, the rankers agree on these queries, and only more \
         pages help.";
    SEGMENT_HURT: "segment-hurt", "The winner loses in a segment",
        "The ranker that is best in all traffic is worse for a part of it.",
        "Show another ranker there: see `/claims` and \"For whom?\" on the page of the experiment.";
    DRIFT: "changed-preferences", "Preferences have changed",
        "A ranker, the documents or the searchers are others than before. A verdict from before speaks of the past.",
        "Look for what changed at that time. With `drift: restart` the verdict has started again; otherwise start a new experiment.";
    UNEVEN_ARMS: "uneven-arms", "Units that see one ranker alone are not split evenly",
        "Pages of the leader or of the control are lost: a ranker fails or times out, or pages without a click are not reported \
         and one of the two gets fewer clicks. What is measured on these pages is then biased.",
        "Report `none` for pages without a click. Look at the errors of the backend for both rankers, fix them, and start a new \
         experiment.";
    HARM: "harm", "A ranker does harm",
        "A metric of a ranker is above its limit, or above that of the control by more than its limit.",
        "Repair the ranker or retire it. If `on_harm` is `tell`, it is still shown; if it is `pause`, the experiment waits for you.";
    BATCH_STUCK: "batch-stuck", "The open batch makes no progress",
        "The batch waits for answers, and none of its duels has been answered for several times their time to live.",
        "Check whether duels are requested and answered at all; lease the rest with `/batch/lease`, or post results.";
}
