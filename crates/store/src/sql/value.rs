//! Values that a statement binds, in either database.

use sqlx::types::Uuid;

/// A value of a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'v> {
    Number(Option<i64>),
    Flag(Option<bool>),
    Text(Option<&'v str>),
    Bytes(&'v [u8]),
    Uuid(Uuid),
}

/// Conversions to a [`Value`], also of references and of options.
macro_rules! values_from {
    ($($Type:ty, $value:ident => $Variant:ident($converted:expr);)*) => {
        $(impl<'v> From<$Type> for Value<'v> {
            fn from($value: $Type) -> Self {
                Self::$Variant($converted)
            }
        })*
    };
}

values_from! {
    i64, number => Number(Some(number));
    u32, number => Number(Some(number.into()));
    Option<i64>, number => Number(number);
    &'v i64, number => Number(Some(*number));
    &'v i16, number => Number(Some((*number).into()));
    &'v Option<i16>, number => Number(number.map(i64::from));
    &'v Option<i32>, number => Number(number.map(i64::from));
    &'v Option<i64>, number => Number(*number);
    &'v Option<bool>, flag => Flag(*flag);
    &'v str, text => Text(Some(text));
    &'v String, text => Text(Some(text));
    Option<&'v str>, text => Text(text);
    &'v Option<String>, text => Text(text.as_deref());
    &'v [u8], bytes => Bytes(bytes);
    &'v Vec<u8>, bytes => Bytes(bytes);
    &'v Uuid, uuid => Uuid(*uuid);
}

/// Bind these values to a query of either database.
macro_rules! bind_all {
    ($query:expr, $values:expr) => {
        $values.iter().fold($query, |query, value| match *value {
            $crate::sql::value::Value::Number(number) => query.bind(number),
            $crate::sql::value::Value::Flag(flag) => query.bind(flag),
            $crate::sql::value::Value::Text(text) => query.bind(text),
            $crate::sql::value::Value::Bytes(bytes) => query.bind(bytes),
            $crate::sql::value::Value::Uuid(uuid) => query.bind(uuid),
        })
    };
}

/// `values![a, b]`: a list of values.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$($crate::sql::value::Value::from($value)),*]
    };
}
pub(crate) use {bind_all, values};
