import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { chmod, mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { EditDiagnostics } from '../../packages/agent/src/language-servers/edit-diagnostics.ts'
import { LanguageServers } from '../../packages/agent/src/language-servers/language-servers.ts'
import { findProgram } from '../../packages/agent/src/util/find-program.ts'
import type { FigureContext, FigureResult } from '../../scripts/figure/figure.ts'
import { npm } from '../../scripts/release/packages.ts'
import { projects, type TriedProject } from './language-servers/projects.ts'

export const name = 'language-servers'
export const claim =
  'The model is told of a broken type once, whichever language server a project has; one that hangs or floods costs a run at most 2 s and 16 MB.'
export const sizes = { ci: { servers: 1 }, full: { servers: Infinity } }

const limits = { waitMs: 2000, megabytes: 16 }
/** A server may need so long until it has read a project on a busy machine. */
const patienceMs = 120_000
const repository = fileURLToPath(new URL('../..', import.meta.url))
const scripted = join(repository, 'packages/agent/src/language-servers/testing/scripted-server.ts')
const signal = new AbortController().signal

/**
 * Drives real language servers with small projects: a change that breaks a type in another file's terms, its fix, and the change again.
 * Then scripted servers that hang, never start, flood, announce a gigabyte or crash, and what each costs a run.
 */
export async function run({ size, say, temporaryFolder }: FigureContext): Promise<FigureResult> {
  const problems: string[] = []
  let passed = 0
  const tried = projects.slice(0, sizes[size].servers)
  for (const project of tried) {
    const folder = await realpath(await temporaryFolder())
    const missing = await prepare(project, folder, { isCi: size === 'ci' })
    const found = missing === undefined ? await tryProject(project, folder, say) : [missing]
    if (found.length === 0) passed++
    for (const problem of found) problems.push(`${project.name}: ${problem}`)
  }
  const costs = { waitMs: 0, megabytes: 0 }
  for (const mode of ['hang', 'mute', 'flood', 'huge', 'crash']) {
    const cost = await costOf(mode, await realpath(await temporaryFolder()))
    const { waitMs, wallMs, megabytes } = cost
    const took = `${Math.round(waitMs)} ms of a run (${Math.round(wallMs)} ms by the clock on the wall)`
    say(`a server that does ${mode}: ${took}, ${megabytes.toFixed(1)} MB`)
    if (waitMs > limits.waitMs) problems.push(`${mode}: a run waited ${Math.round(waitMs)} ms`)
    if (megabytes > limits.megabytes) problems.push(`${mode}: it costs ${megabytes.toFixed(1)} MB`)
    costs.waitMs = Math.max(costs.waitMs, Math.round(cost.waitMs))
    costs.megabytes = Math.max(costs.megabytes, Number(cost.megabytes.toFixed(1)))
  }
  for (const problem of problems) say(`PROBLEM ${problem}`)
  return {
    ok: problems.length === 0,
    figures: { servers: tried.length, passed, notPassed: tried.length - passed, ...costs, problems: problems.length },
  }
}

/** Writes the project and installs its server. Returns why there is none. */
async function prepare(
  { files, file, good, packages, program }: TriedProject,
  folder: string,
  { isCi }: { isCi: boolean },
): Promise<string | undefined> {
  if (program && (await findProgram(program.name, process.env['PATH'])) === undefined) {
    const advice =
      program.debian === undefined ? 'Debian has no package of it' : `install the package ${program.debian}`
    return `not passed, because ${program.name} is not installed: ${advice}`
  }
  for (const [path, text] of [...Object.entries(files), [file, good] as const]) {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  // The repository has TypeScript 7.
  if (isCi) await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  else if (packages.length > 0) {
    await writeFile(join(folder, 'package.json'), '{ "private": true }\n')
    await npm(['install', '--silent', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], { cwd: folder })
  }
  return undefined
}

async function tryProject(
  { name: server, files, file, good, bad, says }: TriedProject,
  folder: string,
  say: FigureContext['say'],
): Promise<string[]> {
  const servers = LanguageServers.share({ workspace: folder, environment: process.env })
  const diagnostics = new EditDiagnostics(servers, { cwd: folder, clock: systemClock })
  const problems: string[] = []
  const path = join(folder, file)
  const edit = async (text: string): Promise<void> => {
    await writeFile(path, text)
    diagnostics.afterCall([{ type: 'write', path }])
  }
  let runs = 0
  const report = (): Promise<string | undefined> =>
    diagnostics.report({ runId: `run-${runs++}`, isSettled: true }, signal)
  try {
    // Files of other kinds may be open before.
    await diagnostics.check(Object.keys(files).map((each) => join(folder, each)))
    for (const round of ['first', 'second'] as const) {
      const begun = performance.now()
      await edit(bad)
      const told = await untilTold(report)
      if (told === undefined || !says.test(told)) {
        problems.push(`the ${round} break was ${told === undefined ? 'not told' : `told as ${JSON.stringify(told)}`}`)
        problems.push(...servers.problems)
        break
      }
      say(`${server}: told after ${Math.round(performance.now() - begun)} ms: ${told.split('\n')[2] ?? ''}`)
      for (let again = 0; again < 3; again++) {
        if ((await report()) !== undefined) problems.push(`the ${round} break was told again`)
      }
      await edit(good)
      const { found } = await diagnostics.check([path])
      const left = [...found.values()].flat().filter(({ severity }) => severity === 'error')
      if (left.length > 0) problems.push(`the ${round} fix left ${JSON.stringify(left)}`)
      const after = await report()
      if (after !== undefined) problems.push(`the ${round} fix was told as ${JSON.stringify(after)}`)
    }
  } finally {
    await servers.release()
    await rm(join(folder, 'node_modules'), { recursive: true, force: true })
  }
  return problems
}

/** A slow server is asked in run after run. */
async function untilTold(report: () => Promise<string | undefined>): Promise<string | undefined> {
  const begun = performance.now()
  while (performance.now() - begun < patienceMs) {
    const told = await report()
    if (told !== undefined) return told
    await systemClock.wait(50)
  }
  return undefined
}

interface Cost {
  /** What the run was made to wait. A busy machine adds to it, which is no cost of the server. */
  waitMs: number
  wallMs: number
  megabytes: number
}

/** What one run waits for a server that misbehaves, in all of its turns, and how much memory is held meanwhile. */
async function costOf(mode: string, folder: string): Promise<Cost> {
  const program = join(folder, 'node_modules/.bin/pyright-langserver')
  await mkdir(dirname(program), { recursive: true })
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${scripted}' ${mode} '${join(folder, 'notes')}'\n`)
  await chmod(program, 0o755)
  await writeFile(join(folder, 'pyproject.toml'), '')
  const path = join(folder, 'a.py')
  const servers = LanguageServers.share({ workspace: folder, environment: process.env })
  const clock = new CountingClock()
  const diagnostics = new EditDiagnostics(servers, { cwd: folder, clock })
  const before = held()
  let most = before
  const watch = setInterval(() => (most = Math.max(most, held())), 250)
  let wallMs = 0
  try {
    for (let turn = 0; turn < turns; turn++) {
      await writeFile(path, `BAD ${turn}\n`)
      diagnostics.afterCall([{ type: 'write', path }])
      const begun = performance.now()
      await diagnostics.report({ runId: 'run', isSettled: true }, signal)
      wallMs += performance.now() - begun
      // A server that has died is started again after a second.
      await systemClock.wait(turnMs)
    }
    most = Math.max(most, held())
    return { waitMs: clock.waitedMs, wallMs, megabytes: (most - before) / 2 ** 20 }
  } finally {
    clearInterval(watch)
    await servers.release()
  }
}

const turns = 3
const turnMs = 500

/** The clock of a run. Counts the time that passed in its waits, up to what each was for. */
class CountingClock implements Clock {
  waitedMs = 0

  now(): number {
    return systemClock.now()
  }

  async wait(ms: number, end?: AbortSignal): Promise<void> {
    const begun = this.now()
    try {
      await systemClock.wait(ms, end)
    } finally {
      this.waitedMs += Math.min(ms, this.now() - begun)
    }
  }
}

/** Bytes that cannot be collected. */
function held(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
