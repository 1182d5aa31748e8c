//! Intents.

use tine_analysis::rings::Intent::{self, *};
use tine_analysis::rings::rings;

fn check(intent: Intent, texts: &[&str]) {
    for text in texts {
        assert_eq!(rings(text).intent, intent, "{text}");
    }
}

#[test]
fn questions_with_a_mark() {
    check(
        Question,
        &["Is it open?", "Geht das?", "Tu viens ?", "¿Vienes?", "你来吗？", "来ますか？"],
    );
}

#[test]
fn questions_without_a_mark() {
    check(
        Question,
        &[
            "how do i reset my password",
            "wie lange dauert der Versand",
            "comment fonctionne un moteur diesel",
            "cuánto cuesta un billete a Roma",
            "这个怎么安装",
            "この漢字は何と読みますか",
            "I was wondering whether the museum is open on Monday.",
        ],
    );
}

#[test]
fn polite_requests_and_imperatives() {
    check(
        Request,
        &[
            "Could you review this paragraph?",
            "Translate the following text into French.",
            "Schreib mir eine kurze Zusammenfassung.",
            "Könnten Sie mir ein Angebot schicken?",
            "Donne-moi trois exemples.",
            "Pourriez-vous vérifier la facture ?",
            "Hazme un resumen del libro.",
            "¿Me puedes enviar el informe?",
            "把这段话翻译成英文",
            "帮我订一张去上海的机票",
            "この文章を英語に翻訳してください。",
            "旅行プランを考えて",
        ],
    );
}

#[test]
fn decisions() {
    check(
        Decision,
        &[
            "Let's go with the blue one.",
            "We've decided to postpone the launch.",
            "Wir nehmen das zweite Angebot.",
            "Ich habe mich für die Stelle in Hamburg entschieden.",
            "On prend le train de 8 h.",
            "Nos quedamos con el piso pequeño.",
            "我们决定用第二个方案。",
            "就用这个吧",
            "赤いほうにします。",
            "来週から始めることにしました。",
        ],
    );
}

#[test]
fn acknowledgements() {
    check(
        Acknowledgement,
        &[
            "ok",
            "Thanks a lot!",
            "Got it, makes sense.",
            "Alles klar, danke!",
            "D'accord, merci.",
            "Vale, gracias.",
            "好的，谢谢",
            "了解しました。",
            "Perfect, thank you so much for your help!",
            "👍 great",
        ],
    );
}

#[test]
fn corrections() {
    check(
        Correction,
        &[
            "No, I meant the other file.",
            "Actually, it's on Tuesday.",
            "That's not what I asked.",
            "Nein, ich meinte den anderen Bahnhof.",
            "Non, je voulais dire jeudi.",
            "No, me refería a la otra tienda.",
            "不对，我说的是下周。",
            "違います、来週の話です。",
        ],
    );
}

#[test]
fn greetings() {
    check(
        Greeting,
        &[
            "Hi!",
            "Hello everyone",
            "Good morning",
            "Hallo zusammen",
            "Bonjour !",
            "¡Hola!",
            "你好",
            "こんにちは",
            "Bye, see you tomorrow!",
        ],
    );
}

#[test]
fn statements() {
    check(
        Statement,
        &[
            "The museum closes at six.",
            "Der Zug hatte zwanzig Minuten Verspätung.",
            "Le magasin est fermé le dimanche.",
            "El museo cierra a las seis.",
            "我昨天买了一台新电脑。",
            "昨日、新しいパソコンを買いました。",
        ],
    );
}

#[test]
fn a_long_story_that_ends_in_a_request_is_a_request() {
    let story =
        "I moved here last year. The flat is on the third floor. It has no lift. ".repeat(8);
    check(Request, &[&format!("{story}Please write a letter to my landlord.")]);
    check(Question, &[&format!("Hi! {story}What should I do?")]);
}

#[test]
fn a_greeting_before_a_question_does_not_count() {
    check(Question, &["Hi! What time is it?", "Hallo, wie spät ist es?", "你好，请问几点了？"]);
}

#[test]
fn steps_of_an_answer_are_not_requests() {
    check(
        Statement,
        &[
            "This is how the filter is changed:\n1. Open the lid\n2. Remove the filter\n3. Close the lid",
        ],
    );
}

#[test]
fn an_offer_at_the_end_of_an_answer_does_not_count() {
    check(
        Statement,
        &["The fee is 20 euros. It is due in May. Would you like me to explain how it is paid?"],
    );
}
