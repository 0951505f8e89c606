//! Members of a request that are objects.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::field_error::excerpt;

/// A `T` that is read only from an object. A struct could also be read from an array of its values
/// in order, which the API does not describe.
#[derive(Debug, Clone, Copy)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = Object<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(Object)
            }
        }
        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// Read an optional member that is an object.
pub(super) fn optional<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(|Object(member)| member))
}

/// An object with any keys, each of them once. A map of the standard library would keep the last
/// value of a repeated key.
#[derive(Debug, Clone)]
pub struct UniqueKeys<T>(pub HashMap<String, T>);

impl<T> Default for UniqueKeys<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for UniqueKeys<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = UniqueKeys<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a map")
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                mut members: A,
            ) -> Result<UniqueKeys<T>, A::Error> {
                let mut read: HashMap<String, T> = HashMap::new();
                while let Some((key, value)) = members.next_entry()? {
                    match read.entry(key) {
                        Entry::Vacant(free) => drop(free.insert(value)),
                        Entry::Occupied(taken) => {
                            let key = excerpt(taken.key());
                            return Err(A::Error::custom(format!("duplicate field `{key}`")));
                        }
                    }
                }
                Ok(UniqueKeys(read))
            }
        }
        deserializer.deserialize_map(Members(PhantomData))
    }
}

/// Read an optional member that is a map. A repeated key is an error.
pub fn optional_map<'de, D, T, M>(deserializer: D) -> Result<Option<M>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
    M: FromIterator<(String, T)>,
{
    let map = Option::<UniqueKeys<T>>::deserialize(deserializer)?;
    Ok(map.map(|UniqueKeys(members)| members.into_iter().collect()))
}
