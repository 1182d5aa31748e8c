// Every action on a conversation, done on the page and checked over the API.
import { choose, dialog, expect, row, show, test, toast, turnWith } from "./page";

test("messages are appended one after the other", async ({ page, tree }) => {
  await show(page, tree);
  const composer = page.getByLabel("Write on main");
  await composer.fill("First words");
  await composer.press("Enter");
  await expect(turnWith(page, "First words")).toBeVisible();
  await page.getByLabel("Role").selectOption("assistant");
  await composer.fill("An answer\nin two lines");
  await composer.press("Enter");
  await expect(turnWith(page, "in two lines")).toBeVisible();
  await expect(composer).toHaveValue("");
  expect(await tree.branch("main")).toEqual(["First words", "An answer\nin two lines"]);
});

test("an edit is a new version beside the old one", async ({ page, tree }) => {
  await tree.say(["Tokyo in March?", "Yes.", "Book it."]);
  await show(page, tree);
  await choose(page, "Tokyo in March?");
  await page.keyboard.press("e");
  const field = page.getByLabel("New version");
  await expect(field).toHaveValue("Tokyo in March?");
  await field.fill("Tokyo in April?");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(toast(page, "new version")).toBeVisible();
  const turn = turnWith(page, "Tokyo in April?");
  await expect(turn.getByText("2/2")).toBeVisible();
  expect(await tree.branch("main")).toEqual(["Tokyo in April?"]);
  await turn.getByRole("button", { name: "Previous version" }).click();
  await expect(turnWith(page, "Book it.")).toBeVisible();
  await toast(page, "new version").getByRole("button", { name: "Undo" }).click();
  await expect(toast(page, "Undone")).toBeVisible();
  expect(await tree.branch("main")).toEqual(["Tokyo in March?", "Yes.", "Book it."]);
});

test("an edit keeps the other blocks of a turn", async ({ page, tree }) => {
  const call = { type: "tool-use", id: "1", name: "look", parameters: { big: 1 } };
  await tree.say(["Look", { role: "assistant", content: [{ type: "text", text: "I look." }, call] }]);
  await show(page, tree);
  await choose(page, "I look.");
  await page.keyboard.press("e");
  await page.getByLabel("New version").fill("I look again.");
  await page.getByRole("button", { name: "Save" }).click();
  await expect(turnWith(page, "I look again.")).toBeVisible();
  const turn = await tree.get<{ content: unknown }>(`/turns/main?conversation_id=${tree.id}`);
  expect(turn.content).toEqual([{ type: "text", text: "I look again." }, call]);
});

test("a fork is a branch, and the next message goes there", async ({ page, tree }) => {
  await tree.say(["One", "Two", "Three", "Four"]);
  await show(page, tree);
  await choose(page, "Two");
  await page.keyboard.press("f");
  await dialog(page).getByLabel("Name of the new branch").fill("aside");
  await dialog(page).getByRole("button", { name: "Fork" }).click();
  await expect(page.getByLabel("Write on aside")).toBeVisible();
  await page.getByLabel("Write on aside").fill("Another three");
  await page.keyboard.press("Enter");
  await expect(turnWith(page, "Another three")).toBeVisible();
  expect(await tree.branch("aside")).toEqual(["One", "Two", "Another three"]);
  expect(await tree.branch("main")).toEqual(["One", "Two", "Three", "Four"]);
});

test("writing after an earlier turn creates a branch", async ({ page, tree }) => {
  await tree.say(["One", "Two"]);
  const [aside] = await tree.say(["Left behind"], { parent: "main~1", branch: "gone" });
  await tree.request.delete(`/api/v1/conversations/${tree.id}/branches/gone`);
  await show(page, tree, aside);
  await page.getByLabel("Write on a new branch from here").fill("Taken up again");
  await page.keyboard.press("Enter");
  await expect(page.getByLabel("Write on branch")).toBeVisible();
  expect(await tree.branch("branch")).toEqual(["One", "Left behind", "Taken up again"]);
});

test("a turn is split at the cursor", async ({ page, tree }) => {
  await tree.say(["Ask 🌸 one. Ask two."]);
  await show(page, tree);
  await choose(page, "Ask 🌸 one.");
  await page.keyboard.press("s");
  const field = page.getByLabel("Place the cursor where to split");
  await field.press("Home");
  for (const _ of "Ask x one. ") await field.press("ArrowRight");
  await page.getByRole("button", { name: "Split", exact: true }).click();
  await expect(toast(page, "two turns")).toBeVisible();
  expect(await tree.branch("main")).toEqual(["Ask 🌸 one. ", "Ask two."]);
  await expect(page.getByRole("article")).toHaveCount(2);
  await expect(page.getByRole("img", { name: "verified" })).toHaveCount(2);
});

