import { execFileSync, spawn } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { probeSandbox, Sandbox } from '@tapetree/agent/sandbox'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { escapesOf, vary, type Escape } from './sandbox/escapes.ts'
import { killAndResume, victims } from './sandbox/kills.ts'
import { canary, escaped, Machine } from './sandbox/machine.ts'

export const name = 'sandbox'
export const claim =
  'A command in the sandbox changes nothing but the working folder, reads no secret, and reaches no server, process or kernel setting. It survives the agent, and leaves nothing behind.'
/** Of each user. If there are more attempts, chance chooses, and each user makes others. */
export const sizes = {
  ci: { attempts: 160, variants: 40, kills: 3 },
  full: { attempts: Infinity, variants: 10_000, kills: 200 },
}

const maxProblems = 10
const deadlineMs = 20_000
/** After so many attempts the working folder is as it was: they may do with it what they like. */
const renewEvery = 20
const nobody = 65_534

type Mutant = (argv: readonly string[]) => string[]

/** Boxes with a hole, and the kind of attempts that must find it. */
const mutants: Record<string, { found: RegExp; change: Mutant }> = {
  'the network is shared': { found: /^network/, change: (argv) => argv.filter((each) => each !== '--unshare-net') },
  'processes are shared': { found: /^processes/, change: (argv) => argv.filter((each) => each !== '--unshare-pid') },
  'everything can be written': { found: /^write/, change: (argv) => argv.with(argv.indexOf('--ro-bind'), '--bind') },
  'secrets are not hidden': { found: /^read/, change: without('--tmpfs', (path) => path !== '/run') },
  'secret files are not hidden': { found: /^read/, change: without('--ro-bind', (from) => from === '/dev/null', 3) },
  'control files can be written': {
    found: /^control/,
    change: without('--ro-bind-try', (path) => !path.startsWith('/proc'), 3),
  },
  'a repository can be moved': { found: /^control/, change: without('--bind-try', (path) => path.endsWith('.git'), 3) },
  'rights are kept': { found: /kernel/, change: without('--cap-drop', () => true) },
  'namespaces can be made': { found: /kernel/, change: (argv) => argv.filter((each) => each !== '--disable-userns') },
  'kernel settings can be written': {
    found: /kernel/,
    change: without('--ro-bind-try', (path) => path.startsWith('/proc'), 3),
  },
}

/** Drops an option with its values if the first value is such a one. */
function without(option: string, isDropped: (value: string) => boolean, length = 2): Mutant {
  return (argv) => {
    const kept: string[] = []
    for (let index = 0; index < argv.length;) {
      const isMeant = argv[index] === option && isDropped(argv[index + 1] ?? '')
      // A folder that is not hidden is not made read-only either.
      const isRemount = option === '--tmpfs' && argv[index] === '--remount-ro'
      const step = isMeant ? length : isRemount ? 2 : 1
      if (!isMeant && !isRemount) kept.push(argv[index] as string)
      index += step
    }
    return kept
  }
}

/**
 * Runs attempts to leave the box on a small machine with canaries, as root and as an ordinary user, and compares the machine afterwards. Then
 * the box gets holes, each of which must show.
 */
export async function run({ size, seed, say, random }: FigureContext): Promise<FigureResult> {
  const figures = { escapes: 0, runs: 0, read_only: 0, kills: 0, mutants_caught: 0, problems: 0 }
  const complain = (user: string, problem: string): void => {
    figures.problems += 1
    say(`PROBLEM (seed ${seed}) as ${user}: ${problem}`)
  }
  const users =
    process.getuid?.() === 0 ? { root: 0, 'an ordinary user': nobody } : { 'this user': process.getuid?.() ?? 0 }
  let order: number[] | undefined
  for (const [index, [user, uid]] of Object.entries(users).entries()) {
    await using place = await makePlace(uid)
    const { machine } = place
    const all = escapesOf(machine)
    order ??= shuffled([...all.keys()], random)
    const mixed = order.flatMap((place) => all[place] ?? [])
    const isAll = sizes[size].attempts >= all.length
    const base = isAll ? mixed : mixed.slice(index * sizes[size].attempts, (index + 1) * sizes[size].attempts)
    figures.escapes = isAll ? base.length : figures.escapes + base.length
    const variants = Array.from({ length: sizes[size].variants }, () =>
      vary(base[Math.floor(random() * base.length)] as Escape, random),
    )
    for (const escape of [...base, ...variants]) {
      if (figures.problems >= maxProblems) break
      const isReadOnly = random() < 0.2
      if (isReadOnly) figures.read_only += 1
      figures.runs += 1
      const problem = await place.attempt(escape, { isReadOnly })
      if (problem !== undefined) complain(user, problem)
      if (figures.runs % 1000 === 0) say(`${figures.runs} attempts`)
    }
    say(`as ${user}: ${base.length} attempts and ${variants.length} variants`)
  }
  await using killed = await makePlace(process.getuid?.() ?? 0)
  for (let count = 0; count < sizes[size].kills && figures.problems < maxProblems; count++) {
    const victim = victims[count % victims.length] ?? 'agent'
    const problem = await killAndResume(killed.machine, victim, random)
    if (problem !== undefined) complain('this user', `${victim} killed: ${problem}`)
    figures.kills += 1
  }
  say(`${figures.kills} kills`)
  for (const [mutant, change] of Object.entries(mutants)) {
    const found = await catchMutant(change)
    say(`${mutant.padEnd(34)} ${found ?? 'NOT CAUGHT'}`)
    if (found === undefined) complain('root', `no attempt finds that ${mutant}`)
    else figures.mutants_caught += 1
  }
  return { ok: figures.problems === 0, figures }
}

