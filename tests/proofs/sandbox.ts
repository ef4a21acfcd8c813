import { execFileSync, spawn } from 'node:child_process'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { noRules } from '@tapetree/agent/permissions'
import { NetworkKeeper, probeSandbox, Sandbox, type SandboxSupport } from '@tapetree/agent/sandbox'
import { socketThatWent } from '../../packages/agent/src/tools/commands/box-notes.ts'
import { buildCli } from '../../scripts/build-cli.ts'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { escapesOf, vary, type Escape } from './sandbox/escapes.ts'
import { killAndResume, victims } from './sandbox/kills.ts'
import { canary, escaped, Machine } from './sandbox/machine.ts'
import { greeting, hosts, openAllowed, throughProxy } from './sandbox/network.ts'
import { machinesWithoutBackend, placesToSay, tryWithoutBackend } from './sandbox/no-backend.ts'

export const name = 'sandbox'
export const claim =
  'A command in the sandbox changes nothing but the working folder, reads no secret, and reaches no server, process or kernel setting. It survives the agent, and leaves nothing behind. Without a sandbox, commands are asked about, and every place says so.'
/** Of each user. If there are more attempts, chance chooses, and each user makes others. */
export const sizes = {
  ci: { attempts: 160, variants: 40, kills: 5, withoutBackend: 11 },
  full: { attempts: Infinity, variants: 10_000, kills: 200, withoutBackend: Infinity },
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
 * the box gets holes, each of which must show. Attempts often wait: `SANDBOX_PART=2/6` makes the second of
 * six parts of them, with all that follows in the first, so that six runs with one seed share the work.
 */
export async function run({ size, seed, say, random }: FigureContext): Promise<FigureResult> {
  const figures = {
    escapes: 0,
    runs: 0,
    read_only: 0,
    proxied: 0,
    kills: 0,
    without_backend: 0,
    mutants_caught: 0,
    problems: 0,
  }
  const complain = (user: string, problem: string): void => {
    figures.problems += 1
    say(`PROBLEM (seed ${seed}) as ${user}: ${problem}`)
  }
  const users =
    process.getuid?.() === 0 ? { root: 0, 'an ordinary user': nobody } : { 'this user': process.getuid?.() ?? 0 }
  const [part = 1, parts = 1] = process.env['SANDBOX_PART']?.split('/').map(Number) ?? []
  let order: number[] | undefined
  for (const [index, [user, uid]] of Object.entries(users).entries()) {
    await using place = await makePlace(uid)
    const { machine } = place
    const escapes = escapesOf(machine)
    order ??= shuffled([...escapes.keys()], random)
    const mixed = order.flatMap((place) => escapes[place] ?? [])
    const isAll = sizes[size].attempts >= escapes.length
    const base = isAll ? mixed : mixed.slice(index * sizes[size].attempts, (index + 1) * sizes[size].attempts)
    figures.escapes = isAll ? base.length : figures.escapes + base.length
    const variants = Array.from({ length: sizes[size].variants }, () =>
      vary(base[Math.floor(random() * base.length)] as Escape, random),
    )
    const attempts = [...base, ...variants]
      .map((escape) => ({ escape, isReadOnly: random() < 0.2 }))
      .filter((_, place) => place % parts === part - 1)
    for (const { escape, isReadOnly } of attempts) {
      if (figures.problems >= maxProblems) break
      if (isReadOnly) figures.read_only += 1
      figures.runs += 1
      const problem = await place.attempt(escape, { isReadOnly })
      if (problem !== undefined) complain(user, problem)
      if (figures.runs % 1000 === 0) say(`${figures.runs} attempts`)
    }
    say(`as ${user}: ${attempts.length} of ${base.length} attempts and ${variants.length} variants`)
  }
  if (part > 1) return { ok: figures.problems === 0, figures }
  const proxied = await tryProxy([hosts.allowed], (problem) => complain('this user', problem))
  figures.proxied = proxied
  say(`${proxied} attempts with a proxy`)
  await using killed = await makePlace(process.getuid?.() ?? 0)
  for (let count = 0; count < sizes[size].kills && figures.problems < maxProblems; count++) {
    const victim = victims[count % victims.length] ?? 'agent'
    const problem = await killAndResume(killed.machine, victim, random)
    if (problem !== undefined) complain('this user', `${victim} killed: ${problem}`)
    figures.kills += 1
  }
  say(`${figures.kills} kills`)
  figures.without_backend = await tryAllWithoutBackend({ count: sizes[size].withoutBackend, random }, complain)
  say(`${figures.without_backend} places that say that there is no sandbox`)
  for (const [mutant, change] of Object.entries(mutants)) {
    const found = await catchMutant(change)
    say(`${mutant.padEnd(34)} ${found ?? 'NOT CAUGHT'}`)
    if (found === undefined) complain('root', `no attempt finds that ${mutant}`)
    else figures.mutants_caught += 1
  }
  // With every host allowed, the same attempts must reach something.
  let isFound = false
  await tryProxy(['*'], () => void (isFound = true))
  say(`${'every host is allowed'.padEnd(34)} ${isFound ? 'found' : 'NOT CAUGHT'}`)
  if (isFound) figures.mutants_caught += 1
  else complain('this user', 'no attempt finds that every host is allowed')
  return { ok: figures.problems === 0, figures }
}

/** Every machine refuses and asks; chance chooses on which ones a screen and a client are looked at. Returns how many checks were made. */
async function tryAllWithoutBackend(
  { count, random }: { count: number; random: () => number },
  complain: (user: string, problem: string) => void,
): Promise<number> {
  await buildCli()
  const support = await probeSandbox()
  const bwrap = support.type === 'none' ? '' : support.path
  const machines = shuffled(machinesWithoutBackend, random)
  const all = placesToSay.flatMap((place) => machines.map((machine) => ({ machine, place })))
  const isSlow = ({ place }: (typeof all)[number]): boolean => place === 'chat' || place === 'client'
  const byMachine = (each: (typeof all)[number]): number => machines.indexOf(each.machine)
  const slow = all.filter(isSlow).toSorted((a, b) => byMachine(a) - byMachine(b))
  const chosen = [...all.filter((each) => !isSlow(each)), ...slow].slice(0, count)
  for (const { machine, place } of chosen) {
    const problem = await tryWithoutBackend(machine, { bwrap, place })
    if (problem !== undefined) complain('this user', `${machine.what}, ${place}: ${problem}`)
  }
  return chosen.length
}

/** Attempts with a network that allows these hosts. Returns how many were made. */
async function tryProxy(allowed: readonly string[], complain: (problem: string) => void): Promise<number> {
  await using server = await openAllowed()
  await using place = await makePlace(process.getuid?.() ?? 0, allowed)
  const greetings = { what: 'the allowed host', command: `curl -sS http://${hosts.allowed}:${server.port}/` }
  if (!(await place.outputOf(greetings)).includes(greeting)) complain('the allowed host was not reached')
  const attempts = throughProxy(place.machine, server.port)
  for (const escape of attempts) {
    const problem = await place.attempt(escape, {})
    if (problem !== undefined) complain(problem)
    if (problem !== undefined && allowed.includes('*')) break
  }
  return attempts.length
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
async function makePlace(
  uid: number,
  allowed?: readonly string[],
): Promise<
  AsyncDisposable & {
    machine: Machine
    outputOf: (escape: Escape) => Promise<string>
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
  const network = allowed && networkOf(support, { folder: join(folder, 'keep/network'), allowed })
  const sandbox = await Sandbox.open({
    folders: [work],
    home,
    own: [data],
    keep: join(folder, 'keep'),
    support,
    ...(network && { network }),
  })
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

  async function run(
    command: string,
    { isReadOnly = false, change = (argv) => [...argv] }: AttemptOptions,
  ): Promise<string> {
    const { argv, env: boxEnv } = await as(uid, () => sandbox.box(work, { isReadOnly }))
    const [file, ...args] = [...change(argv), 'bash', '-c', command]
    return outputOf(file, args, { env: { ...env, ...boxEnv }, cwd: work, uid })
  }

  async function attempt(
    { what, command, plain = command }: Escape,
    { isReadOnly = false, change = (argv) => [...argv] }: AttemptOptions,
  ): Promise<string | undefined> {
    if (count++ % renewEvery === 0) {
      copy(pristine, work)
      before = { false: machine.fingerprint(), true: machine.fingerprint({ withWork: true }) }
    }
    const start = isReadOnly ? machine.fingerprint({ withWork: true }) : before.false
    let output = await run(command, { isReadOnly, change })
    // A socket of another program on this machine went away at that moment: nothing was tried.
    for (let again = 0; again < 3 && socketThatWent(output) !== undefined; again++)
      output = await run(command, { isReadOnly, change })
    // Variants write the command to this file, and the next one may print it.
    await rm(join(work, 's.sh'), { recursive: true, force: true })
    const tried = `${what}: ${command.slice(0, 300)}`
    if (/^bwrap: /m.test(output) && !plain.includes('bwrap')) return `${tried} did not run: ${output.slice(0, 200)}`
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
    outputOf: ({ command }) => run(command, {}),
    [Symbol.asyncDispose]: async () => {
      await network?.close()
      await machine[Symbol.asyncDispose]()
      for (const each of [folder, pristine]) await rm(each, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

function networkOf(
  support: SandboxSupport,
  { folder, allowed }: { folder: string; allowed: readonly string[] },
): NetworkKeeper {
  return new NetworkKeeper({
    folder,
    bwrap: support.type === 'none' ? '' : support.path,
    rules: { ...noRules, user: allowed.map((match) => ({ effect: 'allow', type: 'fetch', match })) },
    hosts: { [hosts.allowed]: '127.0.0.1', [hosts.other]: '127.0.0.1' },
    idleMs: 100,
  })
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
