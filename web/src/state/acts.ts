// User actions on a conversation. Each is one request; a notice offers to undo it.
import { actor, address, call, headers, inProject, problemOf, Problem, type Schemas } from "../api/client";
import { NONE } from "../tree/tree";
import { count } from "../text/say";
import { list } from "./list.svelte";
import { freeName } from "./names";
import { open } from "./open.svelte";
import { route } from "./route.svelte";
import { ui } from "./ui.svelte";

const here = (): { conversation_id: string } => ({ conversation_id: open.id });

/** Shows a notice with an Undo button. */
async function done(text: string): Promise<void> {
  const mine = await lastOfMine();
  ui.say(text, mine === undefined ? undefined : { label: "Undo", run: () => void undo(mine) });
}

async function lastOfMine(): Promise<number | undefined> {
  const log = await call("get", "/api/v1/operations", { query: { ...here(), limit: 50 } });
  const mine = log.items.find(({ actor: by, undone, kind }) => by === actor && !undone && kind !== "undo" && kind !== "redo");
  return mine?.seq;
}

async function undo(operation: number): Promise<void> {
  await ui.trying(async () => {
    await call("post", "/api/v1/operations/{operation}/undo", { at: { operation: String(operation) }, query: here() });
    await open.refresh();
    ui.say("Undone", { label: "Redo", run: () => void redo(operation) });
  });
}

async function redo(operation: number): Promise<void> {
  await ui.trying(async () => {
    await call("post", "/api/v1/operations/{operation}/redo", { at: { operation: String(operation) }, query: here() });
    await open.refresh();
    ui.say("Redone");
  });
}

/** Undoes the last change made on this page. */
export async function undoLast(): Promise<void> {
  await ui.trying(async () => {
    const mine = await lastOfMine();
    if (mine === undefined) ui.say("Nothing to undo");
    else await undo(mine);
  });
}

/** Appends a message to the path on screen. Returns nothing if it was refused. */
export async function append(role: "user" | "assistant" | "system", text: string): Promise<Schemas["AppendedAnswer"] | undefined> {
  return ui.trying(async () => {
    const onTip = Boolean(open.branch);
    const said = await call("post", "/api/v1/conversations/{conversation_id}/turns", {
      at: here(),
      body: onTip
        ? { role, content: text, branch: open.branch, ...(open.leaf ? { expected_tip: open.leaf, on_conflict: "fork" as const } : {}) }
        : { role, content: text, parent: open.leaf || "root", branch: freeName() },
    });
    open.branch = said.branch.name;
    await open.refresh();
    open.follow(said.branch.name);
    if (said.forked) ui.say(`Someone else wrote at the same time. Your message is on branch ${said.branch.name}.`);
    void list.touch(open.id);
    return said;
  });
}

/** Saves a new version of a turn. */
export async function edit(turn: string, content: Schemas["ContentForm"]): Promise<string | undefined> {
  return ui.trying(async () => {
    const branch = open.branchOf(open.tree.find(turn));
    const made = await call("post", "/api/v1/turns/{turn}/edit", {
      at: { turn },
      query: here(),
      body: { content, ...(branch ? { branch } : {}) },
    });
    await open.refresh();
    open.select(made.turn.turn_id);
    await done("Saved as a new version. The old version is kept.");
    return made.turn.turn_id;
  });
}

export async function fork(turn: string, name: string): Promise<void> {
  await ui.trying(async () => {
    const made = await call("post", "/api/v1/turns/{turn}/fork", { at: { turn }, query: here(), body: name ? { name } : {} });
    await open.refresh();
    open.follow(made.name);
    await done(`Switched to new branch ${made.name}`);
  });
}

/** Splits a turn; the offset counts Unicode scalar values. */
export async function split(turn: string, offset: number): Promise<void> {
  await ui.trying(async () => {
    const made = await call("post", "/api/v1/turns/{turn}/split", { at: { turn }, query: here(), body: { offset } });
    await open.refresh();
    open.select(made.left.turn_id);
    await done("Split into two turns");
  });
}

export type Deletion = Schemas["DeletedAnswer"];

export async function deletion(turn: string, mode: "cascade" | "reparent", dryRun: boolean, force = false): Promise<Deletion> {
  const gone = await call("delete", "/api/v1/turns/{turn}", { at: { turn }, query: { ...here(), mode, dry_run: dryRun, force } });
  if (!dryRun) {
    open.contents.forget(turn);
    await open.refresh();
    await done(`${count(gone.turns, "turn")} deleted`);
  }
  return gone;
}

export async function revert(turn: string): Promise<void> {
  const branch = open.branchOf(open.tree.find(turn));
  if (!branch) return ui.say("No branch contains this turn. Fork here instead (f).", undefined, "bad");
  await ui.trying(async () => {
    await call("post", "/api/v1/conversations/{conversation_id}/branches/{branch}/revert", { at: { ...here(), branch }, body: { to: turn } });
    await open.refresh();
    open.follow(branch);
    await done(`Reverted ${branch} to this turn. Later turns are kept.`);
  });
}

/** Moves the branch forward again, to the selected turn or to its previous tip. */
export async function restore(): Promise<void> {
  await ui.trying(async () => {
    const ahead = open.focused !== NONE && !open.branch ? open.focus : undefined;
    const branch = open.branch || nearestBranch();
    if (!branch) return ui.say("No branch can be restored here.", undefined, "bad");
    await call("post", "/api/v1/conversations/{conversation_id}/branches/{branch}/restore", {
      at: { ...here(), branch },
      body: ahead ? { to: ahead } : {},
    });
    await open.refresh();
    open.follow(branch);
    await done(`Restored ${branch}`);
  });
}

