//! Opens the store that a URL names.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use super::postgres::{PoolMode, PostgresStore};
use super::sqlite::{SqliteStore, evidence_of_loss, evidence_of_other_names};
use super::{SharedStore, StoreError};

/// Why a store could not be opened. No message repeats the URL: it may contain a password.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The URL is invalid.
    #[error("{0}")]
    Url(String),
    /// The file cannot be opened, or is not an SQLite database.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// The path in the URL.
        path: PathBuf,
        /// The reason; a part of this error's own message, not its `source`.
        error: StoreError,
    },
    /// The file was there before.
    #[error(
        "{path} is missing or empty, and {left} shows that it had data: put the database back, or \
         delete {left} to start with an empty one",
        path = path.display(),
        left = left.display()
    )]
    Lost {
        /// The path in the URL.
        path: PathBuf,
        /// The file that is left.
        left: PathBuf,
    },
}

/// Open the store that `url` names.
///
/// - `sqlite://PATH`: that file, created if it does not exist. `?mode=rw` does not create it,
///   `?mode=ro` only reads.
/// - `postgres://USER:PASSWORD@HOST:PORT/DATABASE`: that database. The first call connects, so that
///   a service can start before its database.
///   `?pool_mode=transaction` says that a pooler in between shares its connections.
///
/// The schema stays as it is: see [`Database::check`](super::Database::check) and
/// [`Database::migrate`](super::Database::migrate).
pub async fn connect(url: &str) -> Result<SharedStore, ConnectError> {
    connect_with(url, None).await
}

/// [`connect`], with the URL of the same PostgreSQL database without a pooler, for what a pooler
/// cannot do: notifications and migrations.
pub async fn connect_with(url: &str, direct: Option<&str>) -> Result<SharedStore, ConnectError> {
    match (Target::of(url)?, direct) {
        (Target::Sqlite { .. }, Some(_)) => Err(refuse(DIRECT_IS_POSTGRES)),
        (Target::Sqlite { options, read_only }, None) => {
            let path = options.get_filename().to_owned();
            if let Some(left) = evidence_of_loss(&path) {
                return Err(ConnectError::Lost { path, left });
            }
            if let Some(error) = evidence_of_other_names(&path) {
                return Err(ConnectError::File { path, error });
            }
            let is_new = !path.exists();
            match SqliteStore::open(options, read_only).await {
                Ok(store) => {
                    if is_new {
                        let path = absolute(path);
                        tracing::warn!(path = %path.display(), "there was no database: created an empty one");
                    }
                    Ok(Arc::new(store))
                }
                Err(error) => Err(ConnectError::File { path, error }),
            }
        }
        (Target::Postgres { options, mode }, direct) => {
            let direct = direct.map(direct_options).transpose()?;
            Ok(Arc::new(PostgresStore::new(options, mode, direct)))
        }
    }
}

/// The database that a URL names.
enum Target {
    Sqlite { options: SqliteConnectOptions, read_only: bool },
    Postgres { options: PgConnectOptions, mode: PoolMode },
}

impl Target {
    fn of(url: &str) -> Result<Self, ConnectError> {
        match url.split_once(':') {
            Some(("sqlite", rest)) => {
                let (options, read_only) = sqlite_options(rest)?;
                Ok(Self::Sqlite { options, read_only })
            }
            Some(("postgres" | "postgresql", _)) => {
                let (options, mode) = postgres_options(url)?;
                Ok(Self::Postgres { options, mode })
            }
            Some((scheme, _))
                if scheme
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) =>
            {
                Err(refuse(format!("the URL scheme {scheme:?} is not supported: {FORMS}")))
            }
            _ => Err(refuse(format!("this is not a database URL: {FORMS}"))),
        }
    }
}

/// The place of a database, for people: its path or its server, without a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The absolute path of an SQLite file.
    File(PathBuf),
    /// `HOST:PORT/DATABASE` of PostgreSQL.
    Server(String),
}

impl Place {
    /// The place that `url` names.
    pub fn of(url: &str) -> Result<Self, ConnectError> {
        Ok(match Target::of(url)? {
            Target::Sqlite { options, .. } => Self::File(absolute(options.get_filename().into())),
            Target::Postgres { options, .. } => {
                let (host, port) = (options.get_host(), options.get_port());
                let database = options.get_database().unwrap_or_default();
                Self::Server(format!("{host}:{port}/{database}"))
            }
        })
    }

    /// Whether [`connect`] would create a database here.
    pub fn is_absent(&self) -> bool {
        match self {
            Self::File(path) => {
                let is_empty = path.metadata().map_or(true, |metadata| metadata.len() == 0);
                is_empty && evidence_of_loss(path).is_none()
            }
            Self::Server(_) => false,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Server(server) => server.fmt(f),
        }
    }
}

/// The path from the root; as it is if the current folder is gone.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

const FORMS: &str = "it must be sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE";

fn refuse(why: impl Into<String>) -> ConnectError {
    ConnectError::Url(why.into())
}

const NOT_IN_MEMORY: &str = "a store must outlive its process: give the path of a file, \
     sqlite://PATH, not a database in memory";

