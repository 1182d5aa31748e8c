// What the whole page weighs on its way to the browser, compressed: `node scripts/size.mjs URL`.
import { readdir } from "node:fs/promises";
import { request } from "node:http";

const MOST = 400_000;
const [base] = process.argv.slice(2);

function weigh(path) {
  return new Promise((done, failed) => {
    const asked = request(new URL(path, base), { headers: { "accept-encoding": "gzip, br" } }, (answer) => {
      let bytes = 0;
      answer.on("data", (piece) => (bytes += piece.length));
      answer.on("end", () => (answer.statusCode === 200 ? done(bytes) : failed(new Error(`${path}: ${answer.statusCode}`))));
    });
    asked.on("error", failed);
    asked.end();
  });
}

const files = await readdir(new URL("../dist/", import.meta.url), { recursive: true, withFileTypes: true });
let all = 0;
for (const file of files.filter((entry) => entry.isFile())) {
  const folder = file.parentPath.replace(/.*\/dist\/?/, "");
  all += await weigh(`/${folder ? `${folder}/` : ""}${file.name}`);
}
console.log(`the whole page: ${Math.round(all / 1000)} kB compressed, every language of the highlighter included`);
if (all > MOST) throw new Error(`that is more than ${MOST / 1000} kB`);