test("a deletion is previewed, and undo brings the turns back", async ({ page, tree }) => {
  await tree.say(["Keep", "this", "Delete", "me", "and", "all"]);
  await tree.request.put("/api/v1/bookmarks/" + tree.id, { data: { turn: "main", conversation_id: tree.id } });
  await show(page, tree);
  await choose(page, "Delete");
  await page.keyboard.press("Delete");
  await expect(dialog(page)).toContainText("4 turns will be hidden");
  await expect(dialog(page)).toContainText("Branch main moves back");
  await dialog(page).getByLabel("Only this turn").check();
  await expect(dialog(page)).toContainText("1 turn will be hidden");
  await dialog(page).getByLabel("everything below it").check();
  await expect(dialog(page)).toContainText("4 turns will be hidden");
  await dialog(page).getByRole("button", { name: "Delete" }).click();
  await expect(row(page, "Delete")).toHaveCount(0);
  expect(await tree.branch("main")).toEqual(["Keep", "this"]);
  await toast(page, "4 turns deleted").getByRole("button", { name: "Undo" }).click();
  await expect(row(page, "Delete")).toHaveCount(1);
  expect(await tree.branch("main")).toHaveLength(6);
});

test("a branch is reverted and restored", async ({ page, tree }) => {
  await tree.say(["One", "Two", "Three", "Four"]);
  await show(page, tree);
  await choose(page, "Two");
  await page.keyboard.press("Shift+R");
  await expect(toast(page, "Reverted main")).toBeVisible();
  expect(await tree.branch("main")).toEqual(["One", "Two"]);
  await expect(row(page, "Four")).toHaveCount(1);
  await page.keyboard.press("Shift+F");
  await expect(toast(page, "Restored main")).toBeVisible();
  expect(await tree.branch("main")).toEqual(["One", "Two", "Three", "Four"]);
});

test("bookmark, tags and title are saved and shown", async ({ page, tree }) => {
  await tree.say(["One", "Two"]);
  await show(page, tree);
  await choose(page, "Two");
  await page.keyboard.press("b");
  await dialog(page).getByLabel("Name").fill(`mark-${tree.id}`);
  await dialog(page).getByRole("button", { name: "Bookmark" }).click();
  await expect(row(page, "Two")).toContainText(`★ mark-${tree.id}`);
  await page.keyboard.press("t");
  await dialog(page).getByLabel("Tags").fill("good, to keep");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await expect(row(page, "Two")).toContainText("#to keep");
  await page.keyboard.press("Shift+T");
  await dialog(page).getByLabel("Title").fill("The answer");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await expect(row(page, "The answer")).toHaveCount(1);
  const turn = await tree.get<{ metadata: object }>(`/turns/mark-${tree.id}?conversation_id=${tree.id}`);
  expect(turn.metadata).toMatchObject({ title: "The answer", tags: ["good", "to keep"] });
  await page.getByRole("article").filter({ hasText: "The answer" }).getByRole("button", { name: `★ mark-${tree.id}` }).click();
  await expect(toast(page, "deleted")).toBeVisible();
});

test("a commit seals turns and shows their facets", async ({ page, tree }) => {
  await tree.say(["When is the best time to visit Tokyo?", "Late March."]);
  await show(page, tree);
  await page.keyboard.press("Shift+C");
  await dialog(page).getByLabel("Message").fill("Season is settled");
  await dialog(page).getByRole("button", { name: "Commit" }).click();
  await expect(page.getByText("Season is settled")).toBeVisible();
  await expect(page.locator("li").filter({ hasText: "Season is settled" })).toContainText("Tokyo");
  const commits = await tree.get<{ items: { message: string; turn_count: number }[] }>(`/conversations/${tree.id}/commits`);
  expect(commits.items).toMatchObject([{ message: "Season is settled", turn_count: 2 }]);
});

test("a merge adds the edited summary", async ({ page, tree }) => {
  await tree.say(["Where shall we stay in Tokyo?", "In Shinjuku."]);
  await tree.say(["And a ryokan?", "Kanoya in Asakusa has one."], { parent: "main", branch: "ryokan" });
  await show(page, tree);
  await page.getByLabel("Branch", { exact: true }).selectOption("main");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Merge" }).click();
  await dialog(page).getByLabel("From branch").selectOption("ryokan");
  const summary = dialog(page).getByLabel("Summary of the merged branch");
  await expect(summary).not.toHaveValue("");
  await summary.fill("There is a ryokan in Asakusa.");
  await dialog(page).getByRole("button", { name: "Merge" }).click();
  await expect(toast(page, "into main")).toBeVisible();
  expect((await tree.branch("main")).at(-1)).toContain("There is a ryokan in Asakusa.");
});

