//! Which day a phrase means, seen from Monday, 3 March 2025.

use tine_analysis::rules::Rules;
use tine_analysis::{Account, Interpreter, Material, Subject};
use tine_core::Role;

use super::{said, shown};

fn check(phrase: &str, day: &str) {
    let found = said("task", &format!("I need to pay the rent {phrase}."));
    assert_eq!(found, [format!("pay the rent due={day}")], "{phrase}");
}

#[test]
fn relative_days_are_resolved_from_the_time_of_writing() {
    check("today", "2025-03-03");
    check("tonight", "2025-03-03");
    check("tomorrow", "2025-03-04");
    check("tomorrow morning", "2025-03-04");
    check("the day after tomorrow", "2025-03-05");
    check("in three days", "2025-03-06");
    check("in two weeks", "2025-03-17");
    check("in a month", "2025-04-03");
    check("by the end of the month", "2025-03-31");
}

#[test]
fn a_weekday_is_the_first_one_from_tomorrow_on() {
    check("on Friday", "2025-03-07");
    check("by friday", "2025-03-07");
    check("this Sunday", "2025-03-09");
    // It is Monday: the next Monday that can be meant is a week away.
    check("on Monday", "2025-03-10");
}

#[test]
fn next_with_a_weekday_means_the_coming_week() {
    check("next Friday", "2025-03-14");
    check("next Monday", "2025-03-10");
    check("on Wednesday next week", "2025-03-12");
}

#[test]
fn a_month_and_a_day_are_the_next_such_date_unless_there_is_a_year() {
    check("by March 3", "2025-03-03");
    check("by March 2", "2026-03-02");
    check("on 14 April", "2025-04-14");
    check("by the 5th of May", "2025-05-05");
    check("on Feb 29", "2028-02-29");
    check("by 3 March 2027", "2027-03-03");
    check("by June 1st, 2026", "2026-06-01");
    check("by Friday, March 28", "2025-03-28");
    check("by the 14th", "2025-03-14");
}

#[test]
fn numeric_dates_are_iso_or_month_first_unless_impossible() {
    check("by 2025-12-01", "2025-12-01");
    check("by 3/14", "2025-03-14");
    check("by 25/4", "2025-04-25");
    check("by 4/5/26", "2026-04-05");
}

#[test]
fn a_day_that_does_not_exist_is_not_a_date() {
    assert_eq!(
        said("task", "I need to pay the rent by 2025-02-30."),
        ["pay the rent by 2025-02-30"]
    );
}

#[test]
fn without_a_reference_date_only_full_dates_are_dates() {
    let found = |text| {
        let material = Material { text, subject: Subject::Turn(Role::User), authored_at: None };
        shown(
            "task",
            &Rules.interpret(&material, &mut Account::default()).expect("rules never fail"),
        )
    };
    assert_eq!(found("I need to pay the rent tomorrow."), ["pay the rent"]);
    assert_eq!(found("I need to pay the rent by May 5."), ["pay the rent"]);
    assert_eq!(found("I need to pay the rent by 5 May 2025."), ["pay the rent due=2025-05-05"]);
}
