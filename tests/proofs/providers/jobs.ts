import { startFakeProvider } from '@tapetree/agent/testing'
import { randomFrom } from '../../../scripts/figure/random.ts'
import { converse } from './conversation.ts'
import { Draw } from './draw.ts'

/** The seeds of the conversations to play. */
export interface Job {
  seeds: number[]
}

export interface Tally {
  counts: Record<string, number>
  kinds: string[]
  switches: string[]
  problems: { seed: number; text: string }[]
}

/** Conversations that run side by side in one thread. */
const lanes = 4

export async function runJob({ seeds }: Job): Promise<Tally> {
  const counts: Record<string, number> = {}
  const kinds = new Set<string>()
  const switches = new Set<string>()
  const problems: Tally['problems'] = []
  const rest = [...seeds]
  const play = async (): Promise<void> => {
    // A fake provider keeps its requests; each lane of each job has a new one, so memory stays flat.
    await using fake = await startFakeProvider()
    for (let seed = rest.shift(); seed !== undefined; seed = rest.shift()) {
      try {
        const played = await converse(fake, { seed, draw: new Draw(randomFrom(seed)) })
        for (const text of played.problems) problems.push({ seed, text })
        for (const kind of played.kinds) kinds.add(kind)
        for (const each of played.switches) switches.add(each)
        const added = { ...played.counts, conversations: 1, requests: played.requests }
        for (const [name, count] of Object.entries(added)) counts[name] = (counts[name] ?? 0) + count
      } catch (error) {
        problems.push({
          seed,
          text: `The conversation failed: ${error instanceof Error ? error.stack : String(error)}`,
        })
      }
    }
  }
  await Promise.all(Array.from({ length: lanes }, play))
  return { counts, kinds: [...kinds], switches: [...switches], problems }
}
