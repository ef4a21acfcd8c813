// A program that uses our packages as their users do. It is copied beside an installation and run there, as it is and from bundles.
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allTools, createAgent, defineTool, onlyModel, openCodingAgent } from '@tapetree/agent'
import { RegistryError } from '@tapetree/agent/models'
import { script, scriptedModel } from '@tapetree/agent/testing'
import { RestClient } from '@tapetree/client'
import { createRedactor } from '@tapetree/redact'
import { agentSessions, startServer, TokenStore } from '@tapetree/server'
import { openFileStore } from '@tapetree/session/stores/file'
import { z } from 'zod'

const folder = await mkdtemp(join(tmpdir(), 'tapetree-packages-program-'))
const store = openFileStore({ folder: join(folder, 'sessions') })

const add = defineTool({
  name: 'add',
  description: 'Adds two numbers.',
  schema: z.object({ left: z.number(), right: z.number().default(2) }),
  access: () => [{ type: 'tool', name: 'add', readOnly: true }],
  run: async ({ left, right }) => {
    const sum: number = left + right
    return { content: `The sum is ${sum}.` }
  },
})

/** A tool of this program, a command, a search and a page: each needs files or programs of its own. */
async function useTools(): Promise<void> {
  const pages = createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end('<html><body><h1>A page</h1></body></html>'),
  )
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve))
  const address = pages.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`
  await writeFile(join(folder, 'a.txt'), 'a needle\n')
  const model = scriptedModel(
    script()
      .toolCall('1', 'add', { left: 40 })
      .toolCall('2', 'bash', { command: 'echo from-$((6 * 7))' })
      .toolCall('3', 'grep', { pattern: 'needle' })
      .toolCall('4', 'fetch', { url })
      .step()
      .text('Done.'),
  )
  const tools = [add, ...allTools({ allowPrivateAddresses: true })]
  const agent = createAgent({ model, tools, store, cwd: folder })
  const results: string[] = []
  await agent.ask('Go.', { onToolResult: ({ content }) => results.push(JSON.stringify(content)) })
  await agent.close()
  pages.close()
  for (const expected of ['The sum is 42.', 'from-42', 'a needle', '# A page'])
    assert.ok(
      results.some((result) => result.includes(expected)),
      `${expected} is not in ${results.join(' ')}`,
    )
}

/** An optional package that is not installed is an error with a name, in a bundle too. */
async function missProvider(): Promise<void> {
  const env = { HOME: folder, ANTHROPIC_API_KEY: 'none' }
  const opening = openCodingAgent({
    store,
    cwd: folder,
    home: folder,
    env,
    flags: { model: 'anthropic/claude-opus-5' },
  })
  await assert.rejects(opening, (error) => error instanceof RegistryError && error.code === 'missing-package')
}

async function serve(): Promise<void> {
  const tokens = await TokenStore.open({ file: join(folder, 'tokens.json') })
  const { token } = await tokens.create({ tenant: 'default', role: 'drive' })
  const models = onlyModel(scriptedModel(script().text('Green.')))
  const server = await startServer({
    tenants: new Map([['default', agentSessions({ store, models })]]),
    tokens,
    api: { roots: () => [folder] },
  })
  const client = new RestClient({ baseUrl: server.url, token })
  const { id } = await client.createSession({ cwd: folder })
  assert.equal(typeof id, 'string')
  const document = await fetch(`${server.url}/api/openapi.json`, { headers: { authorization: `Bearer ${token}` } })
  assert.match(await document.text(), /"openapi":"3\.1\.0"/)
  await server.close()
}

await useTools()
await missProvider()
await serve()
assert.equal(createRedactor().text('nothing secret'), 'nothing secret')
await store.close()
await rm(folder, { recursive: true })
console.log('everything works')
