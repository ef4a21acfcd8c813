// Runs the script again and again with the shim loaded, each time with another fault: `faulty-process.ts <folder>`, faults on stdin.
import { appendFileSync, openSync, readFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { oldSessionId, runScript, tornTail, type Evidence } from './script.ts'

/** One of the shim's kinds of call, which one of them fails, for how many in a row, and how. */
export interface RealFault {
  kind: string
  nth: number
  times: number
  /** 0 for a short write. */
  errno: number
  short: number
}

export interface RealRun {
  folder: string
  fault: RealFault
  evidence: Evidence
  counts: Record<string, number>
}

async function main(): Promise<void> {
  const root = process.argv[2] as string
  let number = 0
  for await (const line of createInterface({ input: process.stdin })) {
    const run = await runWith(root, join(root, `run-${process.pid}-${++number}`), JSON.parse(line) as RealFault)
    writeSync(1, `${JSON.stringify(run)}\n`)
  }
}

async function runWith(root: string, folder: string, fault: RealFault): Promise<RealRun> {
  await prepare(folder)
  const { kind, nth, times, errno, short } = fault
  send(root, `${kind} ${nth} ${times} ${errno} ${short}`)
  let refusals = 0
  const evidence = await runScript({
    store: openFileStore({ folder }),
    withLargeValue: true,
    refused: () => {
      if (++refusals === 2) send(root, 'off')
    },
  })
  send(root, 'off')
  send(root, 'report')
  return { folder, fault, evidence, counts: readCounts(root) }
}

/** A session with a torn tail, as a killed writer leaves it. */
async function prepare(folder: string): Promise<void> {
  await using session = await openFileStore({ folder }).create({ id: oldSessionId })
  await session.appendMessage('user', [text('before the crash')])
  await session.close()
  appendFileSync(join(folder, oldSessionId, 'events.jsonl'), tornTail)
}

/** The shim reads what is opened here, and says that it is not there. */
function send(root: string, message: string): void {
  try {
    openSync(join(root, '.fault', message), 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function readCounts(root: string): Record<string, number> {
  const lines = readFileSync(join(root, '.fault-report'), 'utf8').trim().split('\n')
  return Object.fromEntries(lines.map((line) => line.split(' ')).map(([name = '', count]) => [name, Number(count)]))
}

await main()
