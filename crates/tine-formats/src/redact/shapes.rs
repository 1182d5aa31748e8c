//! Words whose shape says whose key they are: a prefix, then so many characters of an alphabet.

/// The characters of a key behind its prefix.
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

/// One sort of key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) kind: &'static str,
    pub(super) prefix: &'static str,
    pub(super) alphabet: Alphabet,
    /// Characters behind the prefix, at least and at most.
    pub(super) least: usize,
    pub(super) most: usize,
}

const MANY: usize = 4_096;

const fn shape(
    kind: &'static str,
    prefix: &'static str,
    alphabet: Alphabet,
    least: usize,
    most: usize,
) -> Shape {
    Shape { kind, prefix, alphabet, least, most }
}

/// All sorts that are known; a longer prefix comes before a shorter one.
pub(super) const SHAPES: &[Shape] = &[
    shape("anthropic", "sk-ant-", Alphabet::Dashed, 20, MANY),
    shape("openrouter", "sk-or-", Alphabet::Dashed, 20, MANY),
    shape("openai", "sk-proj-", Alphabet::Dashed, 20, MANY),
    shape("openai", "sk-svcacct-", Alphabet::Dashed, 20, MANY),
    shape("openai", "sk-admin-", Alphabet::Dashed, 20, MANY),
    shape("openai", "sk-", Alphabet::Word, 20, 128),
    shape("google", "AIza", Alphabet::Dashed, 35, 35),
    shape("google", "GOCSPX-", Alphabet::Dashed, 20, 64),
    shape("google", "ya29.", Alphabet::Dashed, 20, MANY),
    shape("groq", "gsk_", Alphabet::Word, 20, 128),
    shape("xai", "xai-", Alphabet::Word, 20, 128),
    shape("huggingface", "hf_", Alphabet::Word, 30, 128),
    shape("replicate", "r8_", Alphabet::Word, 30, 128),
    shape("perplexity", "pplx-", Alphabet::Word, 30, 128),
    shape("nvidia", "nvapi-", Alphabet::Dashed, 30, 128),
    shape("langsmith", "lsv2_", Alphabet::Dashed, 30, 128),
    shape("aws", "AKIA", Alphabet::Capitals, 16, 16),
    shape("aws", "ASIA", Alphabet::Capitals, 16, 16),
    shape("github", "github_pat_", Alphabet::Dashed, 22, 255),
    shape("github", "ghp_", Alphabet::Word, 30, 255),
    shape("github", "gho_", Alphabet::Word, 30, 255),
    shape("github", "ghu_", Alphabet::Word, 30, 255),
    shape("github", "ghs_", Alphabet::Word, 30, 255),
    shape("github", "ghr_", Alphabet::Word, 30, 255),
    shape("gitlab", "glpat-", Alphabet::Dashed, 20, 255),
    shape("gitlab", "gldt-", Alphabet::Dashed, 20, 255),
    shape("gitlab", "glrt-", Alphabet::Dashed, 20, 255),
    shape("gitlab", "glptt-", Alphabet::Dashed, 20, 255),
    shape("slack", "xoxb-", Alphabet::Dashed, 20, 255),
    shape("slack", "xoxp-", Alphabet::Dashed, 20, 255),
    shape("slack", "xoxa-", Alphabet::Dashed, 20, 255),
    shape("slack", "xoxr-", Alphabet::Dashed, 20, 255),
    shape("slack", "xoxs-", Alphabet::Dashed, 20, 255),
    shape("slack", "xapp-", Alphabet::Dashed, 20, 255),
    shape("slack", "hooks.slack.com/services/", Alphabet::Path, 20, 255),
    shape("stripe", "sk_live_", Alphabet::Word, 16, 255),
    shape("stripe", "sk_test_", Alphabet::Word, 16, 255),
    shape("stripe", "rk_live_", Alphabet::Word, 16, 255),
    shape("stripe", "rk_test_", Alphabet::Word, 16, 255),
    shape("stripe", "whsec_", Alphabet::Word, 16, 255),
    shape("npm", "npm_", Alphabet::Word, 36, 36),
    shape("pypi", "pypi-AgE", Alphabet::Dashed, 50, MANY),
    shape("sendgrid", "SG.", Alphabet::Path, 40, 128),
    shape("digitalocean", "dop_v1_", Alphabet::Hex, 64, 64),
    shape("shopify", "shpat_", Alphabet::Hex, 32, 32),
    shape("vault", "hvs.", Alphabet::Dashed, 20, 255),
    shape("tailscale", "tskey-", Alphabet::Dashed, 20, 255),
    shape("tine", "tine_sha256:", Alphabet::Hex, 64, 64),
];

/// A bit for every pair of bytes that a prefix begins with. Of the words of a text nearly none does.
static BEGINNINGS: [u64; 1 << 10] = {
    let mut bits = [0; 1 << 10];
    let mut nth = 0;
    while nth < SHAPES.len() {
        let prefix = SHAPES[nth].prefix.as_bytes();
        let pair = pair([prefix[0], prefix[1]]);
        bits[pair >> 6] |= 1 << (pair & 63);
        nth += 1;
    }
    bits
};

const fn pair(bytes: [u8; 2]) -> usize {
    u16::from_le_bytes(bytes) as usize
}

/// Whether some sort of key begins with these two bytes.
pub(super) fn may_begin(bytes: [u8; 2]) -> bool {
    let pair = pair(bytes);
    BEGINNINGS[pair >> 6] >> (pair & 63) & 1 == 1
}
