//! Delivery of notices to a webhook.
//!
//! A notice waits in the database from the change of the answer until the receiver has answered
//! with 2xx: it comes at least once, under an id that is the same at every attempt. The servers
//! share the queue: the one that takes a notice has it to itself for a while. Two tasks send, one
//! the new notices and one the failed ones, so that neither requests nor new notices wait for those
//! that a receiver refuses.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::header::{CONTENT_TYPE, USER_AGENT};
use hyper::{Request, Uri};
use reqwest::Url;
use sha2::Sha256;
use tokio::sync::Notify;

use crate::service::Service;
use crate::service::error::ServiceError;
use crate::service::notices::WebhookFormat;
use crate::service::outgoing::{HttpClient, http_client};
use rankduel_engine::metrics::Metrics;
use rankduel_store::{SharedStore, StoreError, WebhookNotice};

const WITHIN: Duration = Duration::from_secs(10);
/// No other server tries for so long, also if this one ends meanwhile.
const TAKEN_FOR_MS: i64 = 30_000;
/// Longest pause of a notice after failures; the first one is a second, and each is twice the one
/// before.
const PAUSE_MAX_MS: i64 = 300_000;
/// A notice that was refused for so long is given up.
const GIVEN_UP_AFTER_MS: i64 = 7 * 86_400_000;
/// How often the task for new notices looks for those that other servers have left.
const IDLE: Duration = Duration::from_secs(5);
/// The pause of the other task after a failure, or if nothing is due: it bounds the load.
const RETRY_EVERY: Duration = Duration::from_secs(1);
const SECRET_MIN: usize = 16;
/// The header with the time in seconds and the HMAC.
const SIGNATURE: &str = "rankduel-signature";

/// Where to send, in which form, and the secret to sign with.
#[derive(Clone)]
pub struct WebhookSettings {
    url: Uri,
    secret: Option<String>,
    format: WebhookFormat,
    public_url: Option<String>,
}

impl std::fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // URL and secret can be secrets
        f.debug_struct("WebhookSettings").field("format", &self.format).finish_non_exhaustive()
    }
}

impl WebhookSettings {
    /// Check the settings. No error repeats the URL of the webhook or the secret.
    pub fn parse(
        url: Option<&str>,
        secret: Option<&str>,
        format: WebhookFormat,
        public_url: Option<&str>,
    ) -> Result<Option<Self>, String> {
        let public_url = public_url.map(parse_public_url).transpose()?;
        let Some(url) = url else {
            return match (secret, format) {
                (Some(_), _) => Err("--webhook-secret needs --webhook-url".into()),
                (None, WebhookFormat::Json) => Ok(None),
                (None, _) => Err("--webhook-format needs --webhook-url".into()),
            };
        };
        if secret.is_none() && format == WebhookFormat::Json {
            return Err("--webhook-url needs --webhook-secret; only Slack and Teams do without \
                        (--webhook-format)"
                .into());
        }
        let url = Url::parse(url).map_err(|error| format!("--webhook-url is no URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err("--webhook-url is neither an https:// nor an http:// URL".into());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("--webhook-url has a name or a password in it; receivers check the \
                        signature instead"
                .into());
        }
        let is_weak =
            |it: &str| it.chars().count() < SECRET_MIN || it.chars().any(char::is_control);
        if secret.is_some_and(is_weak) {
            return Err(format!(
                "--webhook-secret must have {SECRET_MIN} characters or more, none of them a control \
                 character, for instance from `openssl rand -hex 32`"
            ));
        }
        let url = url.as_str().parse();
        let url = url.map_err(|error| format!("--webhook-url cannot be sent to: {error}"))?;
        Ok(Some(Self { url, secret: secret.map(str::to_owned), format, public_url }))
    }
}