async function catchMutant({ found, change }: { found: RegExp; change: Mutant }): Promise<string | undefined> {
  await using place = await makePlace(process.getuid?.() ?? 0)
  // With a hole, these would change the machine that the proof runs on.
  const harmless = escapesOf(place.machine).filter(
    ({ what, command }) => found.test(what) && !/\/etc\/|date -s|sysrq/.test(command),
  )
  for (const escape of harmless) {
    const problem = await place.attempt(escape, { change })
    if (problem !== undefined) return problem.slice(0, 100)
  }
  return undefined
}

interface AttemptOptions {
  isReadOnly?: boolean
  change?: Mutant
}

/** A machine, and a sandbox on it. */
async function makePlace(uid: number): Promise<
  AsyncDisposable & {
    machine: Machine
    attempt: (escape: Escape, options: AttemptOptions) => Promise<string | undefined>
  }
> {
  // Not below /tmp, which every box replaces, and where an ordinary user can reach it.
  const folder = await mkdtemp(
    process.getuid?.() === 0 ? '/var/lib/tapetree-proof-' : join(process.cwd(), 'node_modules/.sandbox-proof-'),
  )
  await chmod(folder, 0o755)
  const machine = await Machine.build(folder)
  if (uid !== process.getuid?.()) execFileSync('chown', ['-Rh', `${uid}:${uid}`, folder])
  const pristine = `${folder}.pristine`
  const copy = (from: string, to: string): void => {
    execFileSync('rm', ['-rf', to])
    execFileSync('cp', ['-a', from, to])
  }
  copy(machine.work, pristine)
  const { home, work, data } = machine
  const support = await probeSandbox()
  const sandbox = await Sandbox.open({ folders: [work], home, own: [data], keep: join(folder, 'keep'), support })
  const env = {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    OUTSIDE: machine.outside,
    TMPDIR: '/tmp',
    GIT_CONFIG_GLOBAL: '/dev/null',
  }
  await as(uid, () => sandbox.box(work))
  let before = { false: machine.fingerprint(), true: machine.fingerprint({ withWork: true }) }
  let count = 0

  async function attempt(
    { what, command }: Escape,
    { isReadOnly = false, change = (argv) => [...argv] }: AttemptOptions,
  ): Promise<string | undefined> {
    if (count++ % renewEvery === 0) {
      copy(pristine, work)
      before = { false: machine.fingerprint(), true: machine.fingerprint({ withWork: true }) }
    }
    const start = isReadOnly ? machine.fingerprint({ withWork: true }) : before.false
    const { argv } = await as(uid, () => sandbox.box(work, { isReadOnly }))
    const [file, ...args] = [...change(argv), 'bash', '-c', command]
    const output = await outputOf(file, args, { env, cwd: work, uid })
    const tried = `${what}: ${command.slice(0, 300)}`
    if (/^bwrap: /m.test(output) && !command.includes('bwrap')) return `${tried} did not run: ${output.slice(0, 200)}`
    if (output.includes(canary)) return `${tried} read a secret: ${output.slice(0, 200)}`
    if (output.split('\n').some((line) => line.includes(escaped))) return `${tried} escaped: ${output.slice(0, 200)}`
    const [reached] = machine.reached.splice(0)
    if (reached !== undefined) return `${tried} reached the ${reached}`
    const after = machine.fingerprint({ withWork: isReadOnly })
    return after === start ? undefined : `${tried} changed ${firstDifference(start, after)}`
  }

  return {
    machine,
    attempt,
    [Symbol.asyncDispose]: async () => {
      await machine[Symbol.asyncDispose]()
      for (const each of [folder, pristine]) await rm(each, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

/** Runs something with the rights of a user. Nothing else may happen in this process meanwhile. */
async function as<T>(uid: number, work: () => Promise<T>): Promise<T> {
  if (uid === process.getuid?.()) return work()
  process.setegid?.(uid)
  process.seteuid?.(uid)
  try {
    return await work()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(0)
  }
}

interface SpawnOptions {
  env: Record<string, string>
  cwd: string
  uid: number
}

function outputOf(file: string, args: readonly string[], { env, cwd, uid }: SpawnOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, { env, cwd, uid, gid: uid, stdio: ['ignore', 'pipe', 'pipe'] })
    let text = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => void (text += chunk.toString('latin1')))
    const timer = setTimeout(() => child.kill('SIGKILL'), deadlineMs)
    child.on('error', reject)
    child.on('close', () => {
      clearTimeout(timer)
      resolve(text)
    })
  })
}

function shuffled<T>(values: readonly T[], random: () => number): T[] {
  return values
    .map((value) => ({ value, place: random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ value }) => value)
}

function firstDifference(before: string, after: string): string {
  const [old, now] = [before.split('\n'), after.split('\n')]
  const changed = now.find((line) => !old.includes(line)) ?? old.find((line) => !now.includes(line))
  return changed ?? 'nothing'
}
