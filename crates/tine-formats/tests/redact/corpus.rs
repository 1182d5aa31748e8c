//! Secrets by kind, and look-alikes. Every key here is made up; they are put together from pieces
//! so that no scanner takes this file for a leak.

use tine_core::json;
use tine_core::{Body, Limits, Message, Role};
use tine_formats::redact;

use super::clean;

/// A text that looks random, of a length.
fn random(length: usize) -> String {
    let letters = b"q7Zk2mXw9RtB4vNc8LpY3sHd6JgF5aTe1UoKxGiWbEnMyQzCrVhSjPDlAf0";
    (0..length).map(|at| char::from(letters[(at * 7 + at / 5) % letters.len()])).collect()
}

fn check(kind: &str, before: &str, secret: &str, after: &str) {
    let (text, found) = clean(&format!("{before}{secret}{after}"));
    assert_eq!(text, format!("{before}[redacted:{kind}]{after}"), "{kind}");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [(kind.to_owned(), 1)]);
}

#[test]
fn keys_of_known_formats_are_replaced_everywhere() {
    let (hex, capitals) = ("0f1e2d3c4b5a6978".repeat(4), "IOSFODNN7EXAMPL2");
    let key_patterns = [
        ("anthropic", format!("sk-{}-api03-{}", "ant", random(80))),
        ("openai", format!("sk-{}-{}", "proj", random(60))),
        ("openai", format!("sk-{}", random(48))),
        ("openrouter", format!("sk-{}-v1-{}", "or", random(64))),
        ("google", format!("AI{}{}", "za", random(35))),
        ("groq", format!("gsk{}{}", "_", random(52))),
        ("huggingface", format!("hf{}{}", "_", random(34))),
        ("aws", format!("AK{}{capitals}", "IA")),
        ("github", format!("gh{}{}", "p_", random(36))),
        ("github", format!("github{}{}", "_pat_", random(82))),
        ("gitlab", format!("gl{}{}", "pat-", random(20))),
        ("slack", format!("xo{}{}-{}", "xb-", "123456789012", random(24))),
        ("stripe", format!("sk{}{}", "_live_", random(24))),
        ("npm", format!("npm{}{}", "_", random(36))),
        ("pypi", format!("py{}{}", "pi-AgE", random(160))),
        ("digitalocean", format!("dop{}{hex}", "_v1_")),
        ("tine", format!("tine{}{hex}", "_sha256:")),
        ("jwt", format!("ey{}{}.eyJ{}.{}", "J", random(30), random(60), random(43))),
    ];
    for (kind, secret) in &key_patterns {
        check(kind, "", secret, "");
        check(kind, "my key is ", secret, ", keep it");
        check(kind, "curl -H 'X: ", secret, "' https://example.org");
        check(kind, "ключ «", secret, "»");
        check(kind, "{\"k\":\"", secret, "\"}");
        check(kind, "a\n", secret, "\nb");
    }
}

#[test]
fn private_keys_are_replaced_with_all_lines() {
    for name in ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"] {
        let block =
            format!("-----BEGIN {name}-----\n{}\n{}\n-----END {name}-----", random(64), random(64));
        check("private_key", "cat key.pem\n", &block, "\n$ ");
    }
    let cut = format!("-----BEGIN RSA PRIVATE {}-----\n{}", "KEY", random(64));
    check("private_key", "head -2:\n", &cut, "");
    let public = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----", random(64));
    assert_eq!(clean(&public).0, public);
}

#[test]
fn headers_addresses_and_environments_lose_their_values_and_keep_their_names() {
    let key = random(40);
    check("authorization", "Authorization: Bearer ", &key, "\r\nHost: x");
    check("authorization", "authorization: Basic ", "dXNlcjpwYXNzd29yZA==", "");
    check("authorization", "'Authorization': 'Bearer ", "short-but-sure", "'");
    check("authorization", "send Bearer ", &key, " with it");
    check("url_password", "postgres://me:", "hunter2", "@db.example.org:5432/x");
    check("url_password", "https://me:", "p:w@rd", "@example.org");
    check("secret", "export GITHUB_TOKEN=", "abcdef-1", "\nnext");
    check("secret", "DB_PASSWORD=\"", "correct horse", "\"");
    check("secret", "AWS_SECRET_ACCESS_KEY=", &key, "");
    check("secret", "x-api-key: ", &key, "\r\n");
    check("secret", "{\"api_key\": \"", &key, "\"}");
    check("secret", "https://example.org/?access_token=", &key, "&page=2");
    check("secret", "password = '", "s3cr3t-Pa55", "'");
}

