//! People, organisations, places and papers.

use super::{said, written};

const NONE: [&str; 0] = [];

#[test]
fn people_are_found_by_first_name_title_and_kinship() {
    assert_eq!(said("person", "Ana Kovač wants to join."), ["Ana Kovač"]);
    assert_eq!(said("person", "Call Dr. Nguyen and Prof. Okafor."), ["Nguyen", "Okafor"]);
    assert_eq!(said("person", "I asked Uncle Peter."), ["Peter role=uncle"]);
    assert_eq!(said("person", "My sister Zofka is here."), ["Zofka role=sister"]);
    assert_eq!(said("person", "Zofka said no."), ["Zofka"]);
    assert_eq!(said("person", "The tour is tomorrow with Kalliste."), ["Kalliste"]);
}

#[test]
fn a_person_named_again_by_a_part_of_the_name_is_the_same() {
    assert_eq!(
        said("person", "Luis Ortega called. Luis is ill. Ortega sends regards."),
        ["Luis Ortega"]
    );
}

#[test]
fn a_person_has_email_and_role_from_beside_the_name() {
    assert_eq!(
        said("person", "Our accountant, Elena Petrova (elena@petrova.example), called."),
        ["Elena Petrova email=elena@petrova.example role=accountant"]
    );
}

#[test]
fn attendees_and_signatories_are_people() {
    assert_eq!(
        written("person", "Present: Jane Roe, Xanthe, Kofi Mensah and Li Wei"),
        ["Jane Roe", "Xanthe", "Kofi Mensah", "Li Wei"]
    );
    assert_eq!(written("person", "See you soon.\n\nBest regards,\nXanthe Quill"), ["Xanthe Quill"]);
}

#[test]
fn greetings_name_people_only_in_turns() {
    assert_eq!(said("person", "Hi Xanthe, how are you?"), ["Xanthe"]);
    assert_eq!(written("person", "Hello World, it says."), NONE);
}

#[test]
fn ambiguous_words_are_not_names_at_the_beginning_of_a_sentence() {
    for text in [
        "Will this work?",
        "Mark the first item.",
        "May I?",
        "Hope this helps!",
        "Rose petals fall.",
    ] {
        assert_eq!(said("person", text), NONE, "{text}");
    }
    assert_eq!(said("person", "I met Mark yesterday."), ["Mark"]);
}

#[test]
fn organisations_are_found_by_suffix_by_list_and_by_context() {
    assert_eq!(
        said("organization", "She studies at the University of Toronto."),
        ["University of Toronto"]
    );
    assert_eq!(
        said("organization", "We pay Weber & Partner and Miller's Garage."),
        ["Weber & Partner", "Miller's Garage"]
    );
    assert_eq!(said("organization", "Siemens called."), ["Siemens"]);
    assert_eq!(said("organization", "Karl Weber from Blue Heron sent it."), ["Blue Heron"]);
    assert_eq!(said("organization", "I work at Lumora."), ["Lumora"]);
    assert_eq!(said("organization", "Our supplier, Lumora, is late."), ["Lumora"]);
}

#[test]
fn products_and_languages_are_not_organisations() {
    for text in
        ["We use Postgres with Redis.", "I write Python.", "It runs on Windows.", "An apple a day."]
    {
        assert_eq!(said("organization", text), NONE, "{text}");
    }
}

#[test]
fn places_are_found_by_list_by_their_words_and_by_context() {
    assert_eq!(
        said("place", "I moved from New York City to Tallinn."),
        ["New York City", "Tallinn"]
    );
    assert_eq!(said("place", "The hotel is near Charles Bridge."), ["Charles Bridge"]);
    assert_eq!(said("place", "We booked Pension Vltava."), ["Pension Vltava"]);
    assert_eq!(said("place", "My parents live in Kleinmachnow."), ["Kleinmachnow"]);
    assert_eq!(said("place", "Send it to 12 Baker Street."), ["12 Baker Street"]);
}

#[test]
fn a_place_that_is_also_a_name_needs_a_preposition() {
    assert_eq!(said("place", "I flew to Florence."), ["Florence"]);
    assert_eq!(said("person", "Florence said no."), ["Florence"]);
    assert_eq!(said("place", "Florence said no."), NONE);
}

#[test]
fn a_place_inside_of_another_name_is_not_found() {
    assert_eq!(said("place", "She studies at the University of Toronto."), NONE);
}

#[test]
fn documents_are_files_papers_and_the_title_of_a_document() {
    assert_eq!(
        said("document", "See `mapping.txt` (patient_form_2024.pdf)."),
        ["mapping.txt", "patient_form_2024.pdf"]
    );
    assert_eq!(
        said("document", "Read the Data Retention Policy again."),
        ["Data Retention Policy"]
    );
    assert_eq!(said("document", "See https://example.com/a.pdf for it."), NONE);
    assert_eq!(written("document", "# Project Falcon\n\nIt flies."), ["Project Falcon"]);
    assert_eq!(said("document", "# Project Falcon\n\nIt flies."), NONE);
}
