//! Scopes: what a key allows.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A kind of action.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Request duels, as a search backend does.
    Decide,
    /// Send feedback.
    Feedback,
    /// Read experiments and their results, metrics and the dashboard.
    Read,
    /// Everything: create, change and archive experiments, read the audit log, and everything that
    /// the other scopes allow.
    Admin,
}

/// A text that is not the name of a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no scope `{0}`; there are decide, feedback, read and admin")]
pub struct UnknownScope(String);

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Decide, Self::Feedback, Self::Read, Self::Admin];

    /// Its name in the API, on the command line and in the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decide => "decide",
            Self::Feedback => "feedback",
            Self::Read => "read",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.name() == text)
            .ok_or_else(|| UnknownScope(text.to_owned()))
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Whether the set allows an action that needs `scope`; `admin` allows everything.
    pub fn allow(self, scope: Scope) -> bool {
        self.has(scope) || self.has(Scope::Admin)
    }

    fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// The scopes in the set, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }

    /// Parse names that are separated by spaces. Unknown names, such as those of a newer program,
    /// are ignored: they allow nothing here.
    pub fn from_names(names: &str) -> Self {
        names.split_whitespace().filter_map(|name| name.parse().ok()).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | 1 << scope as u8))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Scope::name).collect();
        f.write_str(&names.join(" "))
    }
}
