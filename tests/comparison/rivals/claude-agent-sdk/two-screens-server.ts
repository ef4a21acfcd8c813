import { query } from '@anthropic-ai/claude-agent-sdk'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

const screens = new Set<ServerResponse>()
let shown = ''
const server = createServer(async (request, response) => {
  if (request.method === 'POST') {
    void answer(await text(request))
    return response.end()
  }
  screens.add(response.writeHead(200, { 'content-type': 'text/event-stream' }))
  response.on('close', () => screens.delete(response))
  show(response)
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))

async function answer(prompt: string): Promise<void> {
  const options = { model: 'claude-sonnet-5', tools: [], settingSources: [], includePartialMessages: true }
  for await (const message of query({ prompt, options })) {
    if (message.type !== 'stream_event' || message.event.type !== 'content_block_delta') continue
    if (message.event.delta.type !== 'text_delta') continue
    shown += message.event.delta.text
    for (const screen of screens) show(screen)
  }
}

/** Every update has the whole answer, so a screen that returns lacks nothing. */
function show(screen: ServerResponse): void {
  screen.write(`data: ${JSON.stringify(shown)}\n\n`)
}
