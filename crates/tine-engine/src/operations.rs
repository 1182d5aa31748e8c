//! Implements the operation traits for the engine.

use tine_api::*;
use tine_core::facts::Schema;
use tine_core::{
    ConversationId, Digest, EntityId, InterpretationId, Name, ProjectId, SourceId, Timestamp,
};

use crate::Engine;

/// Implements a trait by the engine's own methods of the same names.
macro_rules! implement {
    ($(#[$about:meta])* trait $trait:ident; $(
        $(#[$doc:meta])*
        fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $answer:ty;
    )*) => {
        impl $trait for Engine {
            $(fn $name(&self $(, $argument: $type)*) -> $answer {
                Engine::$name(self $(, $argument)*).map_err(Error::from)
            })*
        }
    };
}

for_each_operation!(implement);
