//! Deserializes the parameters of path and query from their pairs.
//!
//! A value is a string unless the field expects a number, a boolean or a variant.

use std::borrow::Cow;

use serde::de::value::{Error, MapDeserializer};
use serde::de::{DeserializeOwned, EnumAccess, Error as _, IntoDeserializer, VariantAccess};
use serde::de::{DeserializeSeed, Visitor};
use serde::{Deserializer, forward_to_deserialize_any};
use tine_core::Limits;
use tine_core::request::RequestScope;

/// Deserializes pairs of name and value. An error names the parameter, unless its value was refused
/// with an error of its own.
pub(crate) fn from_pairs<'de, P: DeserializeOwned>(
    pairs: impl Iterator<Item = (Cow<'de, str>, Cow<'de, str>)>,
    limits: &Limits,
) -> Result<P, tine_api::Error> {
    let scope = RequestScope::open(limits);
    let pairs = pairs.map(|(name, value)| (Text(name), Text(value)));
    serde_path_to_error::deserialize(MapDeserializer::new(pairs)).map_err(|error| {
        let named = match error.path().iter().next() {
            Some(_) => format!("the parameter `{}`", error.path()),
            None => "the parameters".to_owned(),
        };
        let refused = scope.refusal().and_then(tine_api::Error::of_refused_value);
        refused.unwrap_or_else(|| tine_api::Error::invalid(format!("{named}: {}", error.inner())))
    })
}

/// A name or a value.
struct Text<'de>(Cow<'de, str>);

impl<'de> IntoDeserializer<'de, Error> for Text<'de> {
    type Deserializer = Text<'de>;

    fn into_deserializer(self) -> Text<'de> {
        self
    }
}

/// Implements the methods for types that are parsed from their text.
macro_rules! parsed {
    ($($method:ident $visit:ident,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.0.parse().map_err(Error::custom)?)
        }
    )*};
}

impl<'de> Deserializer<'de> for Text<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    parsed! {
        deserialize_bool visit_bool,
        deserialize_i8 visit_i8,
        deserialize_i16 visit_i16,
        deserialize_i32 visit_i32,
        deserialize_i64 visit_i64,
        deserialize_u8 visit_u8,
        deserialize_u16 visit_u16,
        deserialize_u32 visit_u32,
        deserialize_u64 visit_u64,
        deserialize_f32 visit_f32,
        deserialize_f64 visit_f64,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Text<'de> {
    type Error = Error;
    type Variant = Named;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Named), Error> {
        seed.deserialize(self).map(|variant| (variant, Named))
    }
}

/// The rest of a variant that has only a name.
struct Named;

impl<'de> VariantAccess<'de> for Named {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Error> {
        Err(Error::custom("expected unit variant"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("expected unit variant"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        Err(Error::custom("expected unit variant"))
    }
}
