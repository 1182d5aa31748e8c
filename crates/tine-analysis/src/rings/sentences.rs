//! The sentences of a text, each with its language.

use crate::rings::language::{Language, Votes};
use crate::rings::plain::Plain;
use crate::rings::segments::{Segment, SegmentBlock};

pub(crate) struct Sentence<'t> {
    pub text: &'t str,
    /// The first byte in the whole text.
    pub byte: usize,
    /// The first character in the whole text.
    pub start: usize,
    pub block: SegmentBlock,
    pub language: Language,
    pub plain: Plain,
}

/// Returns the sentences of a text, without code unless there is nothing else.
pub(crate) fn sentences<'t>(text: &'t str, segments: &[Segment]) -> Vec<Sentence<'t>> {
    let only_code = segments.iter().all(|segment| segment.block == SegmentBlock::Code);
    let (mut byte, mut start) = (0, 0);
    let mut found = Vec::new();
    let mut whole = Votes::default();
    let mut votes = Vec::new();
    for segment in segments {
        start += text[byte..segment.at.start].chars().count();
        byte = segment.at.start;
        if segment.block == SegmentBlock::Code && !only_code {
            continue;
        }
        let segment_text = &text[segment.at.clone()];
        let plain = Plain::new(segment_text, start);
        let vote = Votes::of(segment_text, &plain.text);
        whole.add(&vote);
        votes.push(vote);
        let language = Language::Other;
        found.push(Sentence {
            text: segment_text,
            byte,
            start,
            block: segment.block,
            language,
            plain,
        });
    }
    let whole = whole.language();
    for (sentence, vote) in found.iter_mut().zip(votes) {
        sentence.language = vote.within(Some(whole));
    }
    found
}
