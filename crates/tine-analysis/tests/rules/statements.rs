//! Tasks, events, decisions and preferences.

use super::{answered, said, written};

const NONE: [&str; 0] = [];

#[test]
fn a_task_title_is_the_action_without_person_and_time() {
    assert_eq!(said("task", "I still have to renew my passport."), ["renew my passport"]);
    assert_eq!(said("task", "i gotta clean out the trunk before"), ["clean out the trunk"]);
    assert_eq!(
        said("task", "Tomorrow I must email Tom about the lease."),
        ["email Tom about the lease due=2025-03-04"]
    );
    assert_eq!(
        said("task", "Remind me to call the bank on Friday about the card."),
        ["call the bank about the card due=2025-03-07"]
    );
    assert_eq!(said("task", "vet at 9, need to bring the card"), ["bring the card"]);
}

#[test]
fn a_task_has_a_named_assignee() {
    assert_eq!(
        said("task", "Oleg should groom the backlog by Thursday."),
        ["groom the backlog assignee=Oleg due=2025-03-06"]
    );
}

#[test]
fn two_actions_with_separate_dates_are_two_tasks() {
    assert_eq!(
        said("task", "I need to call the bank tomorrow and send the form by Friday."),
        ["call the bank due=2025-03-04", "send the form due=2025-03-07"]
    );
}

#[test]
fn unchecked_boxes_and_to_do_lists_are_tasks_and_checked_boxes_are_not() {
    let list = "Errands:\n- [ ] buy 2 kg potatoes\n- [x] fix the bike\n";
    assert_eq!(said("task", list), ["buy 2 kg potatoes"]);
    assert_eq!(said("task", "TODO: back up the laptop"), ["back up the laptop"]);
    let notes = "## Action items\n- Maria to draft the budget by Friday\n- Order the sensors\n\nThat is all.";
    assert_eq!(
        written("task", notes),
        ["draft the budget assignee=Maria due=2025-03-07", "Order the sensors"]
    );
}

#[test]
fn an_immediate_request_to_the_assistant_is_not_a_task() {
    assert_eq!(
        said("task", "Please summarise this. Can you tell me why? You must answer in French."),
        NONE
    );
    assert_eq!(answered("task", "I'll draft the letter now."), NONE);
    assert_eq!(answered("task", "You should rent a van by May 5."), ["rent a van due=2025-05-05"]);
}

#[test]
fn documents_state_tasks_with_shall_and_must() {
    let clause = "The vendor shall deliver the prototype by May 2.";
    assert_eq!(written("task", clause), ["deliver the prototype due=2025-05-02"]);
    assert_eq!(said("task", "Downtime must stay below 20 minutes."), NONE);
}

#[test]
fn negated_hypothetical_asked_and_quoted_statements_are_ignored() {
    for text in [
        "You don't need to bring anything.",
        "There is nothing you need to do.",
        "We haven't decided whether to move.",
        "I've not decided to sell.",
        "If I had time, I would have to learn it.",
        "If it rains we have to cancel the trip.",
        "Should we book the hotel?",
        "Do I need to sign the form?",
        "I wish I liked opera.",
        "The chef yells \"We have to close the kitchen by Friday!\" at them.",
        "I have to say this is great.",
        "I had to sell the car.",
        "I'd like to know more.",
        "I love it!",
    ] {
        for kind in ["task", "decision", "preference"] {
            assert_eq!(said(kind, text), NONE, "{kind}: {text}");
        }
    }
}

#[test]
fn decisions_for_and_against_are_found() {
    assert_eq!(said("decision", "We decided not to hire this year."), ["not to hire this year"]);
    assert_eq!(said("decision", "Mei and I agreed to order twice a year."), ["order twice a year"]);
    assert_eq!(
        said("decision", "ok let's go with Pension Vltava then"),
        ["go with Pension Vltava"]
    );
    assert_eq!(said("decision", "I'm going with Plus."), ["going with Plus"]);
    assert_eq!(
        said("decision", "we'll use trunk based development"),
        ["use trunk based development"]
    );
    assert_eq!(said("decision", "We settled on the blue tiles."), ["the blue tiles"]);
    assert_eq!(
        written("decision", "Decision: the launch is postponed."),
        ["the launch is postponed"]
    );
    assert_eq!(
        written("decision", "## Decisions\n- Use the Berlin site\n"),
        ["Use the Berlin site"]
    );
}

#[test]
fn a_preference_keeps_its_verb_and_has_a_polarity() {
    assert_eq!(
        said("preference", "I prefer an aisle seat."),
        ["I prefer an aisle seat polarity=like"]
    );
    assert_eq!(
        said("preference", "I don't like big hotels anyway."),
        ["I don't like big hotels polarity=dislike"]
    );
    assert_eq!(said("preference", "I'd rather not fly."), ["I'd rather not fly polarity=dislike"]);
    assert_eq!(
        said("preference", "She is allergic to latex and prefers paper letters."),
        ["She is allergic to latex polarity=dislike", "prefers paper letters polarity=like"]
    );
    assert_eq!(
        said("preference", "never schedule anything before 9 please"),
        ["never schedule anything before 9 polarity=dislike"]
    );
    assert_eq!(said("preference", "I never got your mail."), NONE);
}

#[test]
fn an_event_has_a_time_and_a_place() {
    assert_eq!(
        said("event", "The statistics exam is on September 4."),
        ["statistics exam date=2025-09-04"]
    );
    assert_eq!(
        said("event", "Mum's eye surgery is on Friday at 8:30 in Vienna."),
        ["Mum's eye surgery date=2025-03-07 place=Vienna time=08:30"]
    );
    assert_eq!(
        said("event", "I have a dentist appointment tomorrow at 3pm."),
        ["dentist appointment date=2025-03-04 time=15:00"]
    );
    assert_eq!(said("event", "**Next meeting:** June 9"), ["Next meeting date=2025-06-09"]);
    assert_eq!(
        said("event", "Flight to Toronto leaves on October 12, and I prefer an aisle seat."),
        ["Flight to Toronto date=2025-10-12"]
    );
    assert_eq!(said("event", "car service is booked for friday"), ["car service date=2025-03-07"]);
}

#[test]
fn an_hour_that_could_be_morning_or_evening_is_left_out() {
    assert_eq!(
        said("event", "Dinner with Tom tomorrow at 7."),
        ["Dinner with Tom date=2025-03-04"]
    );
}

#[test]
fn one_phrase_is_a_task_or_an_event_and_never_both() {
    let errand = "I need to prepare the demo by Friday.";
    assert_eq!(said("event", errand), NONE);
    assert_eq!(said("task", errand), ["prepare the demo due=2025-03-07"]);
    let duty = "I have to attend the safety workshop on Friday.";
    assert_eq!(said("event", duty), ["safety workshop date=2025-03-07"]);
    assert_eq!(said("task", duty), NONE);
}

#[test]
fn there_is_no_event_without_a_time_or_after_a_cancellation() {
    assert_eq!(said("event", "The meeting was long."), NONE);
    assert_eq!(said("event", "The meeting on Friday is cancelled."), NONE);
    assert_eq!(said("event", "Could we have a call on Friday?"), NONE);
}
