//! Images, sounds, documents and resources, in the shapes in which clients record them.
//!
//! Understood are Anthropic's (`source`), MCP's and ACP's (`data` and `mimeType`, `resource`,
//! `resource_link`), OpenAI's (`image_url`, `input_audio`, `file`) and the plain one (`data` or
//! `url`, with a media type). Anything else is left to be reported.

use tine_core::Json;

/// Something that is not text, or a text with an address of its own.
pub(super) struct Media {
    pub kind: MediaKind,
    /// Its media type, where it is told.
    pub mime: Option<String>,
    pub source: Source,
    /// Its file name or title.
    pub name: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MediaKind {
    Image,
    Audio,
    Document,
}

pub(super) enum Source {
    /// Base64.
    Data(String),
    Url(String),
    /// A text that was found at an address.
    Text {
        uri: String,
        text: String,
    },
    /// An address alone.
    Link(String),
}

impl Media {
    /// What to call it in a note.
    pub(super) fn describe(&self) -> String {
        let kind = match (self.kind, &self.source) {
            (_, Source::Text { .. } | Source::Link(_)) => "a resource",
            (MediaKind::Image, _) => "an image",
            (MediaKind::Audio, _) => "a sound",
            (MediaKind::Document, _) => "a document",
        };
        match &self.mime {
            Some(mime) => format!("{kind} ({mime})"),
            None => kind.to_owned(),
        }
    }

    /// The text of a resource, or where it is to be found; nothing for all else.
    pub(super) fn as_text(&self) -> Option<String> {
        match &self.source {
            Source::Text { uri, text } => Some(format!("[Resource {uri}]\n\n{text}")),
            Source::Link(uri) => match &self.name {
                Some(name) => Some(format!("[Resource {name}: {uri}]")),
                None => Some(format!("[Resource {uri}]")),
            },
            Source::Data(_) | Source::Url(_) => None,
        }
    }
}

pub(super) fn read(kind: &str, block: &Json) -> Option<Media> {
    let text = |json: &Json, names: &[&str]| {
        names.iter().find_map(|name| json.get(name).and_then(Json::as_str)).map(str::to_owned)
    };
    const MIME: &[&str] = &["media_type", "mime_type", "mimeType"];
    let kind = match kind {
        "image" | "image_url" => MediaKind::Image,
        "audio" | "input_audio" => MediaKind::Audio,
        "document" | "file" | "resource" | "resource_link" => MediaKind::Document,
        _ => return None,
    };
    // The object that holds data or address, be it the block itself.
    let inner = ["source", "image_url", "input_audio", "file", "resource"];
    let inner = inner.iter().find_map(|name| block.get(name).filter(|it| it.as_object().is_some()));
    let holder = inner.unwrap_or(block);
    let format = text(holder, &["format"]).map(|format| format!("audio/{format}"));
    let mut mime = text(holder, MIME).or_else(|| text(block, MIME)).or(format);
    let name = text(block, &["name", "title", "filename"]).or_else(|| text(holder, &["filename"]));
    let uri = text(holder, &["uri"]).or_else(|| text(block, &["uri"]));
    let source = if let Some(text) = text(holder, &["text"]).filter(|_| kind == MediaKind::Document)
    {
        Source::Text { uri: uri.unwrap_or_else(|| name.clone().unwrap_or_default()), text }
    } else if let Some(data) = text(holder, &["data", "blob", "file_data"]) {
        from_url(&data, &mut mime).unwrap_or(Source::Data(data))
    } else {
        let url = text(holder, &["url"]).or_else(|| text(block, &["image_url", "url"]));
        match (url, uri) {
            (Some(url), _) => from_url(&url, &mut mime).unwrap_or(Source::Url(url)),
            (None, Some(uri)) if kind == MediaKind::Document => Source::Link(uri),
            (None, Some(uri)) => Source::Url(uri),
            (None, None) => return None,
        }
    };
    // A document of a type that says otherwise is what its type says.
    let kind = match mime.as_deref().and_then(|mime| mime.split_once('/')) {
        Some(("image", _)) => MediaKind::Image,
        Some(("audio", _)) => MediaKind::Audio,
        _ => kind,
    };
    Some(Media { kind, mime, source, name })
}

/// The data and type within a `data:` address.
fn from_url(url: &str, mime: &mut Option<String>) -> Option<Source> {
    let (told, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    if !told.is_empty() {
        *mime = Some(told.to_owned());
    }
    Some(Source::Data(data.to_owned()))
}
