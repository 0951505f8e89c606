//! Statements, and what each of them reaches in a database that has its experiments on several
//! nodes.

/// What a statement reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "the tests check every statement by its reach"))]
pub(in crate::store) enum Reach {
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

/// A statement in the list of all.
#[derive(Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "the tests check every statement"))]
pub(in crate::store) struct Statement {
    pub name: &'static str,
    pub reach: Reach,
    pub sql: &'static str,
}

/// Defines a constant for each statement, and `ALL`, the list of them.
macro_rules! statements {
    ($( $(#[$doc:meta])* $Reach:ident $NAME:ident = $sql:expr; )*) => {
        $( $(#[$doc])* pub const $NAME: &str = $sql; )*

        #[cfg(test)]
        pub const ALL: &[$crate::store::sql::reach::Statement] = &[$(
            $crate::store::sql::reach::Statement {
                name: stringify!($NAME),
                reach: $crate::store::sql::reach::Reach::$Reach,
                sql: $NAME,
            },
        )*];
    };
}
pub(in crate::store) use statements;
