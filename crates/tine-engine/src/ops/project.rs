//! Projects: the namespaces that every other record lives in.

use tine_core::ProjectId;
use tine_store::Project;

use crate::{Engine, Error, ProjectView, Result};

impl Engine {
    /// Creates a project, or finds it; returns whether it is new.
    pub fn create_project(&self, id: &ProjectId) -> Result<(ProjectView, bool)> {
        let (id, now) = (id.clone(), self.now());
        self.write(move |records| {
            if let Some(existing) = records.project(&id)? {
                return Ok((view(existing), false));
            }
            let project = Project { id: id.clone(), created_at: now };
            records.insert_project(&project)?;
            Ok((view(project), true))
        })
    }

    /// Returns all projects, in order of id. `default` is always there, even before it holds
    /// anything.
    pub fn projects(&self) -> Result<Vec<ProjectView>> {
        let default = ProjectView { id: ProjectId::default(), created_at: None };
        let mut found: Vec<ProjectView> =
            self.read(|records| Ok(records.projects()?.into_iter().map(view).collect()))?;
        if !found.iter().any(|project| project.id == default.id) {
            found.push(default);
            found.sort_by(|a, b| a.id.cmp(&b.id));
        }
        Ok(found)
    }

    /// Returns one project.
    pub fn project(&self, id: &ProjectId) -> Result<ProjectView> {
        match self.read(|records| Ok(records.project(id)?))? {
            Some(project) => Ok(view(project)),
            None if *id == ProjectId::default() => {
                Ok(ProjectView { id: id.clone(), created_at: None })
            }
            None => Err(Error::not_found("project", id)),
        }
    }
}

fn view(project: Project) -> ProjectView {
    ProjectView { id: project.id, created_at: Some(project.created_at) }
}
