//! Tokens of a text in the public encoding `o200k_base`.
//!
//! The vocabulary is part of the program; nothing is downloaded. It is unpacked at the first
//! count, which takes about a tenth of a second, and kept. A crate of its own, so that only
//! those who count carry it.
//!
//! The figure is exact for OpenAI's models since GPT-4o, and an estimate for all others.

/// Returns how many tokens a text has. Marks such as `<|endoftext|>` are counted as the text they
/// are.
///
/// ```
/// assert_eq!(tine_llm::tokens::count("tiktoken is great!"), 6);
/// ```
pub fn count(text: &str) -> usize {
    let encoding = tiktoken::get_encoding("o200k_base");
    encoding.expect("the vocabulary is compiled in").count(text)
}
