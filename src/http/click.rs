//! One event on a page, in a request body.
#![expect(dead_code, reason = "`ClickShape` describes how a `PageEvent` is read")]

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use utoipa::ToSchema;

use crate::service::feedback::{Clicked, PageEvent};
use rankduel_engine::fold::open_pages::MAX_CLICKED;
use rankduel_engine::page_rules::CLICK;

/// The clicks of one item of feedback, without those beyond the first one too many: a body of two
/// megabytes can have a million, and each takes some thirty times its bytes.
#[derive(Debug)]
pub(crate) struct ClickList(pub Vec<PageEvent>);

/// A click: a position in the shown list from 0, a document id, or an object.
#[derive(Debug, ToSchema)]
#[schema(as = Click)]
#[serde(untagged)]
pub(crate) enum ClickShape {
    /// Position in the shown list, counted across its pages.
    Position(u64),
    /// Id of a document.
    Document(String),
    /// Identified by position.
    AtPosition(AtPosition),
    /// Identified by document.
    OnDocument(OnDocument),
    /// Identified by slot.
    OnSlot(OnSlot),
}

/// An event at a position.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AtPosition {
    /// In the shown list, from 0.
    position: u64,
    /// One of the experiment's `event_weights`; `click` by default.
    #[schema(nullable = false)]
    event: Option<String>,
}

/// An event on a document.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnDocument {
    document: String,
    /// As for a position.
    #[schema(nullable = false)]
    event: Option<String>,
}

/// An event on a slot.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OnSlot {
    /// Token of the slot.
    slot: String,
    /// As for a position.
    #[schema(nullable = false)]
    event: Option<String>,
}

impl<'de> Deserialize<'de> for PageEvent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Members {
            position: Option<u64>,
            document: Option<String>,
            slot: Option<String>,
            event: Option<String>,
        }
        struct Click;
        impl<'de> Visitor<'de> for Click {
            type Value = PageEvent;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str(
                    "a click: a position from 0, a document id, or an object with `position`, `document` or `slot`",
                )
            }
            fn visit_u64<E>(self, position: u64) -> Result<PageEvent, E> {
                Ok(plain(Clicked::Position(position)))
            }
            fn visit_str<E>(self, id: &str) -> Result<PageEvent, E> {
                Ok(plain(Clicked::Document(id.to_owned())))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PageEvent, A::Error> {
                let Members { position, document, slot, event } =
                    Members::deserialize(MapAccessDeserializer::new(map))?;
                let on = match (position, document, slot) {
                    (Some(position), None, None) => Clicked::Position(position),
                    (None, Some(document), None) => Clicked::Document(document),
                    (None, None, Some(slot)) => Clicked::Slot(slot),
                    _ => {
                        return Err(serde::de::Error::custom(
                            "a click has exactly one of `position`, `document` and `slot`",
                        ));
                    }
                };
                Ok(PageEvent { on, event: event.unwrap_or_else(|| CLICK.to_owned()) })
            }
        }
        deserializer.deserialize_any(Click)
    }
}

impl<'de> Deserialize<'de> for ClickList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = ClickList;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a sequence")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ClickList, A::Error> {
                let mut clicks = Vec::new();
                while let Some(click) = list.next_element()? {
                    // one more than allowed, so that the service refuses the list
                    if clicks.len() <= MAX_CLICKED {
                        clicks.push(click);
                    }
                }
                Ok(ClickList(clicks))
            }
        }
        deserializer.deserialize_seq(List)
    }
}

fn plain(on: Clicked) -> PageEvent {
    PageEvent { on, event: CLICK.to_owned() }
}
