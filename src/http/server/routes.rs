//! The table of routes: for each path, who may call it and how its requests are counted.
//!
//! A request whose path the table does not have gets 404, whatever the router has. So a route that
//! was forgotten here cannot be called, by anybody.

use std::collections::HashMap;
use std::sync::OnceLock;

use anyhow::Context as _;
use axum::http::Method;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

use crate::http::direct::Direct;
use crate::http::operations::Operation;
use rankduel_engine::access::Scope;
use rankduel_engine::metrics::{Metrics, RequestLabels, RouteLabels};

/// Requirements of the requests of one route.
#[derive(Debug, Clone)]
pub(crate) enum Rule {
    /// No key.
    Open,
    /// No key; people read it.
    OpenPage,
    /// A key, or a session that was opened with one; the scope `read`.
    Page,
    /// As [`Rule::Page`], with the scope `admin` for every method.
    ManagingPage,
    /// A key with the scope of the method. The router refuses other methods.
    Operations(Vec<(Method, Scope)>),
    /// A key with the scope `admin`.
    Admin,
    /// Any key: there is nothing at the path.
    Nothing,
}

/// One route.
pub(crate) struct Route {
    /// The template of its path, such as `/v1/experiments/{name}`.
    pub template: String,
    pub rule: Rule,
    /// Whether the shell refuses requests of pages of other sites, which may change something. The
    /// dashboard does that itself.
    pub of_api: bool,
    /// Its `POST`, if that is called without the router.
    pub direct: Option<Direct>,
    /// By [`method_number`].
    metrics: [RouteMetrics; METHODS.len()],
}

/// The metrics of one method and route, each looked up once, when it is needed first.
#[derive(Default)]
struct RouteMetrics {
    duration: OnceLock<Histogram>,
    /// Responses with status 200.
    succeeded: OnceLock<Counter>,
}

/// The methods that metrics tell apart.
const METHODS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "other"];

/// The name of a method in metrics and the log.
pub(crate) fn method_label(method: &Method) -> &'static str {
    METHODS[method_number(method)]
}

fn method_number(method: &Method) -> usize {
    match *method {
        Method::GET => 0,
        Method::HEAD => 1,
        Method::POST => 2,
        Method::PUT => 3,
        Method::PATCH => 4,
        Method::DELETE => 5,
        Method::OPTIONS => 6,
        _ => 7,
    }
}

impl Route {
    fn new(template: &str, rule: Rule, of_api: bool) -> Self {
        let (template, direct) = (template.to_owned(), Direct::of(template));
        Self { template, rule, of_api, direct, metrics: Default::default() }
    }

    /// Count a request of this route.
    pub fn count(&self, metrics: &Metrics, method: &Method, status: u16, seconds: f64) {
        let (own, method) = (&self.metrics[method_number(method)], method_label(method));
        let route = || self.template.clone();
        let duration = || {
            let labels = RouteLabels { method, route: route() };
            metrics.http_request_duration_seconds.get_or_create(&labels).clone()
        };
        let of_status = || {
            let labels = RequestLabels { method, route: route(), status };
            metrics.http_requests.get_or_create(&labels).clone()
        };
        own.duration.get_or_init(duration).observe(seconds);
        if status == 200 {
            own.succeeded.get_or_init(of_status).inc();
        } else {
            of_status().inc();
        }
    }
}

/// The table.
pub(crate) struct RouteTable {
    routes: matchit::Router<Route>,
    /// The route of paths that have none.
    unmatched: Route,
}

impl RouteTable {
    /// The routes of these operations.
    pub fn of_operations(operations: &[Operation]) -> anyhow::Result<Self> {
        let mut rules: HashMap<&str, Rule> = HashMap::new();
        for Operation { method, path, scope, .. } in operations {
            let rule = rules.entry(path).or_insert_with(|| Rule::Operations(Vec::new()));
            match (scope, rule) {
                (Some(scope), Rule::Operations(scopes)) => scopes.push((method.clone(), *scope)),
                (None, rule) => *rule = Rule::Open,
                (Some(_), _) => {}
            }
        }
        let unmatched = Route::new("unmatched", Rule::Nothing, false);
        let mut table = Self { routes: matchit::Router::new(), unmatched };
        for (path, rule) in rules {
            table.insert(Route::new(path, rule, true))?;
        }
        Ok(table)
    }

    /// The same with these routes, which are not part of the API.
    pub fn with(mut self, paths: &[&str], rule: &Rule) -> anyhow::Result<Self> {
        for path in paths {
            self.insert(Route::new(path, rule.clone(), false))?;
        }
        Ok(self)
    }

    fn insert(&mut self, route: Route) -> anyhow::Result<()> {
        let template = route.template.clone();
        self.routes.insert(&*template, route).with_context(|| format!("the route {template}"))
    }

    /// The route of this path.
    pub fn of(&self, path: &str) -> &Route {
        self.routes.at(path).map_or(&self.unmatched, |found| found.value)
    }
}
