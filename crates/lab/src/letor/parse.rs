//! Parses the LETOR variant of SVMlight: `grade qid:ID 1:value 2:value … # comment`.

use std::collections::HashSet;

use super::DataSetError;

const MAX_GRADE: u8 = 31;
const MAX_FEATURE: u32 = 1_000_000;

/// A query with its documents, in the order of the file.
#[derive(Debug)]
pub(super) struct Query {
    /// The id of the query, without `qid:`.
    id: String,
    /// The documents, at least one.
    pub documents: Vec<Document>,
}

/// A judged document.
#[derive(Debug)]
pub(super) struct Document {
    /// How relevant the document is; 0 is not relevant.
    pub grade: u8,
    /// Number and value of the features, in ascending order of the number, from 1. An omitted
    /// feature is 0.
    pub features: Vec<(u32, f64)>,
}

impl Document {
    /// The value of a feature; 0 if the line omits it.
    pub fn feature(&self, number: u32) -> f64 {
        self.features
            .binary_search_by_key(&number, |&(number, _)| number)
            .map_or(0.0, |at| self.features[at].1)
    }
}

pub(super) fn queries(text: &str) -> Result<Vec<Query>, DataSetError> {
    let mut queries: Vec<Query> = Vec::new();
    let mut seen = HashSet::new();
    for (line, text) in (1..).zip(text.trim_start_matches('\u{feff}').lines()) {
        let wrong = |detail| DataSetError::Line { line, detail };
        let Some((id, document)) = document(text).map_err(wrong)? else { continue };
        match queries.last_mut() {
            Some(last) if last.id == id => last.documents.push(document),
            _ if !seen.insert(id) => {
                return Err(wrong(format!(
                    "query `{id}` comes again after another; the documents of a query must be together"
                )));
            }
            _ => queries.push(Query { id: id.to_owned(), documents: vec![document] }),
        }
    }
    Ok(queries)
}

/// The id of the query and the document of a line; `None` for a line without data.
fn document(line: &str) -> Result<Option<(&str, Document)>, String> {
    let data = line.split_once('#').map_or(line, |(data, _)| data);
    let mut words = data.split_ascii_whitespace();
    let Some(grade) = words.next() else { return Ok(None) };
    // Some files write a grade as `2.0`.
    let grade =
        whole(grade.strip_suffix(".0").unwrap_or(grade), 0, MAX_GRADE.into()).ok_or_else(|| {
            let grade = short(grade);
            format!("the grade is `{grade}`; it must be a whole number from 0 to {MAX_GRADE}")
        })?;
    let word = words.next().unwrap_or_default();
    let query = word
        .strip_prefix("qid:")
        .filter(|id| !id.is_empty())
        .ok_or_else(|| format!("the second word is `{}`; it must be qid:ID", short(word)))?;
    let mut features: Vec<(u32, f64)> = Vec::new();
    for word in words {
        let (number, value) = feature(word)?;
        if let Some(&(before, _)) = features.last()
            && number <= before
        {
            return Err(format!(
                "feature {number} comes after feature {before}; their numbers must ascend"
            ));
        }
        features.push((number, value));
    }
    Ok(Some((query, Document { grade: grade as u8, features })))
}

fn feature(word: &str) -> Result<(u32, f64), String> {
    let (number, value) = word
        .split_once(':')
        .ok_or_else(|| format!("`{}` is not a feature of the form NUMBER:VALUE", short(word)))?;
    let number = whole(number, 1, MAX_FEATURE).ok_or_else(|| {
        let number = short(number);
        format!("feature number `{number}`; it must be a whole number from 1 to {MAX_FEATURE}")
    })?;
    match value.parse::<f64>() {
        Ok(finite) if finite.is_finite() => Ok((number, finite)),
        _ => Err(format!("feature {number} is `{}`; it must be a finite number", short(value))),
    }
}

/// A number of digits alone, from `least` to `most`.
fn whole(text: &str, least: u32, most: u32) -> Option<u32> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The beginning of a word, long enough to find it in the file.
fn short(word: &str) -> String {
    word.chars().take(40).collect()
}
