// Which way a tree is walked: where a person was last, else where something happened last.
import { NONE, type Tree } from "./tree";

export class Walk {
  /** The latest time in each turn's subtree. */
  private readonly latest: number[];

  constructor(
    readonly tree: Tree,
    /** Child of a fork → the leaf that was last visited below it. */
    private readonly visited: ReadonlyMap<string, string>,
  ) {
    this.latest = [...tree.time];
    for (let at = tree.size - 1; at >= 0; at--) {
      const parent = tree.parent[at]!;
      if (parent !== NONE && this.latest[parent]! < this.latest[at]!) this.latest[parent] = this.latest[at]!;
    }
  }

  /** The child that goes on from here, or NONE at a leaf. */
  next(at: number): number {
    let best = NONE;
    for (const child of this.tree.children(at)) {
      if (best === NONE || this.latest[child]! >= this.latest[best]!) best = child;
    }
    return best;
  }

  /** The leaf to return to when a turn is chosen. */
  leaf(from: number): number {
    const { tree } = this;
    const remembered = tree.find(this.visited.get(from === NONE ? "" : tree.ids[from]!));
    if (remembered !== NONE && (from === NONE || tree.isBelow(remembered, from))) return remembered;
    let at = from;
    for (let child = this.next(at); child !== NONE; child = this.next(at)) {
      at = child;
      const below = tree.find(this.visited.get(tree.ids[at]!));
      if (below !== NONE && tree.hasSiblings(at) && tree.isBelow(below, at)) return below;
    }
    return at;
  }
}
