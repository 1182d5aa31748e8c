// Search, reading and navigation.
import { expect, row, show, test, toast, turnWith } from "./page";

test("the list, the outline and the transcript show what is stored", async ({ page, tree }) => {
  await tree.say(["What is a tine?", "One prong of a **fork**."]);
  await page.goto("/");
  await page.getByRole("navigation", { name: "Conversations" }).getByText(`Tree ${tree.id}`).click();
  await expect(row(page, "What is a tine?")).toBeVisible();
  await expect(turnWith(page, "One prong of a fork.").locator("strong")).toHaveText("fork");
  await expect(page).toHaveTitle(`Tree ${tree.id} · Tine`);
});

test("every turn has a permalink, also by its hash", async ({ page, tree }) => {
  const ids = await tree.say(["One", "Two", "Three", "Four"]);
  await show(page, tree, ids[1]);
  await expect(row(page, "Two")).toHaveAttribute("aria-selected", "true");
  const { turn_hash } = await tree.get<{ turn_hash: string }>(`/turns/${ids[2]}`);
  await page.goto(`/#/c/${tree.id}/t/${turn_hash.slice(7, 19)}`);
  await expect(row(page, "Three")).toHaveAttribute("aria-selected", "true");
  await turnWith(page, "Three").getByRole("button", { name: "Copy link" }).click();
  await expect(toast(page, "Link copied")).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain(`#/c/${tree.id}/t/${ids[2]}`);
  await page.goto("/#/c/no-such-conversation");
  await expect(page.getByRole("feed")).toContainText("no-such-conversation");
});

test("search as you type opens a hit on its own branch", async ({ page, tree }) => {
  await tree.say(["One", "Two"]);
  await tree.say([`A zebrafish${tree.id.replaceAll("-", "")} swims`], { parent: "main~1", branch: "aside" });
  await page.goto("/");
  await page.keyboard.press("/");
  await page.keyboard.type(`zebrafish${tree.id.replaceAll("-", "").slice(0, 4)}`);
  const hit = page.getByRole("navigation", { name: "Conversations" }).locator("a.hit").filter({ hasText: tree.id.replaceAll("-", "") });
  await expect(hit.locator("mark")).toHaveCount(1);
  await hit.click();
  await expect(turnWith(page, "zebrafish")).toBeVisible();
  await expect(page.getByLabel("Write on aside")).toBeVisible();
});

test("the pager returns to the last visited leaf and stays at the fork", async ({ page, tree }) => {
  const long = Array.from({ length: 24 }, (_, i) => `Turn ${i} ` + "and so on, ".repeat(12));
  await tree.say(long);
  await tree.say(["Left end"], { parent: "main", branch: "left" });
  await tree.say(["Right one", "Right two", "Right end"], { parent: "main", branch: "right" });
  await tree.say(["Other right end"], { parent: "right~1", branch: "right-other" });
  await show(page, tree);
  await page.getByLabel("Branch", { exact: true }).selectOption("right");
  await expect(turnWith(page, "Right end").first()).toBeVisible();
  await page.getByLabel("Branch", { exact: true }).selectOption("left");
  await expect(turnWith(page, "Left end")).toBeVisible();
  const before = await turnWith(page, "Left end").boundingBox();
  await turnWith(page, "Left end").getByRole("button", { name: "Next version" }).click();
  await expect(turnWith(page, "Right one")).toBeVisible();
  const after = await turnWith(page, "Right one").boundingBox();
  expect(Math.abs(after!.y - before!.y)).toBeLessThan(3);
  // Not `right-other`, which is newer: `right` was visited last.
  await expect(page.getByLabel("Write on right", { exact: true })).toBeVisible();
});

test("the server stores the last visited path", async ({ browser, baseURL, page, tree }) => {
  await tree.say(["One", "Two"]);
  await tree.say(["Aside"], { parent: "main~1", branch: "aside" });
  await show(page, tree);
  const kept = page.waitForResponse((response) => response.url().includes("/visited") && response.request().method() === "PUT");
  await page.getByLabel("Branch", { exact: true }).selectOption("aside");
  await kept;
  const other = await browser.newPage({ baseURL: baseURL! });
  await other.goto(`/#/c/${tree.id}`);
  await expect(other.getByLabel("Write on aside")).toBeVisible();
  await other.close();
});

