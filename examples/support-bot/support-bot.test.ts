import { startFakeProvider, type FakeAnswer, type FakeProvider } from '@tapetree/agent/testing'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const program = join(import.meta.dirname, 'support-bot.ts')

test('the support bot is a program of at most 25 lines', async () => {
  const lines = (await readFile(program, 'utf8')).split('\n').filter((line) => line.trim() !== '')
  expect(lines.length).toBeLessThanOrEqual(25)
})

test('killed inside a refund and started again, the bot refunds once, and the model is told', async () => {
  const provider = await startFakeProvider()
  onTestFinished(() => provider.close())
  provider.script(call('1', 'look_up_order'), call('2', 'refund_order'), say('Let me check with a person.'))
  const folder = await mkdtemp(join(tmpdir(), 'support-bot-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const shop = await startShop()
  const start = (): ChildProcess => startBot({ folder, provider, shopUrl: shop.url })

  const first = start()
  await shop.refunding
  first.kill('SIGKILL')
  expect(await once(first, 'exit')).toEqual([null, 'SIGKILL'])

  const second = start()
  const output = await outputOf(second)
  expect(output).toBe('Let me check with a person.\n')
  expect(shop.refunds).toEqual(['7'])
  const told = JSON.stringify(provider.requests.at(-1)?.body)
  expect(told).toContain('may have taken effect')
  expect(provider.requests).toHaveLength(3)
})

interface Shop {
  url: string
  /** The orders that were refunded. */
  refunds: string[]
  /** Resolves when the first refund is made. Its answer never comes. */
  refunding: Promise<void>
}

async function startShop(): Promise<Shop> {
  const refunds: string[] = []
  const { promise: refunding, resolve: refunded } = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    const [, order = '', action] = /^\/orders\/(\d+)(?:\/(\w+))?$/.exec(request.url ?? '') ?? []
    if (action !== 'refund') return response.end(`Order ${order}: a lamp for 49 EUR, paid.`)
    refunds.push(order)
    refunded()
    return undefined
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, refunds, refunding }
}

function startBot({
  folder,
  provider,
  shopUrl,
}: {
  folder: string
  provider: FakeProvider
  shopUrl: string
}): ChildProcess {
  const flags = ['-C', '@tapetree/source', program, 'customer-7', 'My lamp, order 7, is broken. Refund it.']
  const env = {
    ...process.env,
    ANTHROPIC_API_KEY: 'test-key',
    ANTHROPIC_BASE_URL: provider.baseUrl('anthropic'),
    SHOP_URL: shopUrl,
    FOLDER: folder,
  }
  const child = spawn(process.execPath, flags, {
    cwd: resolve(import.meta.dirname, '../..'),
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

async function outputOf(child: ChildProcess): Promise<string> {
  let output = ''
  child.stdout?.on('data', (chunk: Buffer) => void (output += chunk.toString()))
  expect(await once(child, 'exit')).toEqual([0, null])
  return output
}

function say(text: string): FakeAnswer {
  return { type: 'answer', content: [{ type: 'text', chunks: [text] }] }
}

function call(id: string, name: string): FakeAnswer {
  return { type: 'answer', content: [{ type: 'tool_call', id, name, chunks: ['{"order":"7"}'] }] }
}
