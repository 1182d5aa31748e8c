//! Counts tokens in the public encoding `o200k_base`.
//!
//! The vocabulary is compiled in; nothing is downloaded. The first count unpacks it, which takes
//! about a tenth of a second.
//!
//! The count is exact for OpenAI's models since GPT-4o, and an estimate for all others.

/// Returns the number of tokens of a text. Markers such as `<|endoftext|>` are counted as text.
///
/// ```
/// assert_eq!(tine_llm::tokens::count("tiktoken is great!"), 6);
/// ```
pub fn count(text: &str) -> usize {
    let encoding = tiktoken::get_encoding("o200k_base");
    encoding.expect("the vocabulary is compiled in").count(text)
}
