// Other writers.
import { expect, row, show, test, toast, turnWith } from "./page";

test("turns of an agent over MCP appear one by one", async ({ page, tree }) => {
  await show(page, tree);
  const headers = { accept: "application/json, text/event-stream", "x-tine-actor": "agent-x" };
  const hello = { jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "agent-x", version: "1" } } };
  const session = (await tree.request.post("/mcp", { data: hello, headers })).headers()["mcp-session-id"]!;
  for (const [turn, role, text] of [["1", "user", "Asked by an agent"], ["1", "assistant", "Answered by it"]] as const) {
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "store_conversation_turn", arguments: { conversation_id: tree.id, turn_id: turn, role, content: text } } };
    const answer = await tree.request.post("/mcp", { data: call, headers: { ...headers, "mcp-session-id": session } });
    expect(answer.ok(), await answer.text()).toBeTruthy();
    await expect(turnWith(page, text)).toBeVisible();
  }
  await expect(page.getByText("● agent-x").first()).toBeVisible();
});

test("a second writer is shown, and no message is lost", async ({ page, tree }) => {
  await tree.say(["One", "Two"]);
  await show(page, tree);
  // The other writer is first, and the page does not know yet.
  let release = (): void => {};
  const heard = new Promise<void>((done) => (release = done));
  await page.route("**/outline?*", async (route) => {
    await heard;
    await route.continue();
  });
  await tree.say(["Theirs"], {}, "somebody");
  const sent = page.waitForResponse((response) => response.request().method() === "POST");
  await page.getByLabel("Write on main").fill("Mine");
  await page.keyboard.press("Enter");
  await sent;
  release();
  await expect(toast(page, "Someone else wrote at the same time")).toBeVisible();
  expect(await tree.branch("main")).toEqual(["One", "Two", "Theirs"]);
  expect(await tree.branch("main-1").catch(() => tree.branch("main-2"))).toEqual(["One", "Two", "Mine"]);
  await expect(page.getByText("somebody is writing here").or(page.getByText("● somebody")).first()).toBeVisible();
});

test("the list follows changes made elsewhere", async ({ page, tree }) => {
  await page.goto("/");
  const names = page.getByRole("navigation", { name: "Conversations" });
  await expect(names.getByText(`Tree ${tree.id}`)).toBeVisible();
  await tree.post("/conversations", { conversation_id: `${tree.id}-more`, title: `More of ${tree.id}` });
  await expect(names.getByText(`More of ${tree.id}`)).toBeVisible();
  await tree.request.patch(`/api/v1/conversations/${tree.id}-more`, { data: { title: `Renamed ${tree.id}`, force: true } });
  await expect(names.getByText(`Renamed ${tree.id}`)).toBeVisible();
});

test("a deleted turn disappears from other views, and the selection stays nearby", async ({ page, tree }) => {
  const ids = await tree.say(["One", "Two", "Three"]);
  await show(page, tree, ids[2]);
  await tree.request.delete(`/api/v1/turns/${ids[2]}`, { headers: { "x-tine-actor": "somebody" } });
  await expect(row(page, "Three")).toHaveCount(0);
  await expect(row(page, "Two")).toHaveAttribute("aria-selected", "true");
});
