//! The demo's own server, in the same process.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use axum::Router;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::cli::database::open_store;
use crate::clock::SystemClock;
use crate::http::server::{ConnectionSettings, serve};
use crate::http::{self, AppState, Hosts, Readiness, ShellSettings};
use crate::service::Service;
use crate::service::ServiceSettings;
use crate::telemetry::metrics::Metrics;

/// A server that runs until it is stopped.
pub struct Server {
    /// `http://ADDRESS`.
    pub url: String,
    /// The kind of its database.
    pub database: &'static str,
    service: Arc<Service>,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Starts the server, and creates the schema of the database if necessary.
    pub async fn start(database_url: &str, listen: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("cannot listen on {listen}"))?;
        let url = format!("http://{}", listener.local_addr()?);
        let store = open_store(database_url).await?;
        store.migrate().await.context("the schema of the database cannot be updated")?;
        let database = store.kind();
        let metrics = Arc::new(Metrics::new());
        let service = Service::start(
            store,
            Arc::new(SystemClock),
            Arc::clone(&metrics),
            ServiceSettings::default(),
        )
        .await?;
        let state = AppState {
            service: Arc::clone(&service),
            metrics,
            readiness: Arc::new(Readiness::default()),
        };
        let hosts = if listen.ip().is_loopback() { Hosts::Local } else { Hosts::Any };
        let app = http::app_for(state, &ShellSettings::default(), Router::new(), hosts)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let until_stopped = async {
                // An error means that the demo ended early: stop then, too.
                let _ = stopped.await;
            };
            serve(listener, app, &ConnectionSettings::default(), until_stopped).await;
        });
        Ok(Self { url, database, service, stop, task })
    }

    /// Completes running requests, and writes the data that is only in memory.
    pub async fn stop(self) -> anyhow::Result<()> {
        // Ignore an error: the server may have stopped by itself.
        let _ = self.stop.send(());
        self.task.await.context("the server panicked")?;
        self.service.shutdown().await;
        Ok(())
    }

    /// Creates an experiment.
    pub async fn create(&self, body: &Value) -> anyhow::Result<()> {
        let response =
            client()?.post(format!("{}/v1/experiments", self.url)).json(body).send().await?;
        let status = response.status();
        if !status.is_success() {
            bail!("the experiment was not created ({status}): {}", response.text().await?);
        }
        Ok(())
    }
}

/// The answer of `url`.
pub async fn get(url: &str) -> anyhow::Result<Value> {
    Ok(client()?.get(url).send().await?.error_for_status()?.json().await?)
}

fn client() -> anyhow::Result<reqwest::Client> {
    reqwest::Client::builder().no_proxy().build().context("the HTTP client cannot be set up")
}
