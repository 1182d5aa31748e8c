//! Amounts and links.

use super::said;

const NONE: [&str; 0] = [];

fn check(text: &str, value: &str, unit: &str) {
    assert_eq!(said("amount", text), [format!("{value} unit={unit}")], "{text}");
}

#[test]
fn money_has_the_code_of_its_currency() {
    check("It costs $45.", "45", "USD");
    check("about 600 euros", "600", "EUR");
    check("72,000 EUR", "72000", "EUR");
    check("a refund of 1,840.50 EUR", "1840.5", "EUR");
    check("they said 240 pounds", "240", "GBP");
    check("a set is ¥6,800", "6800", "JPY");
    check("we raised $2.5 million", "2500000", "USD");
    check("it is 89,90 €", "89.9", "EUR");
    check("paid $3k for it", "3000", "USD");
}

#[test]
fn measures_have_their_unit_in_the_singular() {
    check("she weighs 6.5 kg now", "6.5", "kg");
    check("the parcel weighs 3 pounds", "3", "lb");
    check("540 kilometers away", "540", "km");
    check("below 20 minutes", "20", "minute");
    check("for three years", "3", "year");
    check("52 MB of it", "52", "mb");
    check("raised by 8%", "8", "%");
    check("250ml of oil", "250", "ml");
}

#[test]
fn counts_ages_rates_and_dates_are_not_amounts() {
    for text in [
        "12 eggs and three people",
        "My son is 3 years old.",
        "It happened two days ago.",
        "Twice a month or once an hour.",
        "I need to call in two weeks.",
        "Version 3.2 of chapter 7.",
        "I wish I had 10 million dollars.",
    ] {
        assert_eq!(said("amount", text), NONE, "{text}");
    }
}

#[test]
fn a_link_ends_before_the_punctuation_of_its_sentence() {
    let links =
        said("link", "See https://a.example/x_(y). Or (www.b.example/z), or <http://c.example>!");
    assert_eq!(links, ["https://a.example/x_(y)", "www.b.example/z", "http://c.example"]);
}

#[test]
fn an_email_address_is_not_a_link() {
    assert_eq!(said("link", "Write to ann@example.com."), NONE);
}