/// The address of the pages, without a slash at the end.
fn parse_public_url(text: &str) -> Result<String, String> {
    let refused = |why: String| {
        format!("--public-url {text:?} {why}; write it like https://rankduel.example.org")
    };
    let url = Url::parse(text).map_err(|error| refused(format!("is no URL: {error}")))?;
    let is_page = matches!(url.scheme(), "http" | "https") && url.host().is_some();
    if !is_page || url.query().is_some() || url.fragment().is_some() {
        return Err(refused("is not the address of pages".into()));
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

pub struct Webhook {
    url: Uri,
    mac: Option<Hmac<Sha256>>,
    format: WebhookFormat,
    public_url: Option<String>,
    client: HttpClient<String>,
    wake: Notify,
    metrics: Arc<Metrics>,
}

/// The notices that a task sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lane {
    New,
    Failed,
}

/// The result of a look into the queue.
enum Looked {
    Sent,
    Failed,
    Nothing,
}

impl Webhook {
    fn new(settings: &WebhookSettings, metrics: Arc<Metrics>) -> Result<Self, ServiceError> {
        let WebhookSettings { url, secret, format, public_url } = settings.clone();
        let key = |secret: String| Hmac::new_from_slice(secret.as_bytes());
        let mac = secret.map(key).transpose();
        Ok(Self {
            client: http_client(&url)?,
            url,
            mac: mac.map_err(|error| ServiceError::internal(error.to_string()))?,
            format,
            public_url,
            wake: Notify::new(),
            metrics,
        })
    }

    /// The address of the pages for links, if it is known.
    pub(super) fn public_url(&self) -> Option<&str> {
        self.public_url.as_deref()
    }

    /// Send a notice that was just queued.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// The value of the header for a body that is sent at this time.
    fn signature(&self, seconds: i64, body: &str) -> Option<String> {
        let mut mac = self.mac.clone()?;
        mac.update(format!("{seconds}.{body}").as_bytes());
        let mut text = format!("t={seconds},v1=");
        for byte in mac.finalize().into_bytes() {
            // writing to a string cannot fail
            let _ = write!(text, "{byte:02x}");
        }
        Some(text)
    }

    async fn post(&self, notice: &WebhookNotice, now_ms: i64) -> Result<(), String> {
        let (event, body) = self.format.write(notice)?;
        let mut request = Request::post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("rankduel/", env!("CARGO_PKG_VERSION")))
            .header("rankduel-event", event);
        if let Some(signature) = self.signature(now_ms / 1000, &body) {
            request = request.header(SIGNATURE, signature);
        }
        let request = request.body(body).map_err(|error| error.to_string())?;
        let answer = tokio::time::timeout(WITHIN, self.client.request(request)).await;
        let answer = answer.map_err(|_| format!("no answer within {} s", WITHIN.as_secs()))?;
        match answer.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?.status() {
            status if status.is_success() => Ok(()),
            status => Err(format!("it answered {status}")),
        }
    }
}

/// Send notices until the service is gone.
async fn deliver(webhook: Arc<Webhook>, service: Weak<Service>, lane: Lane) {
    loop {
        let looked = match service.upgrade() {
            Some(service) => {
                let (store, now_ms) = (Arc::clone(&service.engine.store), service.now_ms());
                // the service may end while the receiver is slow
                drop(service);
                send_one(&webhook, &store, lane, now_ms).await
            }
            None => return,
        };
        match (looked.unwrap_or(Looked::Nothing), lane) {
            (Looked::Sent, _) | (Looked::Failed, Lane::New) => {}
            (Looked::Nothing, Lane::New) => {
                let _ = tokio::time::timeout(IDLE, webhook.wake.notified()).await;
            }
            (Looked::Failed | Looked::Nothing, Lane::Failed) => {
                tokio::time::sleep(RETRY_EVERY).await;
            }
        }
    }
}

async fn send_one(
    webhook: &Webhook,
    store: &SharedStore,
    lane: Lane,
    now_ms: i64,
) -> Result<Looked, StoreError> {
    let taken = store.take_notice(lane == Lane::Failed, now_ms, now_ms + TAKEN_FOR_MS).await?;
    let looked = match taken {
        // the other task, which looks more rarely, counts then
        None if lane == Lane::Failed => return Ok(Looked::Nothing),
        None => Looked::Nothing,
        Some(notice) => match webhook.post(&notice, now_ms).await {
            Ok(()) => {
                webhook.metrics.webhook_sent.inc();
                remove(store, &notice).await;
                Looked::Sent
            }
            Err(error) => {
                webhook.metrics.webhook_failures.inc();
                put_back(store, &notice, &error, now_ms).await?;
                Looked::Failed
            }
        },
    };
    webhook.metrics.webhook_queue.set(store.waiting_notices().await?.cast_signed());
    Ok(looked)
}

async fn remove(store: &SharedStore, notice: &WebhookNotice) {
    if let Err(error) = store.remove_notice(&notice.id).await {
        tracing::warn!(
            %error, id = notice.id, experiment = notice.experiment,
            "the webhook has a notice, and the database does not know it: it will come again"
        );
    }
}

/// After a failure: a pause for this notice, or its end.
async fn put_back(
    store: &SharedStore,
    notice: &WebhookNotice,
    error: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let WebhookNotice { id, experiment, queued_at, attempts, .. } = notice;
    if now_ms - queued_at >= GIVEN_UP_AFTER_MS {
        tracing::error!(
            error,
            attempts,
            id,
            experiment,
            "the webhook did not take a notice for seven days; it is given up"
        );
        return store.remove_notice(id).await;
    }
    tracing::warn!(
        error,
        attempts,
        id,
        experiment,
        "the webhook did not take a notice; it is sent again"
    );
    store.postpone_notice(id, now_ms + pause_after(*attempts)).await
}

/// Milliseconds.
fn pause_after(attempts: u32) -> i64 {
    let doubled = 1_i64.checked_shl(attempts.saturating_sub(1)).unwrap_or(PAUSE_MAX_MS);
    doubled.saturating_mul(1000).clamp(1000, PAUSE_MAX_MS)
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
            for lane in [Lane::New, Lane::Failed] {
                tokio::spawn(deliver(Arc::clone(&webhook), Arc::downgrade(self), lane));
            }
        }
        Ok(())
    }
}
