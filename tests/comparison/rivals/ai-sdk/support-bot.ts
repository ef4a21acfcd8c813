import { anthropic } from '@ai-sdk/anthropic'
import { tool, ToolLoopAgent, type ModelMessage } from 'ai'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { z } from 'zod'

const inputSchema = z.object({ order: z.string() })
const shop = (path: string, method = 'GET') => fetch(`${process.env['SHOP_URL']}/${path}`, { method })
const lookUp = tool({
  description: 'Look up what was ordered, and whether it was paid.',
  inputSchema,
  execute: async ({ order }) => (await shop(`orders/${order}`)).text(),
})
const refund = tool({
  description: 'Pay back the full price of an order.',
  inputSchema,
  execute: async ({ order }) => (await shop(`orders/${order}/refund`, 'POST')).text(),
})
const [sessionId, question = ''] = process.argv.slice(2)
const file = `${process.env['FOLDER']}/${sessionId}.json`
const messages: ModelMessage[] = existsSync(file) ? JSON.parse(await readFile(file, 'utf8')) : []
const save = () => writeFile(file, JSON.stringify(messages))
if (messages.at(-1)?.role !== 'user') messages.push({ role: 'user', content: question })
await save()
const tools = { look_up_order: lookUp, refund_order: refund }
const agent = new ToolLoopAgent({ model: anthropic('claude-sonnet-5'), tools })
const { text, responseMessages } = await agent.generate({ messages })
messages.push(...responseMessages)
await save()
console.log(text)
