// The tree of a conversation without its content, as arrays indexed by turn number: 100,000 turns
// take little memory, and every walk is a loop over arrays.

export const NONE = -1;

export interface NewTurn {
  id: string;
  parent: number;
  role: string;
  /** Milliseconds since 1970. */
  time: number;
  preview: string;
  model?: string | undefined;
  tokens?: number | undefined;
}

/** Turns in columns, parents before their children. */
export interface Columns {
  ids: string[];
  parents: number[];
  roles: string[];
  times: number[];
  previews: string[];
}

export class Tree {
  ids: string[] = [];
  parent: number[] = [];
  role: string[] = [];
  time: number[] = [];
  preview: string[] = [];
  firstChild: number[] = [];
  private lastChild: number[] = [];
  nextSibling: number[] = [];
  /** Number of descendants. */
  descendants: number[] = [];
  readonly title = new Map<number, string>();
  readonly tags = new Map<number, string[]>();
  readonly model = new Map<number, string>();
  readonly tokens = new Map<number, number>();
  readonly partial = new Set<number>();
  branches: ReadonlyMap<number, string[]> = new Map();
  bookmarks: ReadonlyMap<number, string[]> = new Map();
  private readonly numbers = new Map<string, number>();
  /** First turns of the conversation, in order. */
  first = NONE;
  private last = NONE;

  get size(): number {
    return this.ids.length;
  }

  /** Returns a turn's number, or NONE. */
  find(id: string | null | undefined): number {
    return id ? (this.numbers.get(id) ?? NONE) : NONE;
  }

  /** Creates a tree that takes ownership of the columns. */
  static of(columns: Columns): Tree {
    const tree = new Tree();
    const { length } = columns.ids;
    [tree.ids, tree.parent, tree.role, tree.time, tree.preview] = [columns.ids, columns.parents, columns.roles, columns.times, columns.previews];
    for (const column of ["firstChild", "lastChild", "nextSibling"] as const) tree[column] = new Array<number>(length).fill(NONE);
    tree.descendants = new Array<number>(length).fill(0);
    for (let number = 0; number < length; number++) {
      tree.numbers.set(tree.ids[number]!, number);
      tree.link(number, tree.parent[number]!);
    }
    return tree;
  }

  /** Adds a turn after its siblings; its parent must exist. */
  add(turn: NewTurn): number {
    const number = this.ids.length;
    const { parent } = turn;
    this.numbers.set(turn.id, number);
    this.ids.push(turn.id);
    this.parent.push(parent);
    this.role.push(turn.role);
    this.time.push(turn.time);
    this.preview.push(turn.preview);
    this.firstChild.push(NONE);
    this.lastChild.push(NONE);
    this.nextSibling.push(NONE);
    this.descendants.push(0);
    if (turn.model) this.model.set(number, turn.model);
    if (turn.tokens) this.tokens.set(number, turn.tokens);
    this.link(number, parent);
    return number;
  }

  /** Links a turn after its siblings. */
  private link(number: number, parent: number): void {
    const before = parent === NONE ? this.last : this.lastChild[parent]!;
    if (before !== NONE) this.nextSibling[before] = number;
    else if (parent === NONE) this.first = number;
    else this.firstChild[parent] = number;
    if (parent === NONE) this.last = number;
    else this.lastChild[parent] = number;
  }

  /** Counts descendants; call it after all turns were added. */
  count(): void {
    this.descendants.fill(0);
    for (let at = this.size - 1; at >= 0; at--) {
      const parent = this.parent[at]!;
      if (parent !== NONE) this.descendants[parent]! += this.descendants[at]! + 1;
    }
  }

  /** Returns the same tree as a new object, for reactivity. */
  renewed(): Tree {
    return Object.assign(new Tree(), this);
  }

  *children(of: number): Generator<number> {
    for (let at = of === NONE ? this.first : this.firstChild[of]!; at !== NONE; at = this.nextSibling[at]!) yield at;
  }

  /** The children of the parent, including the turn itself. */
  siblings(of: number): number[] {
    return [...this.children(this.parent[of]!)];
  }

  hasSiblings(of: number): boolean {
    const parent = this.parent[of]!;
    const first = parent === NONE ? this.first : this.firstChild[parent]!;
    return this.nextSibling[first] !== NONE;
  }

  isFork(at: number): boolean {
    const first = this.firstChild[at]!;
    return first !== NONE && this.nextSibling[first] !== NONE;
  }

  /** The path from the root to the turn. */
  path(to: number): number[] {
    const path: number[] = [];
    for (let at = to; at !== NONE; at = this.parent[at]!) path.push(at);
    return path.reverse();
  }

  isBelow(at: number, ancestor: number): boolean {
    for (; at !== NONE; at = this.parent[at]!) if (at === ancestor) return true;
    return false;
  }

  /** The last common turn of two paths. */
  common(a: number, b: number): number {
    const seen = new Set(this.path(a));
    for (let at = b; at !== NONE; at = this.parent[at]!) if (seen.has(at)) return at;
    return NONE;
  }

  label(at: number): string {
    return this.title.get(at) ?? this.preview[at] ?? "";
  }
}
