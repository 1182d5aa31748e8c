//! Providers as a configuration file tells them.

use std::collections::BTreeMap;

use serde::Deserialize;
use tine_llm::{ConfigError, Protocol, Provider, ProviderSettings};

#[derive(Deserialize)]
struct File {
    models: BTreeMap<String, ProviderSettings>,
}

fn read(text: &str) -> Result<Vec<Provider>, ConfigError> {
    let file: File = toml::from_str(text).unwrap();
    file.models.into_iter().map(|(name, settings)| Provider::new(&name, settings)).collect()
}

/// A provider with the least there must be and this besides.
fn with(more: &str) -> Result<Vec<Provider>, ConfigError> {
    read(&format!("[models.p]\nkind = \"openai\"\nmodel = \"m\"\n{more}"))
}

#[test]
fn the_examples_of_the_documentation_are_valid() {
    let page = include_str!("../../../docs/models.md");
    let examples: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|it| it.split("```").next()).collect();
    assert!(!examples.is_empty());
    for example in examples {
        assert!(!read(example).unwrap().is_empty());
    }
}

#[test]
fn minimal_settings_are_enough() {
    let local = &read("[models.local]\nkind = \"ollama\"\nmodel = \"llama3.2\"\n").unwrap()[0];
    assert_eq!(
        (local.name(), local.kind(), local.model()),
        ("local", Protocol::Ollama, "llama3.2")
    );
    assert_eq!((local.base_url(), local.key_env()), ("http://127.0.0.1:11434", None));
    let claude = &read("[models.c]\nkind = \"anthropic\"\nmodel = \"m\"\n").unwrap()[0];
    assert_eq!(claude.base_url(), "https://api.anthropic.com");
    assert_eq!(claude.key_env(), Some("ANTHROPIC_API_KEY"));
}

#[test]
fn unknown_fields_of_a_provider_are_rejected() {
    for more in ["timeout = 3", "price = { input = 1.0 }", "budget = { max_tokens = 1, x = 2 }"] {
        let text = format!("[models.p]\nkind = \"openai\"\nmodel = \"m\"\n{more}");
        let error = toml::from_str::<File>(&text).err().expect("it is refused").to_string();
        assert!(error.contains("unknown field") || error.contains("missing field"), "{error}");
    }
    let other = "[models.p]\nkind = \"gemini\"\nmodel = \"m\"";
    assert!(toml::from_str::<File>(other).err().unwrap().to_string().contains("unknown variant"));
}

#[test]
fn an_invalid_field_is_named() {
    for (more, field) in [
        ("base_url = \"ftp://host\"", "base_url"),
        ("base_url = \"https://\"", "base_url"),
        ("base_url = \"https://user:pw@host\"", "base_url"),
        ("base_url = \"https://host?key=x\"", "base_url"),
        ("base_url = \"https://ho st\"", "base_url"),
        ("key_env = \"sk-abc\"", "key_env"),
        ("temperature = 2.5", "temperature"),
        ("temperature = nan", "temperature"),
        ("context_tokens = 10", "context_tokens"),
        ("max_tokens = 0", "max_tokens"),
        ("timeout_ms = 0", "timeout_ms"),
        ("answer_timeout_ms = 999999999999", "answer_timeout_ms"),
        ("timeout_ms = 5\nanswer_timeout_ms = 4", "answer_timeout_ms"),
        ("retries = 11", "retries"),
        ("max_answer_bytes = 1", "max_answer_bytes"),
        (
            "price = { input_per_million = -1.0, output_per_million = 1.0 }",
            "price.input_per_million",
        ),
        (
            "price = { input_per_million = 1.0, output_per_million = inf }",
            "price.output_per_million",
        ),
        ("budget = {}", "budget"),
        ("budget = { max_usd = 1.0 }", "budget.max_usd"),
    ] {
        let error = with(more).unwrap_err();
        assert_eq!(error.field, field, "{more}");
        let sentence = error.to_string();
        assert!(sentence.starts_with(&format!("`models.p.{field}` ")), "{sentence}");
    }
    let error = read("[models.p]\nkind = \"openai\"\nmodel = \" \"").unwrap_err();
    assert_eq!(error.field, "model");
    let error = read("[models.p]\nkind = \"anthropic\"\nmodel = \"m\"\nseed = 1").unwrap_err();
    assert_eq!(error.field, "seed");
    let error = read("[models.\"a b\"]\nkind = \"openai\"\nmodel = \"m\"").unwrap_err();
    assert_eq!(error.field, "name");
}

#[test]
fn a_key_in_the_file_is_refused_and_not_repeated() {
    for more in ["key = \"sk-secret\"", "api_key = \"sk-secret\"", "key_env = \"sk-secret\""] {
        let error = with(more).unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("sk-secret") && shown.contains("environment"), "{shown}");
    }
    let text = "kind = \"openai\"\nmodel = \"m\"\nkey = \"sk-secret\"";
    let settings: ProviderSettings = toml::from_str(text).unwrap();
    assert!(!format!("{settings:?}").contains("sk-secret"));
}

#[test]
fn an_empty_key_env_means_no_key() {
    assert_eq!(with("key_env = \"\"").unwrap()[0].key_env(), None);
}
