import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Session } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { compare } from '../scripts/figure/compare.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { writeCompactedSession, writePlainSession } from './session/generate.ts'

export const name = 'context'
export const claim = 'Building the context costs what the context holds, not what the history holds.'
export const sizes = { ci: { contexts: 300 }, full: { contexts: 2000 } }

/**
 * Building the context of the next turn does not depend on what was compacted away; and in a fresh process it takes little more than
 * reading and parsing its lines.
 */
export async function run(context: FigureContext): Promise<FigureResult> {
  const ratio = await afterCompaction(context)
  const cold = await inFreshProcess(context)
  const figures = {
    ratio: round(ratio),
    cold_ratio: round(cold.closed),
    cold_without_checkpoint_ratio: round(cold.unclosed),
  }
  return { ok: ratio <= 1.5 && cold.closed <= 2 && cold.unclosed <= 2, figures }
}

async function afterCompaction(context: FigureContext): Promise<number> {
  const folder = await context.temporaryFolder()
  const store = openFileStore({ folder })
  const sessions: Session[] = []
  for (const [id, entries] of [
    ['long', 100_000],
    ['short', 1000],
  ] as const) {
    writeCompactedSession(folder, { id, entries, after: 200 })
    const session = await store.open(id)
    // The whole tree is in memory: what is measured is the way from the leaf, not the reading.
    session.getLabels()
    sessions.push(session)
  }
  const [long, short] = sessions as [Session, Session]
  const calls = sizes[context.size].contexts
  const { ratio } = await compare({
    label: 'context after a compaction, 100,000 entries against 1,000',
    rounds: 9,
    say: context.say,
    bare: () => ask(short, calls),
    ours: () => ask(long, calls),
  })
  for (const session of sessions) await session.close()
  await store.close()
  return ratio
}

/** CPU time, because other programs on the machine do not change it. Each round starts its own processes. */
async function inFreshProcess({ temporaryFolder, say }: FigureContext): Promise<{ closed: number; unclosed: number }> {
  const folder = await temporaryFolder()
  const { bytes } = writePlainSession(folder, { id: 'closed', messages: 100_000 })
  say(`100,000 messages without a compaction, ${Math.round(bytes / 1e6)} MB`)
  for (const id of ['unclosed', 'short']) writePlainSession(folder, { id, messages: id === 'short' ? 100 : 100_000 })
  // Closing writes the checkpoint.
  const store = openFileStore({ folder })
  const session = await store.open('closed')
  await session.appendSessionInfo('closed')
  await store.close()
  const ratioOf = async (id: string): Promise<number> => {
    const round = async (side: string): Promise<number> => {
      const program = join(import.meta.dirname, 'context/cold.ts')
      const { stdout } = await execute(process.execPath, [...process.execArgv, program, side, folder, id])
      const { cpuMs, messages } = JSON.parse(stdout) as { cpuMs: number; messages: number }
      if (messages !== 100_000) throw new Error(`The context has ${messages} messages where 100,000 were expected`)
      return cpuMs
    }
    const label = `context of 100,000 messages in a fresh process, ${id} session, CPU time`
    return (await compare({ label, rounds: 5, say, bare: () => round('bare'), ours: () => round('ours') })).ratio
  }
  return { closed: await ratioOf('closed'), unclosed: await ratioOf('unclosed') }
}

const execute = promisify(execFile)

function round(value: number): number {
  return Math.round(value * 100) / 100
}

async function ask(session: Session, calls: number): Promise<void> {
  for (let index = 0; index < calls; index++) await session.getContext()
}
