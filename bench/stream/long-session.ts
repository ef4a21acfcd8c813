// A fresh process with --expose-gc: one long session, and how large the heap is after a collection at some of its turns.
import { setImmediate } from 'node:timers/promises'
import type { LiveEvent, Tool } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import { script, ScriptedModel, TestAgent, type ScriptBuilder } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'

export interface LongSession {
  heaps: { turn: number; heapBytes: number }[]
  turns: number
  toolCalls: number
  compactions: number
  runs: number
}

const turnsBetweenCompactions = 100
const turnsInRun = 250
const words = 'The next step is small, and it is told in a few words as most steps are. '.repeat(4)
const output = 'a line of the output of a tool, about as long as most\n'.repeat(20)

const [folder = '', ...rest] = process.argv.slice(2)
const measuredTurns = rest.map(Number)
const lastTurn = Math.max(...measuredTurns)
const told: LongSession = { heaps: [], turns: 0, toolCalls: 0, compactions: 0, runs: 1 }
let turnsSinceCompaction = 0
let settledAt = 0

const model = new ScriptedModel([], {
  // Each turn says that it has filled another thousand, so it is known when the window is full.
  limits: { contextTokens: 1000 * turnsBetweenCompactions, outputTokens: 1000 },
  otherwise: ({ tools }) => {
    // What a test likes to look at would be all that grows.
    model.requests.length = 0
    if (tools.length === 0) return script().text('So far: ', words)
    return isRunDone() ? endRun() : turn()
  },
})
const store = openFileStore({ folder })
const agent = await TestAgent.open({
  model,
  store,
  clock: systemClock,
  tools: [tool('look'), tool('search')],
  settings: { compaction: { isEnabled: true, reserveTokens: 0, keepTokens: 4000 } },
  observe,
})
const { outcome, message } = await agent.prompt('Begin.')
if (outcome !== 'completed') throw new Error(`The run was ${outcome}: ${message}`)
await agent.close()
await store.close()
console.log(JSON.stringify(told))

function turn(): ScriptBuilder {
  const number = ++told.turns
  turnsSinceCompaction++
  const steps = script()
  if (measuredTurns.includes(number)) steps.do(() => measureHeap(number))
  return steps
    .text(...`Turn ${number}. ${words}`.split(/(?<= )/))
    .toolCall(`look-${number}`, 'look', { path: `src/file-${number}.ts` })
    .toolCall(`search-${number}`, 'search', { pattern: `word ${number}` })
    .usage({ inputTokens: 1000 * turnsSinceCompaction, outputTokens: 100 })
}

function isRunDone(): boolean {
  return told.turns === lastTurn || (told.turns % turnsInRun === 0 && told.turns !== settledAt)
}

/** The message that waits begins the next run, under the same signal. */
function endRun(): ScriptBuilder {
  settledAt = told.turns
  if (told.turns === lastTurn) return script().text('Done.')
  told.runs++
  return script()
    .do(() => agent.session.submit('Go on.'))
    .text('Done so far.')
}

async function measureHeap(turn: number): Promise<void> {
  // What a collection finds to be gone is cleaned up after it, and goes in the next one.
  for (let round = 0; round < 5; round++) {
    globalThis.gc?.()
    await setImmediate()
  }
  told.heaps.push({ turn, heapBytes: process.memoryUsage().heapUsed })
}

function tool(name: string): Tool {
  const run = (): Promise<{ content: string }> => {
    told.toolCalls++
    return Promise.resolve({ content: `${name} ${told.toolCalls}\n${output}` })
  }
  return { ...model.tool(name, { readOnly: true }), check: () => ({ access: [], run }) }
}

function observe(event: LiveEvent): void {
  if (event.type !== 'auto_compaction_end') return
  if (event.outcome === 'compacted') told.compactions++
  turnsSinceCompaction = 0
}
