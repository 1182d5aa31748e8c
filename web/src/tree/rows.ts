// The rows of the outline in display order. A chain stays in its column. At a fork, the other versions
// come first, indented and collapsed; the path on screen continues below them in its own column.
import { NONE, type Tree } from "./tree";
import type { Walk } from "./walk";

export type Shown = "all" | "prompts" | "no-tools" | "labelled";

export interface Rows {
  turns: number[];
  indents: number[];
  /** Rows that start another version. */
  begins: Set<number>;
  /** Turns whose descendants are hidden. */
  folded: Set<number>;
  /** Turn → its row. */
  rowOf: Map<number, number>;
}

export interface Wanted {
  onPath: ReadonlySet<number>;
  /** Turn id → collapsed or expanded by the user. */
  folds: ReadonlyMap<string, boolean>;
  filter: string;
  shown: Shown;
  /** Show only this turn and its descendants. */
  hoist: number;
}

/** Versions with more descendants start collapsed. */
const OPEN_BELOW = 2;

function labelled(tree: Tree, at: number): boolean {
  return tree.title.has(at) || tree.tags.has(at) || tree.branches.has(at) || tree.bookmarks.has(at);
}

function fits(tree: Tree, at: number, shown: Shown): boolean {
  if (shown === "prompts") return tree.role[at] === "user";
  if (shown === "no-tools") return tree.role[at] !== "tool";
  return shown === "labelled" ? labelled(tree, at) : true;
}

/** Texts to filter by, computed once per tree. */
const texts = new WeakMap<Tree, string[]>();

function textsOf(tree: Tree): string[] {
  const known = texts.get(tree);
  if (known) return known;
  const made = tree.preview.map((preview, at) => {
    if (!labelled(tree, at)) return `${preview} ${tree.role[at]}`.toLowerCase();
    const labels = [tree.title.get(at), ...(tree.tags.get(at) ?? []), ...(tree.branches.get(at) ?? []), ...(tree.bookmarks.get(at) ?? [])];
    return `${preview} ${labels.join(" ")} ${tree.role[at]}`.toLowerCase();
  });
  texts.set(tree, made);
  return made;
}

/** The matching turns and their ancestors. */
function matching(tree: Tree, filter: string): Uint8Array {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const all = textsOf(tree);
  const keep = new Uint8Array(tree.size);
  for (let at = 0; at < tree.size; at++) {
    const text = all[at]!;
    if (!words.every((word) => text.includes(word))) continue;
    for (let up = at; up !== NONE && !keep[up]; up = tree.parent[up]!) keep[up] = 1;
  }
  return keep;
}

export function rows(walk: Walk, wanted: Wanted): Rows {
  const { tree } = walk;
  const { onPath, folds, shown, hoist } = wanted;
  const keep = wanted.filter.trim() ? matching(tree, wanted.filter) : null;
  const out: Rows = { turns: [], indents: [], begins: new Set(), folded: new Set(), rowOf: new Map() };
  const stack: { at: number; indent: number; begins: boolean }[] = [];

  const push = (parent: number, indent: number): void => {
    // Most turns have one child.
    const only = parent === NONE ? NONE : tree.firstChild[parent]!;
    if (only !== NONE && tree.nextSibling[only] === NONE) {
      if (!keep || keep[only]) stack.push({ at: only, indent, begins: false });
      return;
    }
    const children = parent === NONE && hoist !== NONE ? [hoist] : [...tree.children(parent)];
    const live = keep ? children.filter((child) => keep[child]) : children;
    if (live.length === 0) return;
    const active = live.find((child) => onPath.has(child));
    const next = active ?? walk.next(parent);
    const main = live.includes(next) ? next : live.at(-1)!;
    stack.push({ at: main, indent, begins: false });
    for (let i = live.length - 1; i >= 0; i--) {
      if (live[i] !== main) stack.push({ at: live[i]!, indent: indent + 1, begins: true });
    }
  };

  push(NONE, 0);
  while (stack.length) {
    const { at, indent, begins } = stack.pop()!;
    if (fits(tree, at, shown)) {
      out.rowOf.set(at, out.turns.length);
      if (begins) out.begins.add(out.turns.length);
      out.turns.push(at);
      out.indents.push(indent);
    }
    const said = folds.get(tree.ids[at]!);
    const folded = !keep && (said ?? (begins && !onPath.has(at) && tree.descendants[at]! > OPEN_BELOW));
    if (folded && tree.firstChild[at] !== NONE) out.folded.add(at);
    else push(at, indent);
  }
  return out;
}
