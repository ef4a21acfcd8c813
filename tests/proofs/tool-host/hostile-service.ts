import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ToolHost, type HostLink, type ToolHostOptions } from '@tapetree/agent/tool-host'
import { newId } from '@tapetree/session'
import { setTimeout } from 'node:timers/promises'
import { allTools } from '../../../packages/agent/src/tools/builtin/all-tools.ts'
import { usedBytes } from './memory.ts'

export interface HostileOptions {
  requests: number
  random: () => number
  say: (line: string) => void
}

const secret = 'what-is-outside-stays-outside'
/** A link outside of the folder leads to it. */
const hiddenPlace = 'where-it-leads-stays-unknown'
/** More than this would be a leak: a request is a few hundred bytes. */
const maxGrowthMb = 64

/** A service that wants more than the hosts allow: other paths, other modes, calls that have run, wrong judgements, and floods. */
export async function hostileService(root: string, { requests, random, say }: HostileOptions): Promise<string[]> {
  const folder = join(root, 'project')
  mkdirSync(join(folder, 'private'), { recursive: true })
  writeFileSync(join(root, 'outside.txt'), secret)
  writeFileSync(join(folder, 'private', 'key.txt'), secret)
  writeFileSync(join(folder, '.env'), `TOKEN=${secret}`)
  writeFileSync(join(folder, 'open.txt'), 'open')
  symlinkSync(join(root, 'outside.txt'), join(folder, 'link.txt'))
  symlinkSync(root, join(folder, 'up'))
  mkdirSync(join(root, hiddenPlace))
  symlinkSync(join(root, hiddenPlace), join(root, 'current'))
  const outsideBefore = readdirSync(root).join()
  const open = (mode: 'accept-edits' | 'sandboxed', options: Partial<ToolHostOptions> = {}): Promise<ToolHost> =>
    ToolHost.open({
      dataFolder: join(root, 'host', mode),
      workspaces: { app: folder },
      mode,
      rules: [{ effect: 'deny', type: 'read', match: './private/**' }],
      ...options,
    })
  const unboxed = await open('accept-edits')
  const boxed = await open('sandboxed', { sandbox: { folder: join(root, 'host', 'sandbox'), own: [] } })
  const before = usedBytes()
  let answers = 0
  let leaked = 0
  const link: HostLink = {
    send: (text) => {
      answers++
      if (text.includes(secret) || text.includes(hiddenPlace)) leaked++
    },
  }
  unboxed.join(link)
  boxed.join(link)
  const areBusy = (): boolean => unboxed.running + boxed.running > 0
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const tools = new Map(allTools().map((tool) => [tool.name, tool]))
  const sentTo = new Map<ToolHost, { id: string; session: string }[]>([
    [unboxed, []],
    [boxed, []],
  ])
  // Each session has a network of its own as soon as a command runs in its sandbox.
  const boxedSessions = [newId(), newId(), newId()]
  for (let count = 0; count < requests; count++) {
    const path = pick(paths(root))
    const host = random() < 0.1 ? boxed : unboxed
    const [tool, input] = pick(host === boxed ? boxedAttempts(path, root) : attempts(path, root))
    const checked = tools.get(tool)?.check(input, { cwd: folder })
    const sent = sentTo.get(host) ?? []
    const old = random() < 0.2 ? pick(sent) : undefined
    const { id, session } = old ?? { id: newId(), session: host === boxed ? pick(boxedSessions) : newId() }
    const request = {
      ...{
        type: 'call',
        id,
        session,
        run: 'r',
        call: id,
        workspace: pick(['app', 'app', 'app', 'other']),
        tool,
        input,
      },
      // As if all of it had been allowed, or something else.
      judged: pick([typeof checked === 'object' ? checked.access : [], [], [{ type: 'read', path: folder }]]),
      from: pick([0, 0, 1e9]),
      ...(random() < 0.3 && { box: pick(['writable', 'read-only']) }),
    }
    host.take(random() < 0.05 ? pick(malformed) : JSON.stringify(request), link)
    if (!old) sent.push({ id, session })
    if (random() < 0.05) host.take(JSON.stringify({ type: pick(['cancel', 'settled']), id, session }), link)
    if (random() < 0.1) host.take(JSON.stringify(jobQuestion(pick, { id: newId(), session, path })), link)
    // Floods of some hundred, then a pause.
    if (count % 500 === 499) while (areBusy()) await setTimeout(5)
  }
  while (areBusy()) await setTimeout(5)
  const grownMb = Math.round((usedBytes() - before) / 2 ** 20)
  await Promise.all([unboxed.close(), boxed.close()])
  say(`a hostile server sent ${requests} requests and got ${answers} answers; ${grownMb} MB more memory`)
  return [
    ...(leaked > 0 ? [`a hostile server got a secret of the host in ${leaked} messages`] : []),
    ...(readFileSync(join(root, 'outside.txt'), 'utf8') === secret ? [] : ['a hostile server changed a file outside']),
    ...(readdirSync(root)
      .filter((name) => name !== 'host')
      .join() === outsideBefore
      ? []
      : [`a hostile server made files outside: ${readdirSync(root).join()}`]),
    ...(existsSync(join(folder, 'ran')) ? ['a hostile server ran a command'] : []),
    ...(existsSync(join(folder, '.git')) ? ['a hostile server made a control file'] : []),
    ...(grownMb > maxGrowthMb ? [`the memory of the host grew by ${grownMb} MB`] : []),
  ]
}

