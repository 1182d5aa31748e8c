//! Copies a turn to another place, with its origin.

use serde::{Deserialize, Serialize};
use tine_core::json::object;
use tine_core::{Message, Name, Status};
use tine_store::{Content, TurnOrigin};

use crate::log::change::text;
use crate::log::mutation::{Mutation, Receipt};
use crate::ops::append::{make_chain, refuse_purged};
use crate::tree::resolve;
use crate::tree::views::ViewOrId;
use crate::{BranchView, Call, Engine, Error, Result, TurnView};
use crate::{Inject, Injected};

impl Engine {
    /// Appends a copy of a turn to a branch.
    pub fn inject(&self, call: &Call, request: Inject) -> Result<Injected> {
        let payload = |request: &Inject| {
            object([
                ("from_conversation_id", request.turn.conversation.as_ref().map(text).into()),
                ("turn", request.turn.turn.as_str().into()),
                ("conversation_id", text(&request.conversation)),
                ("branch", request.branch.clone().into()),
            ])
        };
        let (done, _) = self.mutate(call, "inject", request, payload, inject)?;
        Ok(Injected { turn: self.load_turn(call, done.turn)?, branch: done.branch })
    }
}

#[derive(Serialize, Deserialize)]
struct InjectReceipt {
    #[serde(rename = "turn_id")]
    turn: ViewOrId<TurnView>,
    branch: BranchView,
}

impl Receipt for InjectReceipt {}

fn inject(mutation: &mut Mutation<'_>, request: &Inject) -> Result<InjectReceipt> {
    let call = mutation.call;
    let place = resolve::place(mutation.reader(), call, &request.turn)?;
    let loc = place.require_turn_for("injected")?;
    let source = tine_store::required(mutation.reader().turn(loc)?, || "a turn".to_owned())?;
    let Content::Kept(body) = &source.content else {
        return Err(Error::invalid("the turn was purged, so it cannot be copied"));
    };
    let target = resolve::conversation(mutation.reader(), call, &request.conversation)?;
    refuse_purged(&target)?;
    let same = target.key == place.conversation.key;
    mutation.open(target)?;
    let name = request.branch.as_deref().unwrap_or(Name::main().as_str()).to_owned();
    let branch = resolve::branch(mutation.reader(), call, mutation.key(), &name)?;
    mutation.check_seen(Some(&branch), &branch.name)?;
    if same {
        mutation.depends_on(source.operation);
    }
    let message = Message {
        role: source.role,
        body: body.clone(),
        tool_call_id: source.tool_call_id.clone(),
        created_at: None,
        status: Status::Complete,
        metadata: source.metadata.clone(),
    };
    let origin = |_| TurnOrigin { derived_from: Some(source.id), ..TurnOrigin::default() };
    let mut made = make_chain(mutation, branch.tip, &[message], origin)?.turns;
    let turn = made.pop().expect("a chain of one message has one turn");
    let moved = mutation.move_branch(&branch, Some(turn.loc))?;
    mutation.fact("derived_from", text(&source.id));
    Ok(InjectReceipt {
        turn: mutation.viewed_turn(turn.loc)?,
        branch: mutation.branch_view(&moved)?,
    })
}
