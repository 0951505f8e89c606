//! Delivery of notices to a webhook.
//!
//! A notice is sent until the receiver has answered with 2xx, and a log entry then says so: at
//! least once, under an id that is the same at every replica and at every attempt. The queue is
//! bounded; what finds no place in it is found again in the next round of maintenance. One task
//! sends, so requests never wait for the receiver.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use sha2::Sha256;
use tokio::sync::Notify;

use crate::service::Service;
use crate::service::error::ServiceError;
use rankduel_engine::metrics::Metrics;
use rankduel_store::Nonce;
use rankduel_store::events::ControlEvent;

const QUEUE_MAX: usize = 1000;
const WITHIN: Duration = Duration::from_secs(10);
/// Longest pause after failures; the first one is a second, and each is twice the one before.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// How often the task looks whether the service still exists.
const IDLE: Duration = Duration::from_secs(5);
const SECRET_MIN: usize = 16;
/// The header with the time in seconds and the HMAC.
const SIGNATURE: &str = "rankduel-signature";

/// Where to send, and the secret to sign with.
#[derive(Clone)]
pub struct WebhookSettings {
    url: Url,
    secret: String,
}

impl std::fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // both can be secrets
        f.debug_struct("WebhookSettings").finish_non_exhaustive()
    }
}

impl WebhookSettings {
    /// Check the two settings: both or neither. No error repeats them.
    pub fn parse(url: Option<&str>, secret: Option<&str>) -> Result<Option<Self>, String> {
        let (url, secret) = match (url, secret) {
            (None, None) => return Ok(None),
            (Some(url), Some(secret)) => (url, secret),
            (Some(_), None) => return Err("--webhook-url needs --webhook-secret".into()),
            (None, Some(_)) => return Err("--webhook-secret needs --webhook-url".into()),
        };
        let url = Url::parse(url).map_err(|error| format!("--webhook-url is no URL: {error}"))?;
        if url.scheme() != "http" || url.host().is_none() {
            return Err("--webhook-url is no http:// URL; notices are sent without TLS, to a \
                        receiver or a relay on this machine or on the same private network"
                .into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("--webhook-url has a name or a password in it; receivers check the \
                        signature instead"
                .into());
        }
        if secret.chars().count() < SECRET_MIN || secret.chars().any(char::is_control) {
            return Err(format!(
                "--webhook-secret must have {SECRET_MIN} characters or more, none of them a control \
                 character, for instance from `openssl rand -hex 32`"
            ));
        }
        Ok(Some(Self { url, secret: secret.to_owned() }))
    }
}

/// A notice that waits to be sent.
pub(super) struct Pending {
    pub experiment: String,
    /// The nonce of the log entry that it was sent.
    pub nonce: Nonce,
    /// Its kind, for a header.
    pub event: &'static str,
    pub body: String,
}

pub struct Webhook {
    url: Url,
    mac: Hmac<Sha256>,
    client: Client,
    queue: Mutex<VecDeque<Pending>>,
    wake: Notify,
    metrics: Arc<Metrics>,
}

impl Webhook {
    fn new(settings: &WebhookSettings, metrics: Arc<Metrics>) -> Result<Self, ServiceError> {
        // the settings name the receiver; neither it nor a proxy may lead the requests elsewhere
        let client = Client::builder()
            .timeout(WITHIN)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("rankduel/", env!("CARGO_PKG_VERSION")))
            .build();
        let mac = Hmac::new_from_slice(settings.secret.as_bytes());
        Ok(Self {
            url: settings.url.clone(),
            mac: mac.map_err(|error| ServiceError::internal(error.to_string()))?,
            client: client.map_err(|error| ServiceError::internal(error.to_string()))?,
            queue: Mutex::default(),
            wake: Notify::new(),
            metrics,
        })
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Pending>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queue a notice. Returns whether there was a place for it.
    pub(super) fn push(&self, pending: Pending) -> bool {
        let mut queue = self.queue();
        let has_place = queue.len() < QUEUE_MAX;
        if has_place {
            queue.push_back(pending);
            self.metrics.webhook_queue.set(queue.len() as i64);
            self.wake.notify_one();
        }
        has_place
    }

    fn pop(&self) -> Option<Pending> {
        self.queue().pop_front()
    }

    /// The value of the header for a body that is sent at this time.
    fn signature(&self, seconds: i64, body: &str) -> String {
        let mut mac = self.mac.clone();
        mac.update(format!("{seconds}.{body}").as_bytes());
        let mut text = format!("t={seconds},v1=");
        for byte in mac.finalize().into_bytes() {
            // writing to a string cannot fail
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    async fn post(&self, pending: &Pending, now_ms: i64) -> Result<(), String> {
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("rankduel-event", pending.event)
            .header(SIGNATURE, self.signature(now_ms / 1000, &pending.body))
            .body(pending.body.clone());
        // the URL can have a secret in it
        let answer = request.send().await.map_err(|error| error.without_url().to_string())?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answered {status}")),
        }
    }
}

/// Send what is queued until the service is gone.
async fn deliver(webhook: Arc<Webhook>, service: Weak<Service>) {
    let mut failures = 0;
    loop {
        let Some(pending) = webhook.pop() else {
            let _ = tokio::time::timeout(IDLE, webhook.wake.notified()).await;
            if service.strong_count() == 0 {
                return;
            }
            continue;
        };
        let Some(now_ms) = service.upgrade().map(|service| service.now_ms()) else { return };
        match webhook.post(&pending, now_ms).await {
            Ok(()) => {
                failures = 0;
                webhook.metrics.webhook_sent.inc();
                webhook.metrics.webhook_queue.set(webhook.queue().len() as i64);
                let Some(service) = service.upgrade() else { return };
                if let Err(error) = mark_sent(&service, &pending).await {
                    tracing::warn!(
                        %error, experiment = pending.experiment,
                        "the webhook has a notice, and the log does not say so: it may come again"
                    );
                }
            }
            Err(error) => {
                failures += 1;
                webhook.metrics.webhook_failures.inc();
                tracing::warn!(
                    error,
                    failures,
                    event = pending.event,
                    experiment = pending.experiment,
                    "the webhook did not take a notice; it is sent again"
                );
                // others first: the receiver may dislike only this one
                webhook.queue().push_back(pending);
                tokio::time::sleep(pause_after(failures)).await;
            }
        }
    }
}

fn pause_after(failures: u32) -> Duration {
    let seconds = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    Duration::from_secs(seconds).min(PAUSE_MAX)
}

/// Write into the log that this was sent.
async fn mark_sent(service: &Service, pending: &Pending) -> Result<(), ServiceError> {
    let loaded = service.experiment(&pending.experiment).await?;
    let event = ControlEvent::Notified {};
    service.engine.append_control(&loaded, pending.nonce, event).await?;
    Ok(())
}

impl Service {
    /// Send notices to a webhook from now on. Once only.
    pub fn start_webhook(
        self: &Arc<Self>,
        settings: &WebhookSettings,
        metrics: Arc<Metrics>,
    ) -> Result<(), ServiceError> {
        let webhook = Arc::new(Webhook::new(settings, metrics)?);
        if self.webhook.set(Arc::clone(&webhook)).is_ok() {
            tokio::spawn(deliver(webhook, Arc::downgrade(self)));
        }
        Ok(())
    }
}
