//! Who vouches for a commit. Keys stay with their holders; only signatures come here.

use tine_core::json::object;
use tine_store::CommitSignature;

use super::commit_graph::CommitReader;
use crate::CommitView;
use crate::tree::resolve;
use crate::{Call, Engine, Error, Result};

impl Engine {
    /// Keeps the signature of a commit's hash, if it is right.
    pub fn sign_commit(
        &self,
        call: &Call,
        commit: &str,
        public_key: &str,
        signature: &str,
    ) -> Result<CommitView> {
        if cfg!(not(feature = "signatures")) {
            let why = "this build checks no signatures; build it with the feature `signatures`";
            return Err(Error::Unsupported(why.to_owned()));
        }
        let request = (commit.to_owned(), public_key.to_lowercase(), signature.to_lowercase());
        let payload = |(commit, key, value): &(String, String, String)| {
            object([
                ("commit", commit.as_str().into()),
                ("public_key", key.as_str().into()),
                ("value", value.as_str().into()),
            ])
        };
        self.mutate(call, "sign_commit", request, payload, |mutation, (name, key, value)| {
            let reader = CommitReader::new(mutation.reader(), &mutation.call.project);
            let (commit, listed) = reader.named(name)?;
            if !tine_core::sign::verify(key, value, &listed.hash.to_string()) {
                return Err(Error::invalid(
                    "the signature does not match; sign the text of the commit's hash, `sha256:…`, \
                     with Ed25519, and give key and signature in hexadecimal",
                ));
            }
            if let Some(existing) = reader.view(commit.clone(), &listed, Vec::new())?.signature {
                if existing.public_key == *key {
                    return Ok(());
                }
                let (what, name) = ("signature", existing.public_key);
                let advice = "; a commit can have only one";
                return Err(Error::Exists { what, name, advice });
            }
            let owner =
                resolve::conversation(mutation.reader(), mutation.call, &commit.conversation)?;
            mutation.open(owner)?;
            mutation.depends_on(listed.operation);
            mutation.set_record(&CommitSignature {
                hash: listed.hash,
                public_key: key.clone(),
                value: value.clone(),
                signed_at: mutation.now,
            })
        })?;
        self.commit_by_hash(call, commit)
    }
}
