// Comparison, commits, drift, and provenance of facts.
import { choose, expect, show, test, toast } from "./page";

test("two branches side by side: shared turns folded, words marked, facets listed", async ({ page, tree }) => {
  await tree.say(["When to visit Tokyo?", "In March"]);
  await tree.say(["Find a hotel near Ueno for two people please", "The Gracery"], { parent: "main", branch: "two" });
  await tree.say(["Find a hotel near Asakusa for two people please", "The Kanoya"], { parent: "main", branch: "other" });
  await show(page, tree);
  await page.getByLabel("Branch", { exact: true }).selectOption("two");
  await choose(page, "The Gracery");
  await page.keyboard.press("d");
  await expect(toast(page, "Selected for comparison")).toBeVisible();
  await page.getByLabel("Branch", { exact: true }).selectOption("other");
  await choose(page, "The Kanoya");
  await page.keyboard.press("d");
  await expect(page.getByText("2 shared turns")).toBeVisible();
  await expect(page.locator("del").filter({ hasText: "Ueno" })).toBeVisible();
  await expect(page.locator("ins").filter({ hasText: "Asakusa" })).toBeVisible();
  await expect(page.getByText("+ Asakusa").first()).toBeVisible();
  await expect(page.getByText("− Ueno").first()).toBeVisible();
  await expect(page.getByText("2 turns only here")).toHaveCount(2);
  await page.keyboard.press("Escape");
  await expect(page.getByRole("feed")).toBeVisible();
});

test("commits have a timeline and a drift plot", async ({ page, tree }) => {
  for (const [text, message] of [["Tokyo in March, the blossoms", "Season"], ["Flights from Paris with JL46", "Flight"], ["A hotel in Shinjuku near the station", "Hotel"]]) {
    await tree.say([text!, "Yes."]);
    await tree.post("/commits", { conversation_id: tree.id, message });
  }
  await page.goto(`/#/c/${tree.id}/commits`);
  await expect(page.locator("li").filter({ hasText: "Hotel" })).toContainText("2 turns");
  await expect(page.locator("li")).toHaveCount(3);
  await expect(page.getByRole("img", { name: /Drift of 3 commits/ }).locator("circle")).toHaveCount(5);
  await page.getByRole("img", { name: /Drift of 3 commits/ }).locator("circle").last().click();
  await expect(page.locator("li.chosen")).toContainText("Hotel");
});

test("a fact leads to its run and to the quoted words in the turn", async ({ page, tree }) => {
  const person = `Mira Lopez${tree.id.replace(/\D/g, "").slice(-3)}`.replace(/\d/g, (digit) => "abcdefghij"[Number(digit)]!);
  await tree.post("/store/turn", { conversation_id: tree.id, turn_id: "1", role: "user", content: `I need to call ${person} on 14 March 2025.`, interpret: "wait" });
  await page.goto("/#/facts");
  await page.getByLabel("Search facts").fill(person);
  await page.getByRole("link").filter({ hasText: person }).filter({ hasText: "person" }).first().click();
  await page.getByRole("button", { name: /name/ }).first().click();
  await expect(page.locator("mark").first()).toContainText(person);
  await page.getByText("Run by").first().click();
  await expect(page.locator("details[open] dl").first()).toContainText("rules 1");
  await expect(page.locator("details[open] dl").first()).toContainText("no model was used");
  await page.getByRole("link", { name: "Open turn" }).first().click();
  await expect(page.getByRole("article").filter({ hasText: person })).toBeVisible();
});
