//! Entities put right.

use std::collections::BTreeMap;

use crate::{self as api, Result};
use tine_core::json::Json;
use tine_core::{EntityId, Limits};

use super::{id, ids, object, time};
use crate::bodies::FreeForm;
use crate::bodies::request;

request! {
    /// What a person knows better.
    Correct {
        /// The fields that are wrong, as they should be; `null` clears one.
        #[schemars(with = "BTreeMap<String, serde_json::Value>")]
        fields: FreeForm,
        /// When it was known; now without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        observed_at: Option<String>,
    }
}

impl Correct {
    /// What the engine is asked about an entity.
    pub fn into_request(self, entity: EntityId, limits: &Limits) -> Result<api::Correct> {
        Ok(api::Correct {
            entity,
            fields: object("fields", self.fields, limits)?,
            observed_at: time("observed_at", self.observed_at.as_deref())?,
        })
    }
}

impl From<api::Correct> for Correct {
    fn from(request: api::Correct) -> Self {
        Correct {
            fields: FreeForm(Json::Object(request.fields)),
            observed_at: request.observed_at.map(|at| at.to_string()),
            ..Correct::default()
        }
    }
}

request! {
    /// The entity that another one is.
    MergeEntity {
        /// The one that stays.
        into: String,
    }
}

impl MergeEntity {
    /// What the engine is asked about an entity.
    pub fn into_request(self, from: EntityId) -> Result<api::Merge> {
        Ok(api::Merge { from, into: id(&self.into)? })
    }
}

request! {
    /// One entity that is two.
    SeparateEntity {
        /// The observations that speak of the other one.
        observations: Vec<String>,
        /// The other one; a new one without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        into: Option<String>,
    }
}

impl SeparateEntity {
    /// What the engine is asked about an entity.
    pub fn into_request(self, entity: EntityId) -> Result<api::Separate> {
        Ok(api::Separate {
            entity,
            observations: ids(&self.observations)?,
            into: self.into.as_deref().map(id).transpose()?,
        })
    }
}

impl From<api::Separate> for SeparateEntity {
    fn from(request: api::Separate) -> Self {
        SeparateEntity {
            observations: request.observations.iter().map(ToString::to_string).collect(),
            into: request.into.map(|id| id.to_string()),
            ..SeparateEntity::default()
        }
    }
}