/** The branch with the closest tip before the selected turn. */
function nearestBranch(): string {
  for (let at = open.focused; at !== NONE; at = open.tree.parent[at]!) {
    const [name] = open.tree.branches.get(at) ?? [];
    if (name) return name;
  }
  return "";
}

export async function bookmark(turn: string, name: string): Promise<void> {
  await ui.trying(async () => {
    await call("put", "/api/v1/bookmarks/{name}", { at: { name }, body: { turn, conversation_id: open.id } });
    await open.refresh();
    await done(`Bookmarked as ${name}`);
  });
}

export async function removeBookmark(name: string): Promise<void> {
  await ui.trying(async () => {
    await call("delete", "/api/v1/bookmarks/{name}", { at: { name } });
    await open.refresh();
    await done(`Bookmark ${name} deleted`);
  });
}

export async function metadata(turn: string, patch: Schemas["MetadataPatch"]): Promise<void> {
  await ui.trying(async () => {
    await call("patch", "/api/v1/turns/{turn}/metadata", { at: { turn }, query: here(), body: patch });
    open.contents.forget(turn);
    await open.refresh();
    await done("Saved");
  });
}

export async function retitle(title: string): Promise<void> {
  await ui.trying(async () => {
    await call("patch", "/api/v1/conversations/{conversation_id}", { at: here(), body: { title, force: true } });
    await open.refresh();
    void list.touch(open.id);
  });
}

export async function archive(): Promise<void> {
  await ui.trying(async () => {
    await call("post", "/api/v1/conversations/{conversation_id}/archive", { at: here(), body: { archived: true } });
    await list.load();
    const id = open.id;
    await done("Archived. The conversation is hidden from the list.");
    if (route.place.conversation === id) route.go({});
  });
}

export async function renameBranch(branch: string, name: string): Promise<void> {
  await ui.trying(async () => {
    await call("patch", "/api/v1/conversations/{conversation_id}/branches/{branch}", { at: { ...here(), branch }, body: { name } });
    if (open.branch === branch) open.branch = name;
    await open.refresh();
    await done(`Renamed ${branch} to ${name}`);
  });
}

export async function removeBranch(branch: string): Promise<void> {
  await ui.trying(async () => {
    await call("delete", "/api/v1/conversations/{conversation_id}/branches/{branch}", { at: { ...here(), branch } });
    await open.refresh();
    await done(`Branch ${branch} deleted. Its turns are kept.`);
  });
}

export async function commit(message: string): Promise<void> {
  await ui.trying(async () => {
    const branch = open.branch || open.branchOf(open.focused) || "main";
    const made = await call("post", "/api/v1/commits", { body: { conversation_id: open.id, branch, message } });
    await done(`${count(made.turn_count, "turn")} committed on ${branch}`);
    route.go({ conversation: open.id, view: "commits" });
  });
}

export async function previewMerge(from: string, into: string): Promise<Schemas["MergedAnswer"]> {
  return call("post", "/api/v1/merges", { body: { conversation_id: open.id, from, into, summary: true, dry_run: true } });
}

export async function merge(from: string, into: string, message: string, summary: string): Promise<boolean> {
  const made = await ui.trying(async () => {
    const merged = await call("post", "/api/v1/merges", {
      body: { conversation_id: open.id, from, into, ...(message ? { message } : {}), ...(summary ? { summary } : {}) },
    });
    await open.refresh();
    open.follow(into);
    await done(merged.up_to_date ? "Already up to date" : `Merged ${from} into ${into}`);
    return true;
  });
  return made ?? false;
}

export async function inject(turn: string, conversation: string, branch: string): Promise<void> {
  await ui.trying(async () => {
    const made = await call("post", "/api/v1/turns/{turn}/inject", {
      at: { turn },
      body: { conversation_id: conversation, from_conversation_id: open.id, branch },
    });
    if (conversation !== open.id) return route.go({ conversation, turn: made.turn.turn_id });
    await open.refresh();
    open.follow(branch);
    await done(`Copied to the end of ${branch}.`);
  });
}

export async function begin(title: string, systemPrompt: string): Promise<void> {
  await ui.trying(async () => {
    const made = await call("post", "/api/v1/conversations", {
      body: { ...(title ? { title } : {}), ...(systemPrompt ? { system_prompt: systemPrompt } : {}) },
    });
    await list.load();
    route.go({ conversation: made.conversation_id });
    ui.pane = "transcript";
  });
}

/** Imports a bundle made by `tine export`. */
export async function importFile(file: File): Promise<void> {
  await ui.trying(async () => {
    const response = await fetch(address("/api/v1/import", {}, inProject()), {
      method: "POST",
      headers: headers({ "content-type": "application/x-ndjson" }),
      body: file,
    });
    if (!response.ok) throw await problemOf(response);
    const taken = (await response.json()) as Schemas["ImportedAnswer"];
    await list.load();
    ui.say(`${count(taken.conversations, "conversation")} and ${count(taken.turns, "turn")} imported.`);
  });
}

export function refusal(error: unknown): string {
  return error instanceof Problem || error instanceof Error ? error.message : String(error);
}
