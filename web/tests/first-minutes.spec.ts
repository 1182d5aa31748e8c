// A stranger's first five minutes: open, load the demo, find a phrase, open the hit on its branch,
// fork there, write, compare with the old branch, undo.
import { dialog, expect, row, test, toast, turnWith } from "./page";

test.use({ baseURL: process.env.TINE_PAGE_EMPTY ?? "http://127.0.0.1:8000" });

test("a stranger's first five minutes", async ({ page, request }) => {
  await page.goto("/");
  await expect(page.getByRole("heading", { name: "Every conversation is a tree" })).toBeVisible();
  await page.getByRole("button", { name: "Load the example" }).click();
  await expect(page.getByRole("button", { name: "A week in Tokyo" })).toBeVisible();
  await expect(page.getByRole("treeitem").first()).toBeVisible();

  await page.keyboard.press("/");
  await page.keyboard.type("shared onsen");
  await page.locator("a.hit").filter({ hasText: "shared onsen" }).click();
  await expect(turnWith(page, "A shared onsen, open until eleven.")).toBeVisible();
  await expect(page.getByLabel("Write on ryokan")).toBeVisible();
  await expect(row(page, "A shared onsen")).toHaveAttribute("aria-selected", "true");

  await turnWith(page, "A shared onsen").getByRole("button", { name: "Fork here" }).click();
  await dialog(page).getByLabel("Name of the new branch").fill("late-bath");
  await dialog(page).getByRole("button", { name: "Fork" }).click();
  await page.getByLabel("Write on late-bath").fill("Is it quiet after ten?");
  await page.keyboard.press("Enter");
  await expect(turnWith(page, "Is it quiet after ten?")).toBeVisible();

  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("b");
  await page.locator(".card").filter({ hasText: "main" }).filter({ hasText: "Booked" }).getByRole("link", { name: "Compare" }).click();
  await expect(page.getByRole("heading", { name: "Compare" })).toBeVisible();
  await expect(page.getByText("shared turns")).toBeVisible();
  await expect(page.getByText("Is it quiet after ten?").first()).toBeVisible();

  await page.keyboard.press("Escape");
  await expect(page.getByRole("feed")).toBeVisible();
  await page.keyboard.press("u");
  await expect(toast(page, "Undone")).toBeVisible();
  await expect(row(page, "Is it quiet after ten?")).toHaveCount(0);
  await page.keyboard.press("u");
  await expect(row(page, "late-bath")).toHaveCount(0);
  const branches = (await (await request.get("/api/v1/conversations/tokyo-trip/branches")).json()) as { items: { name: string }[] };
  expect(branches.items.map(({ name }) => name)).not.toContain("late-bath");
});
