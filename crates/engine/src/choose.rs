//! Which rankers a page shows: one list of rules, and the first that applies decides.
//!
//! | | rule | applies to | the page shows |
//! | --- | --- | --- | --- |
//! | 1 | [`Outside`](Rule::Outside) | units beyond the `coverage` | the control, and does not count |
//! | 2 | [`Alone`](Rule::Alone) | units of the share `alone` | the leader or the control |
//! | 3 | [`Watch`](Rule::Watch) | a share `watch` of a concluded experiment's pages | the winner and a rival |
//! | 4 | [`Winner`](Rule::Winner) | all other pages of a concluded experiment | the winner |
//! | 5 | [`Home`](Rule::Home) | units that have a home | the same rankers as on the first page |
//! | 6 | [`Canary`](Rule::Canary) | a share `canary_share` of pages | the canary's two ids |
//! | 7 | [`Claim`](Rule::Claim) | pages that a claim needs | the pair of the claim |
//! | 8 | [`Doubt`](Rule::Doubt) | pages that would show a doubted winner alone | the winner and the rival of the doubt |
//! | 9 | [`Policy`](Rule::Policy) | the rest | the pair that the policy selects |
//!
//! With three rankers or more, and if orders decide, a page that rules 3 and 6 to 9 choose for a
//! unit without a home is its home. A page to watch is for units of that home only.
//!
//! A policy that runs in batches comes before the claims, which take only the pages on which it
//! would show one ranker alone. A lease of a batch asks the policy only.

use rand::RngExt as _;

use crate::experiment_spec::{ExperimentSpec, arm_of};
use crate::fold::Fold;
use crate::tokens::duel_token::DuelToken;
use dueling_bandits::claims::alone::Arm;
use dueling_bandits::orders::Home;
use dueling_bandits::{Duel, PolicyRng, Selection};

/// The rule that chose the rankers of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The unit takes no part.
    Outside,
    /// The unit sees one ranker alone.
    Alone(Arm),
    /// A concluded experiment looks whether its verdict is still true.
    Watch,
    /// The experiment is concluded.
    Winner,
    /// The first page of the unit has decided.
    Home,
    /// Two ids of one ranker are compared.
    Canary,
    /// A claim needs the duel.
    Claim,
    /// A doubt about the verdict needs the duel.
    Doubt,
    /// The policy selected the duel.
    Policy,
}

/// The rankers of a page, and the rule that chose them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    pub rule: Rule,
    pub selection: Selection,
}

impl Choice {
    pub fn of_home(Home { pair: (x, y), ticket, .. }: Home) -> Self {
        let selection = Selection { ticket, ..Selection::of(x.into(), y.into()) };
        Self { rule: Rule::Home, selection }
    }

    /// Whether it becomes the home of a unit that has none.
    pub fn may_be_home(&self) -> bool {
        matches!(self.rule, Rule::Watch | Rule::Claim | Rule::Doubt | Rule::Policy)
    }

    /// The home of the unit whose first page is issued at this time, chosen at this position.
    pub fn as_home(&self, at: i64, chosen_at: u64) -> Home {
        let Selection { duel: Duel { first, second }, ticket, .. } = self.selection;
        Home { pair: (first.min(second) as u16, first.max(second) as u16), at, ticket, chosen_at }
    }
}

/// The state of an experiment that chooses.
#[derive(Debug)]
pub(crate) struct Chooser<'a> {
    pub spec: &'a ExperimentSpec,
    pub fold: &'a Fold,
    /// The ranker that a concluded experiment shows.
    pub concluded_on: Option<usize>,
    /// The home of the unit.
    pub home: Option<Home>,
    /// The winner of a doubted verdict, and the rival whose duels would lessen the doubt.
    pub doubted: Option<(usize, usize)>,
}

