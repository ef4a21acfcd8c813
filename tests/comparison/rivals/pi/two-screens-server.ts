import { createAgentSession, ModelRuntime, SessionManager } from '@earendil-works/pi-coding-agent'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

const modelRuntime = await ModelRuntime.create()
const { session } = await createAgentSession({
  modelRuntime,
  model: modelRuntime.getModel('anthropic', 'claude-sonnet-5'),
  noTools: 'builtin',
  sessionManager: SessionManager.create(process.cwd(), `${process.env['FOLDER']}/sessions`),
})
const screens = new Set<ServerResponse>()
let shown = ''
session.subscribe((event) => {
  if (event.type !== 'message_update' && event.type !== 'message_end') return
  if (event.message.role !== 'assistant') return
  shown = event.message.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  for (const screen of screens) show(screen)
})
const server = createServer(async (request, response) => {
  if (request.method === 'POST') {
    void session.prompt(await text(request))
    return response.end()
  }
  screens.add(response.writeHead(200, { 'content-type': 'text/event-stream' }))
  response.on('close', () => screens.delete(response))
  show(response)
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))

/** Every update has the whole answer, so a screen that returns lacks nothing. */
function show(screen: ServerResponse): void {
  screen.write(`data: ${JSON.stringify(shown)}\n\n`)
}
