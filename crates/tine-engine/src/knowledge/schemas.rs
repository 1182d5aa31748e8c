//! Schemas: the built-in types, and those that a project registers, version by version.

use serde::{Deserialize, Serialize};
use tine_core::facts::{Schema, builtin};
use tine_store::{Family, ReadFamilies, RecordQuery, SchemaRecord};

use super::reader::KnowledgeReader;
use crate::NewSchema;
use crate::log::mutation::Receipt;
use crate::{Call, Engine, Error, Result};

/// Registered versions that are listed.
const LISTED: usize = 10_000;

impl Engine {
    /// Registers a schema as the next version of its type; one that changes nothing is the
    /// version that is there. What was observed before stays under the version it was observed
    /// with.
    pub fn register_schema(&self, call: &Call, request: NewSchema) -> Result<Schema> {
        if builtin::is_structural(&request.schema.entity_type) {
            return Err(Error::invalid(format!(
                "`{}` is a built-in type and cannot be changed",
                request.schema.entity_type
            )));
        }
        let payload = |request: &NewSchema| request.schema.to_json();
        let (receipt, _) =
            self.mutate(call, "register_schema", request, payload, |mutation, request| {
                mutation.open_project_log()?;
                let newest = mutation.knowledge().newest_schema(&request.schema.entity_type)?;
                let schema = Schema { version: newest.version, ..request.schema.clone() };
                if schema == newest {
                    return Ok(SchemaReceipt { schema: newest });
                }
                let schema = Schema { version: newest.version + 1, ..schema };
                mutation.set_record(&SchemaRecord(schema.clone()))?;
                Ok(SchemaReceipt { schema })
            })?;
        Ok(receipt.schema)
    }

    /// Returns a schema: the newest of a type, or one version.
    pub fn schema(&self, call: &Call, entity_type: &str, version: Option<u32>) -> Result<Schema> {
        self.read(|records| {
            let knowledge = KnowledgeReader::new(records, &call.project);
            let newest = knowledge.newest_schema(entity_type)?;
            let found = match version {
                None if newest.version > 0 => Some(newest),
                Some(version) if (1..=newest.version).contains(&version) => {
                    Some(knowledge.schema(entity_type, version)?)
                }
                _ => None,
            };
            found.ok_or_else(|| Error::NotFound {
                what: "schema",
                name: match version {
                    None => entity_type.to_owned(),
                    Some(version) => format!("{entity_type} {version}"),
                },
                advice: "",
            })
        })
    }

    /// Returns the newest schema of every type, in order of type.
    pub fn schemas(&self, call: &Call) -> Result<Vec<Schema>> {
        let registered: Vec<SchemaRecord> = self.read(|records| {
            Ok(records.list(&call.project, &RecordQuery::all(Family::Schema), LISTED)?)
        })?;
        let mut newest: std::collections::BTreeMap<String, Schema> =
            builtin::schemas().map(|schema| (schema.entity_type.clone(), schema)).collect();
        for SchemaRecord(schema) in registered {
            newest.insert(schema.entity_type.clone(), schema);
        }
        Ok(newest.into_values().collect())
    }
}

/// The schema as it was registered.
#[derive(Serialize, Deserialize)]
struct SchemaReceipt {
    schema: Schema,
}

impl Receipt for SchemaReceipt {}
