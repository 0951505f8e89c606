//! Statements: their text, and what each reaches in a database that has its experiments on several
//! nodes.

use std::sync::OnceLock;

use super::log_row::LogRow;
use super::rows::{EXPERIMENT_COLUMNS, LISTED};
use super::table_row::Of;
use super::value::Value;

/// The nodes that a statement reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Rows of one experiment, which the statement names: one node.
    Experiment,
    /// Rows of any number of experiments, read without a lock: all nodes.
    Experiments,
    /// Tables that are not distributed.
    Coordinator,
    /// Rows of several experiments, locked or written. A distributed database refuses it, so it
    /// only runs on others.
    Together,
}

/// A statement. Its template has these placeholders:
///
/// | placeholder | is |
/// | --- | --- |
/// | `{experiment}` | the columns of `experiment` |
/// | `{listed}` | that an experiment is of a list, whose filter is `$1` to `$4` |
/// | `{log}` | the columns of [`LogRow`] |
/// | `{log json}` | the same, as SQLite writes them into a JSON array for [`LogRow`] |
/// | `{log values}` | a parameter for each column of `log`, from `$1` on |
/// | `{log arrays N}` | from `$N` on, an array for each column but the first: its values in all rows |
/// | `{after arrays N}` | the parameter after those of `{log arrays N}` |
/// | `{log above heads}` | the columns of `entry`, its position counted from `open.head` |
#[derive(Debug)]
pub(crate) struct Statement {
    #[cfg_attr(not(test), expect(dead_code, reason = "tests check every statement by its reach"))]
    pub name: &'static str,
    pub reach: Reach,
    template: &'static str,
    sql: OnceLock<String>,
}

impl Statement {
    pub const fn new(name: &'static str, reach: Reach, template: &'static str) -> Self {
        Self { name, reach, template, sql: OnceLock::new() }
    }

    /// The experiment that the rows of the answer must belong to: the first value names it.
    pub fn answers_about(&self, values: &[Value<'_>]) -> Of {
        match (self.reach, values.first()) {
            (Reach::Experiment, Some(Value::Number(Some(id)))) => Of::Experiments(vec![*id]),
            _ => Of::Any,
        }
    }

    /// The text.
    pub fn sql(&'static self) -> &'static str {
        self.sql.get_or_init(|| {
            self.template
                .replace("{experiment}", EXPERIMENT_COLUMNS)
                .replace("{listed}", LISTED)
                .replace("{log}", &LogRow::COLUMNS.join(", "))
                .replace("{log json}", &LogRow::json_columns().join(", "))
                .replace("{log values}", &LogRow::values_from(1))
                .replace("{log arrays 2}", &LogRow::arrays_from(2))
                .replace("{log arrays 4}", &LogRow::arrays_from(4))
                .replace("{after arrays 2}", &LogRow::after_arrays_from(2))
                .replace("{after arrays 4}", &LogRow::after_arrays_from(4))
                .replace("{log above heads}", &LogRow::above_heads())
        })
    }
}

/// Defines each statement, and `ALL`, the list of them.
macro_rules! statements {
    ($( $(#[$doc:meta])* $Reach:ident $NAME:ident = $template:expr; )*) => {
        $(
            $(#[$doc])*
            pub(crate) static $NAME: $crate::sql::statement::Statement =
                $crate::sql::statement::Statement::new(
                    stringify!($NAME),
                    $crate::sql::statement::Reach::$Reach,
                    $template,
                );
        )*

        #[cfg(test)]
        #[allow(dead_code, reason = "SQLite is never distributed")]
        pub(crate) static ALL: &[&$crate::sql::statement::Statement] =
            &[$(&$NAME),*];
    };
}
pub(crate) use statements;
