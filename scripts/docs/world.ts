// A user's machine for the commands in the documentation: a repository to work in, a home, `tapetree` on the path, a model that
// gives one answer to everything, an MCP server that the user has accepted, and sessions of other programs. Says how it is used as
// a line of JSON, and stays until it is killed.
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, cpSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'

const place = await fakeHome()
const { provider, cwd, home, env } = place
provider.script(() => ({ type: 'answer', content: [{ type: 'text', chunks: ['{"ok":true}'] }] }))

mkdirSync(join(cwd, 'src'))
writeFileSync(join(cwd, 'src', 'main.ts'), "console.log('hello')\n")
const git = (...words: string[]): void => void execFileSync('git', words, { cwd, env: { ...env, HOME: home } })
git('init', '--quiet')
git('add', '.')
git('-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', 'commit', '--quiet', '--message', 'Begin')
writeFileSync(join(cwd, 'src', 'main.ts'), "console.log('hello, world')\n")

const programs = join(home, 'bin')
mkdirSync(programs)
const command = resolve('packages/cli/dist/bin/tapetree.js')
writeFileSync(join(programs, 'tapetree'), `#!/bin/sh\nexec '${process.execPath}' '${command}' "$@"\n`)
chmodSync(join(programs, 'tapetree'), 0o700)

// In the working folder: the sandbox of a server shows no other folder below /tmp.
const described = join(cwd, 'tickets.txt')
writeFileSync(described, 'Looks up a ticket.')
const settingsFile = join(env['TAPETREE_HOME'] ?? '', 'settings.json')
const settings = JSON.parse(readFileSync(settingsFile, 'utf8')) as object
const tickets = {
  command: process.execPath,
  args: [resolve('packages/cli/src/testing/described-server.ts'), described],
}
writeFileSync(settingsFile, JSON.stringify({ ...settings, mcpServers: { tickets } }))
execFileSync(process.execPath, [command, 'mcp', 'accept', 'tickets', '--yes'], { cwd, env })

// Sessions of other programs, to be imported.
const recordings = resolve('tests/corpus/imports')
cpSync(join(recordings, 'claude-code'), home, { recursive: true })
mkdirSync(join(home, 'backup'))
for (const path of globSync('codex/.codex/sessions/**/*.jsonl', { cwd: recordings }))
  copyFileSync(join(recordings, path), join(home, 'backup', 'rollout-2026-11-18.jsonl'))

console.log(JSON.stringify({ cwd, env: { ...env, PATH: `${programs}:${env['PATH']}` } }))
process.on('SIGTERM', () => void place[Symbol.asyncDispose]().then(() => process.exit()))
setInterval(() => undefined, 60_000)
