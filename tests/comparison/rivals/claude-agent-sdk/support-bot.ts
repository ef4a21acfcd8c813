import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { z } from 'zod'

const schema = { order: z.string() }
const shop = async (path: string, method = 'GET') => {
  const response = await fetch(`${process.env['SHOP_URL']}/${path}`, { method })
  return { content: [{ type: 'text' as const, text: await response.text() }] }
}
const lookUp = tool('look_up_order', 'Look up what was ordered, and whether it was paid.', schema, ({ order }) =>
  shop(`orders/${order}`),
)
const refund = tool('refund_order', 'Pay back the full price of an order.', schema, ({ order }) =>
  shop(`orders/${order}/refund`, 'POST'),
)
const [customer, prompt = ''] = process.argv.slice(2)
const file = `${process.env['FOLDER']}/${customer}`
const known = existsSync(file) ? await readFile(file, 'utf8') : undefined
const sessionId = known ?? randomUUID()
await writeFile(file, sessionId)
const options = {
  model: 'claude-sonnet-5',
  mcpServers: { shop: createSdkMcpServer({ name: 'shop', tools: [lookUp, refund] }) },
  tools: [],
  allowedTools: ['mcp__shop__look_up_order', 'mcp__shop__refund_order'],
  settingSources: [],
  ...(known === undefined ? { sessionId } : { resume: known }),
}
for await (const message of query({ prompt, options }))
  if (message.type === 'result' && message.subtype === 'success') console.log(message.result)
