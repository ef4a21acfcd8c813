import { createAgentSession, defineTool, ModelRuntime, SessionManager } from '@earendil-works/pi-coding-agent'
import { Type } from 'typebox'

const measure = defineTool({
  name: 'measure',
  label: 'Measure',
  description: 'Measure a sample.',
  parameters: Type.Object({ sample: Type.String() }),
  execute: async (_id, { sample }) => {
    const response = await fetch(`${process.env['LAB_URL']}/samples/${sample}`)
    return { content: [{ type: 'text', text: await response.text() }], details: {} }
  },
})
const modelRuntime = await ModelRuntime.create()
const folder = `${process.env['FOLDER']}/sessions`
await Promise.all(Array.from({ length: 50 }, (_, sample) => compare(`sample-${sample}`)))

/** Asks the first model, then lets the other one continue from the same measurement. */
async function compare(sample: string): Promise<void> {
  const sessionManager = SessionManager.create(process.cwd(), folder)
  const first = await ask('claude-sonnet-5', sessionManager, `Measure ${sample} and judge it.`)
  const step = sessionManager
    .getBranch()
    .findLast((entry) => entry.type === 'message' && entry.message.role === 'toolResult')
  const fork = sessionManager.createBranchedSession(step?.id ?? '')
  const other = await ask('claude-opus-5', SessionManager.open(fork ?? ''), 'Judge it.')
  console.log(JSON.stringify({ sample, fork, first, other }))
}

async function ask(model: string, sessionManager: SessionManager, question: string): Promise<string | undefined> {
  const { session } = await createAgentSession({
    modelRuntime,
    model: modelRuntime.getModel('anthropic', model),
    noTools: 'builtin',
    customTools: [measure],
    sessionManager,
  })
  await session.prompt(question)
  const text = session.getLastAssistantText()
  session.dispose()
  return text
}
