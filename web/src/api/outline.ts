// The tree of a conversation in columns, and what has come to it since.
import { NONE, Tree } from "../tree/tree";
import { call, type AnswerOf } from "./client";

type Columns = AnswerOf<"/api/v1/conversations/{conversation_id}/outline", "get">;
export type Branch = Columns["branches"][number];

export interface Outline {
  tree: Tree;
  branches: Branch[];
  /** The operation up to which it tells. */
  seq: number;
}

const ROLES: Record<string, string> = { u: "user", a: "assistant", t: "tool", s: "system" };
/** In `parents`, a turn of which only the id is given. */
const BY_ID = -2;

async function ask(conversation: string, since?: number, cursor?: string): Promise<Columns> {
  return call("get", "/api/v1/conversations/{conversation_id}/outline", {
    at: { conversation_id: conversation },
    query: { ...(since === undefined ? {} : { since }), ...(cursor ? { cursor } : {}) },
  });
}

export async function readOutline(conversation: string): Promise<Outline> {
  const tree = new Tree();
  let page = await ask(conversation);
  add(tree, page);
  while (page.next) {
    page = await ask(conversation, undefined, page.next);
    add(tree, page);
  }
  return finished(tree, page);
}

/** What is new, in the same tree; or another one where more has changed than was said. */
export async function readOn(conversation: string, known: Outline): Promise<Outline> {
  const page = await ask(conversation, known.seq);
  if (page.whole || page.next) return page.whole && !page.next ? finished(add(new Tree(), page), page) : readOutline(conversation);
  return finished(add(known.tree, page).renewed(), page);
}

function add(tree: Tree, page: Columns): Tree {
  // Rows count over all pages.
  const before = page.whole ? tree.size : 0;
  const numbers: number[] = [];
  page.ids.forEach((id, i) => {
    const said = page.parents[i]!;
    const row = String(before + i);
    const parent = said === BY_ID ? tree.find(page.parent_ids[row]) : said < 0 ? NONE : page.whole ? said : numbers[said]!;
    const model = page.models[i];
    let number = page.whole ? NONE : tree.find(id);
    if (number === NONE)
      number = tree.add({
        id,
        parent,
        role: ROLES[page.roles[i]!] ?? "system",
        time: page.times[i]!,
        preview: page.previews[i]!,
        model: typeof model === "number" ? page.model_names[model] : undefined,
        tokens: page.tokens[i] ?? undefined,
      });
    if (!page.whole) numbers.push(number);
    if (page.whole) return;
    label(tree.title, number, page.titles[row]);
    label(tree.tags, number, page.tags[row]);
  });
  if (page.whole) {
    for (const [row, title] of Object.entries(page.titles)) tree.title.set(Number(row), title);
    for (const [row, tags] of Object.entries(page.tags)) tree.tags.set(Number(row), tags);
  }
  for (const row of page.partial) tree.partial.add(page.whole ? row : numbers[row]!);
  return tree;
}

function label<T>(labels: Map<number, T>, turn: number, value: T | undefined): void {
  if (value === undefined) labels.delete(turn);
  else labels.set(turn, value);
}

function finished(tree: Tree, page: Columns): Outline {
  tree.branches = at(tree, page.branches);
  tree.bookmarks = at(tree, page.bookmarks);
  tree.count();
  return { tree, branches: page.branches, seq: page.seq };
}

/** Names by the turn that they are at. */
function at(tree: Tree, named: { name: string; turn_id?: string | null }[]): Map<number, string[]> {
  const names = new Map<number, string[]>();
  for (const { name, turn_id } of named) {
    const turn = tree.find(turn_id);
    if (turn !== NONE) names.set(turn, [...(names.get(turn) ?? []), name]);
  }
  return names;
}
