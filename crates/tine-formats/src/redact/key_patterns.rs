//! Known formats of API keys: a prefix, then a number of characters of an alphabet.

/// The characters of a key after its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// Letters and digits.
    Word,
    /// Also `-` and `_`.
    Dashed,
    /// Capital letters and digits.
    Capitals,
    /// Hexadecimal digits.
    Hex,
    /// Also `-`, `_`, `.`, `/`.
    Path,
}

impl Alphabet {
    pub(super) fn holds(self, byte: u8) -> bool {
        match self {
            Alphabet::Word => byte.is_ascii_alphanumeric(),
            Alphabet::Dashed => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Alphabet::Capitals => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Alphabet::Hex => byte.is_ascii_hexdigit(),
            Alphabet::Path => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/')
            }
        }
    }
}

/// The format of one kind of key.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyPattern {
    pub(super) kind: &'static str,
    pub(super) prefix: &'static str,
    pub(super) alphabet: Alphabet,
    /// The least and most characters after the prefix.
    pub(super) least: usize,
    pub(super) most: usize,
}

const MANY: usize = 4_096;

const fn pattern(
    kind: &'static str,
    prefix: &'static str,
    alphabet: Alphabet,
    least: usize,
    most: usize,
) -> KeyPattern {
    KeyPattern { kind, prefix, alphabet, least, most }
}

/// All known formats; a longer prefix comes before a shorter one.
pub(super) const KEY_PATTERNS: &[KeyPattern] = &[
    pattern("anthropic", "sk-ant-", Alphabet::Dashed, 20, MANY),
    pattern("openrouter", "sk-or-", Alphabet::Dashed, 20, MANY),
    pattern("openai", "sk-proj-", Alphabet::Dashed, 20, MANY),
    pattern("openai", "sk-svcacct-", Alphabet::Dashed, 20, MANY),
    pattern("openai", "sk-admin-", Alphabet::Dashed, 20, MANY),
    pattern("openai", "sk-", Alphabet::Word, 20, 128),
    pattern("google", "AIza", Alphabet::Dashed, 35, 35),
    pattern("google", "GOCSPX-", Alphabet::Dashed, 20, 64),
    pattern("google", "ya29.", Alphabet::Dashed, 20, MANY),
    pattern("groq", "gsk_", Alphabet::Word, 20, 128),
    pattern("xai", "xai-", Alphabet::Word, 20, 128),
    pattern("huggingface", "hf_", Alphabet::Word, 30, 128),
    pattern("replicate", "r8_", Alphabet::Word, 30, 128),
    pattern("perplexity", "pplx-", Alphabet::Word, 30, 128),
    pattern("nvidia", "nvapi-", Alphabet::Dashed, 30, 128),
    pattern("langsmith", "lsv2_", Alphabet::Dashed, 30, 128),
    pattern("aws", "AKIA", Alphabet::Capitals, 16, 16),
    pattern("aws", "ASIA", Alphabet::Capitals, 16, 16),
    pattern("github", "github_pat_", Alphabet::Dashed, 22, 255),
    pattern("github", "ghp_", Alphabet::Word, 30, 255),
    pattern("github", "gho_", Alphabet::Word, 30, 255),
    pattern("github", "ghu_", Alphabet::Word, 30, 255),
    pattern("github", "ghs_", Alphabet::Word, 30, 255),
    pattern("github", "ghr_", Alphabet::Word, 30, 255),
    pattern("gitlab", "glpat-", Alphabet::Dashed, 20, 255),
    pattern("gitlab", "gldt-", Alphabet::Dashed, 20, 255),
    pattern("gitlab", "glrt-", Alphabet::Dashed, 20, 255),
    pattern("gitlab", "glptt-", Alphabet::Dashed, 20, 255),
    pattern("slack", "xoxb-", Alphabet::Dashed, 20, 255),
    pattern("slack", "xoxp-", Alphabet::Dashed, 20, 255),
    pattern("slack", "xoxa-", Alphabet::Dashed, 20, 255),
    pattern("slack", "xoxr-", Alphabet::Dashed, 20, 255),
    pattern("slack", "xoxs-", Alphabet::Dashed, 20, 255),
    pattern("slack", "xapp-", Alphabet::Dashed, 20, 255),
    pattern("slack", "hooks.slack.com/services/", Alphabet::Path, 20, 255),
    pattern("stripe", "sk_live_", Alphabet::Word, 16, 255),
    pattern("stripe", "sk_test_", Alphabet::Word, 16, 255),
    pattern("stripe", "rk_live_", Alphabet::Word, 16, 255),
    pattern("stripe", "rk_test_", Alphabet::Word, 16, 255),
    pattern("stripe", "whsec_", Alphabet::Word, 16, 255),
    pattern("npm", "npm_", Alphabet::Word, 36, 36),
    pattern("pypi", "pypi-AgE", Alphabet::Dashed, 50, MANY),
    pattern("sendgrid", "SG.", Alphabet::Path, 40, 128),
    pattern("digitalocean", "dop_v1_", Alphabet::Hex, 64, 64),
    pattern("shopify", "shpat_", Alphabet::Hex, 32, 32),
    pattern("vault", "hvs.", Alphabet::Dashed, 20, 255),
    pattern("tailscale", "tskey-", Alphabet::Dashed, 20, 255),
    pattern("tine", "tine_sha256:", Alphabet::Hex, 64, 64),
];

/// A bit for every pair of bytes that a prefix begins with. Of the words of a text nearly none does.
static BEGINNINGS: [u64; 1 << 10] = {
    let mut bits = [0; 1 << 10];
    let mut nth = 0;
    while nth < KEY_PATTERNS.len() {
        let prefix = KEY_PATTERNS[nth].prefix.as_bytes();
        let pair = pair([prefix[0], prefix[1]]);
        bits[pair >> 6] |= 1 << (pair & 63);
        nth += 1;
    }
    bits
};

const fn pair(bytes: [u8; 2]) -> usize {
    u16::from_le_bytes(bytes) as usize
}

/// Returns whether some sort of key begins with these two bytes.
pub(super) fn may_begin(bytes: [u8; 2]) -> bool {
    let pair = pair(bytes);
    BEGINNINGS[pair >> 6] >> (pair & 63) & 1 == 1
}
