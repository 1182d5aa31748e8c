//! Ed25519 signatures of commits: 32-byte keys and 64-byte signatures, in hexadecimal digits.
//!
//! What is signed is the text of a commit's hash, `sha256:…`, which covers everything else.

#[cfg(feature = "signatures")]
pub use ed25519::{PrivateKey, verify};

/// Reports every signature as invalid: without the feature `signatures` nothing can be checked.
#[cfg(not(feature = "signatures"))]
pub fn verify(_public_key: &str, _signature: &str, _text: &str) -> bool {
    false
}

#[cfg(feature = "signatures")]
mod ed25519 {
    use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

    use crate::hash::{from_hex, to_hex};

    /// A private key. `Debug` shows only its public key.
    #[derive(Clone)]
    pub struct PrivateKey(SigningKey);

    impl PrivateKey {
        /// Returns a key made of 32 random bytes.
        pub fn from_random(bytes: [u8; 32]) -> PrivateKey {
            PrivateKey(SigningKey::from_bytes(&bytes))
        }

        /// Returns a key as it is kept: 64 hexadecimal digits.
        pub fn from_hex(digits: &str) -> Option<PrivateKey> {
            Some(PrivateKey::from_random(bytes(digits.trim())?))
        }

        /// Returns the key as it is kept.
        pub fn to_hex(&self) -> String {
            to_hex(self.0.as_bytes())
        }

        /// Returns the key that others check signatures with.
        pub fn public(&self) -> String {
            to_hex(self.0.verifying_key().as_bytes())
        }

        /// Returns the signature of a text.
        pub fn sign(&self, text: &str) -> String {
            to_hex(&self.0.sign(text.as_bytes()).to_bytes())
        }
    }

    impl std::fmt::Debug for PrivateKey {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_tuple("PrivateKey").field(&self.public()).finish()
        }
    }

    /// Returns whether a signature of a text matches a public key.
    pub fn verify(public_key: &str, signature: &str, text: &str) -> bool {
        let check = || {
            let key = VerifyingKey::from_bytes(&bytes(public_key)?).ok()?;
            let signature = Signature::from_bytes(&bytes(signature)?);
            key.verify_strict(text.as_bytes(), &signature).ok()
        };
        check().is_some()
    }

    fn bytes<const N: usize>(digits: &str) -> Option<[u8; N]> {
        from_hex(digits)?.try_into().ok()
    }
}
