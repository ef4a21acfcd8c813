import { anthropic } from '@tapetree/agent/models/anthropic'
import { agentSessions, createHandler } from '@tapetree/server'
import { openFileStore } from '@tapetree/session/stores/file'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { build } from 'rolldown'

const here = import.meta.dirname
const resolve = { conditionNames: ['@tapetree/source', 'browser', 'import'] }
const { output } = await build({ input: join(here, 'page.ts'), platform: 'browser', write: false, resolve })
const html = await readFile(join(here, 'index.html'))
const store = openFileStore({ folder: process.env['FOLDER'] ?? 'sessions' })
const agent = createHandler({
  tenants: new Map([['default', agentSessions({ store, model: anthropic({ model: 'claude-sonnet-5' }) })]]),
  // The sign-in of your application belongs here.
  authenticate: () => ({ id: 'visitor', tenant: 'default', role: 'drive' }),
  prefix: '/agent',
})
const server = createServer((request, response) => {
  if (agent.handleRequest(request, response)) return
  if (request.url === '/page.js') response.setHeader('content-type', 'text/javascript').end(output[0].code)
  else response.setHeader('content-type', 'text/html').end(html)
})
server.on('upgrade', (request, socket, head) => agent.handleUpgrade(request, socket, head) || socket.destroy())
server.listen(Number(process.env['PORT'] ?? 8788), '127.0.0.1', () =>
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
)
