//! Parsers of values on a command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::simulate::Delay;

/// One of these values, by its name in JSON.
pub fn choice<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names)
        .try_map(|name| serde_json::from_value::<T>(Value::String(name)))
}

/// A whole number from `least` to `most`. It may contain `_` or have the form `1e6`.
pub fn count(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let invalid = || format!("it must be a whole number from {least} to {most}");
    let digits = text.replace('_', "");
    let number = match digits.parse::<u64>() {
        Ok(number) => number,
        Err(_) => {
            // Every whole number below 2^53 is exact.
            let number: f64 = digits.parse().map_err(|_| invalid())?;
            if number.fract() != 0.0 || !(0.0..=9e15).contains(&number) {
                return Err(invalid());
            }
            number as u64
        }
    };
    if (least..=most).contains(&number) { Ok(number) } else { Err(invalid()) }
}

/// A number from `least` to `most`.
pub fn between(text: &str, least: f64, most: f64) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("it must be a number from {least} to {most}")),
    }
}

/// Two values with a comma between them.
pub fn two<A, B>(
    text: &str,
    first: impl Fn(&str) -> Result<A, String>,
    second: impl Fn(&str) -> Result<B, String>,
) -> Result<(A, B), String> {
    let (one, other) =
        text.split_once(',').ok_or("it must be two numbers with a comma between them")?;
    Ok((first(one)?, second(other)?))
}

/// A probability.
pub fn probability(text: &str) -> Result<f64, String> {
    between(text, 0.0, 1.0).map_err(|_| "it must be a probability from 0 to 1".into())
}

/// `N` or `geometric:MEAN`, in steps. `N` may be written as for [`count`].
pub fn delay(text: &str) -> Result<Delay, String> {
    count(text, 0, 1_000_000).map(Delay::Steps).or_else(|_| text.parse())
}
