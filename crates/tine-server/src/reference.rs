//! Generates the API reference at `/docs` from the OpenAPI document: one page without scripts and
//! external resources.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::Value;
use tine_core::ErrorKind;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--soft:#8881;--dim:#888}\
body{font:15px/1.55 system-ui,sans-serif;margin:0;display:grid;grid-template-columns:17rem 1fr}\
nav{position:sticky;top:0;height:100vh;overflow:auto;padding:1.5rem 1rem;\
border-right:1px solid var(--line);box-sizing:border-box}\
nav a{display:block;color:inherit;text-decoration:none;padding:.1rem 0;font-size:14px}\
nav a:hover{text-decoration:underline}nav h2{font-size:12px;text-transform:uppercase;\
letter-spacing:.06em;color:var(--dim);margin:1.2rem 0 .3rem}\
main{padding:2rem 3rem;max-width:56rem}article{border-top:1px solid var(--line);padding:1.2rem 0}\
h1{margin-top:0}h3{margin:0 0 .3rem;font-size:1.05rem}code,pre{font:13px/1.5 ui-monospace,monospace}\
.m{font-weight:700;display:inline-block;min-width:4rem}table{border-collapse:collapse;width:100%;\
margin:.6rem 0}td,th{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;\
border-bottom:1px solid var(--soft);font-size:14px}.d{color:var(--dim)}\
details{margin:.3rem 0}summary{cursor:pointer}@media(max-width:50rem){body{display:block}\
nav{position:static;height:auto}main{padding:1rem}}";

/// Returns the page.
pub(crate) fn page(description: &Value) -> String {
    let mut sections: BTreeMap<&str, Vec<(&str, &str, &Value)>> = BTreeMap::new();
    for (path, methods) in entries(&description["paths"]) {
        for (method, about) in entries(methods) {
            let tag = about["tags"][0].as_str().unwrap_or("Other");
            sections.entry(tag).or_default().push((method, path, about));
        }
    }
    let (mut nav, mut main) = (String::new(), String::new());
    // Writing to a string cannot fail.
    for (tag, operations) in &sections {
        let _ = write!(nav, "<h2>{tag}</h2>");
        let _ = write!(main, "<h2>{tag}</h2>");
        for (method, path, about) in operations {
            let id = text(&about["operationId"]);
            let summary = text(&about["summary"]);
            let _ = write!(nav, "<a href=\"#{id}\">{summary}</a>");
            let method = method.to_ascii_uppercase();
            let _ = write!(
                main,
                "<article id=\"{id}\"><h3>{summary}</h3><code><span class=m>{method}</span>{}</code>",
                escape(path)
            );
            parameters(&mut main, about);
            body(&mut main, about);
            answers(&mut main, about);
            main.push_str("</article>");
        }
    }
    nav.push_str("<h2>More</h2><a href=\"#errors\">Errors</a><a href=\"#schemas\">Schemas</a>");
    errors(&mut main);
    schemas(&mut main, &description["components"]["schemas"]);
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport \
         content=\"width=device-width\"><title>Tine: API reference</title><style>{STYLE}</style>\
         <nav><strong>Tine {}</strong>{nav}</nav><main><h1>API reference</h1><p>All paths answer \
         JSON. The description for machines is at \
         <a href=\"/api/v1/openapi.json\">/api/v1/openapi.json</a> (OpenAPI 3.1).</p>{main}</main>",
        text(&description["info"]["version"])
    )
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

fn text(value: &Value) -> String {
    escape(value.as_str().unwrap_or_default())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn parameters(out: &mut String, about: &Value) {
    let rows: Vec<&Value> = about["parameters"].as_array().into_iter().flatten().collect();
    if rows.is_empty() {
        return;
    }
    out.push_str("<table><tr><th>Parameter<th>In<th>Type<th>Meaning");
    for row in rows {
        let needed = if row["required"] == true { "" } else { " <span class=d>optional</span>" };
        let _ = write!(
            out,
            "<tr><td><code>{}</code>{needed}<td>{}<td>{}<td>{}",
            text(&row["name"]),
            text(&row["in"]),
            kind(&row["schema"]),
            text(&row["description"])
        );
    }
    out.push_str("</table>");
}

fn body(out: &mut String, about: &Value) {
    for (media, content) in entries(&about["requestBody"]["content"]) {
        let _ = write!(
            out,
            "<p>Body: {} <span class=d>{}</span></p>",
            kind(&content["schema"]),
            escape(media)
        );
    }
}

fn answers(out: &mut String, about: &Value) {
    for (status, response) in entries(&about["responses"]) {
        if !status.starts_with('2') {
            continue;
        }
        for (media, content) in entries(&response["content"]) {
            let _ = write!(
                out,
                "<p>Answers {status}: {} <span class=d>{}</span></p>",
                kind(&content["schema"]),
                escape(media)
            );
        }
    }
}

/// Describes a schema in a few words, with a link if it has a name.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        let name = escape(name);
        return format!("<a href=\"#schema-{name}\">{name}</a>");
    }
    if let Some(forms) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return forms.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    if let Some(values) = schema["enum"].as_array() {
        return values
            .iter()
            .map(|it| format!("<code>{}</code>", text(it)))
            .collect::<Vec<_>>()
            .join(", ");
    }
    if let Some(value) = schema["const"].as_str() {
        return format!("<code>{}</code>", escape(value));
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(name) => escape(name),
        Value::Array(names) => names.iter().map(text).collect::<Vec<_>>().join(" or "),
        _ => "any JSON".to_owned(),
    }
}

fn errors(out: &mut String) {
    out.push_str(
        "<h2 id=errors>Errors</h2><p>Every error is <code>application/problem+json</code> \
                  with a stable <code>code</code> and a sentence that says what to do.</p>\
                  <table><tr><th>Code<th>Status",
    );
    for kind in ErrorKind::ALL {
        let (code, status) = (kind.code(), kind.http_status());
        let _ = write!(out, "<tr id=\"{code}\"><td><code>{code}</code><td>{status}");
    }
    out.push_str("</table>");
}

fn schemas(out: &mut String, schemas: &Value) {
    out.push_str("<h2 id=schemas>Schemas</h2>");
    for (name, schema) in entries(schemas) {
        let name = escape(name);
        let _ = write!(
            out,
            "<article id=\"schema-{name}\"><h3>{name}</h3><p>{}</p>",
            text(&schema["description"])
        );
        let properties: Vec<_> = entries(&schema["properties"]).collect();
        if properties.is_empty() {
            let _ = write!(out, "<p>{}</p>", kind(schema));
        } else {
            out.push_str("<table><tr><th>Field<th>Type<th>Meaning");
            for (field, schema) in properties {
                let about = text(&schema["description"]);
                let _ = write!(
                    out,
                    "<tr><td><code>{}</code><td>{}<td>{about}",
                    escape(field),
                    kind(schema)
                );
            }
            out.push_str("</table>");
        }
        out.push_str("</article>");
    }
}
