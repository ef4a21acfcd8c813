import { text, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import {
  MemoryDisk,
  type DiskFault,
  type DiskOperation,
  type DiskState,
} from '../../../packages/session/src/testing/memory-disk.ts'
import { checkEvidence, type Files } from './check-evidence.ts'
import { oldSessionId, runScript, tornTail } from './script.ts'

const folder = '/disk/sessions'

export interface PortFaults {
  runs: number
  hits: number
  refusals: number
  /** How many calls of each kind the script makes. */
  calls: Record<string, number>
  problems: string[]
}

/** Every kind of failure at every call that the file port makes, until a run in which the fault finds no call any more. */
export async function tryPortFaults(): Promise<PortFaults> {
  const start = await diskBefore()
  const result: PortFaults = { runs: 0, hits: 0, refusals: 0, calls: {}, problems: [] }
  for (const operation of operations) {
    for (const kind of kindsOf(operation)) {
      for (let nth = 1; ; nth++) {
        const isHit = await tryFault(start, { operation, nth, ...kind }, result)
        if (!isHit) break
        result.calls[operation] = nth
      }
    }
  }
  return result
}

const operations: readonly DiskOperation[] = [
  'write',
  'dataSync',
  'truncate',
  'rename',
  'create',
  'openAppend',
  'openRead',
  'syncFolder',
  'makeFolder',
]

const errors = ['ENOSPC', 'EDQUOT', 'EIO', 'EINTR']

/** One call that fails, two in a row (the second try fails too), and a disk that stays full until somebody is told. */
function kindsOf(operation: DiskOperation): Omit<DiskFault, 'operation' | 'nth'>[] {
  const failures = [
    ...errors.map((error) => ({ error, times: 1 })),
    { error: 'EIO', times: 2 },
    { error: 'ENOSPC', times: Number.POSITIVE_INFINITY },
  ]
  if (operation !== 'write') return failures
  const short = [
    ...[0, 1, 60].map((taken) => ({ short: taken, times: 1 })),
    { short: 30, times: Number.POSITIVE_INFINITY },
    { short: 30, error: 'EIO', times: 1 },
  ]
  return [...failures, ...short]
}

async function tryFault(start: DiskState, fault: DiskFault, result: PortFaults): Promise<boolean> {
  const disk = new MemoryDisk({ state: start })
  // What is left of a short write must be cut off; where that fails as well, before the next line is written.
  if (fault.operation === 'truncate') disk.failNth({ operation: 'write', nth: 3, times: 3, short: 20 })
  const armed = disk.failNth(fault)
  let refusals = 0
  const evidence = await runScript({
    store: storeOn(disk),
    withLargeValue: fault.error === 'EIO',
    // The caller is told twice, then the cause is over.
    refused: () => {
      if (++refusals === 2) disk.clearFaults()
    },
  })
  disk.clearFaults()
  result.runs++
  result.hits += armed.hits
  result.refusals += evidence.refusals.length
  const problems = disk.openPaths.map((path) => `${path} is still open`)
  for (const [isCrashed, found] of [
    [true, disk.afterPowerCut()],
    [false, disk.afterProcessCrash()],
  ] as const) {
    const scene = { store: storeOn(found), folder, files: filesOn(found), evidence, isCrashed }
    problems.push(
      ...(await checkEvidence(scene)).map((problem) => (isCrashed ? `after a power cut, ${problem}` : problem)),
    )
  }
  result.problems.push(...problems.map((problem) => `${describe(fault)}: ${problem}`))
  return armed.hits > 0
}

/** A session with a torn tail: its writer was killed inside a write. */
async function diskBefore(): Promise<DiskState> {
  const disk = new MemoryDisk()
  const store = storeOn(disk)
  const session = await store.create({ id: oldSessionId })
  await session.appendMessage('user', [text('before the crash')])
  await session.close()
  const fd = disk.openAppend(`${folder}/${oldSessionId}/events.jsonl`)
  disk.write(fd, Buffer.from(tornTail))
  await disk.dataSync(fd)
  disk.close(fd)
  return disk.state
}

function storeOn(disk: MemoryDisk): SessionStore {
  return openFileStore({ folder, port: disk, lock: disk.lock })
}

function filesOn(disk: MemoryDisk): Files {
  return { names: (path) => disk.names(path), content: (path) => disk.contentOf(path) }
}

function describe({ operation, nth, times = 1, error, short }: DiskFault): string {
  const what =
    short === undefined ? error : `a short write of ${short} bytes${error === undefined ? '' : ` and ${error}`}`
  return `${what} at call ${nth} of ${operation}${times === 1 ? '' : `, ${times} in a row`}`
}
