//! What the server says about itself.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::harness::Served;

#[test]
fn every_reference_in_the_openapi_document_resolves() {
    let served = Served::new();
    let told = served.get("/api/v1/openapi.json").expect(200).json();
    assert_eq!(told, tine_server::description());
    assert_eq!(told["openapi"], "3.1.0");
    fn references<'v>(value: &'v Value, found: &mut BTreeSet<&'v str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    references(&told, &mut found);
    assert!(found.len() > 20);
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("a reference into the document");
        assert!(told.pointer(pointer).is_some(), "{reference}");
    }
}

#[test]
fn operations_have_distinct_names_and_links_lead_to_them() {
    let description = tine_server::description();
    let operations = || {
        let paths = description["paths"].as_object().expect("paths").values();
        paths.flat_map(|methods| methods.as_object().expect("methods").values())
    };
    let names: Vec<&str> = operations().filter_map(|it| it["operationId"].as_str()).collect();
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!((names.len(), distinct.len()), (operations().count(), names.len()));
    for operation in operations() {
        for response in operation["responses"].as_object().expect("responses").values() {
            for link in response["links"].as_object().into_iter().flat_map(|it| it.values()) {
                let to = link["operationId"].as_str().expect("a name");
                assert!(distinct.contains(to), "{to}");
            }
        }
    }
}

#[test]
fn the_reference_has_no_external_resources_and_no_scripts() {
    let served = Served::new();
    let page = served.get("/docs").expect(200);
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let text = page.as_text();
    for outside in ["http://", "https://", "//cdn", "<script", "@import", "url("] {
        assert!(!text.contains(outside), "{outside}");
    }
    for known in ["appendTurns", "id=\"not_found\"", "/api/v1/openapi.json"] {
        assert!(text.contains(known), "{known}");
    }
}

#[test]
fn the_health_check_answers() {
    let served = Served::new();
    let health = served.get("/healthz").expect(200).json();
    assert_eq!(health["status"], "ok");
    assert_eq!(health["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn metrics_are_in_the_prometheus_format() {
    let served = Served::new();
    served.trip();
    served.get("/none%22%0A").refused(404, "not_found");
    let answer = served.get("/metrics").expect(200);
    let kind = answer.header("content-type").expect("a type");
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = answer.as_text();
    assert!(text.ends_with('\n'));
    let mut typed = BTreeSet::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(typed.insert(name.to_owned()), "{name} has one type");
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let name = series.split('{').next().expect("a name");
            let family =
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            assert!(typed.contains(name) || family.is_some_and(|it| typed.contains(it)), "{line}");
            if let Some((_, labels)) = series.split_once('{') {
                assert!(labels.ends_with('}') && labels.matches('"').count() % 2 == 0, "{line}");
            }
        }
    }
    assert!(text.contains("tine_store_turns 2\n"), "{text}");
    let route =
        "method=\"POST\",route=\"/api/v1/conversations/{conversation_id}/turns\",status=\"201\"";
    assert!(text.contains(&format!("_count{{{route}}} 1")), "{text}");
    assert!(text.contains(&format!("_bucket{{{route},le=\"+Inf\"}} 1")), "{text}");
}