impl Chooser<'_> {
    /// The rankers of a page of this unit. `policy` returns the selection of the policy.
    pub fn choose(
        &self,
        unit: Option<u64>,
        rng: &mut PolicyRng,
        policy: impl FnOnce(&mut PolicyRng) -> Selection,
    ) -> Choice {
        self.outside(unit, rng)
            .or_else(|| self.alone(unit))
            .or_else(|| self.watch(rng))
            .or_else(|| self.winner())
            .or_else(|| self.at_home())
            .or_else(|| self.canary(rng))
            .unwrap_or_else(|| self.tournament(rng, policy))
    }

    fn outside(&self, unit: Option<u64>, rng: &mut PolicyRng) -> Option<Choice> {
        let control = self.spec.shown_outside(unit, || rng.random())?;
        Some(Choice { rule: Rule::Outside, selection: Selection::of(control, control) })
    }

    fn alone(&self, unit: Option<u64>) -> Option<Choice> {
        let arm = arm_of(self.spec.alone, unit)?;
        let control = self.spec.active_control()?;
        let verdict = self.fold.run().verdict().winner();
        let leader =
            self.concluded_on.or(verdict).unwrap_or_else(|| self.fold.run().policy().champion());
        let (ranker, other) = match arm {
            Arm::Leader => (leader, control),
            Arm::Control => (control, leader),
        };
        let ticket = DuelToken::ticket_alone(other);
        let selection = Selection { ticket, ..Selection::of(ranker, ranker) };
        Some(Choice { rule: Rule::Alone(arm), selection })
    }

    /// The winner meets, in this order of preference: the rival of a segment that is not settled;
    /// the control, unless the winner is the control; the rival that it has met most often.
    fn watch(&self, rng: &mut PolicyRng) -> Option<Choice> {
        let (winner, share) = (self.concluded_on?, self.spec.watch);
        if share == 0.0 || !rng.random_bool(share) {
            return None;
        }
        let fold = self.fold;
        // watch only if the experiment was concluded on the winner of its verdict
        fold.run().verdict().verdict().filter(|verdict| verdict.winner() == winner)?;
        let of_segment = fold.run().segments().and_then(|segments| segments.select(winner, rng));
        let control = fold.run().claims().and_then(|claims| claims.control());
        let tally = fold.run().policy().tally();
        let rivals = fold.run().roster().active().iter().filter(|&&rival| rival != winner);
        // of several, the first; `max_by_key` takes the last
        let most_met = rivals.rev().max_by_key(|&&rival| tally.half_plays(winner, rival)).copied();
        let rival = control.filter(|&control| control != winner).or(most_met);
        let selection = of_segment.or(rival.map(|rival| Selection::of(winner, rival)))?;
        let choice = Choice { rule: Rule::Watch, selection };
        let is_at_home = |home: Home| home.pair == choice.as_home(0, 0).pair;
        self.home.is_none_or(is_at_home).then_some(choice)
    }

    /// A home with a ranker that was retired since is none: nothing else counts for the unit, which
    /// sees what others see.
    fn at_home(&self) -> Option<Choice> {
        let home @ Home { pair: (x, y), .. } = self.home?;
        let is_active = |ranker: u16| !self.spec.is_retired(ranker.into());
        (is_active(x) && is_active(y)).then(|| Choice::of_home(home))
    }

    fn winner(&self) -> Option<Choice> {
        let winner = self.concluded_on?;
        Some(Choice { rule: Rule::Winner, selection: Selection::of(winner, winner) })
    }

    fn canary(&self, rng: &mut PolicyRng) -> Option<Choice> {
        let share = self.spec.pages.canary_share;
        if share == 0.0 || !rng.random_bool(share) {
            return None;
        }
        let [ranker, twin] = self.spec.canary().filter(|&[it, _]| !self.spec.is_retired(it))?;
        Some(Choice { rule: Rule::Canary, selection: Selection::of(ranker, twin) })
    }

    fn tournament(
        &self,
        rng: &mut PolicyRng,
        policy: impl FnOnce(&mut PolicyRng) -> Selection,
    ) -> Choice {
        let claim = |rng: &mut PolicyRng| {
            let selection = self.fold.run().claimed(rng)?;
            Some(Choice { rule: Rule::Claim, selection })
        };
        let in_batches = self.fold.run().policy().batches().is_some();
        if let Some(claimed) = (!in_batches).then(|| claim(rng)).flatten() {
            return claimed;
        }
        let selection = policy(rng);
        let claimed = (in_batches && selection.duel.is_self()).then(|| claim(rng)).flatten();
        claimed
            .or_else(|| self.doubt(selection.duel))
            .unwrap_or(Choice { rule: Rule::Policy, selection })
    }

    fn doubt(&self, selected: Duel) -> Option<Choice> {
        let ((doubted, rival), winner) = self.doubted.zip(self.fold.run().verdict().winner())?;
        let is_alone = doubted == winner && selected == Duel::new(winner, winner);
        let selection = Selection::of(winner, rival);
        is_alone.then_some(Choice { rule: Rule::Doubt, selection })
    }
}
