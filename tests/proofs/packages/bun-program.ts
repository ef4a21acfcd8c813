// What works on Bun: the log, the client, the server, and an agent with tools of its own and the tools for files.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allTools, createAgent, defineTool, onlyModel } from '@tapetree/agent'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { RemoteSession, RestClient } from '@tapetree/client'
import { agentSessions, startServer, TokenStore } from '@tapetree/server'
import { text } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { z } from 'zod'

const folder = await mkdtemp(join(tmpdir(), 'tapetree-bun-program-'))
const store = openFileStore({ folder: join(folder, 'sessions') })

const session = await store.create({ name: 'First' })
await session.appendMessage('user', [text('Name a color.')])
assert.equal((await session.getContext()).messages.length, 1)

const results: string[] = []
const greet = defineTool({
  name: 'greet',
  description: 'Greets somebody.',
  schema: z.object({ whom: z.string() }),
  access: () => [{ type: 'tool', name: 'greet', readOnly: true }],
  run: async ({ whom }) => ({ content: `Hello, ${whom}.` }),
})
const model = scriptedModel(
  script()
    .toolCall('1', 'greet', { whom: 'Bun' })
    .step()
    .toolCall('2', 'write', { path: 'a.txt', content: 'one needle\n' })
    .step()
    .toolCall('3', 'edit', { path: 'a.txt', oldText: 'one', newText: 'two' })
    .step()
    .toolCall('4', 'read', { path: 'a.txt' })
    .toolCall('5', 'ls', { path: '.' })
    .toolCall('6', 'grep', { pattern: 'two needle' })
    .toolCall('7', 'find', { pattern: '*.txt' })
    .step()
    .text('Done.'),
)
const agent = createAgent({ model, tools: [greet, ...allTools()], cwd: folder })
await agent.ask('Go.', { onToolResult: ({ content }) => results.push(JSON.stringify(content)) })
await agent.close()
const printed = results.join('\n')
assert.match(printed, /Hello, Bun\./)
assert.match(printed, /a\.txt\\n1: two needle/)
assert.equal(results.filter((result) => result.includes('a.txt')).length, 5, printed)

const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
const { token } = await tokens.create({ tenant: 'default', role: 'drive' })
const models = onlyModel(scriptedModel(script().text('Green.')))
const server = await startServer({
  tenants: new Map([['default', agentSessions({ store, models })]]),
  tokens,
  api: { roots: () => [folder] },
})
const connection = { baseUrl: server.url, token }
const { id } = await new RestClient(connection).createSession({ cwd: folder })
const remote = await RemoteSession.open({ ...connection, sessionId: id })
const answered = new Promise<void>((resolve) => {
  remote.subscribe(() => {
    if (JSON.stringify([...remote.transcript.path.items]).includes('Green.')) resolve()
  })
})
await remote.prompt('Name a color.')
await answered
await remote[Symbol.asyncDispose]()
await server.close()
await store.close()
await rm(folder, { recursive: true })
console.log('everything works')
process.exit()
