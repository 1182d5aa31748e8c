//! Paths made by hand, and a few words to talk about their renderings in.

use tine_core::json::{self, MAX_DEPTH};
use tine_core::{Body, ConversationId, Json, Limits, Metadata, Role, Status, TurnHash, TurnId};
use tine_engine::{PathPage, Presence, TurnView};
use tine_formats::render::{Format, OpenCalls, Options, RenderError, Rendered, Rendering, render};
use tine_store::{Content, Root, TurnOrigin};

pub const PROVIDERS: [Format; 3] = [Format::OpenAi, Format::Anthropic, Format::Gemini];

pub fn turn_id(n: usize) -> TurnId {
    format!("01890a5d-ac96-774b-bcce-{n:012x}").parse().unwrap()
}

pub fn json(text: &str) -> Json {
    json::parse(text.as_bytes(), MAX_DEPTH).unwrap()
}

/// A path that grows turn by turn.
pub struct Stage {
    pub path: PathPage,
}

impl Stage {
    pub fn new(prompt: Option<&str>) -> Self {
        let root = Root { system_prompt: prompt.map(str::to_owned), config: Json::Null };
        Stage {
            path: PathPage {
                conversation: ConversationId::from_stored("talk"),
                root: Some(root),
                to: None,
                turns: Vec::new(),
                next: None,
            },
        }
    }

    /// Adds a turn of blocks, or of one text.
    pub fn say(&mut self, role: Role, content: &str) -> &mut Self {
        let content = match content.starts_with('[') {
            true => json(content),
            false => Json::from(content),
        };
        let body = Body::from_content(content, role, &Limits::default()).unwrap();
        let n = self.path.turns.len();
        self.path.turns.push(TurnView {
            conversation: self.path.conversation.clone(),
            id: turn_id(n),
            hash: format!("sha256:{n:064x}").parse::<TurnHash>().unwrap(),
            parent_hash: None,
            parent: None,
            depth: 0,
            role,
            content: Content::Kept(body),
            tool_call_id: None,
            created_at: "2024-01-15T10:30:00Z".parse().unwrap(),
            status: Status::Complete,
            metadata: Metadata::default(),
            origin: TurnOrigin::default(),
            continues: None,
            presence: Presence::Live,
            outcome: None,
        });
        self
    }

    pub fn user(&mut self, content: &str) -> &mut Self {
        self.say(Role::User, content)
    }

    pub fn assistant(&mut self, content: &str) -> &mut Self {
        self.say(Role::Assistant, content)
    }

    pub fn system(&mut self, content: &str) -> &mut Self {
        self.say(Role::System, content)
    }

    pub fn tool(&mut self, call: &str, content: &str) -> &mut Self {
        self.say(Role::Tool, content).last().tool_call_id = Some(call.to_owned());
        self
    }

    /// An assistant's turn of calls, given as `id:name`.
    pub fn calls(&mut self, calls: &[&str]) -> &mut Self {
        let call = |call: &&str| {
            let (id, name) = call.split_once(':').unwrap();
            format!(r#"{{"type":"tool-use","id":{id:?},"name":{name:?},"parameters":{{"n":1}}}}"#)
        };
        let blocks: Vec<String> = calls.iter().map(call).collect();
        self.assistant(&format!("[{}]", blocks.join(",")))
    }

    /// The last turn goes on where the one before it ends.
    pub fn joined(&mut self) -> &mut Self {
        let before = turn_id(self.path.turns.len() - 2);
        self.last().continues = Some(before);
        self
    }

    pub fn by(&mut self, provider: &str) -> &mut Self {
        let info = json::object([("provider", provider.into())]);
        self.last().metadata.source_info = Some(info);
        self
    }

    pub fn last(&mut self) -> &mut TurnView {
        self.path.turns.last_mut().unwrap()
    }

    pub fn render(&self, format: Format) -> Rendering {
        render(&self.path, &Options::of(format)).unwrap()
    }

    /// The request alone, with nothing to remark.
    pub fn plain(&self, format: Format) -> Json {
        let rendering = self.render(format);
        assert_eq!(rendering.notes, vec![], "{format:?}");
        request(&rendering)
    }

    pub fn with_calls(&self, format: Format, open: OpenCalls) -> Result<Rendering, RenderError> {
        render(&self.path, &Options { open_calls: open, ..Options::of(format) })
    }
}

pub fn request(rendering: &Rendering) -> Json {
    match &rendering.rendered {
        Rendered::Request(json) => json.clone(),
        Rendered::Text(text) => panic!("not a request: {text}"),
    }
}

/// The member at a path such as `messages/0/content`.
pub fn at<'a>(json: &'a Json, path: &str) -> &'a Json {
    path.split('/').fold(json, |json, step| {
        let found = match step.parse::<usize>() {
            Ok(index) => json.as_array().and_then(|items| items.get(index)),
            Err(_) => json.get(step),
        };
        found.unwrap_or_else(|| panic!("no {step} of {path} in {json}"))
    })
}

pub fn text<'a>(json: &'a Json, path: &str) -> &'a str {
    at(json, path).as_str().unwrap_or_else(|| panic!("{path} is no text in {json}"))
}

/// Notes as `kind turn/block what`, for tests about what is reported.
pub fn notes(rendering: &Rendering) -> Vec<String> {
    let place = |id: TurnId| (0..1_000).find(|n| turn_id(*n) == id).unwrap();
    rendering
        .notes
        .iter()
        .map(|note| {
            let turn = note.turn.map_or("-".to_owned(), |id| place(id).to_string());
            let block = note.block.map_or(String::new(), |block| format!(".{block}"));
            format!("{} {turn}{block} {}", note.kind.as_str(), note.what)
        })
        .collect()
}
