//! A macro that writes exact JSON values as literals.

/// Builds a [`Json`](tine_core::Json) from a literal, like `serde_json::json!`. Expressions are
/// converted with `Into<Json>`.
macro_rules! json {
    (@member $object:ident) => {};
    (@member $object:ident $name:literal : { $($value:tt)* } $(, $($rest:tt)*)?) => {
        $object.insert($name, $crate::json_macro::json!({ $($value)* }));
        $crate::json_macro::json!(@member $object $($($rest)*)?);
    };
    (@member $object:ident $name:literal : [ $($value:tt)* ] $(, $($rest:tt)*)?) => {
        $object.insert($name, $crate::json_macro::json!([ $($value)* ]));
        $crate::json_macro::json!(@member $object $($($rest)*)?);
    };
    (@member $object:ident $name:literal : null $(, $($rest:tt)*)?) => {
        $object.insert($name, tine_core::Json::Null);
        $crate::json_macro::json!(@member $object $($($rest)*)?);
    };
    (@member $object:ident $name:literal : $value:expr $(, $($rest:tt)*)?) => {
        $object.insert($name, tine_core::Json::from($value));
        $crate::json_macro::json!(@member $object $($($rest)*)?);
    };

    ({ $($members:tt)* }) => {{
        #[allow(unused_mut)]
        let mut object = tine_core::json::Object::new();
        $crate::json_macro::json!(@member object $($members)*);
        tine_core::Json::Object(object)
    }};
    ([ $($item:tt),* $(,)? ]) => { tine_core::Json::Array(vec![$($crate::json_macro::json!($item)),*]) };
    ([ $($item:expr),* $(,)? ]) => { tine_core::Json::Array(vec![$(tine_core::Json::from($item)),*]) };
    (null) => { tine_core::Json::Null };
    ($value:expr) => { tine_core::Json::from($value) };
}
pub(crate) use json;

#[cfg(test)]
mod tests {
    #[test]
    fn literals_are_values() {
        let (name, many) = ("x", vec![tine_core::Json::from(1)]);
        let value = json!({
            "a": { "b": [1, "two", { "c": null }], "d": [] }, "n": null, "e": {},
            "name": name.to_owned(), "many": many, "none": None::<&str>,
        });
        let wanted = r#"{"a":{"b":[1,"two",{"c":null}],"d":[]},"e":{},"many":[1],"n":null,"name":"x","none":null}"#;
        assert_eq!(value.to_canonical(), wanted);
    }
}
