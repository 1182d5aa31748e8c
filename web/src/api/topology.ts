// The tree of a conversation, page by page.
import { Tree } from "../tree/tree";
import { call, type Schemas } from "./client";

const PAGE = 1000;

function add(tree: Tree, row: Schemas["TopologyRow"]): void {
  tree.add({
    id: row.turn_id,
    parent: row.parent_id ?? null,
    role: row.role,
    time: row.created_at,
    preview: row.preview,
    title: row.title ?? null,
    tags: row.tags,
    branches: row.branches,
    bookmarks: row.bookmarks,
    partial: row.status === "partial",
  });
}

export async function readTree(conversation: string): Promise<Tree> {
  const tree = new Tree();
  let cursor: string | undefined;
  do {
    const page = await call("get", "/api/v1/conversations/{conversation_id}/topology", {
      at: { conversation_id: conversation },
      query: { limit: PAGE, ...(cursor ? { cursor } : {}) },
    });
    for (const row of page.turns) add(tree, row);
    cursor = page.next ?? undefined;
  } while (cursor);
  tree.count();
  return tree;
}
