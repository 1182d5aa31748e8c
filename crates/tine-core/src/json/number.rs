//! A JSON number that keeps the digits of large integers.
//!
//! A number is a finite double, or the decimal digits of an integer beyond ±(2^53−1), where
//! a double no longer distinguishes neighbouring integers.
//!
//! Invariant: one canonical text has one representation. Minus zero is stored as zero, and a
//! double whose ECMAScript form is a large integer literal (`1e20` is written
//! `100000000000000000000`) is stored as those digits. Derived equality is therefore equality
//! of canonical text, and a number survives being written and read again.
//!
//! Deliberately absent: arithmetic and ordering.

use std::fmt;

/// The largest integer up to which every integer has its own double: 2^53 − 1.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// From here on ECMAScript writes an integral double with an exponent, not as digits.
const EXPONENT_FORM: f64 = 1e21;

/// Every integer of at most this many digits is below the largest double (about 1.8e308).
const ALWAYS_FINITE_DIGITS: usize = 308;

/// A finite double, or the exact digits of an integer beyond ±(2^53−1).
///
/// ```
/// use tine_core::json::Number;
///
/// assert_eq!(Number::from(u64::MAX).to_string(), "18446744073709551615");
/// assert_eq!(Number::try_from(1e30)?.to_string(), "1e+30");
/// # Ok::<(), tine_core::json::NotFinite>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Number(Repr);

#[derive(Clone, Debug, PartialEq)]
enum Repr {
    /// Finite, and not minus zero.
    Double(f64),
    /// An optional `-`, then digits without leading zeros; beyond ±(2^53−1), and its nearest
    /// double is finite.
    Digits(Box<str>),
}

// Equality is total: no stored double is NaN.
impl Eq for Number {}

/// NaN and the infinities have no JSON form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("JSON has no form for NaN or infinity; use null or a string")]
pub struct NotFinite;

impl Number {
    /// Returns the nearest double.
    pub fn as_f64(&self) -> f64 {
        match &self.0 {
            Repr::Double(double) => *double,
            Repr::Digits(digits) => {
                digits.parse().expect("digits of an integer always read as a double")
            }
        }
    }

    /// Returns the value as an `i64`, when it is an integer in that range.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Double(double) => safe_integer(*double),
            Repr::Digits(digits) => digits.parse().ok(),
        }
    }

    /// Returns the value as a `u64`, when it is an integer in that range.
    pub fn as_u64(&self) -> Option<u64> {
        match &self.0 {
            Repr::Double(double) => u64::try_from(safe_integer(*double)?).ok(),
            Repr::Digits(digits) => digits.parse().ok(),
        }
    }

    /// Returns an integer literal in JSON grammar, or `None` when it overflows a double.
    pub(super) fn from_integer_literal(literal: &str) -> Option<Number> {
        let digits = literal.strip_prefix('-').unwrap_or(literal);
        // 16 digits are enough for every safe integer and cannot overflow a u64.
        if digits.len() <= 16 {
            let magnitude =
                digits.bytes().fold(0u64, |sum, digit| sum * 10 + u64::from(digit - b'0'));
            if magnitude <= MAX_SAFE {
                let double = magnitude as f64;
                // Zero takes no sign.
                let negative = digits.len() < literal.len() && magnitude != 0;
                return Some(Number(Repr::Double(if negative { -double } else { double })));
            }
        }
        if digits.len() > ALWAYS_FINITE_DIGITS {
            literal.parse().ok().filter(|double: &f64| double.is_finite())?;
        }
        Some(Number(Repr::Digits(literal.into())))
    }

    /// Returns a literal with a fraction or an exponent, or `None` when it overflows a double.
    pub(super) fn from_double_literal(literal: &str) -> Option<Number> {
        let double: f64 = literal.parse().expect("the JSON number grammar is a subset of Rust's");
        Number::try_from(double).ok()
    }

    /// Appends the canonical form.
    pub(super) fn write_canonical(&self, out: &mut String) {
        match &self.0 {
            Repr::Double(double) => out.push_str(ryu_js::Buffer::new().format_finite(*double)),
            Repr::Digits(digits) => out.push_str(digits),
        }
    }
}

/// Returns the integer that a double represents, when it is one within ±(2^53−1).
fn safe_integer(double: f64) -> Option<i64> {
    let is_safe = double.fract() == 0.0 && double.abs() <= MAX_SAFE as f64;
    is_safe.then_some(double as i64)
}

impl TryFrom<f64> for Number {
    type Error = NotFinite;

    fn try_from(double: f64) -> Result<Number, NotFinite> {
        if !double.is_finite() {
            return Err(NotFinite);
        }
        if double == 0.0 {
            return Ok(Number(Repr::Double(0.0)));
        }
        let magnitude = double.abs();
        // Above 2^53 every double is integral.
        if magnitude > MAX_SAFE as f64 && magnitude < EXPONENT_FORM {
            let digits = ryu_js::Buffer::new().format_finite(double).into();
            return Ok(Number(Repr::Digits(digits)));
        }
        Ok(Number(Repr::Double(double)))
    }
}

impl From<i64> for Number {
    fn from(integer: i64) -> Number {
        if integer.unsigned_abs() <= MAX_SAFE {
            Number(Repr::Double(integer as f64))
        } else {
            Number(Repr::Digits(integer.to_string().into()))
        }
    }
}

impl From<u64> for Number {
    fn from(integer: u64) -> Number {
        if integer <= MAX_SAFE {
            Number(Repr::Double(integer as f64))
        } else {
            Number(Repr::Digits(integer.to_string().into()))
        }
    }
}

impl From<i32> for Number {
    fn from(integer: i32) -> Number {
        Number(Repr::Double(f64::from(integer)))
    }
}

impl From<u32> for Number {
    fn from(integer: u32) -> Number {
        Number(Repr::Double(f64::from(integer)))
    }
}

impl fmt::Display for Number {
    /// The canonical form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Double(double) => f.pad(ryu_js::Buffer::new().format_finite(*double)),
            Repr::Digits(digits) => f.pad(digits),
        }
    }
}
