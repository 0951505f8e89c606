//! Opens the store that a URL names.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use super::postgres::PostgresStore;
use super::sqlite::SqliteStore;
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
}

/// Open the store that `url` names.
///
/// - `sqlite://PATH`: that file, created if it does not exist. `?mode=rw` does not create it,
///   `?mode=ro` only reads.
/// - `postgres://USER:PASSWORD@HOST:PORT/DATABASE`: that database. The first call connects, so that
///   a service can start before its database.
///
/// The schema stays as it is: see [`Database::check`](super::Database::check) and
/// [`Database::migrate`](super::Database::migrate).
pub async fn connect(url: &str) -> Result<SharedStore, ConnectError> {
    match url.split_once(':') {
        Some(("sqlite", rest)) => {
            let (options, read_only) = sqlite_options(rest)?;
            let path = options.get_filename().to_owned();
            match SqliteStore::open(options, read_only).await {
                Ok(store) => Ok(Arc::new(store)),
                Err(error) => Err(ConnectError::File { path, error }),
            }
        }
        Some(("postgres" | "postgresql", _)) => {
            Ok(Arc::new(PostgresStore::new(postgres_options(url)?)))
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
const POSTGRES_PARAMETERS: [&str; 14] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "password",
    "port",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "ssl-mode",
    "statement-cache-capacity",
    "user",
];

fn postgres_options(url: &str) -> Result<PgConnectOptions, ConnectError> {
    let parameters = url.split_once('?').map_or("", |(_, parameters)| parameters);
    let names: Vec<&str> = parameters
        .split('&')
        .map(|parameter| parameter.split_once('=').map_or(parameter, |(name, _)| name))
        .filter(|name| !name.is_empty())
        .collect();
    // The message repeats no value, and no unknown name: it may be the tail of a password that
    // contains a bare `?`.
    if names.iter().any(|name| !POSTGRES_PARAMETERS.contains(name)) {
        return Err(refuse(format!(
            "the PostgreSQL URL has an unknown parameter; the known ones are {}. {ENCODE}",
            POSTGRES_PARAMETERS.join(", ")
        )));
    }
    let options = match PgConnectOptions::from_str(url) {
        Ok(options) if url.contains("://") => options,
        // the driver's message may repeat a part of the URL
        _ => return Err(refuse(format!("the PostgreSQL URL cannot be read: {FORMS}. {ENCODE}"))),
    };
    Ok(if names.contains(&"application_name") {
        options
    } else {
        options.application_name("rankduel")
    })
}

const ENCODE: &str = "Special characters in a user name or password must be percent-encoded \
     (`@` as %40, `/` as %2F)";