test("a turn is copied to another branch", async ({ page, tree }) => {
  await tree.say(["One", "Two"]);
  await tree.say(["Other"], { parent: "root", branch: "other" });
  await show(page, tree);
  await page.getByLabel("Branch", { exact: true }).selectOption("main");
  await choose(page, "Two");
  await page.keyboard.press("y");
  await dialog(page).getByLabel("To the end of").selectOption("other");
  await dialog(page).getByRole("button", { name: "Copy turn" }).click();
  await expect(page.getByLabel("Write on other")).toBeVisible();
  expect(await tree.branch("other")).toEqual(["Other", "Two"]);
});

test("without a model, another reply is written by the user", async ({ page, tree }) => {
  await tree.say(["Question", "Poor answer"]);
  await show(page, tree);
  await choose(page, "Poor answer");
  await page.keyboard.press("r");
  await page.getByLabel("New version").fill("Good answer");
  await page.getByLabel("New version").press("Control+Enter");
  await expect(turnWith(page, "Good answer").getByText("2/2")).toBeVisible();
  expect(await tree.branch("main")).toEqual(["Question", "Good answer"]);
});

test("branches are renamed and deleted, and their turns are kept", async ({ page, tree }) => {
  await tree.say(["One", "Two"]);
  await tree.say(["Three"], { parent: "main", branch: "aside" });
  await page.goto(`/#/c/${tree.id}/branches`);
  await page.getByRole("button", { name: "Rename aside" }).click();
  await dialog(page).getByLabel("New name").fill("beside");
  await dialog(page).getByRole("button", { name: "Rename" }).click();
  await expect(page.getByRole("button", { name: "Delete branch beside" })).toBeVisible();
  await page.getByRole("button", { name: "Delete branch beside" }).click();
  await expect(toast(page, "Its turns are kept")).toBeVisible();
  expect(await tree.branches()).toEqual(["main"]);
  await expect(row(page, "Three")).toHaveCount(1);
});

test("a conversation is created, renamed and archived", async ({ page }) => {
  await page.goto("/");
  await page.getByRole("button", { name: "New conversation" }).first().click();
  const title = `Begun ${Date.now()}`;
  await dialog(page).getByLabel("Title").fill(title);
  await dialog(page).getByLabel("System prompt").fill("Be brief.");
  await dialog(page).getByRole("button", { name: "Create" }).click();
  await expect(page.getByRole("navigation", { name: "Conversations" }).getByText(title)).toBeVisible();
  await expect(page.getByText("System prompt")).toBeVisible();
  await page.getByRole("button", { name: title }).click();
  await dialog(page).getByLabel("Title").fill(`${title}, renamed`);
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("navigation", { name: "Conversations" }).getByText(`${title}, renamed`)).toBeVisible();
  await page.keyboard.press("Control+p");
  await page.getByLabel("Search commands").fill("archive");
  await page.keyboard.press("Enter");
  await expect(toast(page, "Archived")).toBeVisible();
  await expect(page.getByRole("navigation", { name: "Conversations" }).getByText(`${title}, renamed`)).toHaveCount(0);
});

test("a bundle is imported, and another file is refused with a reason", async ({ page, tree }) => {
  await tree.say(["Kept in a bundle", "Yes"]);
  const bundle = await (await tree.request.get(`/api/v1/export?conversation_id=${tree.id}`)).body();
  await page.goto("/");
  const field = page.getByLabel("Bundle to import");
  await field.setInputFiles({ name: "a.jsonl", mimeType: "application/x-ndjson", buffer: bundle });
  await expect(toast(page, "imported")).toBeVisible();
  await field.setInputFiles({ name: "b.jsonl", mimeType: "application/x-ndjson", buffer: Buffer.from("no bundle") });
  await expect(page.locator(".toast.bad")).toBeVisible();
});

test("u undoes the last change of this page, not of others", async ({ page, tree }) => {
  await tree.say(["One", "Two"]);
  await show(page, tree);
  await page.getByLabel("Write on main").fill("Mine");
  await page.keyboard.press("Enter");
  await expect(turnWith(page, "Mine")).toBeVisible();
  await tree.say(["Theirs"], { parent: "root", branch: "theirs" }, "somebody");
  await expect(row(page, "Theirs")).toHaveCount(1);
  await page.keyboard.press("Escape");
  await page.keyboard.press("u");
  await expect(toast(page, "Undone")).toBeVisible();
  expect(await tree.branch("main")).toEqual(["One", "Two"]);
  expect(await tree.branch("theirs")).toEqual(["Theirs"]);
});
