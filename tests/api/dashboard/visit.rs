//! A visitor of the dashboard over HTTP: a session, its pages and its forms.

use rankduel::http::ShellSettings;
use rankduel_engine::access::ApiKeys;
use rankduel_store::SharedStore;

use crate::support::client::{Answer, Client};
use crate::support::service::{Server, Settings};

/// The key that the server is started with.
pub const ADMIN: &str = "given-at-the-start-0123456789";

/// A server with one key from its environment.
pub async fn serve(store: SharedStore) -> Server {
    let shell =
        ShellSettings { keys: ApiKeys::parse(ADMIN).expect("a key"), ..ShellSettings::default() };
    Server::with(store, Settings { shell, ..Settings::default() }).await
}

/// The parts of a response with a page.
impl Answer {
    /// The path of a redirect, or nothing.
    pub fn location(&self) -> &str {
        self.header("location").unwrap_or_default()
    }

    /// `NAME=VALUE` and the attributes of the cookie that is set.
    pub fn cookie(&self) -> Option<(&str, &str)> {
        self.header("set-cookie")?.split_once("; ")
    }

    /// The page with backticks instead of the elements of code, and plain spaces.
    pub fn plain(&self) -> String {
        self.text().replace("<code>", "`").replace("</code>", "`").replace('\u{a0}', " ")
    }

    /// The token of the forms on this page.
    #[track_caller]
    pub fn token(&self) -> String {
        self.between("name=\"form_token\" value=\"")
    }

    /// The value of the first hidden field with this name.
    #[track_caller]
    pub fn hidden(&self, name: &str) -> String {
        self.between(&format!("type=\"hidden\" name=\"{name}\" value=\""))
    }

    /// The text from the first `start` to the next quote.
    #[track_caller]
    fn between(&self, start: &str) -> String {
        let html = self.text();
        let (_, rest) = html.split_once(start).unwrap_or_else(|| panic!("no {start}: {html}"));
        rest.split('"').next().expect("a quote").to_owned()
    }
}

/// A browser without script.
pub struct Visitor {
    client: Client,
    /// `NAME=VALUE`, or empty without a session.
    pub cookie: String,
}

impl Visitor {
    /// A visitor without a session.
    pub fn of(server: &Server) -> Self {
        Self::holding(server, "")
    }

    /// A visitor whose browser sends this cookie.
    pub fn holding(server: &Server, cookie: &str) -> Self {
        Self { client: server.client(), cookie: cookie.to_owned() }
    }

    /// A visitor who has logged in with this key.
    pub async fn with(server: &Server, key: &str) -> Self {
        let mut visitor = Self::of(server);
        let answer = visitor.post("/login", &[("key", key)]).await;
        assert_eq!(answer.status, 303, "{}", answer.text());
        visitor.cookie = answer.cookie().expect("a session").0.to_owned();
        visitor
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], &[]).await
    }

    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.send("POST", path, fields, &[]).await
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let mut all = vec![("content-type", "application/x-www-form-urlencoded")];
        if !self.cookie.is_empty() {
            all.push(("cookie", &self.cookie));
        }
        all.extend(headers);
        self.client.send(method, path, &all, form.into_bytes()).await
    }
}
