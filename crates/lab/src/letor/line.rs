//! One line of a LETOR file: `grade qid:ID 1:value 2:value … # comment`.

/// The highest valid grade.
pub const MAX_GRADE: u8 = 31;
/// The highest valid feature number.
pub const MAX_FEATURE: u32 = 1_000_000;

/// A judged document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// How relevant the document is; 0 is not relevant.
    pub grade: u8,
    /// Number and value of the features, in ascending order of the number, from 1. An omitted
    /// feature is 0.
    pub features: Vec<(u32, f64)>,
    /// The text after `#`, trimmed. It contains the id of the document.
    pub comment: Option<String>,
}

/// Why a line is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// The grade is not a whole number in range.
    #[error("the grade is `{0}`; it must be a whole number from 0 to {MAX_GRADE}")]
    Grade(String),
    /// The second word is not `qid:…`.
    #[error("the second word is `{0}`; it must be qid:ID")]
    QueryId(String),
    /// A word is not a feature.
    #[error("`{0}` is not a feature of the form NUMBER:VALUE")]
    Feature(String),
    /// A feature number is out of range.
    #[error("feature number `{0}`; it must be a whole number from 1 to {MAX_FEATURE}")]
    Number(String),
    /// A value is not a finite number.
    #[error("feature {number} is `{value}`; it must be a finite number")]
    Value {
        /// The feature.
        number: u32,
        /// Its value.
        value: String,
    },
    /// Feature numbers do not ascend.
    #[error("feature {number} comes after feature {before}; their numbers must ascend")]
    Order {
        /// The feature.
        number: u32,
        /// The feature before it.
        before: u32,
    },
}

impl Document {
    /// Parses a line without its line end. Returns the id of the query and the document, or `None`
    /// for a line without data.
    pub fn parse(line: &str) -> Result<Option<(&str, Self)>, LineError> {
        let (data, comment) = match line.split_once('#') {
            Some((data, comment)) => (data, Some(comment.trim().to_string())),
            None => (line, None),
        };
        let mut words = data.split_ascii_whitespace();
        let Some(grade) = words.next() else { return Ok(None) };
        // Some files write a grade as `2.0`.
        let whole = grade.strip_suffix(".0").unwrap_or(grade);
        let grade = match whole.parse() {
            Ok(parsed) if parsed <= MAX_GRADE && whole.bytes().all(|b| b.is_ascii_digit()) => {
                parsed
            }
            _ => return Err(LineError::Grade(short(grade))),
        };
        let word = words.next().unwrap_or_default();
        let query = word
            .strip_prefix("qid:")
            .filter(|id| !id.is_empty())
            .ok_or_else(|| LineError::QueryId(short(word)))?;
        let mut features = Vec::new();
        for word in words {
            let feature = parse_feature(word)?;
            if let Some(&(before, _)) = features.last()
                && feature.0 <= before
            {
                return Err(LineError::Order { number: feature.0, before });
            }
            features.push(feature);
        }
        Ok(Some((query, Self { grade, features, comment })))
    }

    /// The value of a feature; 0 if the line omits it.
    pub fn feature(&self, number: u32) -> f64 {
        self.features
            .binary_search_by_key(&number, |&(number, _)| number)
            .map_or(0.0, |at| self.features[at].1)
    }
}

fn parse_feature(word: &str) -> Result<(u32, f64), LineError> {
    let (number, value) = word.split_once(':').ok_or_else(|| LineError::Feature(short(word)))?;
    let number = match number.parse() {
        Ok(parsed)
            if (1..=MAX_FEATURE).contains(&parsed)
                && number.bytes().all(|b| b.is_ascii_digit()) =>
        {
            parsed
        }
        _ => return Err(LineError::Number(short(number))),
    };
    match value.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((number, value)),
        _ => Err(LineError::Value { number, value: short(value) }),
    }
}

/// The beginning of a word, long enough to find it in the file.
fn short(word: &str) -> String {
    word.chars().take(40).collect()
}
