// Which way a tree is walked: where a person was last, else where something happened last.
import { NONE, type Tree } from "./tree";

export class Walk {
  /** The child of each turn in whose subtree something happened last. */
  private readonly latestChild: Int32Array;
  private latestFirst = NONE;

  constructor(readonly tree: Tree) {
    const { size, parent } = tree;
    const latest = Float64Array.from(tree.time);
    this.latestChild = new Int32Array(size).fill(NONE);
    // Children come after their parents, so that each is complete when its turn comes; of equal
    // ones the last counts.
    let end = -Infinity;
    for (let at = size - 1; at >= 0; at--) {
      const above = parent[at]!;
      const time = latest[at]!;
      if (above === NONE) {
        if (time > end) [end, this.latestFirst] = [time, at];
        continue;
      }
      const best = this.latestChild[above]!;
      if (best === NONE || time > latest[best]!) this.latestChild[above] = at;
      if (time > latest[above]!) latest[above] = time;
    }
  }

  /** The child that goes on from here, or NONE at a leaf. */
  next(at: number): number {
    return at === NONE ? this.latestFirst : this.latestChild[at]!;
  }

  /** The leaf to return to when a turn is chosen; `visited` tells it for versions that were read. */
  leaf(from: number, visited: ReadonlyMap<string, string>): number {
    const { tree } = this;
    const remembered = tree.find(visited.get(from === NONE ? "" : tree.ids[from]!));
    if (remembered !== NONE && (from === NONE || tree.isBelow(remembered, from))) return remembered;
    let at = from;
    for (let child = this.next(at); child !== NONE; child = this.next(at)) {
      at = child;
      const below = tree.hasSiblings(at) ? tree.find(visited.get(tree.ids[at]!)) : NONE;
      if (below !== NONE && tree.isBelow(below, at)) return below;
    }
    return at;
  }
}