test("the outline collapses, filters with ancestors, and shows selected kinds of turns", async ({ page, tree }) => {
  await tree.say(["Question about flights", "To where?", "To Tokyo", "Found JL46"]);
  await tree.say(["No, to Rome", "Found AZ", "Good", "Booked", "Thanks"], { parent: "main~2", branch: "rome" });
  await show(page, tree);
  await page.getByLabel("Branch", { exact: true }).selectOption("main");
  await expect(row(page, "No, to Rome")).toContainText("+4");
  await expect(row(page, "Booked")).toHaveCount(0);
  await row(page, "No, to Rome").getByRole("button").click();
  await expect(row(page, "Booked")).toBeVisible();
  await page.getByLabel("Filter the outline").fill("booked");
  await expect(page.getByRole("treeitem")).toHaveCount(6);
  await expect(row(page, "Question about flights")).toBeVisible();
  await expect(row(page, "JL46")).toHaveCount(0);
  await page.keyboard.press("Escape");
  await expect(page.getByLabel("Filter the outline")).toHaveValue("");
  await page.getByLabel("Turns to show").selectOption("prompts");
  await expect(row(page, "To where?")).toHaveCount(0);
  await expect(row(page, "To Tokyo")).toBeVisible();
});

test("tool calls and thinking are collapsed, images are shown", async ({ page, tree }) => {
  const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  await tree.say([
    "Look it up",
    { role: "assistant", content: [{ type: "thinking", text: "Hm, a secret thought" }, { type: "text", text: "Looking." }, { type: "tool-use", id: "c1", name: "search_web", parameters: { q: "tine" } }] },
    { role: "tool", tool_call_id: "c1", content: '{"found":"a prong"}' },
    { role: "assistant", content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: png } }, { type: "new-kind", value: 12 }] },
  ]);
  await show(page, tree);
  const thought = page.getByRole("feed").getByText("Hm, a secret thought");
  await expect(thought).toBeHidden();
  await page.getByText("Thinking").click();
  await expect(thought).toBeVisible();
  const call = turnWith(page, "Looking.").locator("details").filter({ hasText: "search_web" });
  await expect(call).toContainText("done");
  await call.locator("summary").click();
  await expect(call).toContainText('"found": "a prong"');
  const image = page.getByAltText("Image in the conversation");
  await expect(image).toBeVisible();
  expect(await image.evaluate((element: HTMLImageElement) => element.naturalWidth)).toBe(1);
  await expect(page.getByRole("feed").getByText("new-kind", { exact: true })).toBeVisible();
});

test("code is highlighted and copied, tables are tables", async ({ page, tree }) => {
  await tree.say(["Show", "```rust\nfn main() { let x = 1; }\n```\n\n| a | b |\n|--:|---|\n| 1 | 2 |"]);
  await show(page, tree);
  await expect(page.locator("code .hljs-keyword").first()).toHaveText("fn");
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await expect(page.getByRole("button", { name: "Copied" })).toBeVisible();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain("let x = 1;");
  await expect(page.getByRole("cell", { name: "1" })).toHaveCSS("text-align", "right");
});

test("the verification mark is computed in the browser and shows a word that was changed in transit", async ({ page, tree }) => {
  await tree.say(["True words", { role: "assistant", content: [{ type: "text", text: "x" }, { type: "data", id: 0 }] }]);
  const big = JSON.stringify({ messages: [{ role: "user", content: [{ type: "data", id: 0 }] }] }).replace('"id":0', '"id":9007199254740993123');
  const answer = await tree.request.post(`/api/v1/conversations/${tree.id}/turns`, { data: big, headers: { "content-type": "application/json" } });
  expect(answer.ok()).toBeTruthy();
  await show(page, tree);
  await expect(page.getByRole("img", { name: "verified" })).toHaveCount(3);
  await page.route("**/path?*", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: (await response.text()).replace("True words", "Fake words") });
  });
  await page.reload();
  await expect(turnWith(page, "Fake words").getByRole("img", { name: "The hash does not match" })).toBeVisible();
  await expect(page.getByRole("img", { name: "verified" })).toHaveCount(2);
});

