// Copies a session between a folder and a database, given as arguments, and waits for a line on stdin after each step.
import { createInterface } from 'node:readline'
import { copySession, fileCopyTarget, type CopyTarget, type IncomingSession } from '../stores/copy.ts'
import { FileLogStore } from '../stores/file/file-store.ts'
import { postgresCopyTarget } from '../stores/postgres/copy-target.ts'
import { PostgresLogStore } from '../stores/postgres/postgres-store.ts'

const [from = '', to = '', sessionId = ''] = process.argv.slice(2)
const isDatabase = (store: string): boolean => store.startsWith('postgres:')
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]()

async function step(name = 'step'): Promise<void> {
  process.stdout.write(`${name}\n`)
  await answers.next()
}

const target = isDatabase(to) ? postgresCopyTarget(to) : fileCopyTarget({ folder: to })
const stepwise: CopyTarget = {
  ...target,
  receive: async (...args) => {
    const incoming = await target.receive(...args)
    await step()
    return inSteps(incoming)
  },
}

function inSteps(incoming: IncomingSession): IncomingSession {
  const append = incoming.append.bind(incoming)
  const putBlob = incoming.putBlob.bind(incoming)
  incoming.append = async (lines) => {
    const half = Math.ceil(lines.length / 2)
    for (const part of [lines.slice(0, half), lines.slice(half)]) {
      if (part.length > 0) await append(part)
      await step()
    }
  }
  incoming.putBlob = async (bytes) => {
    const stored = await putBlob(bytes)
    await step()
    return stored
  }
  const publish = incoming.publish.bind(incoming)
  incoming.publish = async (place) => {
    await step('last step')
    await publish(place)
  }
  return incoming
}

const source = isDatabase(from)
  ? new PostgresLogStore({ url: from, leaseMs: 1000 })
  : new FileLogStore({ folder: from })
await copySession({ from: source, to: stepwise, sessionId }).catch(() => {
  process.exitCode = 1
})
await target.close()
await source.close()
process.exit()
