// Accessibility: names for screen readers, contrast, keyboard (axe).
import AxeBuilder from "@axe-core/playwright";
import { dialog, expect, show, test, turnWith } from "./page";
import type { Page } from "@playwright/test";

async function check(page: Page, what: string): Promise<void> {
  const { violations } = await new AxeBuilder({ page }).withTags(["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]).analyze();
  const found = violations.map(({ id, impact, nodes }) => `${what}: ${id} (${impact}) ${nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`);
  expect(found).toEqual([]);
}

for (const scheme of ["light", "dark"] as const) {
  test(`no view has accessibility violations, ${scheme}`, async ({ page, tree }) => {
    test.setTimeout(60_000);
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    await tree.say(["When to visit **Tokyo**?", "```js\nlet x = 1;\n```\n\n> late March", { role: "assistant", content: [{ type: "thinking", text: "hm" }, { type: "tool-use", id: "1", name: "look", parameters: {} }] }, { role: "tool", tool_call_id: "1", content: "found" }]);
    await tree.say(["Or in autumn?", "Yes"], { parent: "main~2", branch: "autumn" });
    await tree.post("/commits", { conversation_id: tree.id, message: "Season" });
    await page.goto("/");
    await expect(page.getByRole("navigation", { name: "Conversations" }).getByText(`Tree ${tree.id}`)).toBeVisible();
    await check(page, "start");
    await show(page, tree);
    await expect(turnWith(page, "Yes").or(turnWith(page, "found")).first()).toBeVisible();
    await check(page, "tree");
    await page.keyboard.press("Control+p");
    await check(page, "palette");
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await check(page, "help");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Delete");
    await expect(dialog(page)).toContainText("will be hidden");
    await check(page, "delete");
    await page.keyboard.press("Escape");
    await page.goto(`/#/c/${tree.id}/compare/autumn/main`);
    await expect(page.getByText("shared turn")).toBeVisible();
    await check(page, "compare");
    await page.goto(`/#/c/${tree.id}/commits`);
    await expect(page.getByText("Season")).toBeVisible();
    await check(page, "commits");
    await page.goto("/#/facts");
    await expect(page.getByLabel("Search facts")).toBeVisible();
    await check(page, "facts");
  });
}
