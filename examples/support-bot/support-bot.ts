import { createAgent, defineTool } from '@tapetree/agent'
import { anthropic } from '@tapetree/agent/models/anthropic'
import { openFileStore } from '@tapetree/session/stores/file'
import { z } from 'zod'

const schema = z.object({ order: z.string() })
const shop = (path: string, method = 'GET') => fetch(`${process.env['SHOP_URL']}/${path}`, { method })
const lookUp = defineTool({
  name: 'look_up_order',
  description: 'Look up what was ordered, and whether it was paid.',
  schema,
  run: async ({ order }) => (await shop(`orders/${order}`)).text(),
})
const refund = defineTool({
  name: 'refund_order',
  description: 'Pay back the full price of an order.',
  schema,
  run: async ({ order }) => (await shop(`orders/${order}/refund`, 'POST')).text(),
})
const [sessionId, question = ''] = process.argv.slice(2)
const store = openFileStore({ folder: process.env['FOLDER'] ?? 'sessions' })
await using agent = createAgent({ model: anthropic({ model: 'claude-sonnet-5' }), store, tools: [lookUp, refund] })
const reply = (await agent.resume(sessionId)) ?? (await agent.ask(question, { sessionId }))
console.log(reply.text)
