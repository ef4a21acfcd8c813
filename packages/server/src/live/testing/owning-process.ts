// A process that owns a session, as a terminal does: it runs its parent's orders one after another.
import { AgentSession, onlyModel, allowAll } from '@tapetree/agent'
import { systemClock } from '@tapetree/agent/run'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { openFileStore } from '@tapetree/session/stores/file'

/** `say`: a prompt; the answer streams these pieces, `pauseMs` apart. `leave`: closes the session, and stays. */
export type Order = { type: 'say'; prompt: string; pieces: string[]; pauseMs: number } | { type: 'leave' }

const [folder = '', given] = process.argv.slice(2)
const store = openFileStore({ folder })
const sessionId = given ?? (await newSession())
let queue: Promise<unknown> = Promise.resolve()

process.on('message', (order: Order) => {
  queue = queue.then(() => answer(order))
})

async function answer(order: Order): Promise<void> {
  try {
    process.send?.(await carryOut(order))
  } catch (error) {
    // Another process may own it by now.
    process.send?.({ type: 'refused', message: (error as Error).message })
  }
}

// Held between runs, so that no other process can take it.
const held = await store.open(sessionId)
process.send?.({ type: 'ready', sessionId })

async function carryOut(order: Order): Promise<{ type: string }> {
  if (order.type === 'leave') {
    await held.close()
    return { type: 'left' }
  }
  let says = script()
  for (const piece of order.pieces) says = says.text(piece).wait(order.pauseMs)
  await using agent = await openAgent(says)
  const outcome = await agent.prompt(order.prompt)
  if (outcome.type === 'started') await outcome.run.done
  return { type: 'said' }
}

function openAgent(says: ReturnType<typeof script>): Promise<AgentSession> {
  return AgentSession.open({
    store,
    sessionId,
    models: onlyModel(scriptedModel(says, { clock: systemClock })),
    tools: () => [],
    gate: () => allowAll,
    hasSubagents: false,
    owner: 'terminal',
    cwd: folder,
  })
}

async function newSession(): Promise<string> {
  await using made = await store.create({ cwd: folder })
  return made.id
}
