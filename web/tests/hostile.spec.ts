// Content is data: it neither runs nor breaks the page.
import { expect, show, test } from "./page";

const HOSTILE = [
  "<script>window.ran = 1</script><img src=x onerror=\"window.ran = 2\"><svg onload=\"window.ran = 3\">",
  "[click](javascript:window.ran=4) [data](data:text/html,<script>window.ran=5</script>) [v](vbscript:x) <javascript:window.ran=6>",
  "![pixel](https://example.invalid/pixel.png) <style>body{display:none}</style> <iframe src=/docs></iframe>",
  `${"x".repeat(60_000)}`,
  "\u202Eright to left override \u2066isolate \u200B\u200D\uFEFF zero width \u0000\u0007 control",
  "مرحبا بالعالم — שלום עולם — 1234 (test)",
  `\`\`\`"><img src=x onerror=window.ran=7>\ncode\n\`\`\``,
  "| a |\n|---|\n".concat("| b |\n".repeat(300)),
  `${"# ".repeat(500)}\n${"> ".repeat(300)}deep\n${"- ".repeat(200)}list`,
];

test("hostile text neither runs nor overflows", async ({ page, tree }) => {
  await tree.say(HOSTILE);
  await tree.request.patch(`/api/v1/conversations/${tree.id}`, { data: { title: `<img src=x onerror="window.ran=8">\u202E${tree.id}`, force: true } });
  await tree.request.patch(`/api/v1/turns/main?conversation_id=${tree.id}`.replace("?", "/metadata?"), { data: { title: "<b onmouseover=alert(1)>t</b>", tags: ["<i>x</i>"] } });
  for (let turn = 0; turn < HOSTILE.length; turn++) {
    await page.goto("about:blank");
    await show(page, tree, `main~${turn}`);
    await expect(page.getByRole("treeitem", { selected: true })).toBeVisible();
    expect(await page.evaluate(() => (window as unknown as { ran?: number }).ran)).toBeUndefined();
    const wide = await page.evaluate(() => [...document.querySelectorAll("main article, nav a, [role=treeitem]")].filter((element) => element.getBoundingClientRect().right > innerWidth + 1).length);
    expect(wide, `turn ${turn} stays inside`).toBe(0);
  }
  await page.goto(`/#/c/${tree.id}`);
  const links = await page.locator("main .prose a").evaluateAll((all) => all.map((link) => (link as HTMLAnchorElement).href));
  for (const link of links) expect(link).not.toMatch(/^(javascript|data|vbscript):/i);
  await expect(page.locator("main .prose :is(script, iframe, style, img, svg)")).toHaveCount(0);
});

test("the policy forbids scripts and styles in content", async ({ page, faults }) => {
  const answer = await page.goto("/");
  const policy = answer!.headers()["content-security-policy"] ?? "";
  expect(policy).toContain("script-src 'self'");
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain("unsafe");
  const refused = await page.evaluate(async () => {
    const script = document.createElement("script");
    script.textContent = "window.ran = 1";
    document.body.append(script);
    return (window as unknown as { ran?: number }).ran === undefined;
  });
  expect(refused).toBe(true);
  await expect.poll(() => faults.length).toBe(1);
  expect(faults.pop()).toContain("Content Security Policy");
});

test("a text of a megabyte is truncated at first", async ({ page, tree }) => {
  await tree.say(["words ".repeat(180_000)]);
  await show(page, tree);
  await expect(page.getByRole("button", { name: /Show all 1,080,000 characters/ })).toBeVisible();
  await expect(page.getByRole("img", { name: "verified" })).toBeVisible();
});
