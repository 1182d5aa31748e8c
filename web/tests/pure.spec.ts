// Tests without a browser: hashes, rows, offsets, streams.
import { expect, test } from "@playwright/test";
import { frames } from "../src/api/live";
import { canonical, parseExactly, turnHash } from "../src/text/canonical";
import { toHtml } from "../src/text/markdown";
import { draw } from "../src/tree/graph";
import { Offsets } from "../src/tree/offsets";
import { rows, type Wanted } from "../src/tree/rows";
import { NONE, Tree } from "../src/tree/tree";
import { Walk } from "../src/tree/walk";

/** A deterministic random number generator. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % below;
  };
}

function grown(turns: number, seed: number): Tree {
  const roll = dice(seed);
  const tree = new Tree();
  for (let i = 0; i < turns; i++) {
    const parent = i === 0 || roll(40) === 0 ? NONE : roll(4) ? i - 1 : roll(i);
    tree.add({ id: `turn-${i}`, parent, role: i % 2 ? "assistant" : "user", time: roll(1000), preview: `words of ${i}` });
  }
  tree.count();
  return tree;
}

const everything: Wanted = { onPath: new Set(), folds: new Map(), filter: "", shown: "all", hoist: NONE };

test("hashes are those of the contract", async () => {
  const first = { role: "user", content: [{ type: "text", text: "What's the best time to visit Tokyo?" }], created_at: "2024-01-15T10:30:00Z", parent_turn_hash: null };
  expect(await turnHash(first)).toBe("sha256:a9d2e63be84cb3d0dbeec588566ebea44c8e01ac5e2b3431ab5a59e41750f7a3");
  const second = { role: "assistant", content: [{ text: "Late March 🌸", type: "text" }], created_at: "2024-01-15T10:30:05Z", parent_turn_hash: await turnHash(first) };
  expect(await turnHash(second)).toBe("sha256:e38bb1328f493d3701c7848d3afcf32be8a008ecee50490cd5e2e68d18d1ae92");
});

test("canonical JSON sorts by code units and writes numbers as RFC 8785 does", () => {
  expect(canonical({ "\u20ac": 1, "\r": 2, "1": 3, "\ud83d\ude00": 4, "\ufb33": 5 })).toBe('{"\\r":2,"1":3,"€":1,"😀":4,"\ufb33":5}');
  expect(canonical([1e21, 1e-7, 0.1, -0, 100, 333333333.33333329])).toBe("[1e+21,1e-7,0.1,0,100,333333333.3333333]");
  expect(canonical("\u0007\u2028</script>")).toBe('"\\u0007\u2028</script>"');
  expect(JSON.stringify(parseExactly('{"a":[1,2.5,{"b":null}]}'))).toBe('{"a":[1,2.5,{"b":null}]}');
});

test("offsets equal the sums of heights after any changes", () => {
  const roll = dice(3);
  for (const length of [0, 1, 2, 7, 64, 1000]) {
    const sizes = Array.from({ length }, () => 1 + roll(300));
    const offsets = new Offsets(sizes);
    for (let change = 0; change < 50 && length; change++) {
      const at = roll(length);
      sizes[at] = 1 + roll(300);
      offsets.set(at, sizes[at]!);
    }
    let top = 0;
    const wrong = sizes.filter((size, at) => {
      const right = offsets.top(at) === top && offsets.at(top) === at && offsets.at(top + size - 1) === at;
      top += size;
      return !right;
    });
    expect(wrong).toEqual([]);
    expect(offsets.total).toBe(top);
  }
});

test("an expanded outline shows each turn once, after its parent, in the right column", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const tree = grown(300, seed);
    const walk = new Walk(tree);
    const onPath = new Set(tree.path(seed * 7));
    const folds = new Map(tree.ids.map((id) => [id, false]));
    const { turns, indents, rowOf, begins } = rows(walk, { ...everything, onPath, folds });
    expect(turns).toHaveLength(tree.size);
    expect(new Set(turns).size).toBe(tree.size);
    const wrong = turns.filter((turn, row) => {
      const parent = tree.parent[turn]!;
      const above = parent === NONE ? NONE : rowOf.get(parent)!;
      const column = (above === NONE ? 0 : indents[above]!) + (begins.has(row) ? 1 : 0);
      // The path on screen is never indented.
      return above >= row || indents[row] !== column || (onPath.has(turn) && indents[row] !== 0);
    });
    expect(wrong).toEqual([]);
  }
});

test("a filter keeps exactly the matching turns and their ancestors", () => {
  const tree = grown(300, 5);
  const found = rows(new Walk(tree), { ...everything, filter: "words 17" });
  const wanted = new Set<number>();
  tree.preview.forEach((text, at) => {
    if (text.includes("17")) for (const turn of tree.path(at)) wanted.add(turn);
  });
  expect(new Set(found.turns)).toEqual(wanted);
});

test("a walk follows the most recent change or the last visited leaf", () => {
  for (let seed = 1; seed <= 20; seed++) {
    const tree = grown(200, seed);
    const walk = new Walk(tree);
    const latest = (at: number): number => Math.max(tree.time[at]!, ...[...tree.children(at)].map(latest));
    const wrong = tree.ids.filter((id, at) => {
      const children = [...tree.children(at)];
      const next = walk.next(at);
      const follows = children.length ? latest(next) === Math.max(...children.map(latest)) : next === NONE;
      const leaf = walk.leaf(at, new Map());
      return !follows || !tree.isBelow(leaf, at) || walk.leaf(at, new Map([[id, tree.ids[leaf]!]])) !== leaf;
    });
    expect(wrong).toEqual([]);
  }
});

test("the graph has one knot for each mark and stays small", () => {
  const tree = grown(5000, 9);
  const path = tree.path(tree.size - 1);
  const drawing = draw(tree, path, path.at(-1)!);
  expect(drawing.knots.length).toBeLessThan(200);
  expect(new Set(drawing.knots.map(({ turn }) => turn)).size).toBe(drawing.knots.length);
});

test("frames come whole out of a stream that is cut anywhere", async () => {
  const bytes = new TextEncoder().encode(': hello\nid: 7\n\nid: 8\nevent: delta\ndata: {"text":"ü🌸"}\n\n: \n\ndata: a\ndata: b\n\n');
  for (let size = 1; size <= bytes.length; size += 3) {
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
        controller.close();
      },
    });
    const seen = [];
    for await (const frame of frames(stream)) seen.push(frame);
    expect(seen).toEqual([
      { id: "7", event: "message", data: "" },
      { id: "8", event: "delta", data: '{"text":"ü🌸"}' },
      { id: "", event: "message", data: "" },
      { id: "", event: "message", data: "a\nb" },
    ]);
  }
});

test("Markdown is text: no raw tag, unsafe URL or attribute gets through", () => {
  for (const said of ["<b onclick=x>", "[a](javascript:alert(1))", "[a](JaVaScRiPt:alert(1))", "[a](data:text/html,x)", "![a](javascript:x)", "<javascript:alert(1)>", "[a](vbscript:x)", "[a](\u0001javascript:alert(1))"]) {
    const html = toHtml(said);
    expect(html).not.toMatch(/href="\s*(javascript|data|vbscript)/i);
    expect(html).not.toMatch(/<(?!\/?(p|a|br|em|strong)\b)/);
    expect(html).not.toMatch(/<[^>]+ on\w+=/);
  }
  expect(toHtml("| a |\n|--:|\n| 1 |")).not.toContain("style=");
});