/// The options of the URL's part after `sqlite:`, and whether to open it read-only.
fn sqlite_options(rest: &str) -> Result<(SqliteConnectOptions, bool), ConnectError> {
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    let (path, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    if parameters.contains("mode=memory") {
        return Err(refuse(NOT_IN_MEMORY));
    }
    let (create, read_only) = match parameters {
        "" | "mode=rwc" => (true, false),
        "mode=rw" => (false, false),
        "mode=ro" => (false, true),
        other => {
            return Err(refuse(format!(
                "{other:?} is not an option of an SQLite store: it takes mode=rwc (create the file \
                 if it does not exist; the default), mode=rw or mode=ro"
            )));
        }
    };
    let options = SqliteConnectOptions::from_str(&format!("sqlite://{path}"))
        .map_err(|error| refuse(format!("the path in the SQLite URL cannot be read: {error}")))?;
    let file = options.get_filename();
    if file.as_os_str().is_empty() {
        return Err(refuse("the SQLite URL names no file: it must be sqlite://PATH"));
    }
    // SQLite parses a name that starts with `file:` as a URL with options of its own
    if file == Path::new(":memory:") || file.as_os_str().as_encoded_bytes().starts_with(b"file:") {
        return Err(refuse(NOT_IN_MEMORY));
    }
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty())
        && !folder.is_dir()
    {
        return Err(refuse(format!(
            "the folder of the SQLite file does not exist: {}",
            folder.display()
        )));
    }
    Ok((options.create_if_missing(create), read_only))
}

/// The parameters of a PostgreSQL URL. The driver ignores unknown ones, so a misspelt `sslmode`
/// would go unnoticed.
const POSTGRES_PARAMETERS: [&str; 18] = [
    "application_name",
    "channel_binding",
    "connect_timeout",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    POOL_MODE,
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "ssl-mode",
    "statement-cache-capacity",
    TARGET,
    "user",
];

/// The parameter that says how a pooler shares its connections. It is not the driver's.
const POOL_MODE: &str = "pool_mode";
/// The parameter that says which server of several to take. The driver knows one server, which must
/// be writable, and ignores `channel_binding` and `connect_timeout`, which hosters put into their
/// URLs.
const TARGET: &str = "target_session_attrs";

const DIRECT_IS_POSTGRES: &str = "the URL for listening (--listen-database-url) must lead to the \
     PostgreSQL database of --database-url, without a pooler";

fn postgres_options(url: &str) -> Result<(PgConnectOptions, PoolMode), ConnectError> {
    let (base, parameters) = url.split_once('?').unwrap_or((url, ""));
    let parameters = || {
        let given = parameters.split('&').filter(|parameter| !parameter.is_empty());
        given.map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
    };
    // The message repeats no value, and no unknown name: it may be the tail of a password that
    // contains a bare `?`.
    if parameters().any(|(name, _)| !POSTGRES_PARAMETERS.contains(&name)) {
        return Err(refuse(format!(
            "the PostgreSQL URL has an unknown parameter; the known ones are {}. {ENCODE}",
            POSTGRES_PARAMETERS.join(", ")
        )));
    }
    // A password with a bare slash looks like a host and a database.
    let path = base.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    if url.contains('#') || path.is_some_and(|(_, path)| path.contains('@')) {
        return Err(refuse(format!("the PostgreSQL URL cannot be read: {FORMS}. {ENCODE}")));
    }
    let (mut mode, mut drivers, mut has_name) = (PoolMode::Session, Vec::new(), false);
    for (name, value) in parameters() {
        match (name, value) {
            (TARGET, "any" | "primary" | "read-write") => {}
            (TARGET, _) => {
                return Err(refuse(format!(
                    "{TARGET} in the PostgreSQL URL must be primary, read-write or any: the \
                     program writes"
                )));
            }
            (POOL_MODE, "session") => mode = PoolMode::Session,
            (POOL_MODE, "transaction") => mode = PoolMode::Transaction,
            (POOL_MODE, _) => {
                return Err(refuse(
                    "pool_mode in the PostgreSQL URL must be session or transaction; no other mode \
                     of a pooler can keep a transaction together",
                ));
            }
            (name, value) => {
                has_name |= name == "application_name";
                drivers.push(format!("{name}={value}"));
            }
        }
    }
    let options = match PgConnectOptions::from_str(&format!("{base}?{}", drivers.join("&"))) {
        Ok(options) if base.contains("://") => options,
        // the driver's message may repeat a part of the URL
        _ => return Err(refuse(format!("the PostgreSQL URL cannot be read: {FORMS}. {ENCODE}"))),
    };
    // Poolers refuse the parameter by default, and it is about numbers that rankduel does not use.
    let options = options.extra_float_digits(None);
    Ok((if has_name { options } else { options.application_name("rankduel") }, mode))
}

/// The options of the database itself, without a pooler.
fn direct_options(url: &str) -> Result<PgConnectOptions, ConnectError> {
    match (url.split_once("://"), postgres_options(url)) {
        (Some(("postgres" | "postgresql", _)), Ok((options, PoolMode::Session))) => Ok(options),
        _ => Err(refuse(DIRECT_IS_POSTGRES)),
    }
}

const ENCODE: &str = "Special characters in a user name or password must be percent-encoded \
     (`@` as %40, `/` as %2F)";
