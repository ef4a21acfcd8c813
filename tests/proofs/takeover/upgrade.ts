// Lets a server of an earlier build and one of this build form one service, and moves sessions from one to the other and back:
// `npx node -C @tapetree/source tests/proofs/takeover/upgrade.ts [--previous <commit>]`. Without a commit it takes the newest tag.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { migratePostgres } from '@tapetree/session/stores/postgres'
import { NatsProcess } from '../../../packages/server/src/bus/testing/nats-process.ts'
import { PostgresServer } from '../../../packages/session/src/testing/postgres-server.ts'
import { ServedNode } from './served-node.ts'
import { endless, promptOf } from './words.ts'
import { Writers } from './writers.ts'

const repository = resolve(import.meta.dirname, '../../..')
const sessionCount = 5
const patienceMs = 60_000

const { previous = newestTag() } = parseArgs({ options: { previous: { type: 'string' } } }).values
const folder = mkdtempSync(join(tmpdir(), 'tapetree-upgrade-'))
const earlier = join(folder, 'earlier')
const ends: (() => unknown)[] = []
try {
  await upgrade()
} finally {
  for (const end of ends.toReversed()) await end()
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
}
process.exit()

async function upgrade(): Promise<void> {
  git('worktree', 'add', '--detach', earlier, previous)
  ends.push(() => git('worktree', 'remove', '--force', earlier))
  linkDependencies()
  // The same program on both builds: what it tries is that of this build.
  cpSync(import.meta.dirname, join(earlier, 'tests/proofs/takeover'), { recursive: true })
  const database = await PostgresServer.start()
  ends.push(() => database.remove())
  const nats = await NatsProcess.start()
  ends.push(() => nats.stop())
  await database.admin('create database sessions')
  migrateWithEarlier(database.urlFor('admin', 'sessions'))
  await database.admin('create role app login in role tapetree_app')
  const watching = await database.connect('admin', 'sessions')
  ends.push(() => watching.end())
  const writers = await Writers.watch(watching)
  const ledger = join(folder, 'ledger')
  writeFileSync(ledger, '')

  const serve = async (name: string, program?: string): Promise<ServedNode> => {
    const compileCache = join(folder, program === undefined ? 'cache' : 'earlier-cache')
    const node = new ServedNode(name, { compileCache, ...(program !== undefined && { program }) })
    ends.push(() => node.kill())
    const own = join(folder, name)
    mkdirSync(own)
    await node.serve({
      database: database.urlFor('app', 'sessions'),
      busUrl: nats.url,
      folder: own,
      ledger,
      seed: 1,
    })
    return node
  }
  const move = async (from: ServedNode, to: ServedNode): Promise<void> => {
    await writers.forget()
    const struckMs = Date.now()
    await from.kill()
    await until(`${to.name} continues what ${from.name} had`, async () => {
      return (await writers.firstLines(to.name, struckMs)).length >= sessionCount
    })
    console.log(`${to.name} took over all sessions of ${from.name}`)
  }

  const programOfEarlier = join(earlier, 'tests/proofs/takeover/node-process.ts')
  const first = await serve('earlier-1', programOfEarlier)
  const ids = await prompt(first)
  await until('all sessions are at work', async () => (await first.working()) === sessionCount)
  await migratePostgres(database.urlFor('admin', 'sessions'))
  const second = await serve('this-build')
  for (const id of ids) await command(second, id, 'from this build')
  console.log('a client of this build commands sessions of the earlier one')
  await move(first, second)
  const third = await serve('earlier-2', programOfEarlier)
  for (const id of ids) await command(third, id, 'from the earlier build')
  console.log('a client of the earlier build commands sessions of this one')
  await move(second, third)
  console.log(`${sessionCount} sessions moved from ${previous} to this build and back`)
}

async function prompt({ url }: ServedNode): Promise<string[]> {
  const ids: string[] = []
  for (let job = 1; job <= sessionCount; job++) {
    const text = promptOf({ tag: `job${job}`, calls: endless, stepMs: 300 })
    const { id } = (await send('POST', url, '/api/sessions', { prompt: text })) as { id: string }
    ids.push(id)
  }
  return ids
}

/** The owner of the session, which is another node, renames it. */
async function command({ url }: ServedNode, sessionId: string, name: string): Promise<void> {
  await send('PATCH', url, `/api/sessions/${sessionId}`, { name })
}

async function send(method: 'POST' | 'PATCH', url: string, path: string, body: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' }
  const response = await fetch(new URL(path, url), { method, headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response.json()
}

/** The packages of the checkout are its own; those of others come from here. */
function linkDependencies(): void {
  const [here, there] = [join(repository, 'node_modules'), join(earlier, 'node_modules')]
  mkdirSync(join(there, '@tapetree'), { recursive: true })
  for (const name of readdirSync(here)) {
    if (name !== '@tapetree') symlinkSync(join(here, name), join(there, name))
  }
  for (const name of readdirSync(join(earlier, 'packages'))) {
    symlinkSync(join(earlier, 'packages', name), join(there, '@tapetree', name))
  }
  const isSame = git('diff', '--name-only', previous, '--', 'package-lock.json') === ''
  if (!isSame) console.log('package-lock.json has changed: the earlier build runs with the dependencies of this one')
}

function migrateWithEarlier(url: string): void {
  const script = `import { migratePostgres } from '@tapetree/session/stores/postgres'; await migratePostgres(process.argv[1])`
  execFileSync(process.execPath, ['-C', '@tapetree/source', '--input-type=module', '-e', script, url], {
    cwd: earlier,
    stdio: 'inherit',
  })
}

async function until(what: string, condition: () => Promise<boolean>): Promise<void> {
  const endMs = Date.now() + patienceMs
  while (!(await condition())) {
    if (Date.now() > endMs) throw new Error(`Not within ${patienceMs / 1000} s: ${what}.`)
    await setTimeout(100)
  }
}

function newestTag(): string {
  try {
    return git('describe', '--tags', '--abbrev=0')
  } catch {
    throw new Error('There is no tag to upgrade from. Name a commit: --previous <commit>')
  }
}

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: repository, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}
