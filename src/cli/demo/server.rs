//! A server of the demo's own, in its process.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::cli::open_store;
use crate::clock::SystemClock;
use crate::http::server::{ConnectionSettings, serve};
use crate::http::{self, AppState, Readiness, ShellSettings};
use crate::service::Service;
use crate::service::ServiceSettings;
use crate::telemetry::metrics::Metrics;

/// One that runs until it is stopped.
pub struct Server {
    /// `http://ADDRESS`.
    pub url: String,
    /// Kind of its database.
    pub database: &'static str,
    service: Arc<Service>,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Start on a database whose schema may be missing.
    pub async fn start(database_url: &str, listen: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(listen)
            .await
            .with_context(|| format!("cannot listen on {listen}"))?;
        let url = format!("http://{}", listener.local_addr()?);
        let store = open_store(database_url).await?;
        store.migrate().await.context("the database's schema cannot be brought up to date")?;
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
        let app = http::app(state, &ShellSettings::default())?;
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let until_told = async {
                // an Err is the demo ending early: then stop, too
                let _ = stopped.await;
            };
            serve(listener, app, &ConnectionSettings::default(), until_told).await;
        });
        Ok(Self { url, database, service, stop, task })
    }

    /// Finish what is running and write what is only in memory.
    pub async fn stop(self) -> anyhow::Result<()> {
        // the server may have stopped by itself; then there is nobody to tell
        let _ = self.stop.send(());
        self.task.await.context("the server panicked")?;
        self.service.shutdown().await;
        Ok(())
    }

    /// Create an experiment.
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

/// What `url` answers.
pub async fn get(url: &str) -> anyhow::Result<Value> {
    Ok(client()?.get(url).send().await?.error_for_status()?.json().await?)
}

fn client() -> anyhow::Result<reqwest::Client> {
    reqwest::Client::builder().no_proxy().build().context("the HTTP client cannot be set up")
}
