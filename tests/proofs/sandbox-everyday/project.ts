import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** A small project with what the commands below use. */
export async function makeProject(work: string): Promise<void> {
  for (const [path, text] of Object.entries(files)) await put(join(work, path), text)
  const git = (...args: string[]) => execFileSync('git', ['-C', work, ...identity, ...args], { stdio: 'ignore' })
  git('init', '-q', '-b', 'main')
  git('add', '-A')
  git('commit', '-qm', 'first')
  await put(join(work, 'src/a.ts'), 'export const a = 2\n')
  git('commit', '-qam', 'second')
  execFileSync('tar', ['czf', 'a.tgz', 'src'], { cwd: work })
  await put(join(work, 'src/b.ts'), 'export const changed = true\n')
}

/** A home folder with the folders that tools keep. */
export async function makeHome(home: string): Promise<void> {
  for (const name of ['.cache', '.npm', '.config', '.local/share', '.local/state', 'Documents'])
    await mkdir(join(home, name), { recursive: true })
  await put(join(home, '.gitconfig'), '[user]\n  name = A\n  email = a@example.com\n')
}

/**
 * Commands of `tests/corpus/coding-commands.tsv` that run without a network, in a form that fits the project, and some that keep state in the home
 * folder.
 */
export const workingCommands = [
  'npm test',
  'npm run build',
  'npm run lint',
  'npm install --offline ./library',
  'npm install --offline --global --prefix ~/.local ./tool',
  'npx --no-install tool',
  'npm pack',
  'node scripts/gen.js',
  'node --test src/a.test.js',
  'python3 script.py',
  'python3 -c "print(1)"',
  'python3 -m unittest test_a.py',
  'python3 -m venv --without-pip .venv',
  'pytest -q test_a.py',
  'make',
  'make test',
  'cmake -S native -B build && cmake --build build',
  'gcc native/a.c -o a && ./a',
  'bash scripts/setup.sh',
  'git add -A',
  'git add -A && git commit -m "x"',
  'git checkout -b feature',
  'git stash && git stash pop',
  'git stash && git rebase main',
  'git reset --hard HEAD~1',
  'git tag v1 && git branch -d other; git gc -q',
  'git config user.name x',
  'git worktree add ../wt',
  'git worktree add wt',
  'mkdir -p src/deep/er',
  'mv src/a.ts src/c.ts',
  'cp src/a.ts src/d.ts',
  'rm -rf dist && rm src/a.ts',
  'touch x && chmod +x scripts/setup.sh',
  'sed -i s/changed/changes/ src/b.ts',
  'echo x > notes.txt && tee out.txt < notes.txt',
  'patch -p1 < fix.diff',
  'find . -name "*.log" -delete',
  'mkdir out && tar xzf a.tgz -C out',
  'jq . package.json',
  'sqlite3 db.sqlite "create table t (a); insert into t values (1); select * from t"',
  'python3 -m http.server 8765 --bind 127.0.0.1 & sleep 1; curl -sf http://127.0.0.1:8765/package.json; kill %1',
  'sleep 60 & kill $!',
  'ls -la && cat package.json && head -5 src/a.ts && wc -l src/*.ts',
  'git status && git diff && git log --oneline -5',
  'ps aux',
  'echo $(date) && VAR=$(git rev-parse HEAD) && echo $VAR',
  'for f in src/*.ts; do wc -l $f; done',
  'cd library && npm test',
  'env FOO=1 node scripts/gen.js',
  'timeout 60 npm test',
  'file=$(mktemp) && echo x > $file && cat $file',
  'mkdir -p ~/.cache/tool && echo x > ~/.cache/tool/entry',
  'mkdir -p ~/.config/tool && echo x > ~/.config/tool/settings',
  'echo x > ~/.tool-state',
] as const

const identity = ['-c', 'user.name=A', '-c', 'user.email=a@example.com']

const files: Record<string, string> = {
  'package.json': JSON.stringify({
    name: 'small',
    version: '1.0.0',
    scripts: { test: 'node --test src/a.test.js', build: 'node scripts/gen.js', lint: 'node --check scripts/gen.js' },
  }),
  'src/a.ts': 'export const a = 1\n',
  'src/b.ts': 'export const b = 1\n',
  'src/a.test.js': "require('node:test')('adds', () => require('node:assert').equal(1 + 1, 2))\n",
  'scripts/gen.js':
    "require('fs').mkdirSync('dist', { recursive: true })\nrequire('fs').writeFileSync('dist/a.js', String(process.env.FOO))\n",
  'scripts/setup.sh': 'mkdir -p generated && echo done > generated/file\n',
  'library/package.json': JSON.stringify({ name: 'library', version: '1.0.0', scripts: { test: 'node -e 0' } }),
  'tool/package.json': JSON.stringify({ name: 'tool', version: '1.0.0', bin: { tool: 'tool.js' } }),
  'tool/tool.js': '#!/usr/bin/env node\nconsole.log(1)\n',
  'node_modules/.bin/tool': '#!/bin/sh\necho tool\n',
  'script.py': 'print("hello")\n',
  'test_a.py':
    'import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(1, 1)\n',
  Makefile: 'all:\n\tmkdir -p dist && echo built > dist/all\n\ntest:\n\tnode --test src/a.test.js\n',
  'native/a.c': '#include <stdio.h>\nint main(void) { puts("a"); return 0; }\n',
  'native/CMakeLists.txt': 'cmake_minimum_required(VERSION 3.10)\nproject(a C)\nadd_executable(a a.c)\n',
  'fix.diff': '--- a/script.py\n+++ b/script.py\n@@ -1 +1 @@\n-print("hello")\n+print("patched")\n',
  'old.log': 'old\n',
}

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, text, { mode: path.includes('.bin') ? 0o755 : 0o644 })
}
