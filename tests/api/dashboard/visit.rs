//! A visitor of the dashboard over HTTP: a session, its pages and its forms.

use rankduel::http::ShellSettings;
use rankduel_engine::access::{Actor, ApiKeys, KeyChangeError, KeyRequest, Scope, create_key};
use rankduel_store::SharedStore;
use reqwest::redirect::Policy;
use reqwest::{Client, Method};

use crate::support::service::{START_MS, Server, Settings};

/// The key that the server is started with.
pub const ADMIN: &str = "given-at-the-start-0123456789";

/// A server with one key from its environment.
pub async fn serve(store: SharedStore) -> Server {
    let shell =
        ShellSettings { keys: ApiKeys::parse(ADMIN).expect("a key"), ..ShellSettings::default() };
    Server::with(store, Settings { shell, ..Settings::default() }).await
}

/// A new key of the database: its text and its id.
pub async fn key(
    store: &SharedStore,
    scope: Scope,
    experiments: Option<&[&str]>,
) -> (String, String) {
    let request = KeyRequest {
        name: format!("of a test, {scope}"),
        scopes: [scope].into_iter().collect(),
        experiments: experiments.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        expires_in_days: None,
    };
    let shown = |_: &_, _: &_| Ok::<_, KeyChangeError>(());
    let made = create_key(&**store, &request, &Actor::command_line(), START_MS, shown).await;
    let (key, record) = made.expect("a key");
    (key.text, record.id)
}

/// The response to a request for a page.
pub struct Answer {
    pub status: u16,
    pub location: String,
    pub html: String,
    pub cookie: Option<String>,
    pub caching: String,
}

impl Answer {
    /// The page with backticks instead of the elements of code, and plain spaces.
    pub fn plain(&self) -> String {
        self.html.replace("<code>", "`").replace("</code>", "`").replace('\u{a0}', " ")
    }

    /// The token of the forms on this page.
    #[track_caller]
    pub fn token(&self) -> String {
        let start = "name=\"form_token\" value=\"";
        let at = self.html.find(start).unwrap_or_else(|| panic!("no form: {}", self.html));
        let rest = &self.html[at + start.len()..];
        rest[..rest.find('"').expect("a quote")].to_owned()
    }

    /// The value of the first hidden field with this name.
    #[track_caller]
    pub fn hidden(&self, name: &str) -> String {
        let start = format!("type=\"hidden\" name=\"{name}\" value=\"");
        let at = self.html.find(&start).unwrap_or_else(|| panic!("no {name}: {}", self.html));
        let rest = &self.html[at + start.len()..];
        rest[..rest.find('"').expect("a quote")].to_owned()
    }
}

/// A browser without script.
pub struct Visitor {
    base: String,
    http: Client,
    /// `NAME=VALUE`, or empty without a session.
    pub cookie: String,
}

impl Visitor {
    /// A visitor without a session.
    pub fn of(server: &Server) -> Self {
        let http = Client::builder().no_proxy().redirect(Policy::none()).build().expect("a client");
        Self { base: server.base().to_owned(), http, cookie: String::new() }
    }

    /// A visitor who has logged in with this key.
    pub async fn with(server: &Server, key: &str) -> Self {
        let mut visitor = Self::of(server);
        let answer = visitor.post("/login", &[("key", key)]).await;
        assert_eq!(answer.status, 303, "{}", answer.html);
        visitor.cookie = answer.cookie.expect("a session");
        visitor
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], &[]).await
    }

    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.send(Method::POST, path, fields, &[]).await
    }

    pub async fn send(
        &self,
        method: Method,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Answer {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let mut request = self.http.request(method, format!("{}{path}", self.base)).body(form);
        request = request.header("content-type", "application/x-www-form-urlencoded");
        if !self.cookie.is_empty() {
            request = request.header("cookie", &self.cookie);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.expect("an answer");
        let text = |name: &str| {
            let value = response.headers().get(name);
            value.map(|value| value.to_str().expect("ASCII").to_owned()).unwrap_or_default()
        };
        let cookie = text("set-cookie");
        let cookie = cookie.split_once(';').map(|(pair, _)| pair.to_owned());
        let (location, caching) = (text("location"), text("cache-control"));
        let status = response.status().as_u16();
        Answer { status, location, cookie, caching, html: response.text().await.expect("text") }
    }
}
