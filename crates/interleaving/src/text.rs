//! The command-line form of a spec: `KIND` or `KIND:name=value,name=value`.

use std::collections::BTreeMap;

/// A kind and its parameters, by name. The values are not interpreted.
pub(crate) struct KindText<'a> {
    pub kind: &'a str,
    pub parameters: BTreeMap<&'a str, &'a str>,
}

/// Why a text is not of that form.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidText {
    #[error("`{part}` in `{text}` is not of the form name=value")]
    NotAParameter { part: String, text: String },
    #[error("`{name}` is given twice in `{text}`")]
    Repeated { name: String, text: String },
}

impl<'a> KindText<'a> {
    pub fn parse(text: &'a str) -> Result<Self, InvalidText> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut parameters = BTreeMap::new();
        for part in parts(rest).filter(|part| !part.trim().is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| InvalidText::NotAParameter {
                part: part.into(),
                text: text.into(),
            })?;
            let name = name.trim();
            // The part before the colon is the kind already.
            if name == "kind" || parameters.insert(name, value.trim()).is_some() {
                return Err(InvalidText::Repeated { name: name.into(), text: text.into() });
            }
        }
        Ok(Self { kind: kind.trim(), parameters })
    }
}

/// The parts between commas, except for commas within brackets: a value may be a JSON object.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    text.split(move |character| {
        depth += match character {
            '[' | '{' => 1,
            ']' | '}' => -1,
            _ => 0,
        };
        character == ',' && depth <= 0
    })
}
