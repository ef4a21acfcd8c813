import { createAgentSession, defineTool, ModelRuntime, SessionManager } from '@earendil-works/pi-coding-agent'
import { mkdirSync } from 'node:fs'
import { Type } from 'typebox'

const parameters = Type.Object({ order: Type.String() })
const shop = async (path: string, method = 'GET') => {
  const response = await fetch(`${process.env['SHOP_URL']}/${path}`, { method })
  return { content: [{ type: 'text' as const, text: await response.text() }], details: {} }
}
const lookUp = defineTool({
  name: 'look_up_order',
  label: 'Look up an order',
  description: 'Look up what was ordered, and whether it was paid.',
  parameters,
  execute: (_id, { order }) => shop(`orders/${order}`),
})
const refund = defineTool({
  name: 'refund_order',
  label: 'Refund an order',
  description: 'Pay back the full price of an order.',
  parameters,
  execute: (_id, { order }) => shop(`orders/${order}/refund`, 'POST'),
})
const [sessionId, question = ''] = process.argv.slice(2)
const folder = `${process.env['FOLDER']}/${sessionId}`
mkdirSync(folder, { recursive: true })
const modelRuntime = await ModelRuntime.create()
const { session } = await createAgentSession({
  modelRuntime,
  model: modelRuntime.getModel('anthropic', 'claude-sonnet-5'),
  noTools: 'builtin',
  customTools: [lookUp, refund],
  sessionManager: SessionManager.continueRecent(process.cwd(), folder),
})
await session.prompt(question)
console.log(session.getLastAssistantText())
session.dispose()
