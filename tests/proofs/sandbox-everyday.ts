import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cp, mkdtemp, realpath, rm } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { judgeCommand, noRules, type PermissionMode } from '@tapetree/agent/permissions'
import { NetworkKeeper, probeSandbox, Sandbox } from '@tapetree/agent/sandbox'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { makeHome, makeProject, workingCommands } from './sandbox-everyday/project.ts'

export const name = 'sandbox-everyday'
export const claim =
  'Of the everyday commands that work outside the sandbox, 96 % work inside with an overlay of the home folder, 86 % with older versions of bubblewrap. Mode `sandboxed` asks at least 65 % fewer questions than mode `ask`, questions about hosts included.'
export const sizes = { ci: { commands: 20 }, full: { commands: Infinity } }

const least = { overlay: 0.96, fallback: 0.86, fewerQuestions: 0.65 }
/** These change what the sandbox protects, so they fail in it on purpose. They count as failures all the same. */
const protectedOnPurpose = ['git config user.name x', 'git worktree add ../wt']
const deadlineMs = 60_000
/** Without programs in homes of users: they are hidden inside, because the commands have another home. */
const systemPath = (process.env['PATH'] ?? '')
  .split(delimiter)
  .filter((path) => !/^\/(?:root|home)(?:\/|$)/.test(path))
  .join(delimiter)

/** Runs commands in copies of one project, outside and inside, and counts the questions about a corpus of commands. */
export async function run({ size, say, random }: FigureContext): Promise<FigureResult> {
  const support = await probeSandbox()
  if (support.type === 'none') throw new Error(`${support.reason} ${support.repair}`)
  // Not below /tmp, which every box replaces.
  const folder = await realpath(await mkdtemp(join(process.cwd(), 'node_modules/.everyday-')))
  const network = new NetworkKeeper({
    folder: join(folder, 'network'),
    bwrap: support.path,
    rules: noRules,
    idleMs: 100,
  })
  try {
    await makeProject(join(folder, 'project'))
    const commands = shuffled(workingCommands, random).slice(0, sizes[size].commands)
    const outcomes = { bare: 0, inside: 0 }
    const failed: string[] = []
    for (const [index, command] of commands.entries()) {
      const place = join(folder, String(index))
      if ((await runBare(command, await makePlace(place, folder))).code !== 0) continue
      outcomes.bare += 1
      const { work, home } = await makePlace(place, folder)
      const keep = join(place, 'keep')
      const sandbox = await Sandbox.open({ folders: [work], home, keep, support, network })
      const box = await sandbox.box(work)
      const { code, output } = await runIn([...box.argv, 'bash', '-c', command], { work, home, env: box.env })
      if (code === 0) outcomes.inside += 1
      else failed.push(`${command}: ${output.trim().split('\n').at(-1)}`)
    }
    for (const line of failed) say(`fails inside: ${line}`)
    const hasOverlay = !/^0\.(?:\d|10)(?:\.|$)/.test(support.version)
    const share = outcomes.inside / outcomes.bare
    const limit = hasOverlay ? least.overlay : least.fallback
    // A sample may contain all of the commands that fail on purpose; only the whole list is held to the share.
    const accidental = failed.filter((line) => !protectedOnPurpose.some((command) => line.startsWith(command)))
    const allowedFailures = Math.floor((1 - limit) * workingCommands.length)
    const ok = size === 'full' ? share >= limit : accidental.length <= allowedFailures
    const [asked, askedInSandbox] = (['ask', 'sandboxed'] as const).map((mode) => countQuestions(mode, folder)) as [
      number,
      number,
    ]
    const fewer = 1 - askedInSandbox / asked
    say(`${outcomes.inside} of ${outcomes.bare} work inside, with bubblewrap ${support.version}`)
    say(`questions: ${asked} in mode ask, ${askedInSandbox} in mode sandboxed`)
    return {
      ok: ok && fewer >= least.fewerQuestions,
      figures: {
        ...outcomes,
        share: round(share),
        overlay: String(hasOverlay),
        asked,
        asked_in_sandbox: askedInSandbox,
        fewer: round(fewer),
      },
    }
  } finally {
    await network.close()
    await rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** A command in the sandbox that needs a host is asked about it, unless its package manager names the host. */
function countQuestions(mode: PermissionMode, cwd: string): number {
  const corpus = readFileSync(new URL('../corpus/coding-commands.tsv', import.meta.url), 'utf8')
  const rows = corpus
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split('\t'))
  const policy = { mode, rules: noRules, cwd, home: '/home/me', hasSandbox: true }
  return rows.filter(([command = '', needs]) => {
    const judgement = judgeCommand(command, { cwd, policy })
    const isAskedForHost = judgement.effect === 'allow' && judgement.box !== undefined && needs === 'net'
    return judgement.effect === 'ask' || isAskedForHost
  }).length
}

interface Place {
  work: string
  home: string
}

/** Fresh copies: a command may do with them what it likes. */
async function makePlace(place: string, folder: string): Promise<Place> {
  await rm(place, { recursive: true, force: true })
  const [work, home] = [join(place, 'work'), join(place, 'home')]
  await cp(join(folder, 'project'), work, { recursive: true })
  await makeHome(home)
  return { work, home }
}

function runBare(command: string, { work, home }: Place): Promise<{ code: number | null; output: string }> {
  return runIn(['bash', '-c', command], { work, home, env: {} })
}

function runIn(
  [file = '', ...args]: readonly string[],
  { work, home, env }: Place & { env: Readonly<Record<string, string>> },
): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: work,
      env: { PATH: systemPath, HOME: home, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: deadlineMs,
      killSignal: 'SIGKILL',
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => void (output += chunk.toString()))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}

function shuffled<T>(values: readonly T[], random: () => number): T[] {
  return values
    .map((value) => ({ value, place: random() }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ value }) => value)
}
