// A server that requires a token.
import { dialog, expect, test } from "./page";

test.use({ baseURL: process.env.TINE_PAGE_CLOSED ?? "http://127.0.0.1:8000" });

test("the page asks for the token, keeps it for the tab, and sends it with every request", async ({ page, request }) => {
  await page.goto("/");
  await expect(dialog(page)).toContainText("requires a token");
  await dialog(page).getByLabel("Token").fill("wrong");
  await dialog(page).getByRole("button", { name: "Sign in" }).click();
  await expect(dialog(page)).toContainText("requires a token");
  await dialog(page).getByLabel("Token").fill(process.env.TINE_PAGE_TOKEN ?? "");
  await dialog(page).getByRole("button", { name: "Sign in" }).click();
  const names = page.getByRole("navigation", { name: "Conversations" });
  await expect(names.getByText("first")).toBeVisible();
  // The change feed sends it, too.
  const made = await request.post("/api/v1/conversations", { data: { title: "Made meanwhile" }, headers: { authorization: `Bearer ${process.env.TINE_PAGE_TOKEN}` } });
  expect(made.ok()).toBeTruthy();
  await expect(names.getByText("Made meanwhile").first()).toBeVisible();
});
