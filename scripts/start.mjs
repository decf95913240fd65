// `npm start`: builds when dist is missing or older than the sources, then serves in this very process,
// so that Ctrl-C and `kill` reach the service itself. More arguments are passed on.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const main = path.join(root, 'dist/main.js');

function newest(...names) {
  let time = 0;
  const visit = (file) => {
    const stat = fs.statSync(file, { throwIfNoEntry: false });
    time = Math.max(time, stat?.mtimeMs ?? 0); // a directory's time tells of removed files
    if (!stat?.isDirectory()) return;
    // src/generated is written by the build, hence newer than what it was made from.
    for (const name of fs.readdirSync(file)) if (name !== 'generated') visit(path.join(file, name));
  };
  for (const name of names) visit(path.join(root, name));
  return time;
}

// The build's last step makes it executable: without that the build was cut short.
const stat = fs.statSync(main, { throwIfNoEntry: false });
const built = stat && stat.mode & 0o100 ? stat.mtimeMs : 0;
if (built < newest('src', 'prisma/schema.prisma', 'tsconfig.json', 'tsconfig.build.json')) {
  console.error(built === 0 ? 'building (first start) …' : 'building (sources have changed) …');
  const { status } = spawnSync(process.execPath, [path.join(root, 'scripts/build.mjs')], { stdio: 'inherit' });
  if (status !== 0) process.exit(1);
}
if (!fs.existsSync(main)) {
  console.error('there is no dist/main.js to start: run `npm ci`, then `npm start`');
  process.exit(1);
}

process.argv = [process.execPath, main, 'serve', ...process.argv.slice(2)];
await import(pathToFileURL(main).href);