const paths = (root: string): string[] => [
  '../outside.txt',
  join(root, 'outside.txt'),
  'link.txt',
  'up/outside.txt',
  'up/made.txt',
  '../current/x',
  'private/key.txt',
  '.env',
  '.git/hooks/pre-commit',
  '~/.ssh/id_rsa',
  'a/../../outside.txt',
  'open.txt',
]

const attempts = (path: string, root: string): [string, Record<string, unknown>][] => [
  ['read', { path }],
  // What it may do in its folder is not an attack.
  ['write', { path: path === 'open.txt' ? '../made.txt' : path, content: 'changed' }],
  ['edit', { path, oldText: 'what', newText: 'that' }],
  ['grep', { pattern: 'stays', path: path === 'open.txt' ? '..' : path }],
  ['ls', { path: '..' }],
  ['find', { pattern: '*', path: root }],
  ['bash', { command: `touch ran; cat ${path}` }],
  ['bash', { command: `cat ${path}` }],
  ['bash', { command: `grep -h stays ${path} ../*` }],
  ['bash', { command: 'true', background: true }],
  ['job_output', { jobId: `../../${path}` }],
  ['__proto__', {}],
]

/** A command in the sandbox may read what is outside, and write in the folder. */
const boxedAttempts = (path: string, root: string): [string, Record<string, unknown>][] => [
  ...attempts(path, root).filter(([tool]) => tool !== 'bash'),
  ['bash', { command: 'true', description: 'x'.repeat(900) }],
  ['bash', { command: 'true', description: 'x'.repeat(100_000) }],
  ['bash', { command: 'true', background: true }],
]

/** Of this session or of none, also with ids that lead elsewhere. */
function jobQuestion(
  pick: <T>(items: readonly T[]) => T,
  { id, session, path }: { id: string; session: string; path: string },
): unknown {
  return {
    ...{ type: pick(['jobs', 'job_output', 'stop_job']), id, session: pick([session, '../session', 'x'.repeat(80)]) },
    ...{
      job: pick(['job-0123456789ab', `../${path}`]),
      limitBytes: pick([1, 1024, 1e9]),
      after: 0,
      waitMs: pick([0, 100]),
    },
  }
}

const malformed = [
  '',
  '{',
  '[]',
  'null',
  '{"type":"call"}',
  '{"type":"call","id":"../../x"}',
  `"${'x'.repeat(10_000)}"`,
]