test("shortcuts navigate, the palette searches, ? shows the shortcuts", async ({ page, tree }) => {
  await tree.say(["One", "Two", "Three"]);
  await tree.say(["Three again", "Four again"], { parent: "main~1", branch: "again" });
  await show(page, tree);
  await page.getByLabel("Branch", { exact: true }).selectOption("main");
  const chosen = (text: string) => expect(page.getByRole("treeitem", { selected: true })).toContainText(text);
  await chosen("Three");
  await page.keyboard.press("ArrowLeft");
  await chosen("Two");
  await page.keyboard.press("ArrowRight");
  await chosen("Three");
  await page.keyboard.press("Alt+ArrowDown");
  await chosen("Three again");
  await expect(turnWith(page, "Four again")).toBeVisible();
  await page.keyboard.press("Alt+ArrowUp");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await chosen("One");
  await page.keyboard.press("Control+ArrowRight");
  await chosen("Three");
  await page.keyboard.press("Escape");
  await chosen("Two");
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keyboard shortcuts" })).toContainText("Split at the cursor");
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await page.keyboard.press("Control+p");
  await page.getByLabel("Search commands").fill("again");
  await page.getByRole("option").filter({ hasText: "Branch" }).first().click();
  await expect(page.getByLabel("Write on again")).toBeVisible();
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  await expect(page.getByRole("heading", { name: "Branches" })).toBeVisible();
});

test("derived conversations are nested, and tags and projects filter the list", async ({ page, tree }) => {
  await tree.say(["One"]);
  await tree.post(`/conversations/${tree.id}/derive`, { conversation_id: `${tree.id}-brief`, system_prompt: "Be brief." });
  await tree.request.patch(`/api/v1/conversations/${tree.id}`, { data: { metadata: { tags: [tree.id] } } });
  await tree.post("/projects", { project_id: `p-${tree.id}` });
  await tree.post(`/conversations?project_id=p-${tree.id}`, { title: `Elsewhere ${tree.id}` });
  await page.goto("/");
  const names = page.getByRole("navigation", { name: "Conversations" });
  await expect(names.locator("a.nested").filter({ hasText: tree.id })).toHaveCount(1);
  await page.getByRole("button", { name: `#${tree.id}` }).click();
  await expect(names.locator("a.entry")).toHaveCount(1);
  await page.getByRole("button", { name: `#${tree.id}` }).click();
  await page.getByLabel("Project").selectOption(`p-${tree.id}`);
  await expect(names.getByText(`Elsewhere ${tree.id}`)).toBeVisible();
  await expect(names.locator("a.entry")).toHaveCount(1);
  await names.getByText(`Elsewhere ${tree.id}`).click();
  await page.getByLabel("Write on main").fill("Said in another project");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("article")).toContainText("Said in another project");
});

test("the theme follows the system, or the choice of the user", async ({ page }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto("/");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.getByRole("button", { name: "Switch theme" }).click();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "light");
});

test("on a phone there is one pane and a way back", async ({ page, tree }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await tree.say(["One", "Two"]);
  await page.goto("/");
  await page.getByRole("navigation", { name: "Conversations" }).getByText(`Tree ${tree.id}`).click();
  await expect(turnWith(page, "Two")).toBeVisible();
  await expect(page.getByRole("tree")).toBeHidden();
  await page.getByRole("button", { name: "Back to outline" }).click();
  await expect(page.getByRole("tree")).toBeVisible();
  await page.getByRole("button", { name: "Back to conversations" }).click();
  await expect(page.getByLabel("Search everything")).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
});
