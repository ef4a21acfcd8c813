import type { Session } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { compare } from '../scripts/figure/compare.ts'
import type { FigureContext, FigureResult } from '../scripts/figure/figure.ts'
import { writeCompactedSession } from './session/generate.ts'

export const name = 'context'

/** Building the context of the next turn does not depend on what was compacted away. */
export async function run(context: FigureContext): Promise<FigureResult> {
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
  const calls = context.size === 'full' ? 2000 : 300
  const { ratio } = await compare({
    label: 'context after a compaction, 100,000 entries against 1,000',
    rounds: 9,
    say: context.say,
    bare: () => ask(short, calls),
    ours: () => ask(long, calls),
  })
  for (const session of sessions) await session.close()
  await store.close()
  return { ok: ratio <= 1.5, figures: { ratio: Math.round(ratio * 100) / 100 } }
}

async function ask(session: Session, calls: number): Promise<void> {
  for (let index = 0; index < calls; index++) await session.getContext()
}
