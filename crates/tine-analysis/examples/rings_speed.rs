//! Prints how fast rings are made: `cargo run --release -p tine-analysis --example rings_speed`.

use std::time::Instant;

use tine_analysis::rings::rings;

/// Bytes of each text.
const SIZE: usize = 1_000_000;

fn main() {
    let chat = [
        "What's the best time to visit Tokyo? I was thinking about late March, when the cherry blossoms are out.\n",
        "Kannst du mir bitte eine E-Mail an meinen Vermieter schreiben? Die Heizung ist seit gestern kaputt.\n",
        "Peux-tu corriger les fautes dans ma lettre de motivation ? L'entretien est lundi.\n",
        "Necesito que traduzcas este contrato de alquiler al inglés, por favor.\n",
        "请帮我写一封邮件给客户，说明项目延期的原因。怎么用Python读取Excel文件？\n",
        "会議の議事録を要約してください。データベースのマイグレーションでエラーが発生しました。\n",
    ];
    let texts = [
        ("chat in six languages", chat.concat()),
        ("English", chat[0].to_owned()),
        ("Chinese", chat[4].to_owned()),
        ("Japanese", chat[5].to_owned()),
        ("one word", "a".to_owned()),
        ("one word of capitals and digits", "aB3_".to_owned()),
        ("words of one letter", "a ".to_owned()),
        ("one run of Han", "東京都".to_owned()),
        ("hiragana", "ありがとう".to_owned()),
        ("katakana", "アイウ".to_owned()),
        ("points", ".".to_owned()),
        ("question marks", "?!".to_owned()),
        ("emoji", "👩‍👩‍👧‍👦".to_owned()),
        ("flags", "🇯🇵".to_owned()),
        ("marks", "e\u{301}\u{302}".to_owned()),
        ("quotes in quotes", "> \"'«".to_owned()),
        ("backticks", "`".to_owned()),
        ("fences", "```\n".to_owned()),
        ("abbreviations", "Dr. ".to_owned()),
        ("list", "1. a\n".to_owned()),
        ("hyphens", "a-b-".to_owned()),
        ("apostrophes", "l'a".to_owned()),
        ("paths", "/a/b.c/".to_owned()),
        ("addresses", "a.b@c.d ".to_owned()),
        ("numbers", "1.2,3:4/".to_owned()),
        ("a name after another", "Aa ".to_owned()),
        ("white space", " \n\t".to_owned()),
    ];
    rings("预热词典");
    for (name, piece) in texts {
        let text = piece.repeat(SIZE / piece.len());
        let start = Instant::now();
        let rings = rings(&text);
        let seconds = start.elapsed().as_secs_f64();
        let speed = text.len() as f64 / 1e6 / seconds;
        println!("{name:<32} {seconds:6.3} s  {speed:7.1} MB/s  {} segments", rings.segments.len());
    }
}
