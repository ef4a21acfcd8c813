// A server that violates MCP. Its first argument selects how.
import { createInterface } from 'node:readline'

const mode = process.argv[2]

interface Message {
  id?: number
  method?: string
}

const send = (message: object): boolean => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const answer = (id: number | undefined, result: object): boolean => send({ id, result })
const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } })

if (mode === 'flood') {
  const flood = (): void => {
    while (process.stdout.write('x'.repeat(65_536)));
    process.stdout.once('drain', flood)
  }
  flood()
}
if (mode === 'binary') {
  process.stdout.write(Buffer.from(Array.from({ length: 4096 }, (_, index) => index % 256)))
  process.stdout.write('\n')
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line) as Message
  if (method === 'initialize') {
    if (mode === 'wrong-ids') for (const wrong of [id === 0 ? 1 : 0, 99, 'a', -1]) send({ id: wrong, result: {} })
    answer(id, {
      protocolVersion: '2025-11-25',
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'hostile', version: '1' },
    })
  }
  if (method === 'tools/list') list(id)
  if (method === 'tools/call') call(id)
})

function list(id: number | undefined): void {
  switch (mode) {
    case 'many-tools':
      answer(id, { tools: Array.from({ length: 100_000 }, (_, index) => tool(`t${index}`)) })
      break
    case 'endless-pages':
      answer(id, { tools: [], nextCursor: String(Math.random()) })
      break
    case 'nonsense':
      answer(id, { tools: 'many' })
      break
    case 'storm':
      answer(id, { tools: [tool('t')] })
      for (let index = 0; index < 1000; index += 1) send({ method: 'notifications/tools/list_changed' })
      break
    case 'questions':
      for (let index = 0; index < 1000; index += 1) {
        send({ id: `q${index}`, method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } })
        send({ id: `r${index}`, method: 'roots/list' })
      }
      answer(id, { tools: [tool('t')] })
      break
    default:
      answer(id, { tools: [tool('t')] })
  }
}

function call(id: number | undefined): void {
  switch (mode) {
    case 'wrong-ids':
      send({ id: 12_345, result: { content: [{ type: 'text', text: 'not for you' }] } })
      answer(id, { content: [{ type: 'text', text: 'for you' }] })
      answer(id, { content: [{ type: 'text', text: 'twice' }] })
      break
    case 'odd-content':
      answer(id, {
        content: [null, 7, { type: 'video' }, { type: 'image', data: 'AAAA', mimeType: 'image/png' }, { type: 'text' }],
        structuredContent: [1],
      })
      break
    case 'error':
      send({ id, error: { code: -32_000, message: `\u001b[2Jbad\u202e ${'x'.repeat(10_000)}` } })
      break
    case 'nonsense':
    default:
      answer(id, { content: [] })
  }
}
