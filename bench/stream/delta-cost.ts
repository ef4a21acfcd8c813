import type { LiveEvent, Model } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import type { ModelPart } from '@tapetree/agent/models'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { TestAgent } from '@tapetree/agent/testing'
import { text, type SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { compare } from '../../scripts/figure/compare.ts'
import type { FigureContext } from '../../scripts/figure/figure.ts'
import { median } from '../../scripts/figure/percentile.ts'
import { ReplayedProvider } from './replayed-provider.ts'

const deltas = 100_000
/** Of about the length that providers send. */
const chunks = Array.from({ length: deltas }, (_, index) => ` word${index % 1000}`)
const answer = chunks.join('')

export interface DeltaCost {
  /** Times the bare reading, by the clock on the wall. */
  ratio: number
  /** The same by the processor time of this process, which a busy machine does not lengthen. */
  cpuRatio: number
}

/** What a whole run costs beside reading the same stream: turn, draft file, observer and log. */
export async function measureDeltaCost(
  context: FigureContext,
): Promise<{ ofProvider: DeltaCost; ofGenerator: DeltaCost }> {
  await using provider = await ReplayedProvider.start(chunks)
  const model = anthropic({ model: 'claude-sonnet-4-5', apiKey: 'none', baseUrl: provider.baseUrl })
  return {
    ofProvider: await compareWithBare(model, 'from a provider, by HTTP', context),
    ofGenerator: await compareWithBare(generatedModel, 'from a bare generator, for information', context),
  }
}

async function compareWithBare(model: Model, source: string, context: FigureContext): Promise<DeltaCost> {
  const store = openFileStore({ folder: await context.temporaryFolder() })
  const cpuMs = { bare: [] as number[], ours: [] as number[] }
  const { ratio } = await compare({
    label: `${deltas} deltas ${source}`,
    rounds: context.size === 'full' ? 9 : 5,
    say: context.say,
    bare: () => readBare(model, cpuMs.bare),
    ours: () => readInRun(model, store, cpuMs.ours),
  })
  await store.close()
  // As above, the first round does not count.
  const [bare, ours] = [median(cpuMs.bare.slice(1)), median(cpuMs.ours.slice(1))]
  context.say(`the same in processor time: bare ${bare.toFixed(0)} ms, ours ${ours.toFixed(0)} ms`)
  return { ratio, cpuRatio: ours / bare }
}

async function readBare(model: Model, cpuMs: number[]): Promise<number> {
  const messages = [{ role: 'user' as const, content: [text('Go on.')] }]
  const { signal } = new AbortController()
  let heard = ''
  const wallMs = await taking(cpuMs, async () => {
    const call = model.prepare({ system: 'You are a test.', tools: [], messages, thinkingLevel: 'off' })
    for await (const part of call.stream(signal)) if (part.type === 'text_delta') heard += part.text
  })
  if (heard !== answer) throw new Error('Not all of the answer was heard')
  return wallMs
}

async function readInRun(model: Model, store: SessionStore, cpuMs: number[]): Promise<number> {
  let heard = ''
  const observe = (event: LiveEvent): void => {
    if (event.type === 'delta') heard += event.text
  }
  const agent = await TestAgent.open({ model, store, clock: systemClock, observe })
  const wallMs = await taking(cpuMs, () => agent.prompt('Go on.'))
  const said = await agent.path()
  await agent.close()
  if (heard !== answer || said.at(-1) !== `assistant: ${answer}`) throw new Error('Not all of the answer was kept')
  return wallMs
}

/** Gives the time by the clock on the wall, in milliseconds, and adds the processor time to `cpuMs`. */
async function taking(cpuMs: number[], work: () => Promise<unknown>): Promise<number> {
  const cpuStart = process.cpuUsage()
  const start = performance.now()
  await work()
  const wallMs = performance.now() - start
  const { user, system } = process.cpuUsage(cpuStart)
  cpuMs.push((user + system) / 1000)
  return wallMs
}

/** The least that a model could cost. */
const generatedModel: Model = {
  provider: 'generated',
  id: 'generated',
  api: 'generated',
  limits: { contextTokens: 200_000, outputTokens: 200_000 },
  prepare: () => ({
    reference: { sha256: '0'.repeat(64), adapter: 'generated', adapterVersion: '1' },
    stream: generateParts,
  }),
}

async function* generateParts(): AsyncGenerator<ModelPart> {
  for (const chunk of chunks) yield { type: 'text_delta', part: 0, text: chunk }
  yield { type: 'finish', reason: 'stop' }
}