#[test]
fn lookalikes_of_secrets_are_kept() {
    let hash = "a9d2e63be84cb3d0dbeec588566ebea44c8e01ac5e2b3431ab5a59e41750f7a3";
    let image = format!("data:image/png;base64,iVBORw0KGgo/AKIA{}/", random(400).to_uppercase());
    let texts = [
        "Late March 🌸",
        "01890a5d-ac96-774b-bcce-b302099a8057",
        "sha256:a9d2e63be84cb3d0dbeec588566ebea44c8e01ac5e2b3431ab5a59e41750f7a3",
        "commit da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "call_a1B2c3D4e5F6g7H8i9J0k1L2",
        "toolu_01A09q90qw90lq917835lq9",
        "max_tokens=4096 and MAX_TOKENS=4096",
        "token = get_token(request)",
        "password: str",
        "let password = prompt();",
        "GITHUB_TOKEN=$TOKEN",
        "API_KEY=<your-key-here>",
        "API_KEY=${API_KEY}",
        "api_key = os.environ[\"API_KEY\"]",
        "the password is the same as before",
        "Bearer of good news and basic things",
        "Authorization: Bearer $TOKEN",
        "https://example.org:8080/a@b",
        "ssh://git@github.com/x/y",
        "mail me@example.org: now",
        "sk-learn and sk-estimator-html-doc-link",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "AKIA is a prefix",
        "npm_config_registry and npm_lifecycle_event",
        "eyJ is how base64 of {\" begins",
        "next_page_token=CAUQAA",
        "[redacted:github] was here, [redacted:jwt] too",
        "xoxo-hugs",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "risk-ant-farm disk-proj-1",
    ];
    for text in texts.into_iter().chain([hash, image.as_str()]) {
        let (clean, found) = clean(text);
        assert_eq!(clean, text);
        assert!(found.is_empty(), "{text}: {found:?}");
    }
}

fn blocks(content: &str) -> (String, redact::Redacted) {
    let content = json::parse(content.as_bytes(), json::MAX_DEPTH).expect("JSON");
    let mut body =
        Body::from_content(content, Role::Assistant, &Limits::default()).expect("a body");
    let found = redact::body(&mut body);
    (body.to_blocks_string(), found)
}

#[test]
fn parameters_are_redacted_but_not_names_ids_signatures_and_images() {
    let (key, github) = (random(40), format!("gh{}{}", "p_", random(36)));
    let data = random(300);
    let content = format!(
        r#"[{{"signature":"{github}","text":"{github}","type":"thinking"}},
            {{"text":"use {github}","type":"thinking"}},
            {{"id":"{github}","name":"{github}","type":"tool-use","parameters":{{
               "api_key":"{key}","token_hash":"{key}","n":12345678901234567890,
               "env":[{{"name":"X","PASSWORD":"{key}"}}],"id":"{github}","note":"plain {github}"}}}},
            {{"data":"{data}","type":"image"}}]"#
    );
    let (after, found) = blocks(&content);
    let expected: Vec<(String, u64)> = vec![("github".to_owned(), 2), ("secret".to_owned(), 2)];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
    let wanted = content
        .replace(&format!("\"use {github}\""), "\"use [redacted:github]\"")
        .replace(&format!("\"plain {github}\""), "\"plain [redacted:github]\"")
        .replace(&format!("\"api_key\":\"{key}\""), "\"api_key\":\"[redacted:secret]\"")
        .replace(&format!("\"PASSWORD\":\"{key}\""), "\"PASSWORD\":\"[redacted:secret]\"");
    let wanted = json::parse(wanted.as_bytes(), json::MAX_DEPTH).expect("JSON");
    assert_eq!(after, wanted.to_canonical());
    assert_eq!(blocks(&after), (after.clone(), redact::Redacted::new()), "once is enough");
}

#[test]
fn messages_are_counted_together_and_stay_valid() {
    let github = format!("gh{}{}", "p_", random(36));
    let result = Message::tool("call-1", format!("token: {github}\n"));
    let mut messages = vec![Message::text(Role::User, github.clone()), result];
    let found = redact::messages(&mut messages);
    assert_eq!(found.get("github"), Some(&2));
    for message in &messages {
        message.check(&Limits::default()).expect("it can still be appended");
        assert!(!message.body.to_blocks_string().contains(&github));
    }
    assert_eq!(messages[1].tool_call_id.as_deref(), Some("call-1"));
}

#[test]
fn the_documentation_names_every_kind() {
    let page = include_str!("../../../../docs/redaction.md");
    for kind in redact::kinds() {
        assert!(page.contains(&format!("`{kind}`")), "{kind} is not in docs/redaction.md");
    }
}
