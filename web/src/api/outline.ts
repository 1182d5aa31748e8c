// The outline of a conversation in columns, and updates to it.
import { NONE, Tree } from "../tree/tree";
import { call, type AnswerOf } from "./client";

type Columns = AnswerOf<"/api/v1/conversations/{conversation_id}/outline", "get">;
export type Branch = Columns["branches"][number];

export interface Outline {
  tree: Tree;
  branches: Branch[];
  /** The last operation it includes. */
  seq: number;
}

const ROLES: Record<string, string> = { u: "user", a: "assistant", t: "tool", s: "system" };
/** In `parents`, marks a turn given by its id alone. */
const BY_ID = -2;

async function ask(conversation: string, since?: number, cursor?: string): Promise<Columns> {
  return call("get", "/api/v1/conversations/{conversation_id}/outline", {
    at: { conversation_id: conversation },
    query: { ...(since === undefined ? {} : { since }), ...(cursor ? { cursor } : {}) },
  });
}

export async function readOutline(conversation: string): Promise<Outline> {
  const pages = [await ask(conversation)];
  while (pages.at(-1)!.next) pages.push(await ask(conversation, undefined, pages.at(-1)!.next!));
  return whole(pages);
}

/** Applies changes to the tree, or loads it again if too much has changed. */
export async function readOn(conversation: string, known: Outline): Promise<Outline> {
  const page = await ask(conversation, known.seq);
  if (page.next) return readOutline(conversation);
  return page.whole ? whole([page]) : finished(add(known.tree, page).renewed(), page);
}

/** Builds a tree from all pages; row numbers continue across pages. */
function whole(pages: Columns[]): Outline {
  const all = <T>(column: (page: Columns) => T[]): T[] => (pages.length === 1 ? column(pages[0]!) : pages.flatMap(column));
  const tree = Tree.of({
    ids: all((page) => page.ids),
    parents: all((page) => page.parents),
    roles: all((page) => Array.from(page.roles, (letter) => ROLES[letter] ?? "system")),
    times: all((page) => page.times),
    previews: all((page) => page.previews),
  });
  let before = 0;
  for (const page of pages) {
    for (const [row, title] of Object.entries(page.titles)) tree.title.set(Number(row), title);
    for (const [row, tags] of Object.entries(page.tags)) tree.tags.set(Number(row), tags);
    for (const row of page.partial) tree.partial.add(row);
    page.models.forEach((model, i) => {
      if (typeof model === "number") tree.model.set(before + i, page.model_names[model]!);
    });
    page.tokens.forEach((tokens, i) => {
      if (tokens) tree.tokens.set(before + i, tokens);
    });
    before += page.ids.length;
  }
  return finished(tree, pages.at(-1)!);
}

/** Adds new turns and updates labels of existing ones. */
function add(tree: Tree, page: Columns): Tree {
  const numbers: number[] = [];
  page.ids.forEach((id, i) => {
    const said = page.parents[i]!;
    const parent = said === BY_ID ? tree.find(page.parent_ids[i]) : said < 0 ? NONE : numbers[said]!;
    const model = page.models[i];
    let number = tree.find(id);
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
    numbers.push(number);
    label(tree.title, number, page.titles[i]);
    label(tree.tags, number, page.tags[i]);
  });
  for (const row of page.partial) tree.partial.add(numbers[row]!);
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

/** Names by turn. */
function at(tree: Tree, named: { name: string; turn_id?: string | null }[]): Map<number, string[]> {
  const names = new Map<number, string[]>();
  for (const { name, turn_id } of named) {
    const turn = tree.find(turn_id);
    if (turn !== NONE) names.set(turn, [...(names.get(turn) ?? []), name]);
  }
  return names;
}
