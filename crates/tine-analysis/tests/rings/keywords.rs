//! Keywords.

use tine_analysis::rings::{MAX_KEYWORDS, rings};

use super::keywords;

/// Each must be among the first five keywords.
fn check(text: &str, expected: &[&str]) {
    let found = keywords(text);
    for keyword in expected {
        assert!(found.iter().take(5).any(|it| it == keyword), "{keyword}: {found:?}");
    }
}

#[test]
fn stop_words_separate_phrases() {
    check(
        "How do I renew my driving licence in the city of Boston?",
        &["driving licence", "Boston", "renew"],
    );
    check("The job offer has a signing bonus.", &["job offer", "signing bonus"]);
}

#[test]
fn german_nouns_are_detected_by_their_capitals() {
    check(
        "Ich suche eine günstige Wohnung mit Balkon in Leipzig.",
        &["Wohnung", "Balkon", "Leipzig"],
    );
}

#[test]
fn french_and_spanish_terms_have_small_words_inside() {
    check("La base de données est pleine.", &["base de données"]);
    check("J'ai perdu ma carte d'identité.", &["carte d'identité"]);
    check("Busco un seguro de viaje para mi familia.", &["seguro de viaje", "familia"]);
}

#[test]
fn chinese_is_cut_into_words() {
    check("我想学习机器学习和数据分析", &["机器学习", "数据分析"]);
    check("怎么用Python读取Excel文件", &["Python", "Excel文件", "读取"]);
}

#[test]
fn japanese_is_cut_by_its_scripts() {
    check("来週東京でミーティングがあります。", &["東京", "ミーティング"]);
    check("打ち合わせの資料を送る", &["打ち合わせ", "資料", "送る"]);
}

#[test]
fn identifiers_files_and_versions_are_kept_whole() {
    let text = "Rename `user_id` in src/models/user.rs, then call parseHeader() from std::fs with C++ and Node.js 18.2";
    let found = keywords(text);
    for expected in
        ["user_id", "src/models/user.rs", "parseHeader", "std::fs", "C++", "Node.js 18.2"]
    {
        assert!(found.iter().any(|it| it == expected), "{expected}: {found:?}");
    }
}

#[test]
fn numbers_are_joined_with_units_and_names() {
    check("Is 16 GB enough for an iPhone 15?", &["iPhone 15", "16 GB"]);
    assert!(!keywords("I counted 1234 of them.").contains(&"1234".to_owned()));
}

#[test]
fn addresses_are_not_keywords() {
    let found = keywords("Write to anna@example.com or see https://example.com/a-long-page today");
    assert!(found.iter().all(|it| !it.contains("example")), "{found:?}");
}

#[test]
fn forms_of_one_word_are_one_keyword() {
    let found = keywords("The server crashed. Servers crash. Every SERVER is down.");
    assert_eq!(
        found.iter().filter(|it| it.to_lowercase().starts_with("server")).count(),
        1,
        "{found:?}"
    );
}

#[test]
fn frequent_keywords_come_first() {
    let text = "The garden is small. A fence surrounds the garden. We planted roses in the garden near a wall.";
    assert_eq!(keywords(text)[0], "garden");
}

#[test]
fn a_keyword_is_shown_as_it_occurs_first() {
    let text = "Docker images are large. docker images can be small.";
    let first = &rings(text).keywords[0];
    assert_eq!((first.text.as_str(), first.span.start), ("Docker images", 0));
}

#[test]
fn code_is_read_only_where_nothing_else_is_said() {
    let code = "```\nlet frobnicator = build_frobnicator();\n```";
    assert!(!keywords(&format!("Look at the garden:\n{code}")).contains(&"frobnicator".to_owned()));
    assert!(keywords(code).contains(&"frobnicator".to_owned()));
}

#[test]
fn a_long_text_has_few_keywords() {
    let words: String = (0..500).map(|no| format!("thing{no} and other{no}. ")).collect();
    assert_eq!(keywords(&words).len(), MAX_KEYWORDS);
}

#[test]
fn languages_without_lists_fall_back() {
    check("Какая погода будет завтра в Москве?", &["Москве", "погода"]);
    check("Qual è il miglior ristorante di Bologna?", &["Bologna", "ristorante"]);
}

#[test]
fn languages_are_detected_per_sentence() {
    check("Der Server ist kaputt. The customer wants a refund.", &["Server", "customer", "refund"]);
}
