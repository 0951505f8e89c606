//! `/experiments/{name}/figures/{file}`: the numbers of each figure as CSV, and its picture as SVG.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::Markup;

use super::chart::Figure;
use super::layout::Tab;
use super::view::View;
use super::{evidence, race, still};
use crate::service::transfer::table::cell;
use rankduel_engine::clock::rfc3339;

/// A figure as a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct File {
    figure: Figure,
    is_picture: bool,
}

impl File {
    /// The file with this name; `None` if there is no such file.
    pub fn of_name(name: &str) -> Option<Self> {
        let (stem, ending) = name.split_once('.')?;
        let all = [Figure::Lead, Figure::Days, Figure::Segments, Figure::Race, Figure::Regret];
        let figure = all.into_iter().find(|figure| figure.about().0 == stem)?;
        match ending {
            "csv" => Some(Self { figure, is_picture: false }),
            "svg" if figure.about().2 => Some(Self { figure, is_picture: true }),
            _ => None,
        }
    }

    /// The page that has its data.
    pub fn tab(self) -> Tab {
        self.figure.about().1
    }

    /// The file; `None` before there is anything in it.
    pub fn of(self, view: &View) -> Option<Response> {
        let (name, ..) = self.figure.about();
        let (ending, kind, body) = match self.is_picture {
            true => ("svg", "image/svg+xml", self.picture(view)?.into_string().into_bytes()),
            false => ("csv", "text/csv; charset=utf-8", self.numbers(view)?),
        };
        let name = format!("attachment; filename=\"{}-{name}.{ending}\"", view.record.name);
        let headers =
            [(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, name)];
        Some((headers, body).into_response())
    }

    fn picture(self, view: &View) -> Option<Markup> {
        let chart = match self.figure {
            Figure::Race => race::chart(view)?,
            Figure::Days => still::chart(view)?,
            _ => evidence::chart(view.regret.as_deref()?, view.fold.roster_changes == 0),
        };
        Some(chart.picture())
    }

    fn numbers(self, view: &View) -> Option<Vec<u8>> {
        let mut rows = csv::Writer::from_writer(Vec::new());
        let verdict = &view.verdict;
        let mut write =
            |row: &[&str]| rows.write_record(row.iter().map(|text| cell(text).into_owned())).ok();
        match self.figure {
            Figure::Lead => {
                write(&[
                    "leader",
                    "rival",
                    "wins",
                    "losses",
                    "win_rate",
                    "low",
                    "high",
                    "ruled_out",
                ])?;
                for effect in &verdict.effects {
                    let rate = effect.win_rate.map_or_else(String::new, |rate| rate.to_string());
                    let numbers = [effect.wins, effect.losses].map(|number| number.to_string());
                    let (low, high) = view.interval(effect);
                    let ends = [low, high].map(|end| end.to_string());
                    let is_out = effect.ruled_out.to_string();
                    write(&[
                        &verdict.leader,
                        &effect.rival,
                        &numbers[0],
                        &numbers[1],
                        &rate,
                        &ends[0],
                        &ends[1],
                        &is_out,
                    ])?;
                }
            }
            Figure::Days => {
                let rival = still::rival(view)?;
                write(&[
                    "since", "until", "leader", "rival", "answers", "win_rate", "low", "high",
                ])?;
                for lead in still::leads(view) {
                    let times = [lead.since, lead.until].map(rfc3339);
                    let numbers = [lead.answers, lead.won, lead.low, lead.high];
                    let [answers, won, low, high] = numbers.map(|number| number.to_string());
                    let [since, until] = &times;
                    write(&[since, until, &verdict.leader, rival, &answers, &won, &low, &high])?;
                }
            }
            Figure::Segments => {
                write(&[
                    "segment", "ranker", "opponent", "wins", "losses", "win_rate", "low", "high",
                ])?;
                for of in view.segments() {
                    for row in &of.opponents {
                        let numbers = [row.wins, row.losses, row.win_rate, row.low, row.high];
                        let [wins, losses, rate, low, high] =
                            numbers.map(|number| number.to_string());
                        write(&[
                            &of.segment,
                            &verdict.leader,
                            &row.opponent,
                            &wins,
                            &losses,
                            &rate,
                            &low,
                            &high,
                        ])?;
                    }
                }
            }
            Figure::Race => {
                write(&["at", "pages", "leader", "rival", "ln_evidence"])?;
                for point in &view.fold.race {
                    let (at, pages) = (rfc3339(point.recorded_at), point.steps.to_string());
                    let id =
                        |ranker: u16| view.ids.get(usize::from(ranker)).map_or("", String::as_str);
                    for &(rival, ln) in &point.rivals {
                        write(&[&at, &pages, id(point.leader), id(rival), &ln.to_string()])?;
                    }
                }
            }
            Figure::Regret => {
                write(&["at", "pages", "low", "mean", "high", "even_split"])?;
                for point in &view.regret.as_deref()?.series {
                    let numbers = [point.low, point.mean, point.high, point.uniform_mean];
                    let [low, mean, high, mut even] = numbers.map(|number| number.to_string());
                    if view.fold.roster_changes > 0 {
                        even.clear();
                    }
                    write(&[&point.at, &point.steps.to_string(), &low, &mean, &high, &even])?;
                }
            }
        }
        rows.into_inner().ok()
    }
}
