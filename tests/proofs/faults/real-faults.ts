import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openFileStore } from '@tapetree/session/stores/file'
import { checkEvidence, type Files } from './check-evidence.ts'
import type { RealFault, RealRun } from './faulty-process.ts'

export interface RealFaults {
  runs: number
  hits: number
  refusals: number
  /** How many faults there are in all. */
  possible: number
  calls: Record<string, number>
  problems: string[]
}

/**
 * The same script in a process whose system calls fail by a library loaded before libc. `choose` picks from all faults that a
 * run without any could meet.
 */
export async function tryRealFaults(
  temporaryFolder: string,
  choose: (faults: RealFault[]) => RealFault[],
): Promise<RealFaults> {
  const shim = join(temporaryFolder, 'fault-shim.so')
  const source = join(import.meta.dirname, 'fault-shim.c')
  const compiler = process.env['CC'] ?? 'gcc'
  execFileSync(compiler, ['-shared', '-fPIC', '-O2', '-Wall', '-o', shim, source, '-ldl'], { stdio: 'inherit' })
  const root = realFolder(temporaryFolder)
  try {
    const { hits: _, ...calls } = await countCalls({ root, shim })
    const faults = faultsFor(calls)
    const result: RealFaults = { runs: 0, hits: 0, refusals: 0, possible: faults.length, calls, problems: [] }
    for await (const run of runFaults(choose(faults), { root, shim })) await take(run, result)
    return result
  } finally {
    if (root !== temporaryFolder) rmSync(root, { recursive: true, force: true })
  }
}

async function countCalls(program: { root: string; shim: string }): Promise<Record<string, number>> {
  let counts: Record<string, number> = {}
  for await (const run of runFaults([noFault], program)) ({ counts } = run)
  return counts
}

const noFault: RealFault = { kind: 'none', nth: 0, times: 0, errno: 0, short: 0 }

/** In memory where there is such a folder: the calls are real, and nobody waits for a disk. */
function realFolder(temporaryFolder: string): string {
  return existsSync('/dev/shm') ? mkdtempSync('/dev/shm/tapetree-faults-') : temporaryFolder
}

function faultsFor(counts: Record<string, number>): RealFault[] {
  const { ENOSPC, EDQUOT, EIO, EINTR } = constants.errno
  return ['write', 'fdatasync', 'ftruncate', 'rename', 'open'].flatMap((kind) => {
    const single = [ENOSPC, EDQUOT, EIO, EINTR].map((errno) => ({ errno, times: 1, short: 0 }))
    const lasting = [
      { errno: EIO, times: 2, short: 0 },
      { errno: ENOSPC, times: lastingTimes, short: 0 },
    ]
    const short = [
      { errno: 0, times: 1, short: 1 },
      { errno: 0, times: 1, short: 60 },
      { errno: 0, times: lastingTimes, short: 0 },
    ]
    const ways = [...single, ...lasting, ...(kind === 'write' ? short : [])]
    const numbers = Array.from({ length: counts[kind] ?? 0 }, (_, index) => index + 1)
    return numbers.flatMap((nth) => ways.map((way) => ({ kind, nth, ...way })))
  })
}

/** Until the caller has been told and the cause is over. */
const lastingTimes = 1_000_000

async function* runFaults(
  faults: readonly RealFault[],
  { root, shim }: { root: string; shim: string },
): AsyncIterable<RealRun> {
  const program = join(import.meta.dirname, 'faulty-process.ts')
  const child = spawn(process.execPath, ['-C', '@tapetree/source', program, root], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, LD_PRELOAD: shim, TAPETREE_FAULT_FOLDER: root },
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  child.stdin.end(faults.map((fault) => `${JSON.stringify(fault)}\n`).join(''))
  let answers = 0
  for await (const line of createInterface({ input: child.stdout })) {
    answers++
    yield JSON.parse(line) as RealRun
  }
  const status = await ended
  if (status !== 0 || answers < faults.length) {
    throw new Error(`The process with the shim ended with ${status} at ${describe(faults[answers] ?? noFault)}.`)
  }
}

async function take({ folder, fault, evidence, counts }: RealRun, result: RealFaults): Promise<void> {
  result.runs++
  result.hits += counts['hits'] ?? 0
  result.refusals += evidence.refusals.length
  const store = openFileStore({ folder })
  const problems = await checkEvidence({ store, folder, files, evidence, isCrashed: false })
  await store.close()
  if (counts['hits'] === 0) problems.push('the fault met no call')
  result.problems.push(...problems.map((problem) => `${describe(fault)}: ${problem}`))
  rmSync(folder, { recursive: true, force: true })
}

const files: Files = {
  names: (path) => (existsSync(path) && statSync(path).isDirectory() ? readdirSync(path) : []),
  content: (path) => (existsSync(path) ? readFileSync(path) : undefined),
}

function describe({ kind, nth, times, errno, short }: RealFault): string {
  const codes = Object.entries(constants.errno)
  const code = codes.find(([, number]) => number === errno)?.[0]
  const lasting = times === 1 ? '' : times === lastingTimes ? ' and all after it' : `, ${times} in a row`
  return `${code ?? `a short write of ${short} bytes`} at real call ${nth} of ${kind}${lasting}`
}
