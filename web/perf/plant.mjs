// A large tree: a trunk, and branches of a hundred turns that fork anywhere from what is there.

const WORDS = "the tree of a long conversation about trains hotels code and what was settled there earlier".split(" ");

/** Always the same numbers. */
function dice(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % below;
  };
}

export async function plant(base, turns, trunk) {
  const id = `large-${turns}`;
  const known = await fetch(`${base}/api/v1/conversations/${id}`);
  if (known.ok) return id;
  const roll = dice(7);
  const text = () => Array.from({ length: 6 + roll(60) }, () => WORDS[roll(WORDS.length)]).join(" ");
  const messages = (count) => Array.from({ length: count }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: text() }));
  const post = async (path, body) => {
    const answer = await fetch(`${base}/api/v1${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
    return answer.json();
  };
  await post("/conversations", { conversation_id: id, title: `A tree of ${turns.toLocaleString("en")} turns` });
  const ids = [];
  for (let made = 0; made < trunk; made += 5000) {
    const said = await post(`/conversations/${id}/turns`, { messages: messages(5000) });
    ids.push(...said.turns.map((turn) => turn.turn_id));
  }
  for (let branch = 0; ids.length < turns; branch++) {
    const parent = ids[roll(ids.length)];
    const said = await post(`/conversations/${id}/turns`, { parent, branch: `branch-${branch}`, messages: messages(100) });
    ids.push(...said.turns.map((turn) => turn.turn_id));
  }
  return id;
}
