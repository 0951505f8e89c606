//! Notices for a webhook: an answer that a person should be told, as receivers read it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::service::answer::Answer;
use crate::service::answer_order::list;
use crate::service::error::ServiceError;
use rankduel_engine::clock::rfc3339;
use rankduel_engine::error::EngineError;
use rankduel_engine::loaded::LoadedExperiment;
use rankduel_store::{WebhookNotice, entropy};

/// The receiver of notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum WebhookFormat {
    /// A program: the whole notice, signed.
    #[default]
    Json,
    /// An incoming webhook of Slack.
    Slack,
    /// A workflow of Microsoft Teams that posts what its webhook gets.
    Teams,
}

/// The notice of an answer after the one before. `public_url` is the address of the pages.
pub(super) fn notice(
    loaded: &LoadedExperiment,
    answer: &Answer,
    before: Option<&Answer>,
    public_url: Option<&str>,
    now_ms: i64,
) -> Result<WebhookNotice, ServiceError> {
    let number = entropy::bytes::<16>().map(u128::from_be_bytes).map_err(EngineError::from)?;
    let (id, experiment) = (format!("{number:032x}"), loaded.name.clone());
    let withdrawn = answer.withdrawn_since(before);
    let body = json!({
        "id": id,
        "event": if withdrawn.is_empty() { "answer" } else { "withdrawn" },
        "experiment": experiment,
        "description": loaded.spec.description,
        "owner": loaded.spec.owner,
        "url": public_url.map(|url| format!("{url}/experiments/{experiment}")),
        "status": answer.status,
        "status_before": before.map(|before| before.status),
        "state_before": before.map(|before| before.state),
        "noticed_at": rfc3339(now_ms),
        "withdrawn": withdrawn,
        "answer": answer,
    });
    let body = body.to_string();
    Ok(WebhookNotice { id, experiment, body, queued_at: now_ms, attempts: 0 })
}

impl WebhookFormat {
    /// The event and the body of a notice in this form.
    pub(super) fn write(self, notice: &WebhookNotice) -> Result<(String, String), String> {
        let read = serde_json::from_str::<Value>(&notice.body);
        let read = read.map_err(|error| format!("the notice cannot be read: {error}"))?;
        let body = match self {
            Self::Json => notice.body.clone(),
            Self::Slack => Message::of(&read).slack().to_string(),
            Self::Teams => Message::of(&read).teams().to_string(),
        };
        Ok((text(&read, "/event"), body))
    }
}

/// A notice for people. Names are in backticks.
struct Message {
    experiment: String,
    owner: String,
    url: String,
    sentences: Vec<String>,
}

impl Message {
    fn of(notice: &Value) -> Self {
        let withdrawn = notice["withdrawn"].as_array().map(Vec::as_slice).unwrap_or_default();
        let withdrawn: Vec<_> =
            withdrawn.iter().filter_map(|it| Some(it.as_str()?.to_owned())).collect();
        let is = if withdrawn.len() > 1 { "are" } else { "is" };
        let lost = format!("{} {is} no longer proven to be the best.", list(&withdrawn));
        let said = ["/answer/headline", "/answer/what_next/sentence"].map(|at| text(notice, at));
        let status = match ["/status_before", "/status"].map(|at| text(notice, at)) {
            [before, now] if before == now || before.is_empty() => "",
            [_, now] if now == "paused" => "The experiment was paused.",
            [_, now] if now == "running" => "The experiment was resumed.",
            _ => "",
        };
        let was_alarm = text(notice, "/state_before") == "alarm";
        let is_over = was_alarm && notice["answer"]["alarms"].as_array().is_some_and(Vec::is_empty);
        let over = if is_over { "The alarm is over." } else { "" };
        let first = [status.to_owned(), over.to_owned()].into_iter();
        let lost = (!withdrawn.is_empty()).then_some(lost);
        let sentences = first.chain(lost).chain(said);
        Self {
            experiment: text(notice, "/experiment"),
            owner: text(notice, "/owner"),
            url: text(notice, "/url"),
            sentences: sentences.filter(|sentence| !sentence.is_empty()).collect(),
        }
    }

    /// Text in Slack's own markup, in which backticks mean what they mean here.
    fn slack(&self) -> Value {
        let plain =
            |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let mut lines = match (&*self.experiment, &*self.url) {
            (name, "") => format!("*{name}*"),
            (name, url) => format!("*<{}|{name}>*", plain(url)),
        };
        if !self.owner.is_empty() {
            // writing to a string cannot fail
            let _ = write!(lines, " ({})", plain(&self.owner));
        }
        for sentence in &self.sentences {
            let _ = write!(lines, "\n{}", plain(sentence));
        }
        json!({"text": lines})
    }

    /// An adaptive card. Its runs of text have no markup, so that no name is read as such.
    fn teams(&self) -> Value {
        let block = |runs: Vec<Value>| json!({"type": "RichTextBlock", "inlines": runs});
        let run = |text: &str| json!({"type": "TextRun", "text": text});
        let mut title =
            vec![json!({"type": "TextRun", "text": self.experiment, "weight": "Bolder"})];
        if !self.owner.is_empty() {
            title.push(run(&format!(" ({})", self.owner)));
        }
        let name = |text: &str| json!({"type": "TextRun", "text": text, "fontType": "Monospace"});
        let sentence = |sentence: &String| {
            let parts = sentence.split('`').enumerate().filter(|(_, part)| !part.is_empty());
            block(
                parts.map(|(at, part)| if at % 2 == 0 { run(part) } else { name(part) }).collect(),
            )
        };
        let blocks: Vec<_> =
            std::iter::once(block(title)).chain(self.sentences.iter().map(sentence)).collect();
        let open = json!({"type": "Action.OpenUrl", "title": "Open", "url": self.url});
        let actions: Vec<_> = (!self.url.is_empty()).then_some(open).into_iter().collect();
        json!({"type": "message", "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.2",
                "body": blocks,
                "actions": actions,
            },
        }]})
    }
}

/// The text at a place of a notice; empty if there is none.
fn text(notice: &Value, at: &str) -> String {
    notice.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}
