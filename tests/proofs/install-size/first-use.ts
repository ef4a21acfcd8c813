// Works with the packages as somebody has them who has just installed them. It is copied to where they are.
// `first-use.ts with-provider|without-provider <home>`
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { memoryStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { allTools, openCodingAgent } from '@tapetree/agent'
import { buildSystemPrompt } from '@tapetree/agent/run'
import { RegistryError } from '@tapetree/agent/models'
import { systemKeyring } from '@tapetree/agent/settings'
import { startFakeProvider, type FakeAnswer } from '@tapetree/agent/testing'

const [what, home = ''] = process.argv.slice(2)
const env = { PATH: process.env['PATH'], HOME: home, ANTHROPIC_API_KEY: 'none' }
const model = 'anthropic/claude-opus-5'
const say = (words: string): FakeAnswer => ({ type: 'answer', content: [{ type: 'text', chunks: [words] }] })

async function withoutProvider(): Promise<void> {
  const environment = { platform: process.platform, cwd: home, shell: 'bash' }
  assert.ok(buildSystemPrompt({ environment, instructions: [], skills: [] }).length > 5000)
  for (const { name, description } of allTools()) assert.ok(description.length > 50, `${name} has no description`)
  await assert.rejects(openCodingAgent({ store: memoryStore(), cwd: home, home, env, flags: { model } }), (error) => {
    return error instanceof RegistryError && error.code === 'missing-package'
  })
  await assert.rejects(systemKeyring().get('anything'), /@napi-rs\/keyring is not installed/)
}

/** One run with a command, a search, a page and the tool of an extension: whatever is in a file of its own has to be there. */
async function withProvider(): Promise<void> {
  const provider = await startFakeProvider()
  const pages = createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end('<html><body><h1>A page</h1></body></html>'),
  )
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve))
  const address = pages.address()
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`
  const config = join(home, '.config/tapetree')
  await mkdir(config, { recursive: true, mode: 0o700 })
  await writeFile(join(config, 'extension.ts'), extension)
  const settings = {
    model,
    providers: { anthropic: { baseUrl: provider.baseUrl('anthropic') } },
    permissions: { mode: 'auto' },
    web: { allowPrivateAddresses: true },
    extensions: ['./extension.ts'],
  }
  await writeFile(join(config, 'settings.json'), JSON.stringify(settings))
  const cwd = join(home, 'work')
  await mkdir(cwd)
  await writeFile(join(cwd, 'a.txt'), 'one\nneedle\n')
  provider.script(
    calls({
      bash: { command: 'echo $((6 * 7))' },
      grep: { pattern: 'needle' },
      fetch: { url },
      shout: { text: 'hey' },
    }),
    say('Done.'),
  )
  const problems: string[] = []
  const store = openFileStore({ folder: join(home, 'sessions') })
  const agent = await openCodingAgent({ store, cwd, home, env, onProblem: ({ message }) => problems.push(message) })
  const outcome = await agent.session.prompt('Go')
  assert.equal(outcome.type, 'started')
  if (outcome.type === 'started') assert.equal((await outcome.run.done).outcome, 'completed')
  await agent.close()
  await store.close()
  await provider.close()
  pages.close()
  const results = JSON.stringify(provider.requests[1]?.body)
  for (const found of ['42', 'a.txt', '# A page', 'HEY'])
    assert.ok(results.includes(found), `${found} is not in ${results}`)
  assert.deepEqual(problems, [])
}

function calls(inputs: Record<string, unknown>): FakeAnswer {
  const content = Object.entries(inputs).map(([name, input]) => ({
    type: 'tool_call' as const,
    id: `call_${name}`,
    name,
    chunks: [JSON.stringify(input)],
  }))
  return { type: 'answer', content }
}

const extension = `import type { Extension } from '@tapetree/agent/extensions'
const shout: Extension = (api) => {
  api.registerTool({
    name: 'shout',
    description: 'Says it louder.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
    run: ({ text }) => ({ content: String(text).toUpperCase() }),
  })
}
export default shout
`

await (what === 'with-provider' ? withProvider() : withoutProvider())
